// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/yaml_document.h"

#include <sys/stat.h>
#include <utf8.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <numeric>
#include <sstream>

#include "daemon/base/complete.h"
#include "daemon/base/file_descriptor.h"

namespace ssdpulse::config {

namespace {

Position position_of(const YAML::Mark& mark) {
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

/// Valid YAML that we do not accept. Throwing is the only way to stop yaml-cpp halfway; read_document catches it.
struct Refusal : YAML::ParserException {
  using YAML::ParserException::ParserException;
};

[[noreturn]] void stop(const YAML::Mark& mark, const std::string& message) { throw Refusal(mark, message); }

/// The position of the first NUL, byte that is not UTF-8, or code point that is not a character (U+FFFE, U+FDD0 and the
/// like), or the end: yaml-cpp would accept them, and write something else.
std::size_t first_invalid_byte(std::string_view text) {
  auto at = text.begin();
  for (const auto valid = utf8::find_invalid(text.begin(), text.end()); at != valid;) {
    const auto begin = at;
    const std::uint32_t point = utf8::unchecked::next(at);
    if (point == 0 || (point & 0xfffe) == 0xfffe || (point >= 0xfdd0 && point <= 0xfdef)) {
      return static_cast<std::size_t>(begin - text.begin());
    }
  }
  return static_cast<std::size_t>(at - text.begin());
}

class TreeBuilder : public YAML::EventHandler {
 public:
  [[nodiscard]] Value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      stop(mark, "a second YAML document begins here; expected one document in a file");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    add(Value(Value::Kind::null, position_of(mark)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { check(mark, "", anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check(mark, tag, anchor);
    add(Value(Value::Kind::scalar, position_of(mark), text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check(mark, tag, anchor);
    open(Value::Kind::list, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check(mark, tag, anchor);
    open(Value::Kind::mapping, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Value value;
    bool key_is_open = false;  // mapping: the last entry still waits for its value
  };

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      stop(mark, "YAML anchors and aliases are not supported; expected the value itself");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {  // "?" and "!" stand for plain and quoted
      stop(mark, "YAML tags are not supported; expected the value alone");
    }
    if (++values_ > kMaxValues) {
      stop(mark, "too many values; expected at most " + std::to_string(kMaxValues));
    }
  }

  void open(Value::Kind kind, const YAML::Mark& mark) {
    if (frames_.size() == kMaxDepth) {
      stop(mark, "nested too deeply; expected at most " + std::to_string(kMaxDepth) + " levels");
    }
    frames_.push_back({Value(kind, position_of(mark))});
  }

  void close() {
    Value value = std::move(frames_.back().value);
    frames_.pop_back();
    add(std::move(value));
  }

  void add(Value value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.kind == Value::Kind::list) {
      frame.value.items.push_back(std::move(value));
    } else if (frame.key_is_open) {
      frame.value.entries.back().value = std::move(value);
      frame.key_is_open = false;
    } else {
      frame.value.entries.push_back({std::move(value), {}});
      frame.key_is_open = true;
    }
  }

  Value root_;
  std::vector<Frame> frames_;
  std::size_t values_ = 0;
  int documents_ = 0;
};

std::string_view line_of(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

/// yaml-cpp's own message, and its usual cause in a file like ours.
std::string explain(const YAML::Exception& failure, std::string_view text) {
  const std::string_view line = line_of(text, failure.mark.line + 1);
  const std::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
  if (failure.msg == YAML::ErrorMsg::DOC_IN_SCALAR) {
    return "a quote is still open at the end of the document; expected the closing quote";
  }
  if (failure.msg == YAML::ErrorMsg::ALIAS_NOT_FOUND || failure.msg.rfind(YAML::ErrorMsg::UNKNOWN_ANCHOR, 0) == 0 ||
      failure.msg == YAML::ErrorMsg::CHAR_IN_ALIAS) {
    return "a value that begins with * must be quoted, as in \"*\"; unquoted it is a YAML alias, not supported here";
  }
  std::string message = "invalid YAML: " + failure.msg;
  if (indent.find('\t') != std::string_view::npos) {
    message += "; expected spaces, not tabs, as indentation";
  } else if (line.find("]:") != std::string_view::npos) {
    message += "; an [IPV6]:PORT address must be quoted";
  }
  return message;
}

void emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      out << YAML::Null;
      break;
    case Value::Kind::scalar:
      if (!value.plain) {
        out << YAML::DoubleQuoted;
      }
      out << value.text;
      break;
    case Value::Kind::list:
      out << YAML::Flow << YAML::BeginSeq;
      for (const Value& item : value.items) {
        emit(out, item);
      }
      out << YAML::EndSeq;
      break;
    case Value::Kind::mapping:
      out << YAML::BeginMap;
      for (const Entry& entry : value.entries) {
        out << YAML::Key;
        emit(out, entry.key);
        out << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      break;
  }
}

/// Levenshtein distance: how many letters to insert, delete or replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string unknown_key(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxLetters = 64;  // no key is that long, and the distance to a hostile one would take long
  std::string_view nearest;
  std::size_t smallest = kMaxLetters;
  for (const std::string& candidate : known) {
    const std::size_t distance = name.size() > kMaxLetters ? kMaxLetters : edit_distance(name, candidate);
    if (distance < smallest && distance * 2 <= candidate.size()) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return "unknown key " + in_quotes(name) + (nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)") +
         "; expected " + (known.size() > 1 ? "one of " : "") + joined(known);
}

}  // namespace

std::string to_string(const Problem& problem) {
  const std::string position =
      problem.line > 0 ? ':' + std::to_string(problem.line) + ':' + std::to_string(problem.column) : "";
  return problem.file + position + ": " + problem.message;
}

std::string to_string(const std::vector<Problem>& problems) {
  std::string lines;
  for (const Problem& problem : problems) {
    lines += to_string(problem) + '\n';
  }
  return lines;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxQuotedBytes = 60;  // so that a message stays a line or two of a terminal
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 0xfU]};
    }
  }
  return result + (text.size() > kMaxQuotedBytes ? "...'" : "'");
}

Value::Value(Kind its_kind, Position its_position, std::string its_text)
    : kind(its_kind), at(its_position), text(std::move(its_text)) {}

Value make_scalar(std::string_view text, bool plain) {
  Value value(Value::Kind::scalar, {}, std::string(text));
  value.plain = plain;
  return value;
}

std::string_view describe(Value::Kind kind) {
  constexpr auto kNames = util::names<Value::Kind>({"nothing", "a single value", "a list", "a mapping"});
  return kNames[static_cast<std::size_t>(kind)];
}

std::string in_quotes(const Value& value) {
  return value.kind == Value::Kind::scalar ? in_quotes(value.text) : std::string(describe(value.kind));
}

bool Field::expect(Value::Kind kind, const Value& value, std::string_view text) const {
  if (value.kind != kind) {
    wrong(value, "expected " + std::string(text) + ", got " + std::string(describe(value.kind)));
  }
  return value.kind == kind;
}

std::optional<Value> read_document(std::string_view text, Report& report) {
  if (text.size() > kMaxBytes) {
    report.add({}, "larger than " + std::to_string(kMaxBytes) + " bytes; expected a configuration");
    return std::nullopt;
  }
  if (const std::size_t wrong = first_invalid_byte(text); wrong != text.size()) {
    const std::string_view before = text.substr(0, wrong);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0: the first line
    report.add({static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
                static_cast<int>(wrong - line_start) + 1},
               text[wrong] == '\0' ? "a NUL byte; expected YAML text in UTF-8"
                                   : "bytes that are not valid UTF-8; expected YAML text in UTF-8");
    return std::nullopt;
  }
  try {
    // yaml-cpp treats the end of the input as a closing quote, so a file cut off within a quoted text would pass; it
    // complains at an explicit end of document.
    std::istringstream input(std::string(text) + "\n...\n");
    YAML::Parser parser(input);
    TreeBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refusal& refusal) {
    report.add(position_of(refusal.mark), refusal.msg);
  } catch (const YAML::Exception& failure) {
    report.add(position_of(failure.mark), explain(failure, text));
  } catch (const std::exception& failure) {
    report.add({}, std::string("cannot be read as YAML: ") + failure.what());
  }
  return std::nullopt;
}

std::string write_document(const Value& root) {
  YAML::Emitter out;
  emit(out, root);
  return std::string(out.c_str(), out.size()) + '\n';
}

std::string joined(const std::vector<std::string>& names, std::string_view comma, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size() && !last.empty();
    text.append(i == 0 ? "" : is_last ? last : comma).append(names[i]);
  }
  return text;
}

void visit_entries(const Value& mapping, const std::vector<std::string>& known, Report& report, const Visit& visit) {
  std::map<std::string, Position> seen;
  for (const Entry& entry : mapping.entries) {
    const Value& name = entry.key;
    if (name.kind != Value::Kind::scalar) {
      report.add(name.at, "expected a word as key, got " + in_quotes(name));
      continue;
    }
    if (const auto [first, is_new] = seen.emplace(name.text, name.at); !is_new) {
      // A key that is not in our lists may be a misplaced secret.
      report.add(name.at, "duplicate key" + (known.empty() ? "" : " " + in_quotes(name.text)) + ", first on line " +
                              std::to_string(first->second.line) + "; expected each key once");
    }
    if (!known.empty() && std::find(known.begin(), known.end(), name.text) == known.end()) {
      report.add(name.at, unknown_key(name.text, known));
      continue;
    }
    Value value = entry.value;
    if (value.kind == Value::Kind::null) {
      value.at = name.at;  // yaml-cpp places an absent value at the next token
    }
    visit(name.text, value);
  }
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

util::Result<std::string> read_regular_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return util::fail_errno("cannot be opened");
  }
  if (!S_ISREG(status.st_mode)) {
    return util::fail(S_ISDIR(status.st_mode) ? "is a directory; expected a file" : "expected a regular file");
  }
  auto text = util::read_file(path, kMaxBytes);
  if (!text) {
    // Its message names the path, which a problem does already.
    return text.error().error_number == EFBIG
               ? util::fail("is longer than " + std::to_string(kMaxBytes) + " bytes", EFBIG)
               : util::fail_errno("cannot be read", text.error().error_number);
  }
  return text;
}

}  // namespace ssdpulse::config

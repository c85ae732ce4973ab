// SPDX-License-Identifier: Apache-2.0
#include "daemon/simulation/load_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "daemon/model/write_details.h"

namespace ssdpulse::simulation {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kMaxShown = 60;  // characters of a wrong line

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// As shown in a message: printable, and not too long.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, kMaxShown));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + result + (text.size() > kMaxShown ? "...'" : "'");
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint8_t> hint_of(std::string_view text) {
  constexpr std::size_t kDeclarable = 6;
  if (const auto value = number(text)) {
    return *value < kDeclarable ? std::optional(static_cast<std::uint8_t>(*value)) : std::nullopt;
  }
  const auto* const found =
      std::find(model::kWriteHintNames.begin(), model::kWriteHintNames.begin() + kDeclarable, text);
  return found == model::kWriteHintNames.begin() + kDeclarable
             ? std::nullopt
             : std::optional(static_cast<std::uint8_t>(found - model::kWriteHintNames.begin()));
}

}  // namespace

util::Result<std::optional<LoadLine>> parse_load_line(std::string_view line, std::uint64_t size_bytes) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') {
    return std::nullopt;
  }
  std::array<std::string_view, 5> fields;
  std::size_t count = 0;
  for (std::string_view rest = line; count < fields.size();) {
    const std::size_t comma = rest.find(',');
    fields[count++] = trimmed(rest.substr(0, comma));
    if (comma == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(comma + 1);
  }
  const bool discard = fields[0] == "D";
  if ((!discard && fields[0] != "W") || count < 3 || count > (discard ? 3U : 4U)) {
    return util::fail("expected W,OFFSET,BYTES[,HINT] or D,OFFSET,BYTES, found " + shown(line));
  }
  const auto offset = number(fields[1]);
  const auto bytes = number(fields[2]);
  const auto hint = count == 4 ? hint_of(fields[3]) : std::uint8_t{0};
  if (!offset || !bytes) {
    return util::fail(std::string(offset ? "the size " : "the offset ") + shown(fields[offset ? 2 : 1]) +
                      " is not a number of bytes");
  }
  if (!hint) {
    return util::fail("the hint " + shown(fields[3]) +
                      " is not one of not_set, none, short, medium, long, extreme, 0 to 5");
  }
  if (*bytes > size_bytes || *offset > size_bytes - *bytes) {
    return util::fail(fmt::format("{} bytes at {} are beyond the {} bytes of the drive", *bytes, *offset, size_bytes));
  }
  return *bytes == 0 ? std::nullopt : std::optional(LoadLine{discard, *offset, *bytes, *hint});
}

bool LoadLog::refill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  input_.read(buffer_.data() + kept, kChunk);
  const auto read = static_cast<std::size_t>(input_.gcount());
  buffer_.resize(kept + read);
  bytes_read_ += read;
  return read > 0;
}

util::Result<std::optional<std::string_view>> LoadLog::next_line() {
  std::size_t end = buffer_.find('\n', at_);
  if (end == std::string::npos && !ended_) {
    ended_ = !refill();
    end = buffer_.find('\n', at_);
    if (input_.bad()) {
      return util::fail(name_ + ": cannot be read");
    }
  }
  if (end == std::string::npos && at_ == buffer_.size()) {
    return std::nullopt;
  }
  ++lines_;
  const std::size_t length = std::min(end, buffer_.size()) - at_;
  if (length > kLongestLine) {
    return util::fail(fmt::format("{}: longer than {} characters", place(), kLongestLine));
  }
  const std::string_view line(buffer_.data() + at_, length);
  at_ = std::min(at_ + length + 1, buffer_.size());
  return line;
}

util::Result<std::optional<LoadLine>> LoadLog::next() {
  while (true) {
    const auto line = next_line();
    if (!line) {
      return tl::make_unexpected(line.error());
    }
    if (!*line) {
      return std::nullopt;
    }
    auto parsed = parse_load_line(**line, size_bytes_);
    if (!parsed) {
      return tl::make_unexpected(parsed.error().within(place()));
    }
    if (*parsed) {
      return parsed;
    }
  }
}

}  // namespace ssdpulse::simulation

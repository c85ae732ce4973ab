// SPDX-License-Identifier: Apache-2.0
// Chooses the form of a log line for its reader, and keeps repeated messages rare.
#include "daemon/util/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include "daemon/util/journal.h"
#include "daemon/util/json_line.h"

namespace ssdpulse::log {
namespace {

char priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::err:
      return '3';
    case spdlog::level::warn:
      return '4';
    case spdlog::level::info:
      return '6';
    default:
      return '7';
  }
}

/// The level as a syslog priority, as sd-daemon(3) expects it before a line.
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
    out.push_back('<');
    out.push_back(priority_of(message.level));
    out.push_back('>');
  }

  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

/// Lines that the journal does not accept go to stderr, which the journal reads too; writing there waits for it.
class JournalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JournalSink(Journal journal) : journal_(std::move(journal)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (!journal_.send(journal_entry(priority_of(message.level), text))) {
      stderr_.log(message);
    }
  }
  void flush_() override { stderr_.flush(); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    stderr_.set_formatter(std::move(formatter));
  }

 private:
  Journal journal_;
  spdlog::sinks::stderr_color_sink_st stderr_;
};

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    fmt::format_to(
        std::back_inserter(out), "{}\n",
        json_line(message.time, {level.data(), level.size()}, {message.payload.data(), message.payload.size()}));
  }
  [[nodiscard]] std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

std::unique_ptr<spdlog::formatter> text_formatter(bool journal_reads) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PriorityFlag>('*');
  formatter->set_pattern(journal_reads ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  return formatter;
}

/// systemd sets JOURNAL_STREAM to "device:inode" of the stream; children inherit the variable but perhaps not the
/// stream, so the numbers decide.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): set-up, before any thread
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) {
    return false;
  }
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      break;
  }
  return spdlog::level::err;
}

/// How a line begins, up to its first field, or from there to the second if it begins with one: what follows may be
/// anybody's words.
std::string_view kind_of(std::string_view format, std::string_view line) {
  constexpr std::size_t kMaxKindLength = 40;
  if (format != "{}") {
    return format;
  }
  const std::size_t first_word = line.find(' ');
  if (first_word != std::string_view::npos && line.find('=') < first_word) {
    line.remove_prefix(first_word + 1);
  }
  return line.substr(0, std::min(line.find('='), kMaxKindLength));
}

/// The one limiter of the process, for all threads.
class Kinds {
 public:
  bool admit(std::string_view kind) {
    const std::lock_guard lock(mutex_);
    return limiter_.admit(kind, KindLimiter::Clock::now());
  }
  std::uint64_t left_out() {
    const std::lock_guard lock(mutex_);
    return limiter_.left_out();
  }
  std::uint64_t new_left_out() {
    const std::lock_guard lock(mutex_);
    return limiter_.left_out() - std::exchange(reported_, limiter_.left_out());
  }

 private:
  std::mutex mutex_;
  KindLimiter limiter_;
  std::uint64_t reported_ = 0;
};

Kinds& kinds() {
  static Kinds one;
  return one;
}

std::optional<spdlog::level::level_enum> level_by_name(const std::string& name) {
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warning") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return std::nullopt;
}

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args arguments) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(level_of(level))) {
    return;
  }
  const std::string line = fmt::vformat(format, arguments);
  const bool limited = level == Level::info || level == Level::warning;
  if (!limited || kinds().admit(kind_of({format.data(), format.size()}, line))) {
    logger.log(level_of(level), line);
  }
}

std::uint64_t lines_left_out() { return kinds().left_out(); }

void report_left_out() {
  if (const std::uint64_t lines = kinds().new_left_out(); lines > 0) {
    write(Level::warning, "log lines left out: more than {} of a kind in a minute lines={}",
          fmt::make_format_args(kMaxLinesPerKind, lines));
  }
}

bool KindLimiter::admit(std::string_view kind, Clock::time_point now) {
  constexpr std::size_t kMaxKinds = 500;
  auto found = minutes_.find(kind);
  if (found == minutes_.end()) {
    found = minutes_.try_emplace(std::string(minutes_.size() < kMaxKinds ? kind : "")).first;
  }
  Minute& minute = found->second;
  if (minute.lines == 0 || now - minute.begin >= std::chrono::minutes(1)) {
    minute = {now, 0};
  }
  const bool admitted = ++minute.lines <= kMaxLinesPerKind;
  left_out_ += admitted ? 0 : 1;
  return admitted;
}

std::optional<Format> format_by_name(const std::string& name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  return std::nullopt;
}

util::Result<void> set_up(const std::string& level, InJournal in_journal, Format format) {
  const auto wanted = level_by_name(level);
  if (!wanted) {
    return util::fail("unknown log level \"" + level + "\": expected debug, info, warning or error");
  }
  try {
    const bool journal_reads = stderr_is_journal();
    auto journal =
        journal_reads && in_journal == InJournal::fields && format == Format::text ? Journal::open() : std::nullopt;
    spdlog::sink_ptr sink;
    if (journal) {
      sink = std::make_shared<JournalSink>(std::move(*journal));
    } else {
      sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    }
    auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
    logger->set_formatter(format == Format::json ? std::make_unique<JsonFormatter>() : text_formatter(journal_reads));
    logger->set_level(*wanted);
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return util::fail(std::string("cannot set up logging: ") + error.what());
  }
  return {};
}

Limiter::Limiter(Clock::duration interval, std::size_t max_keys) : interval_(interval), max_keys_(max_keys) {}

std::optional<std::uint64_t> Limiter::admit(const std::string& key, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end() && entries_.size() >= max_keys_) {
    forget_expired(now);
    if (entries_.size() >= max_keys_) {
      found = entries_.find("");
    }
  }
  if (found == entries_.end()) {
    entries_.emplace(entries_.size() < max_keys_ ? key : "", Entry{now, 0});
    return 0;
  }
  Entry& entry = found->second;
  if (now - entry.admitted < interval_) {
    ++entry.suppressed;
    return std::nullopt;
  }
  entry.admitted = now;
  return std::exchange(entry.suppressed, 0);
}

void Limiter::forget_expired(Clock::time_point now) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    entry = now - entry->second.admitted >= interval_ ? entries_.erase(entry) : std::next(entry);
  }
}

}  // namespace ssdpulse::log

// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include "daemon/base/complete.h"
#include "daemon/base/log_output.h"

namespace ssdpulse::log {
namespace {

/// Besides spdlog's logger, which writes to stderr. Set before there are threads.
struct Output {
  std::optional<Journal> journal;
  bool journal_reads = false;  // stderr
  Format format = Format::text;
};

Output& output() {
  static Output output;
  return output;
}

struct LevelNames {
  Level level;
  std::string_view name;
  spdlog::level::level_enum in_spdlog;
  char priority;  // syslog's, as sd-daemon(3) expects it before a line
};
constexpr std::array kLevels{LevelNames{Level::debug, "debug", spdlog::level::debug, '7'},
                             LevelNames{Level::info, "info", spdlog::level::info, '6'},
                             LevelNames{Level::warning, "warning", spdlog::level::warn, '4'},
                             LevelNames{Level::error, "error", spdlog::level::err, '3'}};
static_assert(util::is_table_of<Level>(kLevels, &LevelNames::level), "each level has one entry, in their order");

const LevelNames& names_of(Level level) { return kLevels[static_cast<std::size_t>(level)]; }

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

/// The one limiter of the process, for all threads.
KindLimiter& kind_limiter() {
  static KindLimiter limiter;
  return limiter;
}

/// Lines that the journal does not accept go to stderr, which the journal reads too; writing there waits for it.
void emit(const Line& line, spdlog::logger& logger) {
  const Output& to = output();
  const auto level = names_of(line.level).in_spdlog;
  const char priority = names_of(line.level).priority;
  if (to.format == Format::json) {
    const auto name = spdlog::level::to_string_view(level);
    logger.log(level, json_line(std::chrono::system_clock::now(), {name.data(), name.size()}, line.text, line.fields));
  } else if (!to.journal_reads) {
    logger.log(level, line.text);
  } else if (!to.journal || !to.journal->send(journal_entry(priority, line.text, line.fields))) {
    logger.log(level, fmt::format("<{}>{}", priority, line.text));
  }
}

}  // namespace

Line make_line(Level level, fmt::string_view format, std::size_t placeholders, fmt::format_args arguments,
               std::span<const Field* const> fields) {
  Line line{level, {format.data(), format.size()}, fmt::vformat(format, arguments), {}};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == nullptr || fields[i]->name.empty()) {
      continue;
    }
    line.fields.push_back(*fields[i]);
    if (i >= placeholders) {
      line.text += fmt::format(" {}", *fields[i]);
    }
  }
  return line;
}

void write(const Line& line) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  const bool limited = line.level == Level::info || line.level == Level::warning;
  if (logger.should_log(names_of(line.level).in_spdlog) && (!limited || kind_limiter().admit(line.kind))) {
    emit(line, logger);
  }
}

std::uint64_t lines_left_out() { return kind_limiter().left_out(); }

void report_left_out() {
  static std::atomic<std::uint64_t> reported = 0;
  const std::uint64_t left_out = lines_left_out();
  if (const std::uint64_t lines = left_out - reported.exchange(left_out); lines > 0) {
    warning("log lines left out: more than {} of a kind in a minute", kMaxLinesPerKind, field("lines", lines));
  }
}

bool KindLimiter::admit(std::string_view kind, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Minute& minute = minutes_[std::string(kind)];
  if (minute.lines == 0 || now - minute.begin >= std::chrono::minutes(1)) {
    minute = {now, 0};
  }
  const bool admitted = ++minute.lines <= kMaxLinesPerKind;
  left_out_ += admitted ? 0 : 1;
  return admitted;
}

std::uint64_t KindLimiter::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

std::optional<Format> format_by_name(const std::string& name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  return std::nullopt;
}

util::Result<void> set_up(const std::string& level, InJournal in_journal, Format format) {
  const auto* wanted =
      std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& known) { return known.name == level; });
  if (wanted == kLevels.end()) {
    return util::fail("unknown log level \"" + level + "\": expected debug, info, warning or error");
  }
  try {
    Output to{std::nullopt, stderr_is_journal(), format};
    if (to.journal_reads && in_journal == InJournal::fields && format == Format::text) {
      to.journal = Journal::open();
    }
    auto logger = std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_pattern(to.journal_reads || format == Format::json ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
    logger->set_level(wanted->in_spdlog);
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    output() = std::move(to);
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

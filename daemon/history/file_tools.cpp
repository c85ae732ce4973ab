// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_tools.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "daemon/history/account_check.h"
#include "daemon/history/database_file.h"
#include "daemon/history/history.h"
#include "daemon/history/salvage.h"
#include "daemon/util/directory_lock.h"

namespace ssdpulse::history {
namespace {

util::Result<std::uint64_t> size_of(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::is_regular_file(status)) {
    return util::fail(path + ": " + (error ? error.message() : "is not a regular file"), error.value());
  }
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? util::fail(path + ": " + error.message(), error.value()) : util::Result<std::uint64_t>(bytes);
}

util::Result<void> may_copy(const std::string& path, const std::string& to) {
  if (const auto bytes = size_of(path); !bytes) {
    return tl::make_unexpected(bytes.error());
  }
  std::error_code error;
  if (std::filesystem::exists(to, error) || error) {
    return util::fail(to + (error ? ": " + error.message() : " exists already: name another file"));
  }
  return {};
}

/// Who may read a history may read its copy, and nobody else: it has serial numbers and tenants.
void give_to_owner_of(const std::string& path, const std::string& copy) {
  constexpr mode_t kMode = 0640;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && ::chmod(copy.c_str(), kMode & status.st_mode) == 0 && ::geteuid() == 0 &&
      ::chown(copy.c_str(), status.st_uid, status.st_gid) != 0) {
    ::chmod(copy.c_str(), S_IRUSR | S_IWUSR);
  }
}

Outcome<void> copy(Connection& from, Connection& to, const Progress& progress) {
  constexpr int kPagesAtATime = 256;
  constexpr int kMillisecondsToWait = 5;       // for a writer, between two steps
  constexpr std::chrono::seconds kShared{20};  // then the rest is copied at once: each write begins the copy again
  constexpr std::chrono::seconds kBusy{60};
  const auto began = std::chrono::steady_clock::now();
  const std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"), sqlite3_backup_finish);
  if (!backup) {
    return tl::unexpected(to.failure(sqlite3_errcode(to.get())));
  }
  while (true) {
    const auto took = std::chrono::steady_clock::now() - began;
    const int code = sqlite3_backup_step(backup.get(), took < kShared ? kPagesAtATime : -1);
    if (code == SQLITE_DONE) {
      return {};
    }
    const bool is_busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
    if ((code != SQLITE_OK && !is_busy) || (is_busy && took > kBusy)) {
      return tl::unexpected(from.failure(code));
    }
    const int pages = sqlite3_backup_pagecount(backup.get());
    progress(pages == 0 ? 0 : 1 - static_cast<double>(sqlite3_backup_remaining(backup.get())) / pages);
    sqlite3_sleep(kMillisecondsToWait);
  }
}

}  // namespace

util::Result<FileReport> check_file(const std::string& path) {
  FileReport report;
  const auto bytes = size_of(path);
  if (!bytes) {
    return tl::make_unexpected(bytes.error());
  }
  report.bytes = *bytes;
  auto connection = open_to_check(path);
  if (!connection) {
    if (!connection.error().damaged) {
      return util::fail(path + ": " + connection.error().message);
    }
    report.problems.push_back("the file " + connection.error().message);
    return report;
  }
  const auto check = check_account(*connection);
  if (!check) {
    report.problems.push_back(check.error().message);
    return report;
  }
  report.rows = check->rows;
  if (!check->agrees()) {
    report.problems.push_back(check->text());
  }
  return report;
}

util::Result<void> back_up(const std::string& path, const std::string& to, const Progress& progress) {
  if (const auto ready = may_copy(path, to); !ready) {
    return ready;
  }
  const std::string unfinished = to + ".unfinished";  // the name of a copy says that it is complete
  ::unlink(unfinished.c_str());  // of an earlier attempt, or a link that somebody left there for root to follow
  const mode_t mask = ::umask(S_IRWXG | S_IRWXO);
  const auto done = [&]() -> Outcome<void> {
    auto from = Connection::open_to_read(path);
    auto target = from ? Connection::open(unfinished) : tl::unexpected(from.error());
    return target ? copy(*from, *target, progress) : tl::unexpected(target.error());
  }();
  ::umask(mask);
  ::unlink((unfinished + "-journal").c_str());
  if (!done || ::rename(unfinished.c_str(), to.c_str()) != 0) {
    const std::string why = done ? std::strerror(errno) : done.error().message;
    ::unlink(unfinished.c_str());
    return util::fail("cannot copy " + path + " to " + to + ": " + why +
                      (!done && done.error().damaged ? "; save what is readable: --salvage" : ""));
  }
  give_to_owner_of(path, to);
  return {};
}

util::Result<std::string> salvage_file(const std::string& path, const std::string& to) {
  if (const auto ready = may_copy(path, to); !ready) {
    return tl::make_unexpected(ready.error());
  }
  const std::filesystem::path file(path);
  if (file.filename() == kFileName && util::is_locked(file.parent_path().string())) {
    return util::fail("a daemon writes to " + path + ": stop it, or salvage a copy (--backup)");
  }
  const std::atomic<bool> never = false;
  const mode_t mask = ::umask(S_IRWXG | S_IRWXO);
  const auto salvaged = salvage(path, to, never);
  ::umask(mask);
  give_to_owner_of(path, to);
  return salvaged ? util::Result<std::string>(salvaged->lost_text())
                  : util::fail("cannot save anything from " + path + ": " + salvaged.error().message);
}

}  // namespace ssdpulse::history

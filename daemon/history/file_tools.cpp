// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_tools.h"

#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "daemon/history/account_check.h"
#include "daemon/history/database_file.h"
#include "daemon/history/salvage.h"

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

/// A copy that is complete, or not there.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  ~NewFile() {
    if (!kept_) {
      ::unlink(path_.c_str());
    }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

Outcome<void> copy(Connection& from, Connection& to, const Progress& progress) {
  constexpr int kPagesAtATime = 256;
  constexpr int kMillisecondsToWait = 5;  // for a writer, between two steps
  const std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"), sqlite3_backup_finish);
  if (!backup) {
    return tl::unexpected(to.failure(sqlite3_errcode(to.get())));
  }
  while (true) {
    const int code = sqlite3_backup_step(backup.get(), kPagesAtATime);
    if (code == SQLITE_DONE) {
      return {};
    }
    if (code != SQLITE_OK && code != SQLITE_BUSY && code != SQLITE_LOCKED) {
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
  NewFile file(to);
  auto from = Connection::open_to_read(path);
  auto target = from ? Connection::open(to) : tl::unexpected(from.error());
  const auto done = target ? copy(*from, *target, progress) : tl::unexpected(target.error());
  if (!done) {
    return util::fail("cannot copy " + path + " to " + to + ": " + done.error().message);
  }
  file.keep();
  return {};
}

util::Result<std::string> salvage_file(const std::string& path, const std::string& to) {
  if (const auto ready = may_copy(path, to); !ready) {
    return tl::make_unexpected(ready.error());
  }
  const std::atomic<bool> never = false;
  const auto salvaged = salvage(path, to, never);
  return salvaged ? util::Result<std::string>(salvaged->lost_text())
                  : util::fail("cannot save anything from " + path + ": " + salvaged.error().message);
}

}  // namespace ssdpulse::history

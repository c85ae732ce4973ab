// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_tools.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "daemon/history/account_check.h"
#include "daemon/history/database_file.h"
#include "daemon/history/history.h"
#include "daemon/history/salvage.h"
#include "daemon/util/directory_lock.h"
#include "daemon/util/unique_fd.h"

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

/// A directory that only this user may look into, and that goes with all that is in it.
class PrivateDirectory {
 public:
  explicit PrivateDirectory(const std::string& beginning) : path_(beginning + "XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      error_ = errno;
    }
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  ~PrivateDirectory() {
    std::error_code none;
    if (error_ == 0) {
      std::filesystem::remove_all(path_, none);
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int error() const { return error_; }

 private:
  std::string path_;
  int error_ = 0;
};

util::Result<void> copy_bytes(int from, const std::string& to) {
  const util::UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  struct stat status {};
  if (!out.valid() || ::fstat(from, &status) != 0) {
    return util::fail_errno(to, errno);
  }
  for (off_t at = 0; at < status.st_size;) {
    const ssize_t more = ::sendfile(out.get(), from, &at, static_cast<std::size_t>(status.st_size - at));
    if (more <= 0) {
      return more == 0 ? util::fail(to + ": the file became shorter") : util::fail_errno(to, errno);
    }
  }
  return {};
}

util::Result<util::UniqueFd> open_regular(const std::string& path) {
  util::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return util::fail_errno(path, errno);
  }
  return S_ISREG(status.st_mode) ? util::Result<util::UniqueFd>(std::move(file))
                                 : util::fail(path + ": is not a regular file");
}

/// Copies a history and its journal, and has SQLite undo in the copy what the journal says. While both are copied, this
/// holds SQLite's lock of a reader: a daemon that starts meanwhile undoes it in the original only afterwards.
util::Result<void> copy_undone(const std::string& path, const std::string& to) {
  constexpr off_t kSharedFirst = 0x40000002;  // in SQLite's own files, os.h
  constexpr off_t kSharedBytes = 510;
  const auto file = open_regular(path);
  if (!file) {
    return tl::make_unexpected(file.error());
  }
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kSharedFirst;
  lock.l_len = kSharedBytes;
  if (::fcntl(file->get(), F_OFD_SETLK, &lock) != 0) {
    return util::fail(path + ": a daemon is about to undo it; try again");
  }
  const auto journal = open_regular(path + "-journal");
  if (!journal) {
    return tl::make_unexpected(journal.error());
  }
  return copy_bytes(file->get(), to)
      .and_then([&] { return copy_bytes(journal->get(), to + "-journal"); })
      .and_then([&]() -> util::Result<void> {
        const auto undone = Connection::open(to).and_then([](Connection connection) {
          return connection.execute("PRAGMA synchronous = OFF").and_then([&] {
            return connection.number("PRAGMA schema_version");
          });
        });
        return undone ? util::Result<void>() : util::fail(to + ": " + undone.error().message);
      });
}

/// Calls `use` with a path at which no transaction is unfinished. Where the last writer was killed within one, and no
/// daemon has undone it yet, that is a copy, in a private directory whose name begins with `beginning`: the original is
/// not ours to write to.
template <typename Use>
auto with_undone(const std::string& path, const std::string& beginning, Use use) -> decltype(use(path)) {
  const auto begun = Connection::open_to_read(path).and_then(
      [](Connection connection) { return connection.number("PRAGMA schema_version"); });
  if (begun || !begun.error().unfinished) {
    return use(path);
  }
  const PrivateDirectory directory(beginning);
  if (directory.error() != 0) {
    return util::fail_errno(directory.path(), directory.error());
  }
  const std::string copy = directory.path() + "/copy";
  if (const auto copied = copy_undone(path, copy); !copied) {
    return util::fail(path +
                      ": whoever wrote to it was killed within a transaction, which cannot be undone in a copy: " +
                      copied.error().message);
  }
  return use(copy);
}

util::Result<FileReport> report_of(const std::string& path, const std::string& shown_as) {
  FileReport report;
  auto connection = open_to_check(path);
  if (!connection) {
    if (!connection.error().damaged) {
      return util::fail(shown_as + ": " + connection.error().message);
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

/// `source`: `path`, or a copy of it.
util::Result<void> back_up(const std::string& path, const std::string& source, const std::string& to,
                           const Progress& progress) {
  const std::string unfinished = to + ".unfinished";  // the name of a copy says that it is complete
  ::unlink(unfinished.c_str());  // of an earlier attempt, or a link that somebody left there for root to follow
  const mode_t mask = ::umask(S_IRWXG | S_IRWXO);
  const auto done = [&]() -> Outcome<void> {
    auto from = Connection::open_to_read(source);
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

}  // namespace

util::Result<FileReport> check_file(const std::string& path) {
  const auto bytes = size_of(path);
  if (!bytes) {
    return tl::make_unexpected(bytes.error());
  }
  const char* temporary = std::getenv("TMPDIR");
  return with_undone(path, std::string(temporary == nullptr ? "/var/tmp" : temporary) + "/ssdpulse-check-",
                     [&](const std::string& source) {
                       return report_of(source, path).map([&](FileReport report) {
                         report.bytes = *bytes;
                         report.undone = source != path;
                         return report;
                       });
                     });
}

util::Result<void> back_up(const std::string& path, const std::string& to, const Progress& progress) {
  if (const auto ready = may_copy(path, to); !ready) {
    return ready;
  }
  return with_undone(path, to + ".undone-",
                     [&](const std::string& source) { return back_up(path, source, to, progress); });
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
  auto lost = with_undone(path, to + ".undone-", [&](const std::string& source) {
    const auto salvaged = salvage(source, to, never);
    return salvaged ? util::Result<std::string>(salvaged->lost_text())
                    : util::fail("cannot save anything from " + path + ": " + salvaged.error().message);
  });
  ::umask(mask);
  if (lost) {
    give_to_owner_of(path, to);
  }
  return lost;
}

}  // namespace ssdpulse::history

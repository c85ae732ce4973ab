// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_tools.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/history/database_file.h"
#include "daemon/history/file_account.h"
#include "daemon/history/history.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {
namespace {

// The files of a database, the main one last: if we die in between, the others are not considered stale and lost.
constexpr std::array kSuffixes{"-journal", "-wal", "-shm", ""};
constexpr std::size_t kStampLetters = 16;  // YYYYmmddTHHMMSSZ

std::string stamp_of(std::chrono::sys_seconds now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const std::size_t letters = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), letters};
}

/// Stamps of files set aside before, oldest first.
std::vector<std::string> stamps_in(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> stamps;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() != prefix.size() + kStampLetters || name.compare(0, prefix.size(), prefix) != 0) {
      continue;
    }
    const std::string stamp = name.substr(prefix.size());
    if (stamp.find_first_not_of("0123456789TZ") == std::string::npos && stamp[8] == 'T' && stamp.back() == 'Z') {
      stamps.push_back(stamp);
    }
  }
  std::sort(stamps.begin(), stamps.end());
  return stamps;
}

struct Plan {
  std::string stamp;
  std::vector<std::string> removed;  // stamps of files that make room for it
};

util::Result<Plan> plan_for(const std::string& directory, const std::string& prefix, std::chrono::sys_seconds now) {
  std::vector<std::string> stamps = stamps_in(directory, prefix);
  std::string stamp = stamp_of(now);
  while (std::count(stamps.begin(), stamps.end(), stamp) > 0) {
    now += std::chrono::seconds(1);
    stamp = stamp_of(now);
  }
  const std::size_t surplus = stamps.size() + 1 > kMaxSetAside ? stamps.size() + 1 - kMaxSetAside : 0;
  if (surplus > 0 && stamps[surplus - 1] > stamp_of(now - std::chrono::hours(24)) && stamps[surplus - 1] <= stamp) {
    return util::fail(std::to_string(stamps.size()) + " files were set aside within a day");
  }
  stamps.resize(surplus);
  return Plan{stamp, stamps};
}

std::string prefix_of(const std::string& file) { return file + ".set-aside-"; }

/// All tables, each after those that it refers to.
std::vector<std::string> tables() {
  std::vector<std::string> tables(model::kTables.begin(), model::kTables.end());
  tables.insert(tables.end(), {"clock_step", "account"});
  return tables;
}

/// Each on a connection of its own, because SQLite's cache depends on how damaged pages are shown.
Outcome<Connection> open_damaged(const std::string& path, BlankPage shown_as) {
  return open_existing(path, Truncated::allowed).map([&](Connection connection) {
    auto kind = static_cast<std::uint8_t>(shown_as);
    sqlite3_file_control(connection.get(), nullptr, kShowMismatchedAs, &kind);
    return connection;
  });
}

Outcome<void> copy_row(const Statement& row, Statement& insert) {
  insert.reset();
  for (int column = 0; column < row.columns(); ++column) {
    insert.with_value_of(row, column);
  }
  const auto inserted = insert.run();
  return !inserted && inserted.error().refused ? Outcome<void>() : inserted;
}

class Copier {
 public:
  Copier(const std::string& from, Connection& to, const std::atomic<bool>& stop) : from_(from), to_(to), stop_(stop) {}

  /// Keys are read where a damaged page is empty, rows where it is an error: a row that continues in a damaged page is
  /// lost, without those after it.
  Outcome<void> copy(const std::string& table) {
    auto keys_of = open_damaged(from_, BlankPage::of_table);
    if (keys_of && !Statement(*keys_of, ("SELECT rowid FROM " + table + " LIMIT 0").c_str()).step()) {
      keys_of = open_damaged(from_, BlankPage::of_index);
    }
    auto rows_of = keys_of ? open_existing(from_, Truncated::allowed) : tl::unexpected(keys_of.error());
    const auto columns = rows_of ? key_columns(*rows_of, table) : tl::unexpected(rows_of.error());
    return columns ? copy(table, *columns, *keys_of, *rows_of) : tl::unexpected(columns.error());
  }

 private:
  static Outcome<std::vector<std::string>> key_columns(Connection& from, const std::string& table) {
    Statement names(from, ("SELECT name FROM pragma_table_info('" + table + "') WHERE pk > 0 ORDER BY pk").c_str());
    std::vector<std::string> columns;
    return names.each([&] { columns.push_back(names.name(0)); }).map([&] { return std::move(columns); });
  }

  Outcome<void> copy(const std::string& table, const std::vector<std::string>& columns, Connection& keys_of,
                     Connection& rows_of) {
    Statement keys(keys_of, fmt::format("SELECT {0} FROM {1} ORDER BY {0}", fmt::join(columns, ", "), table).c_str());
    Statement row(rows_of,
                  fmt::format("SELECT * FROM {} WHERE {} = ?", table, fmt::join(columns, " = ? AND ")).c_str());
    Statement insert(
        to_, fmt::format("INSERT OR IGNORE INTO {} VALUES (?{})", table,
                         fmt::join(std::vector<std::string>(static_cast<std::size_t>(row.columns()) - 1, ", ?"), ""))
                 .c_str());
    while (true) {
      const auto key = keys.step();
      if (!key && !key.error().damaged) {
        return tl::unexpected(key.error());
      }
      if (!key.value_or(false)) {  // also where the tree is broken: the rest is counted as lost
        return {};
      }
      row.reset();
      for (int column = 0; column < keys.columns(); ++column) {
        row.with_value_of(keys, column);
      }
      const auto read = row.step();
      if (!read && !read.error().damaged && read.error().obstacle != Obstacle::io_error) {
        return tl::unexpected(read.error());
      }
      if (const auto copied = read.value_or(false) ? copy_row(row, insert) : Outcome<void>(); !copied) {
        return copied;
      }
      if (stop_) {
        return tl::unexpected(Failure{"the daemon is stopping"});
      }
    }
  }

  const std::string& from_;
  Connection& to_;
  const std::atomic<bool>& stop_;
};

/// Adds a row for each device whose own row is lost: its rows are shown as those of an unknown device, and they age.
/// Hours that are made are not made again, and the minutes begin where the rows do.
Outcome<void> add_unknown_devices(Connection& to, Account& account) {
  constexpr const char* kAt =
      "(SELECT at, measured FROM device_minute UNION ALL SELECT at, measured FROM device_hour UNION ALL SELECT at, "
      "measured FROM tenant_minute UNION ALL SELECT at, measured FROM tenant_hour)";
  const std::string lane = std::to_string(kMinutesOfADevice);
  const std::string of_lane = " WHERE at / " + lane + " = id";
  Statement added(
      to,
      ("INSERT INTO device (id, identity, name, model, serial, last_minute, last_measured, minutes_from, "
       "hours_made_to) SELECT id, 'lost ' || id, 'lost-' || id, '', '', last, measured, coalesce((SELECT min(at % " +
       lane + ") / 60 * 60 FROM device_minute" + of_lane + "), last + 1), coalesce((SELECT max(at % " + lane +
       ") + 60 FROM device_hour" + of_lane + "), 0) FROM (SELECT at / " + lane + " AS id, max(at % " + lane +
       ") AS last, max(measured) AS measured FROM " + kAt +
       " GROUP BY 1) WHERE id > 0 AND id NOT IN (SELECT id FROM "
       "device)")
          .c_str());
  return added.run().map([&] { account.rows.insert("device", to.changed_rows()); });
}

/// No number is reused, not even those of lost rows: other rows refer to them. SQLite's own record of them may be lost,
/// too.
Outcome<void> reserve_numbers(Connection& to, const std::string& from) {
  constexpr std::int64_t kGap = 1'000'000;  // more tenants than a file can have forgotten
  auto source = open_damaged(from, BlankPage::of_table);
  for (const char* table : {"device", "tenant", "drive", "setting"}) {
    const auto known = source
                           ? source->number("SELECT seq FROM sqlite_sequence WHERE name = '" + std::string(table) + "'")
                           : tl::unexpected(source.error());
    const auto used = to.number("SELECT max(coalesce((SELECT max(id) FROM " + std::string(table) +
                                "), 0), coalesce((SELECT max(drive) FROM drive_minute), 0))");
    if (!used) {
      return tl::unexpected(used.error());
    }
    Statement gone(to, "DELETE FROM sqlite_sequence WHERE name = ?");
    Statement set(to, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)");
    const std::string name = table;
    const auto kept = gone.with(name).run().and_then(
        [&] { return set.with(name).with(known ? std::max(*known, *used) : *used + kGap).run(); });
    if (!kept) {
      return kept;
    }
  }
  return {};
}

/// A ledger that cannot be read is started from empty, rather than lose the rows.
Outcome<AccountCheck> check_copy(Connection& to) {
  auto check = check_account(to);
  if (check || !check.error().damaged) {
    return check;
  }
  return to.execute("UPDATE account SET rows = '{}'")
      .and_then([&] { return check_account(to); })
      .or_else([&](const Failure& failure) {
        return failure.damaged ? to.execute("DELETE FROM account").and_then([&] { return check_account(to); })
                               : Outcome<AccountCheck>(tl::unexpected(failure));
      });
}

/// Also corrects the new file's account.
Outcome<Salvaged> copy_all(const std::string& from, Connection& to, const std::atomic<bool>& stop) {
  Copier copier(from, to, stop);
  if (const auto begun = to.execute("PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  for (const std::string& table : tables()) {
    if (const auto copied = copier.copy(table); !copied) {
      return tl::unexpected(copied.error());
    }
  }
  auto check = check_copy(to);
  if (!check) {
    return tl::unexpected(check.error());
  }
  Salvaged salvaged;
  salvaged.rows = check->rows;
  for (const auto& [table, lost] : check->missing) {
    if (lost > 0) {
      salvaged.lost[table] = static_cast<std::uint64_t>(lost);
    }
  }
  return add_unknown_devices(to, check->account)
      .and_then([&] { return reserve_numbers(to, from); })
      .and_then([&] { return save_account(to, check->account); })
      .and_then([&] { return to.execute("COMMIT"); })
      .map([&] { return std::move(salvaged); });
}

}  // namespace

std::optional<std::chrono::sys_seconds> last_set_aside(const std::string& directory, const std::string& file) {
  const auto stamps = stamps_in(directory, prefix_of(file));
  std::tm parts{};
  if (stamps.empty() || ::strptime(stamps.back().c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) {
    return std::nullopt;
  }
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

util::Result<void> may_set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now) {
  return plan_for(directory, prefix_of(file), now).map([](const Plan&) {});
}

util::Result<SetAside> set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now) {
  const std::string from = directory + "/" + file;
  const std::string prefix = prefix_of(file);
  const auto plan = plan_for(directory, prefix, now);
  if (!plan) {
    return tl::make_unexpected(plan.error());
  }
  SetAside result{directory + "/" + prefix + plan->stamp, {}};
  std::error_code error;
  for (const char* suffix : kSuffixes) {
    std::filesystem::rename(from + suffix, result.path + suffix, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return util::fail_errno("cannot set " + from + suffix + " aside", error.value());
    }
  }
  for (const std::string& stamp : plan->removed) {
    for (const char* suffix : kSuffixes) {
      const std::string old = directory + "/" + prefix + stamp + suffix;
      if (std::filesystem::remove(old, error)) {
        result.removed.push_back(old);
      }
    }
  }
  if (const util::UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); opened.valid()) {
    ::fsync(opened.get());  // best effort: the names are not worth failing for
  }
  return result;
}

std::string Salvaged::lost_text() const {
  std::string text;
  for (const auto& [table, count] : lost) {
    text += (text.empty() ? "" : ", ") + table + " " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

Outcome<Salvaged> salvage(const std::string& from, const std::string& to, const std::atomic<bool>& stop) {
  constexpr auto kMaxBytes = std::uint64_t{1} << 40U;  // whatever history.size was when the file was written
  if (const auto ours = open_damaged(from, BlankPage::of_table); !ours) {
    return tl::unexpected(ours.error());
  }
  const std::string unfinished = to + ".unfinished";
  ::unlink(unfinished.c_str());
  auto salvaged = [&]() -> Outcome<Salvaged> {
    std::optional<FileIdentity> none;
    auto target = open_database(unfinished, kMaxBytes, none, stop);
    return target ? copy_all(from, *target, stop) : tl::unexpected(target.error());
  }();
  ::unlink((unfinished + "-journal").c_str());
  if (salvaged && ::rename(unfinished.c_str(), to.c_str()) != 0) {
    salvaged = tl::unexpected(Failure{std::string("cannot rename it: ") + std::strerror(errno)});
  }
  if (!salvaged) {
    ::unlink(unfinished.c_str());
  }
  return salvaged;
}

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

/// Only those who may read a history may read its copy: it has serial numbers and tenants.
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
  constexpr int kPauseMs = 5;                  // for a writer, between two steps
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
    sqlite3_sleep(kPauseMs);
  }
}

/// A directory that only this user may read, removed with its content at the end.
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

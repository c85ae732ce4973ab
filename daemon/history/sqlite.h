// SPDX-License-Identifier: Apache-2.0
// Connection and Statement: RAII owners of SQLite's handles, with its errors as text, the obstacle behind each, and
// whether it means that the file is damaged. Slices read rows without holding up their writer. Each object is for one
// thread; none knows what is stored.
//
// Pages are checksummed by a VFS over the default one, for databases that reserve kChecksumBytes at the end of each
// page. A page that is not as it was written is an error (SQLITE_IOERR_DATA) when it is read, and never an answer. An
// old version of a page, left by a lost write, goes unnoticed.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ssdpulse::history {

/// Why a history cannot be read or written, as far as the remedies differ.
enum class Obstacle {
  unknown,
  opening,              // not an obstacle: the file is being checked, which takes seconds if it is large
  no_space,             // the file system, or a quota, is full
  no_permission,        // the daemon may not write there, or the file system is read-only
  missing,              // neither the directory nor its parent exists
  wrong_file_type,      // what has the name is not a directory, or not a regular file
  another_daemon,       // keeps its history there
  locked,               // by another program, which reads the file
  io_error,             // of the drive
  file_too_large,       // for the file system or for RLIMIT_FSIZE
  too_many_open_files,  // of the process or of the host
  no_memory,
  damaged,  // and the file could not be set aside
};

/// What an errno value of open(), read(), write(), ... stands for.
constexpr Obstacle obstacle_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return Obstacle::no_space;
    case EACCES:
    case EPERM:
    case EROFS:
      return Obstacle::no_permission;
    case ENOENT:
      return Obstacle::missing;
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return Obstacle::wrong_file_type;
    case EIO:
    case ESTALE:
    case ENXIO:
    case ENODEV:
      return Obstacle::io_error;
    case EFBIG:
      return Obstacle::file_too_large;
    case EMFILE:
    case ENFILE:
      return Obstacle::too_many_open_files;
    case ENOMEM:
      return Obstacle::no_memory;
    default:
      return Obstacle::unknown;
  }
}

/// What the operator can do about it; empty for `opening`. The daemon tries again every minute.
constexpr std::string_view remedy(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::opening:
      return "";
    case Obstacle::no_space:
      return "make room on the file system of history.directory, or raise its quota";
    case Obstacle::no_permission:
      return "make the directory writable: for the daemon's user (chown, chmod), and its file system (mount)";
    case Obstacle::missing:  // by now the daemon can open no directory but the one that existed when it started
      return "create it and restart the daemon";
    case Obstacle::wrong_file_type:
      return "set history.directory to a directory, and move away whatever has the name of the history file";
    case Obstacle::another_daemon:
      return "stop one of the two daemons, or give each a history.directory of its own";
    case Obstacle::locked:
      return "end the program that holds the file (fuser ssdpulse.db), and query a copy";
    case Obstacle::io_error:
      return "look for errors of its drive in the kernel's log (journalctl -k), or move history.directory to another";
    case Obstacle::file_too_large:
      return "raise LimitFSIZE= of the service and restart the daemon, or lower history.size";
    case Obstacle::too_many_open_files:
      return "raise LimitNOFILE= of the service and restart the daemon";
    case Obstacle::no_memory:
      return "allow the service more memory (MemoryMax)";
    case Obstacle::damaged:
      return "move the file away: a new one is started";
    case Obstacle::unknown:
      break;
  }
  return "see the runbook SsdpulseSourceDown";
}

/// At the end of each page, big-endian: CRC-32, then Adler-32, of the page's number (4 bytes) and of the page up to
/// there. The number reveals a page that was written in place of another.
inline constexpr int kChecksumBytes = 8;

/// The name of the VFS, which the first call registers. From any thread.
const char* checksum_vfs();

/// For sqlite3_file_control(): the page that did not match its checksum when it was read (std::uint32_t); 0: each did.
inline constexpr int kGetMismatchedPage = 0x53534443;

/// What a damaged page is replaced with: a leaf without rows, of a table or of an index. SQLite keeps a table WITHOUT
/// ROWID as an index.
enum class BlankPage : unsigned char { of_table = 0x0D, of_index = 0x0A };
/// For sqlite3_file_control(): from now on, a page that cannot be read, or does not match its checksum, is such a page
/// (std::uint8_t) instead of an error, except the first, which has the schema. Pages in SQLite's cache stay as they
/// are.
inline constexpr int kShowMismatchedAs = 0x53534445;

struct Failure {
  std::string message;
  bool damaged = false;  // the file is not what it should be; otherwise the environment is
  bool refused = false;  // neither: a row violates the schema, and would do so again
  Obstacle obstacle = Obstacle::unknown;
  bool unfinished = false;  // whoever wrote to it was killed within a transaction, which a reader cannot undo
};

template <typename T>
using Outcome = tl::expected<T, Failure>;

/// Calls `call` with each element, up to its first failure.
template <typename Range, typename Call>
Outcome<void> try_each(const Range& range, const Call& call) {
  for (const auto& element : range) {
    if (Outcome<void> done = call(element); !done) {
      return done;
    }
  }
  return {};
}

class Connection {
 public:
  /// Creates the file if there is none; SQLite itself touches it only later.
  static Outcome<Connection> open(const std::string& path);
  /// Opens an existing file for a caller that may not change it.
  static Outcome<Connection> open_to_read(const std::string& path);

  /// One statement or several, without parameters; rows are ignored.
  Outcome<void> execute(const std::string& sql);
  /// The first column of the first row.
  Outcome<std::int64_t> number(const std::string& sql);
  [[nodiscard]] std::uint64_t changed_rows() const;  // by the last statement that changed any
  [[nodiscard]] Failure failure(int code) const;
  /// "page 7 does not match its checksum", if one did not when it was last read.
  [[nodiscard]] std::optional<std::string> mismatched_page() const;
  [[nodiscard]] sqlite3* get() const { return handle_.get(); }

 private:
  static Outcome<Connection> open(const std::string& path, int flags);
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A statement and its parameters, in order. An error in preparing or binding shows at the next step().
class Statement {
 public:
  Statement(Connection& connection, const char* sql);

  Statement& with(std::int64_t value);
  Statement& with(const std::optional<double>& value);
  Statement& with(const std::string& text);  // must outlive the steps, like the blob
  Statement& with(std::span<const std::uint8_t> blob);
  Statement& with_null();
  Statement& with_value_of(const Statement& row, int column);

  /// For other parameters: as it was when it was made.
  Statement& reset();

  /// Whether there is a row.
  Outcome<bool> step();
  /// The first column of the next row; nothing without a row, or where it holds no integer.
  Outcome<std::optional<std::int64_t>> step_to_number();
  /// Calls `take()` at each row, to the end or to its first failure: it returns nothing, or an Outcome<void>.
  template <typename Take>
  Outcome<void> each(const Take& take);
  /// To the end.
  Outcome<void> run() {
    return each([] {});
  }

  /// Of the row, columns from 0; nothing if the column holds another type.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::optional<double> real(int column) const;             // finite
  [[nodiscard]] std::optional<util::OutsideText> text(int column) const;  // whoever wrote the file chose it
  [[nodiscard]] std::string name(int column) const;                       // of a disk or a tenant; "?": it is not plain
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> blob(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] int columns() const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void note_error(int code) { code_ = code_ == 0 ? code : code_; }

  Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int code_ = 0;  // the first error
  int bound_ = 0;
};

template <typename Take>
Outcome<void> Statement::each(const Take& take) {
  while (true) {
    const auto row = step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      return {};
    }
    if constexpr (std::is_void_v<decltype(take())>) {
      take();
    } else if (const Outcome<void> taken = take(); !taken) {
      return taken;
    }
  }
}

using Deadline = std::chrono::steady_clock::time_point;

/// In a database without a write-ahead log a reader keeps the writer from committing, so no statement is open for
/// longer than a slice, and nothing is locked between two slices.
class Slices {
 public:
  /// `deadline`: a read not finished by then fails. The connection must outlive this object.
  Slices(Connection& connection, std::chrono::milliseconds slice, Deadline deadline)
      : connection_(connection), slice_(slice), deadline_(deadline) {}

  /// Rows of `sql`, whose parameters are from and to, and whose first column is an integer that ascends between them.
  /// Stops when `take` returns false.
  Outcome<void> read(const std::string& sql, std::int64_t from, std::int64_t to,
                     const std::function<bool(const Statement&)>& take);

 private:
  /// The key to continue from, or nothing at the end.
  Outcome<std::optional<std::int64_t>> read_slice(const std::string& sql, std::int64_t from, std::int64_t to,
                                                  const std::function<bool(const Statement&)>& take);

  Connection& connection_;
  std::chrono::milliseconds slice_;
  Deadline deadline_;
};

}  // namespace ssdpulse::history

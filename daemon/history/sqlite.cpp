// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sqlite.h"

#include <endian.h>
#include <libdeflate.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <new>
#include <thread>

// SQLite writes whole pages. It reads whole pages, too; some versions, such as 3.46, also a part of one that a long
// value fills; and all of them parts of the file's header, before they know the size of a page, or whether another
// connection has written. What is in the header counts only once its whole page was read.

namespace ssdpulse::history {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeaderBytes = 100;
constexpr int kMinPageBytes = 512;

/// Between two slices, for a waiting writer, which tries again every few milliseconds.
constexpr std::chrono::milliseconds kPause{2};

sqlite3_vfs* default_vfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

/// A database file, as SQLite sees it. The default VFS's own file lies behind it in memory.
struct CheckedFile : sqlite3_file {
  int page_bytes;                 // 0: not known yet
  std::uint32_t mismatched_page;  // 0: none
  std::uint8_t shown_as;          // BlankPage; 0: as an error

  static CheckedFile& of(sqlite3_file* file) { return *static_cast<CheckedFile*>(file); }
  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out);
  static int read(sqlite3_file* file, void* out, int bytes, sqlite3_int64 offset);
  static int write(sqlite3_file* file, const void* page, int bytes, sqlite3_int64 offset);
  static int control(sqlite3_file* file, int operation, void* argument);

  int page_bytes_in_header();
  int read_page(void* page, int bytes, std::uint32_t number);
  void show_blank(void* page, int bytes) const;
};

/// A method of the default VFS, or of its file, under its own name.
template <auto Method>
struct Below;
template <typename Result, typename... Arguments, Result (*sqlite3_vfs::*Method)(sqlite3_vfs*, Arguments...)>
struct Below<Method> {
  static Result call(sqlite3_vfs* /*ours*/, Arguments... arguments) {
    return (default_vfs()->*Method)(default_vfs(), arguments...);
  }
};
template <typename Result, typename... Arguments, Result (*sqlite3_io_methods::*Method)(sqlite3_file*, Arguments...)>
struct Below<Method> {
  static Result call(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* const inner = CheckedFile::of(file).below();
    return (inner->pMethods->*Method)(inner, arguments...);
  }
};

/// Version 1: neither mapped into memory nor with a write-ahead log.
constexpr sqlite3_io_methods kCheckedFileMethods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = Below<&sqlite3_io_methods::xClose>::call;
  methods.xRead = CheckedFile::read;
  methods.xWrite = CheckedFile::write;
  methods.xTruncate = Below<&sqlite3_io_methods::xTruncate>::call;
  methods.xSync = Below<&sqlite3_io_methods::xSync>::call;
  methods.xFileSize = Below<&sqlite3_io_methods::xFileSize>::call;
  methods.xLock = Below<&sqlite3_io_methods::xLock>::call;
  methods.xUnlock = Below<&sqlite3_io_methods::xUnlock>::call;
  methods.xCheckReservedLock = Below<&sqlite3_io_methods::xCheckReservedLock>::call;
  methods.xFileControl = CheckedFile::control;
  methods.xSectorSize = Below<&sqlite3_io_methods::xSectorSize>::call;
  methods.xDeviceCharacteristics = Below<&sqlite3_io_methods::xDeviceCharacteristics>::call;
  return methods;
}();

using Checksum = std::array<std::uint32_t, 2>;
static_assert(sizeof(Checksum) == kChecksumBytes);

Checksum checksum_of(const void* page, int page_bytes, std::uint32_t number) {
  const auto bytes = static_cast<std::size_t>(page_bytes - kChecksumBytes);
  const std::uint32_t key = htobe32(number);
  return {htobe32(libdeflate_crc32(libdeflate_crc32(0, &key, sizeof(key)), page, bytes)),
          htobe32(libdeflate_adler32(libdeflate_adler32(1, &key, sizeof(key)), page, bytes))};
}

/// Journals and temporary files are the default VFS's own.
int CheckedFile::open(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return default_vfs()->xOpen(default_vfs(), path, file, flags, flags_out);
  }
  auto* const checked = new (file) CheckedFile{};
  const int code = default_vfs()->xOpen(default_vfs(), path, checked->below(), flags, flags_out);
  checked->pMethods = checked->below()->pMethods == nullptr ? nullptr : &kCheckedFileMethods;
  return code;
}

int CheckedFile::page_bytes_in_header() {
  std::array<std::uint8_t, 2> size{};  // zeros where there is no header
  below()->pMethods->xRead(below(), size.data(), size.size(), 16);
  const int bytes = size[0] << 8 | size[1];
  return bytes == 1 ? 65536 : bytes < kMinPageBytes ? 0 : bytes;
}

int CheckedFile::read_page(void* page, int bytes, std::uint32_t number) {
  const sqlite3_int64 begin = static_cast<sqlite3_int64>(number - 1) * bytes;
  const int code = below()->pMethods->xRead(below(), page, bytes, begin);
  if (code == SQLITE_OK) {
    const Checksum wanted = checksum_of(page, bytes, number);
    if (std::memcmp(static_cast<char*>(page) + bytes - kChecksumBytes, wanted.data(), kChecksumBytes) == 0) {
      return SQLITE_OK;
    }
  } else if (code == SQLITE_IOERR_SHORT_READ) {
    sqlite3_int64 end = 0;
    if (const int failed = below()->pMethods->xFileSize(below(), &end); failed != SQLITE_OK || end <= begin) {
      return failed != SQLITE_OK ? failed : code;  // behind the end SQLite finds zeros
    }
  } else if (shown_as == 0 || code != SQLITE_IOERR_READ) {
    return code;
  }
  mismatched_page = number;
  if (shown_as == 0 || number == 1) {
    return SQLITE_IOERR_DATA;
  }
  show_blank(page, bytes);
  return SQLITE_OK;
}

/// In SQLite's file format: the page's kind, the number of cells, the cell's offset, and the cell: an empty record, in
/// a table under row id 0. SQLite itself never has a leaf without a cell, and would read past the end of one.
void CheckedFile::show_blank(void* page, int bytes) const {
  constexpr auto kOfTable = std::to_array<std::uint8_t>({1, 0, 1, 0});  // record size, row id, header size
  constexpr auto kOfIndex = std::to_array<std::uint8_t>({1, 1, 0, 0});
  auto* const to = static_cast<std::uint8_t*>(page);
  const auto cell = static_cast<std::size_t>(bytes - kChecksumBytes) - kOfTable.size();
  const std::uint16_t at = htobe16(static_cast<std::uint16_t>(cell));
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  to[0] = shown_as;
  to[4] = 1;
  std::memcpy(to + 5, &at, sizeof(at));
  std::memcpy(to + 8, &at, sizeof(at));
  std::memcpy(to + cell, shown_as == static_cast<std::uint8_t>(BlankPage::of_table) ? kOfTable.data() : kOfIndex.data(),
              kOfTable.size());
}

int CheckedFile::read(sqlite3_file* file, void* out, int bytes, sqlite3_int64 offset) {
  if (offset + bytes <= kHeaderBytes) {
    return Below<&sqlite3_io_methods::xRead>::call(file, out, bytes, offset);
  }
  CheckedFile& checked = of(file);
  checked.page_bytes = checked.page_bytes == 0 ? checked.page_bytes_in_header() : checked.page_bytes;
  const int page_bytes = checked.page_bytes == 0 ? std::max(bytes, kMinPageBytes) : checked.page_bytes;
  const auto number = static_cast<std::uint32_t>(offset / page_bytes + 1);
  const auto skipped = static_cast<int>(offset % page_bytes);
  if (skipped == 0 && bytes == page_bytes) {
    return checked.read_page(out, bytes, number);
  }
  if (skipped + bytes > page_bytes) {  // the header names smaller pages than SQLite has: it is damaged
    checked.mismatched_page = 1;
    return SQLITE_IOERR_DATA;
  }
  const std::unique_ptr<char[]> page(new (std::nothrow) char[static_cast<std::size_t>(page_bytes)]());
  if (page == nullptr) {
    return SQLITE_IOERR_NOMEM;
  }
  const int code = checked.read_page(page.get(), page_bytes, number);
  std::memcpy(out, page.get() + skipped, static_cast<std::size_t>(bytes));
  return code;
}

/// The checksum goes into SQLite's own copy of the page, as in SQLite's cksumvfs: what its journal keeps of a page then
/// has one, too. So whoever rolls back after a crash, even an SQLite that knows nothing of it, restores good pages.
int CheckedFile::write(sqlite3_file* file, const void* page, int bytes, sqlite3_int64 offset) {
  of(file).page_bytes = bytes;
  const Checksum checksum = checksum_of(page, bytes, static_cast<std::uint32_t>(offset / bytes + 1));
  std::memcpy(static_cast<char*>(const_cast<void*>(page)) + bytes - kChecksumBytes, checksum.data(), kChecksumBytes);
  return Below<&sqlite3_io_methods::xWrite>::call(file, page, bytes, offset);
}

int CheckedFile::control(sqlite3_file* file, int operation, void* argument) {
  if (operation == kGetMismatchedPage) {
    *static_cast<std::uint32_t*>(argument) = of(file).mismatched_page;
    return SQLITE_OK;
  }
  if (operation == kShowMismatchedAs) {
    of(file).shown_as = *static_cast<std::uint8_t*>(argument);
    return SQLITE_OK;
  }
  return Below<&sqlite3_io_methods::xFileControl>::call(file, operation, argument);
}

sqlite3_vfs make_vfs(const char* name) {
  sqlite3_vfs vfs{};
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(sizeof(CheckedFile)) + default_vfs()->szOsFile;
  vfs.mxPathname = default_vfs()->mxPathname;
  vfs.zName = name;
  vfs.xOpen = CheckedFile::open;
  vfs.xDelete = Below<&sqlite3_vfs::xDelete>::call;
  vfs.xAccess = Below<&sqlite3_vfs::xAccess>::call;
  vfs.xFullPathname = Below<&sqlite3_vfs::xFullPathname>::call;
  vfs.xDlOpen = Below<&sqlite3_vfs::xDlOpen>::call;
  vfs.xDlError = Below<&sqlite3_vfs::xDlError>::call;
  vfs.xDlSym = Below<&sqlite3_vfs::xDlSym>::call;
  vfs.xDlClose = Below<&sqlite3_vfs::xDlClose>::call;
  vfs.xRandomness = Below<&sqlite3_vfs::xRandomness>::call;
  vfs.xSleep = Below<&sqlite3_vfs::xSleep>::call;
  vfs.xCurrentTime = Below<&sqlite3_vfs::xCurrentTime>::call;
  vfs.xGetLastError = Below<&sqlite3_vfs::xGetLastError>::call;
  return vfs;
}

/// `error_number`: of the last call; 0: none failed.
Obstacle obstacle_of(int primary, int error_number) {
  switch (primary) {
    case SQLITE_FULL:
      return Obstacle::no_space;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Obstacle::no_permission;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return Obstacle::locked;
    case SQLITE_NOMEM:
      return Obstacle::no_memory;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
      const Obstacle known = history::obstacle_of(error_number);
      return known == Obstacle::unknown && primary == SQLITE_IOERR ? Obstacle::io_error : known;
    }
    default:
      return Obstacle::unknown;
  }
}

}  // namespace

const char* checksum_vfs() {
  static constexpr const char* kName = "ssdpulse";
  static const bool registered = [] {  // where it fails, SQLite knows no VFS of that name, and opens nothing
    if (default_vfs() == nullptr) {
      return false;
    }
    static sqlite3_vfs vfs = make_vfs(kName);
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
  }();
  (void)registered;
  return kName;
}

void Connection::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Outcome<Connection> Connection::open(const std::string& path) {
  return open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).map([](Connection connection) {
    int reserved = kChecksumBytes;  // of a new file
    sqlite3_file_control(connection.get(), nullptr, SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    return connection;
  });
}

Outcome<Connection> Connection::open_to_read(const std::string& path) {
  return open(path, SQLITE_OPEN_READONLY).and_then([](Connection connection) -> Outcome<Connection> {
    return connection.execute("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA query_only = ON").map([&] {
      return std::move(connection);
    });
  });
}

Outcome<Connection> Connection::open(const std::string& path, int flags) {
  constexpr int kMaxValueBytes = 2 << 20;  // the most that SQLite may make us allocate for a value
  constexpr int kMaxWaitMs = 2000;         // for another reader of the file
  Connection connection;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, checksum_vfs());
  connection.handle_.reset(handle);
  if (code != SQLITE_OK) {
    return tl::unexpected(connection.failure(code));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kMaxWaitMs);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  // Anything edited into the file must not control what we do.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  return connection;
}

Outcome<void> Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    return tl::unexpected(failure(code));
  }
  return {};
}

Outcome<std::int64_t> Connection::number(const std::string& sql) {
  return Statement(*this, sql.c_str())
      .step_to_number()
      .and_then([&](std::optional<std::int64_t> value) -> Outcome<std::int64_t> {
        return value ? Outcome<std::int64_t>(*value) : tl::unexpected(Failure{"no number from " + sql, true});
      });
}

std::uint64_t Connection::changed_rows() const { return static_cast<std::uint64_t>(sqlite3_changes(handle_.get())); }

std::optional<std::string> Connection::mismatched_page() const {
  std::uint32_t page = 0;
  sqlite3_file_control(handle_.get(), nullptr, kGetMismatchedPage, &page);
  return page == 0 ? std::nullopt : std::optional("page " + std::to_string(page) + " does not match its checksum");
}

Failure Connection::failure(int code) const {
  if (const auto mismatch = code == SQLITE_IOERR_DATA ? mismatched_page() : std::nullopt) {
    return {*mismatch, true, false, Obstacle::io_error};
  }
  if (code == SQLITE_READONLY_ROLLBACK) {
    return {.message =
                "whoever wrote to it was killed within a transaction: start the daemon, which undoes that, or "
                "ask a copy (ssdpulse history --backup)",
            .obstacle = Obstacle::no_permission,
            .unfinished = true};
  }
  const int primary = code & 0xff;
  // Our SQL never changes: if it is in error, the file lacks what it names, or has a future format.
  const bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR;
  Failure failure{sqlite3_errstr(code), damaged, primary == SQLITE_CONSTRAINT, obstacle_of(primary, 0)};
  if (handle_ != nullptr) {
    const std::string details = util::for_log(sqlite3_errmsg(handle_.get()));
    failure.message += details == failure.message ? "" : " (" + details + ")";
    if (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) {
      const int error = sqlite3_system_errno(handle_.get());
      failure.obstacle = obstacle_of(primary, error);
      failure.message +=
          ", code " + std::to_string(code) + (error != 0 ? std::string(": ") + std::strerror(error) : "");
    }
  }
  return failure;
}

Statement::Statement(Connection& connection, const char* sql) : connection_(&connection) {
  sqlite3_stmt* statement = nullptr;
  note_error(sqlite3_prepare_v2(connection.get(), sql, -1, &statement, nullptr));
  statement_.reset(statement);
}

Statement& Statement::with(std::int64_t value) {
  note_error(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::with(const std::optional<double>& value) {
  note_error(value ? sqlite3_bind_double(statement_.get(), ++bound_, *value)
                   : sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

Statement& Statement::with(const std::string& text) {
  note_error(sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
  return *this;
}

Statement& Statement::with(std::span<const std::uint8_t> blob) {
  // A null pointer would be NULL, not an empty blob.
  const void* data = blob.empty() ? static_cast<const void*>("") : blob.data();
  note_error(sqlite3_bind_blob(statement_.get(), ++bound_, data, static_cast<int>(blob.size()), SQLITE_STATIC));
  return *this;
}

Statement& Statement::with_null() {
  note_error(sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

Statement& Statement::with_value_of(const Statement& row, int column) {
  note_error(sqlite3_bind_value(statement_.get(), ++bound_, sqlite3_column_value(row.statement_.get(), column)));
  return *this;
}

Statement& Statement::reset() {
  sqlite3_reset(statement_.get());
  code_ = statement_ ? SQLITE_OK : code_;
  bound_ = 0;
  return *this;
}

Outcome<bool> Statement::step() {
  if (code_ == SQLITE_OK) {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW || code == SQLITE_DONE) {
      return code == SQLITE_ROW;
    }
    note_error(code);
  }
  return tl::unexpected(connection_->failure(code_));
}

Outcome<std::optional<std::int64_t>> Statement::step_to_number() {
  return step().map([this](bool row) { return row ? integer(0) : std::nullopt; });
}

std::optional<std::int64_t> Statement::integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) {
    return std::nullopt;
  }
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<double> Statement::real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_FLOAT) {
    return std::nullopt;
  }
  const double value = sqlite3_column_double(statement_.get(), column);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<util::OutsideText> Statement::text(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) {
    return std::nullopt;
  }
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return std::string(data == nullptr ? "" : data, data == nullptr ? 0 : static_cast<std::size_t>(bytes));
}

std::string Statement::name(int column) const {
  const util::OutsideText name = text(column).value_or("");
  return name.empty() || util::is_plain_name(name.raw()) ? name.raw() : "?";
}

std::optional<std::vector<std::uint8_t>> Statement::blob(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_BLOB) {
    return std::nullopt;
  }
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return std::vector<std::uint8_t>(data, data == nullptr ? data : data + bytes);
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

Outcome<void> Slices::read(const std::string& sql, std::int64_t from, std::int64_t to,
                           const std::function<bool(const Statement&)>& take) {
  while (true) {
    if (Clock::now() >= deadline_) {
      return tl::unexpected(Failure{"took too long: ask for less at once, or later"});
    }
    const auto next = read_slice(sql, from, to, take);
    if (!next) {
      return tl::unexpected(next.error());
    }
    if (!*next) {
      return {};
    }
    from = **next;
    std::this_thread::sleep_for(kPause);
  }
}

Outcome<std::optional<std::int64_t>> Slices::read_slice(const std::string& sql, std::int64_t from, std::int64_t to,
                                                        const std::function<bool(const Statement&)>& take) {
  const auto end = Clock::now() + slice_;
  Statement rows(connection_, sql.c_str());
  rows.with(from).with(to);
  std::optional<std::int64_t> last;
  while (true) {
    const auto row = rows.step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      return std::nullopt;
    }
    // Rows of one key stay together.
    const std::int64_t key = rows.integer(0).value_or(to);
    if (last && key != *last && Clock::now() >= end) {
      return key;
    }
    last = key;
    if (!take(rows)) {
      return std::nullopt;
    }
  }
}

}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
// The C interface of SQLite, with owners. Every size that SQLite may make us allocate is bounded here.
#include "daemon/history/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "daemon/history/page_checksums.h"

namespace ssdpulse::history {

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
  constexpr int kMaxBytesOfOneValue = 2 << 20;
  constexpr int kMaxMillisecondsOfWaiting = 2000;  // for another reader of the file
  Connection connection;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, checksum_vfs());
  connection.handle_.reset(handle);
  if (code != SQLITE_OK) {
    return tl::unexpected(connection.failure(code));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kMaxMillisecondsOfWaiting);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxBytesOfOneValue);
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
  Statement statement(*this, sql.c_str());
  return statement.step().and_then([&](bool row) -> Outcome<std::int64_t> {
    const auto value = row ? statement.integer(0) : std::nullopt;
    return value ? Outcome<std::int64_t>(*value) : tl::unexpected(Failure{"no number from " + sql, true});
  });
}

std::uint64_t Connection::changed_rows() const { return static_cast<std::uint64_t>(sqlite3_changes(handle_.get())); }

namespace {

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
    return {
        "whoever wrote to it was killed within a transaction: start the daemon, which undoes that, or ask a copy "
        "(ssdpulse "
        "history --backup)",
        false, false, Obstacle::no_permission, true};
  }
  const int primary = code & 0xff;
  // Our SQL never changes: if it is in error, the file lacks what it names, or has a future format.
  const bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR;
  Failure failure{sqlite3_errstr(code), damaged, primary == SQLITE_CONSTRAINT, obstacle_of(primary, 0)};
  if (handle_ != nullptr) {
    const std::string words = util::for_log(sqlite3_errmsg(handle_.get()));
    failure.message += words == failure.message ? "" : " (" + words + ")";
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
  note(sqlite3_prepare_v2(connection.get(), sql, -1, &statement, nullptr));
  statement_.reset(statement);
}

Statement& Statement::with(std::int64_t value) {
  note(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::with(const std::optional<double>& value) {
  note(value ? sqlite3_bind_double(statement_.get(), ++bound_, *value) : sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

Statement& Statement::with(const std::string& text) {
  note(sqlite3_bind_text(statement_.get(), ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_STATIC));
  return *this;
}

Statement& Statement::with(std::span<const std::uint8_t> blob) {
  // A null pointer would be NULL, not an empty blob.
  const void* data = blob.empty() ? static_cast<const void*>("") : blob.data();
  note(sqlite3_bind_blob(statement_.get(), ++bound_, data, static_cast<int>(blob.size()), SQLITE_STATIC));
  return *this;
}

Statement& Statement::with_null() {
  note(sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

Statement& Statement::with_value_of(const Statement& row, int column) {
  note(sqlite3_bind_value(statement_.get(), ++bound_, sqlite3_column_value(row.statement_.get(), column)));
  return *this;
}

Statement& Statement::again() {
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
    note(code);
  }
  return tl::unexpected(connection_->failure(code_));
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

}  // namespace ssdpulse::history

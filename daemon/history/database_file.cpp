// SPDX-License-Identifier: Apache-2.0
// A rollback journal, not a write-ahead log: the log's index is mapped into memory, and on a full copy-on-write file
// system a store to it raises SIGBUS, which would end the daemon. Others may also read the file meanwhile.
//
// PERSIST with synchronous=FULL: the journal is on the disk before the first page is overwritten, the pages before the
// journal's header is cleared, and that before COMMIT returns. A power cut at any point undoes the whole transaction or
// none of it, and no directory has to be written.
#include "daemon/history/database_file.h"

#include <endian.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "daemon/history/schema.h"

namespace ssdpulse::history {
namespace {

tl::unexpected<Failure> damaged(const std::string& what) { return tl::unexpected(Failure{what, true}); }

/// The file's status, or nothing when there is no file. Never opens it: a pipe would block us.
Outcome<std::optional<struct stat>> status_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) {
      return std::nullopt;
    }
    return tl::unexpected(Failure{.message = path + ": " + std::strerror(errno), .obstacle = obstacle_of(errno)});
  }
  if (!S_ISREG(status.st_mode)) {
    return tl::unexpected(Failure{.message = path + " is not a regular file", .obstacle = Obstacle::wrong_file_type});
  }
  return status;
}

/// For use before SQLite sees the file: SQLite treats one that is shorter than a header as new, and would open a
/// write-ahead log if the header names one.
Outcome<void> check_header(const std::string& path, const struct stat& status) {
  constexpr std::size_t kHeaderBytes = 100;
  if (status.st_size == 0) {
    return {};
  }
  std::array<char, kHeaderBytes> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return tl::unexpected(Failure{.message = "cannot read " + path, .obstacle = obstacle_of(errno)});
  }
  file.read(header.data(), header.size());
  if (file.gcount() < static_cast<std::streamsize>(header.size()) ||
      std::memcmp(header.data(), "SQLite format 3", 16) != 0) {
    return damaged("is not a database file");
  }
  if (header[18] != 1 || header[19] != 1) {
    return damaged("has another kind of journal than ours");
  }
  std::uint32_t application = 0;
  std::memcpy(&application, header.data() + 68, sizeof(application));
  if (be32toh(application) == kApplicationIdBeforeRelease) {
    return damaged("was written by a build of ssdpulse from before 1.0.0, whose files this version does not read");
  }
  if (header[20] != kChecksumBytes) {
    return damaged(be32toh(application) == kApplicationId ? "has pages without checksums"
                                                          : "is a database, but not a history of ssdpulse");
  }
  return {};
}

/// Everything that shapes the content, as text. Statistics that someone made SQLite gather are not part of it.
Outcome<std::string> shape(Connection& connection) {
  Statement statement(connection,
                      "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema "
                      "WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name");
  std::string text;
  return statement.each([&] { text += statement.text(0).value_or("?").raw() + "\n"; }).map([&] { return text; });
}

Outcome<std::string> expected_shape() {
  auto model = Connection::open(":memory:");
  if (!model) {
    return tl::unexpected(model.error());
  }
  return model->execute(kSchema).and_then([&] { return shape(*model); });
}

Outcome<void> begin_new(Connection& connection) {
  return connection.execute("PRAGMA page_size = " + std::to_string(kPageBytesOfNewFiles) +
                            "; PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE; " + kSchema +
                            "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSchemaVersion) + "; COMMIT");
}

enum class Content { history, nothing };

/// Whether it is a history at all, of this version; or a file that was just created, or whose creation a full disk
/// interrupted.
Outcome<Content> identify(Connection& connection) {
  const auto found = shape(connection);
  if (!found) {
    return tl::unexpected(found.error());
  }
  const auto application = connection.number("PRAGMA application_id");
  const auto version = connection.number("PRAGMA user_version");
  if (!application || !version) {
    return tl::unexpected(application ? version.error() : application.error());
  }
  if (*application == 0 && *version == 0 && found->empty()) {
    return Content::nothing;
  }
  if (*application != kApplicationId) {
    return damaged("is a database, but not a history of ssdpulse");
  }
  if (*version > kSchemaVersion) {
    return damaged("was written by a newer version of ssdpulse (schema " + std::to_string(*version) +
                   ", this one knows up to " + std::to_string(kSchemaVersion) + ")");
  }
  if (*version < 1) {
    return damaged("has the schema version " + std::to_string(*version) + ", which no version of ssdpulse wrote");
  }
  return expected_shape().and_then([&](const std::string& expected) -> Outcome<Content> {
    return *found == expected ? Outcome<Content>(Content::history) : damaged("has tables or columns that were changed");
  });
}

Outcome<void> check_integrity(Connection& connection, const std::string& path, const std::atomic<bool>& stop) {
  constexpr int kSteps = 10'000;  // of SQLite's virtual machine between two checks of `stop`
  sqlite3_progress_handler(
      connection.get(), kSteps, [](void* flag) { return static_cast<std::atomic<bool>*>(flag)->load() ? 1 : 0; },
      const_cast<std::atomic<bool>*>(&stop));
  // Not quick_check, which misses rows out of order and is no quicker here: there is no index to compare with.
  Statement statement(connection, "PRAGMA integrity_check(1)");
  const auto row = statement.step();
  sqlite3_progress_handler(connection.get(), 0, nullptr, nullptr);
  if (!row) {
    return tl::unexpected(row.error());
  }
  if (const auto verdict = *row ? statement.text(0) : std::nullopt; verdict != "ok") {
    std::string problem = connection.mismatched_page().value_or(verdict.value_or("no verdict").raw());
    if (const auto heading = problem.find("***\n"); heading != std::string::npos) {
      problem.erase(0, heading + 4);
    }
    return damaged("is damaged: " + util::for_log(problem));
  }
  // SQLite reads the missing part of a last page as zeros. Checked last, when an unfinished transaction has been
  // undone.
  return connection.number("PRAGMA page_size").and_then([&](std::int64_t page_bytes) -> Outcome<void> {
    const auto status = status_of(path);
    const bool whole = !status || !*status || (*status)->st_size % page_bytes == 0;
    return whole ? Outcome<void>() : damaged("ends within a page");
  });
}

}  // namespace

Outcome<Connection> open_database(const std::string& path, std::uint64_t size_limit_bytes,
                                  std::optional<FileIdentity>& checked, const std::atomic<bool>& stop) {
  const auto before = status_of(path);
  if (!before) {
    return tl::unexpected(before.error());
  }
  if (*before) {
    if (const auto header = check_header(path, **before); !header) {
      return tl::unexpected(header.error());
    }
  }
  auto connection = Connection::open(path);
  if (!connection) {
    return connection;
  }
  // The journal that SQLite keeps after use is bounded too. The file is not mapped into memory: a failing disk, or
  // somebody truncating the file, would raise SIGBUS. Freed pages are written, too, as zeros: a page of the file that
  // was never written would have no checksum.
  const auto done = connection
                        ->execute(
                            "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; "
                            "PRAGMA journal_mode = PERSIST; PRAGMA journal_size_limit = 1048576; "
                            "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
                        .and_then([&] { return identify(*connection); })
                        .and_then([&](Content content) {
                          return content == Content::nothing ? begin_new(*connection) : Outcome<void>();
                        })
                        .and_then([&] { return pages_of(*connection, size_limit_bytes); })
                        .and_then([&](std::int64_t max_pages) {
                          return connection->execute("PRAGMA max_page_count = " + std::to_string(max_pages));
                        });
  if (!done) {
    return tl::unexpected(done.error());
  }
  const auto after = status_of(path);
  if (!after || !*after) {
    return tl::unexpected(after ? Failure{path + " vanished", false} : after.error());
  }
  const FileIdentity identity{(*after)->st_dev, (*after)->st_ino};
  if (checked != identity) {
    if (const auto whole = check_integrity(*connection, path, stop); !whole) {
      return tl::unexpected(whole.error());
    }
    checked = identity;
  }
  return connection;
}

Outcome<Connection> open_existing(const std::string& path, Truncated truncated) {
  const auto status = status_of(path);
  if (!status || !*status) {
    return tl::unexpected(status ? Failure{"is not there", false} : status.error());
  }
  if (const auto header = check_header(path, **status); !header) {
    return tl::unexpected(header.error());
  }
  return Connection::open_to_read(path).and_then([&](Connection connection) {
    if (truncated ==
        Truncated::allowed) {  // SQLite requires the right to edit the schema; this connection cannot write
      sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
      sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
    }
    return identify(connection).and_then([&](Content content) {
      return content == Content::nothing ? Outcome<Connection>(damaged("is empty")) : std::move(connection);
    });
  });
}

Outcome<Connection> open_to_check(const std::string& path) {
  const std::atomic<bool> never = false;
  return open_existing(path).and_then([&](Connection connection) {
    return connection.execute("BEGIN").and_then([&] { return check_integrity(connection, path, never); }).map([&] {
      return std::move(connection);
    });
  });
}

Outcome<std::int64_t> pages_of(Connection& connection, std::uint64_t bytes) {
  return connection.number("PRAGMA page_size").map([&](std::int64_t page_bytes) {
    return static_cast<std::int64_t>(bytes) / page_bytes;
  });
}

}  // namespace ssdpulse::history

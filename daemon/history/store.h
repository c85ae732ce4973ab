// SPDX-License-Identifier: Apache-2.0
// Store: minutes to rows, and rows to minutes. One transaction per batch, which also deletes what is old or surplus.
// For one thread. The caller decides whether to retry after a failure, and what happens to the file.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/history/account.h"
#include "daemon/history/database_file.h"
#include "daemon/history/device_rows.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::uint64_t kLeastSizeLimit = std::uint64_t{1} << 20U;

struct StoreLimits {
  std::chrono::minutes retention = std::chrono::hours(90 * 24);
  std::uint64_t bytes = std::uint64_t{512} << 20U;  // of the database; at least kLeastSizeLimit
};

class Store {
 public:
  /// For `checked` and `stop`, see open_database.
  static Outcome<Store> open(const std::string& path, const StoreLimits& limits, std::optional<FileIdentity>& checked,
                             const std::atomic<bool>& stop);

  struct Written {
    std::uint64_t deleted_rows = 0;  // too old, or the oldest of too many; minutes whose hour is kept are not counted
    model::PastReach reach;
  };
  /// On the disk when it returns. After a failure, nothing of the batch is there, and the Store cannot be used any
  /// more, unless only the batch was refused.
  Outcome<Written> write(const Batch& batch, Minute now);

  /// From `since` to `until`, both included.
  Outcome<Recalled> recall(const DriveKey& drive, Minute since, Minute until);

  [[nodiscard]] std::uint64_t bytes_on_disk() const;  // with the journal

 private:
  Store(Connection connection, std::string path, const StoreLimits& limits)
      : connection_(std::move(connection)), path_(std::move(path)), limits_(limits) {}

  Outcome<Written> write_within_transaction(const Batch& batch, Minute now);
  Outcome<std::uint64_t> delete_old_rows(Minute now, bool too_much, DeviceRows& devices);
  Outcome<void> thin_drive_minutes(std::int64_t end, Account& account);
  Outcome<std::uint64_t> delete_drive_minutes(std::int64_t end);
  Outcome<void> give_space_back();
  Outcome<std::int64_t> id_of(const DriveKey& drive, Minute minute);
  Outcome<void> insert(const DriveMinute& row);
  Outcome<void> save(const DriveState& state, Minute now);
  Outcome<void> insert(const model::LatencySpike& spike);
  Outcome<void> insert_events(const Batch& batch);
  Outcome<bool> is_full();
  Outcome<std::uint64_t> make_room(Minute now, Account& account);
  Outcome<void> delete_old_spikes(Minute last_kept, bool too_much);
  Outcome<std::optional<DriveState>> saved_state(const DriveKey& drive);

  Connection connection_;
  std::string path_;
  StoreLimits limits_;
};

}  // namespace ssdpulse::history

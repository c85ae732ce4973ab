// SPDX-License-Identifier: Apache-2.0
// A history in a temporary directory, with a clock of the test's own, and rows to put into it. The file's content is
// read with the test's own SQL.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/history/history.h"
#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/page_oracle.h"

namespace ssdpulse::history {

using namespace std::chrono_literals;
using model::ByteCounter;
using model::Rounding;
using model::Uint128;

inline constexpr model::Minute kBegin{std::chrono::minutes(29'000'000)};  // 2025-02-19T21:20:00Z
inline const model::DriveKey kDrive{"S1", "Model A", "F1"};

inline model::DriveMinute row_at(model::Minute minute, const model::DriveKey& drive = kDrive) {
  model::DriveMinute row;
  row.drive = drive;
  row.minute = minute;
  row.boottime = 1s;
  row.source = "ocp";
  const auto number = static_cast<Uint128>(minute.time_since_epoch().count());
  row.writes.host = ByteCounter{number << 64U, 512'000, Rounding::up};
  row.writes.media = ByteCounter{number << 65U, 1, Rounding::exact};
  row.temperature_celsius = 40;
  return row;
}

inline void expect_equal(const std::optional<ByteCounter>& a, const std::optional<ByteCounter>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) {
    EXPECT_TRUE(a->count == b->count);
    EXPECT_EQ(a->unit_bytes, b->unit_bytes);
    EXPECT_EQ(a->rounding, b->rounding);
  }
}

inline void expect_equal(const model::DriveMinute& a, const model::DriveMinute& b) {
  EXPECT_EQ(a.drive, b.drive);
  EXPECT_EQ(a.minute, b.minute);
  EXPECT_EQ(a.boottime, b.boottime);
  EXPECT_EQ(a.source, b.source);
  expect_equal(a.writes.host, b.writes.host);
  EXPECT_TRUE(a.host_count_before == b.host_count_before);
  expect_equal(a.writes.media, b.writes.media);
  EXPECT_EQ(a.percentage_used, b.percentage_used);
  EXPECT_EQ(a.available_spare, b.available_spare);
  EXPECT_EQ(a.temperature_celsius, b.temperature_celsius);
  EXPECT_EQ(a.discard_bytes, b.discard_bytes);
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In memory: tests/system covers what a disk does to a history.
inline const bool kInMemory = ::setenv("TMPDIR", "/dev/shm", 0) == 0;

/// A directory, a clock and the history in it.
class Rig {
 public:
  Rig() { options_.directory = tree_.path("state"); }

  Options& options() { return options_; }
  [[nodiscard]] std::string directory() const { return options_.directory; }
  [[nodiscard]] std::string file() const { return options_.directory + "/ssdpulse.db"; }
  /// Time passes: both clocks go on, by no less than nothing.
  void set_now(model::Minute now) {
    const std::int64_t before = now_->exchange(now.time_since_epoch().count());
    *boottime_ += std::max<std::int64_t>(*now_ - before, 0);
  }
  /// Somebody sets the wall clock; or the host starts again, and counts from nothing.
  void set_wall(model::Minute now) { *now_ = now.time_since_epoch().count(); }
  void reboot() { *boottime_ = 0; }
  [[nodiscard]] model::Minute now() const { return model::Minute(std::chrono::minutes(now_->load())); }
  void directory_exists() { tree_.directory("state"); }
  void write_file(const std::string& content) { tree_.file("state/ssdpulse.db", content); }

  History& start() {
    options_.now = [now = now_] { return model::Minute(std::chrono::minutes(now->load())); };
    options_.boottime = [boottime = boottime_] { return std::chrono::minutes(boottime->load()); };
    history_.reset();
    auto opened = History::open(options_);
    EXPECT_TRUE(opened.has_value());
    history_ = std::move(*opened);
    return *history_;
  }
  History& running() { return *history_; }
  void stop() { history_.reset(); }
  /// Whenever it is asked for, each row that was received is accounted for.
  [[nodiscard]] Status status() const {
    Status status = history_->status();
    for (const auto& [table, rows] : status.given) {
      EXPECT_EQ(rows.received, rows.waiting + rows.written + rows.replaced + rows.refused + rows.surplus) << table;
    }
    return status;
  }

  bool wait(const std::function<bool(const Status&)>& holds) const {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!holds(status())) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(200us);
    }
    return true;
  }
  bool wait_rows(std::uint64_t rows) const {
    return wait([&](const Status& status) { return status.rows_written() >= rows; });
  }
  util::Result<model::Recalled> recall(const model::DriveKey& drive = kDrive, model::Minute since = model::Minute{}) {
    return history_->recall(drive, since).get();
  }
  /// Writes another row, and reads it: the history works.
  void expect_works() {
    const std::uint64_t before = status().rows_written();
    const model::Minute now{std::chrono::minutes(now_->load())};
    history_->add({{row_at(now)}, {{kDrive, {1, 2}}}});
    ASSERT_TRUE(wait_rows(before + 2)) << status().reason;
    EXPECT_TRUE(status().up);
    const auto recalled = recall();
    ASSERT_TRUE(recalled.has_value());
    ASSERT_FALSE(recalled->minutes.empty());
    expect_equal(recalled->minutes.back(), row_at(now));
    ASSERT_TRUE(recalled->state.has_value());
    EXPECT_EQ(recalled->state->bytes, (model::Bytes{1, 2}));
  }
  [[nodiscard]] std::vector<std::string> set_aside_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      const std::string name = entry.path().string();
      if (name.find(".set-aside-") != std::string::npos && name.back() == 'Z') {
        names.push_back(name);
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Runs the test's own SQL on a stopped history, whose pages have checksums afterwards; returns the last value as
  /// text. `reserved`: for them, in each page of a file that this creates.
  std::string sql(const std::string& text, int reserved = 8) const {
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
    sqlite3_file_control(handle, nullptr, SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    std::string value;
    char* error = nullptr;
    sqlite3_exec(
        handle, text.c_str(),
        [](void* out, int columns, char** values, char**) {
          *static_cast<std::string*>(out) = columns > 0 && values[0] != nullptr ? values[0] : "";
          return 0;
        },
        &value, &error);
    EXPECT_EQ(error, nullptr) << error << ": " << text;
    sqlite3_free(error);
    sqlite3_close(handle);
    tests::seal(file());
    return value;
  }

 private:
  tests::TemporaryTree tree_;
  std::shared_ptr<std::atomic<std::int64_t>> now_ =
      std::make_shared<std::atomic<std::int64_t>>(kBegin.time_since_epoch().count());
  std::shared_ptr<std::atomic<std::int64_t>> boottime_ = std::make_shared<std::atomic<std::int64_t>>(0);  // minutes
  Options options_ = [] {
    Options options;
    options.retry_interval = 5ms;
    return options;
  }();
  std::unique_ptr<History> history_;
};

}  // namespace ssdpulse::history

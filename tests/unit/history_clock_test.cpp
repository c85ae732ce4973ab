// SPDX-License-Identifier: Apache-2.0
// Does the history keep what is young, whatever the wall clock shows? The oracle keeps its own books: what was added,
// and when by a clock that nobody sets. It reads the file with its own SQL and shares nothing with the code under test
// but the decoding of a load.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history.h"
#include "daemon/history/history_reader.h"
#include "daemon/history/load_codec.h"
#include "tests/unit/history_rig.h"

namespace ssdpulse::history {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr std::int64_t kDay = 24 * 60;  // minutes
constexpr std::int64_t kYear = 365 * kDay;

/// The test's own view of the file.
class File {
 public:
  explicit File(const std::string& path) {
    EXPECT_EQ(sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  }
  ~File() { sqlite3_close(handle_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// All rows, each as its columns in text or bytes.
  std::vector<std::vector<std::string>> rows(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    std::vector<std::vector<std::string>> all;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      auto& row = all.emplace_back();
      for (int column = 0; column < sqlite3_column_count(statement); ++column) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
        row.emplace_back(bytes == nullptr ? "" : bytes,
                         static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
      }
    }
    sqlite3_finalize(statement);
    return all;
  }
  std::set<std::string> keys(const std::string& sql) {
    std::set<std::string> keys;
    for (const auto& row : rows(sql)) {
      keys.insert(row.at(0));
    }
    return keys;
  }

 private:
  sqlite3* handle_ = nullptr;
};

const std::map<std::string, std::string> kKeys{
    {"device", "id"},
    {"device_hour", "at"},
    {"device_minute", "at"},
    {"discard_burst", "bytes"},
    {"drive", "id"},
    {"drive_minute", "minute || ' ' || drive || ' ' || measured"},
    {"host_wait", "subject"},
    {"latency_spike", "ios"},
    {"mark", "text"},
    {"setting", "value"},
    {"spike_seconds", "excess_seconds"},
    {"tenant", "id"},
    {"tenant_hour", "at"},
    {"tenant_minute", "at"},
};

/// What the oracle knows of one batch: each row in it carries its number.
struct Added {
  std::int64_t measured = 0;
  std::int64_t minute = 0;  // stamped
  std::string disk;
  std::string tenant;
};

class Oracle {
 public:
  explicit Oracle(std::int64_t retention) : retention_(retention) {
    rig_.options().limits.retention = std::chrono::minutes(retention);
    rig_.start();
  }

  void wait(std::int64_t minutes) {
    rig_.set_now(rig_.now() + std::chrono::minutes(minutes));
    measured_ += minutes;
  }
  void set_clock(model::Minute to) { rig_.set_wall(std::max(to, model::Minute{})); }
  [[nodiscard]] model::Minute now() const { return rig_.now(); }
  Rig& rig() { return rig_; }

  /// Off for a while: time passes that nobody measures. What was measured since the last batch is not known, either.
  void restart(std::int64_t minutes, bool reboot) {
    rig_.stop();
    rig_.set_now(rig_.now() + std::chrono::minutes(minutes));
    if (reboot) {
      rig_.reboot();
    }
    measured_ = written_at_;
    before_ = {};
    rig_.start();
    rows_ = 0;
  }

  void write(const std::string& disk, const std::string& tenant) {
    const auto number = static_cast<std::int64_t>(added_.size());
    const model::Minute now = rig_.now();
    model::Batch batch;
    model::DriveMinute drive = row_at(now, {disk, "m", "f"});
    drive.discard_bytes = static_cast<std::uint64_t>(number);
    batch.minutes = {drive};
    batch.states = {{drive.drive, {1}}};
    model::DeviceInterval load;
    load.operations[0].ios = 1;
    batch.device_minutes = {{{disk, disk, "m", disk}, now, load, {{tenant, {{{{1, 1, 1}}}}}}}};
    model::LatencySpike spike;
    spike.device = disk;
    spike.begin = now;
    spike.ios = static_cast<std::uint64_t>(number);
    batch.spikes = {spike};
    batch.bursts = {{now, disk, "fstrim", 1, static_cast<std::uint64_t>(number)}};
    batch.waits = {{now, "frozen", std::to_string(number), "", "", 1, "", "x"}};
    batch.spike_seconds = {{disk, now, now + 1min, static_cast<double>(number), {1}}};
    batch.settings = {{disk, "scheduler", std::to_string(number)}};
    batch.marks = {{now, std::to_string(number)}};
    batch.at = now;
    added_.push_back({measured_, now.time_since_epoch().count(), disk, tenant});
    add(std::move(batch));
  }

  /// Something old goes at each batch, a little at a time.
  void settle(int batches) {
    for (int i = 0; i < batches; ++i) {
      wait(3);
      model::Batch batch;
      batch.states = {{{"settles", "m", "f"}, {1}}};
      add(std::move(batch));
    }
  }

  void check() {
    File file(rig_.file());
    check_events(file);
    check_drives(file);
    check_devices(file);
    check_names(file);
  }

  /// Rows that are older than the retention, by more than what a step leaves.
  [[nodiscard]] std::size_t old_left() {
    File file(rig_.file());
    std::size_t left = 0;
    for (const char* table : {"latency_spike", "discard_burst", "host_wait", "spike_seconds", "mark"}) {
      for (const auto& key : file.keys("SELECT " + kKeys.at(table) + " FROM " + table)) {
        left += is_young(added_.at(static_cast<std::size_t>(std::stod(key)))) ? 0 : 1;
      }
    }
    return left;
  }

 private:
  [[nodiscard]] bool is_young(const Added& one) const { return written_at_ - one.measured < retention_; }

  /// Every row that is gone is counted for its table, and nothing else is.
  void add(model::Batch batch) {
    std::map<std::string, std::set<std::string>> had;
    std::map<std::string, std::map<std::string, std::string>> hours;
    if (added_.size() > 1) {
      File file(rig_.file());
      for (const auto& [table, key] : kKeys) {
        had[table] = file.keys("SELECT " + key + " FROM " + table);
      }
      hours = old_hours(file);
    }
    rows_ += batch.rows();
    rig_.running().add(std::move(batch));
    ASSERT_TRUE(rig_.wait_rows(rows_)) << rig_.status().reason;
    written_at_ = measured_;
    File file(rig_.file());
    const RowLedger now = rig_.status().rows;
    const auto deleted = [&](const std::string& table) {
      return now.since(before_).at(table).all_removed() -
             now.since(before_).at(table).removed.at(static_cast<std::size_t>(Removal::repeated));
    };
    for (const auto& [table, key] : kKeys) {
      const auto has = file.keys("SELECT " + key + " FROM " + table);
      const auto gone = static_cast<std::uint64_t>(std::count_if(
          had[table].begin(), had[table].end(), [&](const std::string& one) { return has.count(one) == 0; }));
      // An hour that was old may go, and be there again in the same step: the clock shows it a second time.
      const auto& old = hours[table];
      const std::string now_of = "SELECT measured FROM " + table + " WHERE at = ";
      const auto again = static_cast<std::uint64_t>(std::count_if(old.begin(), old.end(), [&](const auto& hour) {
        const auto there = file.rows(now_of + hour.first);
        return !there.empty() && there.front().front() != hour.second;
      }));
      ASSERT_GE(deleted(table), gone) << table;
      ASSERT_LE(deleted(table), gone + again) << table;
      ASSERT_LE(gone, 1000U) << table << ": in small steps";
    }
    before_ = now;
    check_ledger(file);
  }

  /// What the file says that was inserted, less what it says has gone, is there.
  static void check_ledger(File& file) {
    for (const char* table : model::kTables) {
      const std::string of = "FROM account, json_each(account.rows, '$." + std::string(table) + "')";
      const auto said = file.rows("SELECT 2 * max(iif(key = 0, value, 0)) - sum(value) " + of);
      ASSERT_EQ(said.front().front(), file.rows("SELECT count(*) FROM " + std::string(table)).front().front()) << table;
    }
  }

  /// Of each table, hours that are older than the retention, and when each was measured last.
  [[nodiscard]] std::map<std::string, std::map<std::string, std::string>> old_hours(File& file) const {
    std::map<std::string, std::map<std::string, std::string>> hours;
    for (const char* table : {"device_hour", "tenant_hour"}) {
      for (const auto& row : file.rows("SELECT at, measured FROM " + std::string(table) + " WHERE measured < " +
                                       std::to_string(measured_ - retention_))) {
        hours[table].emplace(row[0], row[1]);
      }
    }
    return hours;
  }

  void check_events(File& file) {
    for (const char* table : {"latency_spike", "discard_burst", "host_wait", "spike_seconds", "mark", "setting"}) {
      std::set<std::size_t> kept;
      for (const auto& key : file.keys("SELECT " + kKeys.at(table) + " FROM " + table)) {
        kept.insert(static_cast<std::size_t>(std::stod(key)));
      }
      for (std::size_t number = 0; number < added_.size(); ++number) {
        ASSERT_TRUE(kept.count(number) > 0 || !is_young(added_[number]))
            << table << ": row " << number << " is gone, " << written_at_ - added_[number].measured << " minutes old";
      }
    }
  }

  /// After two weeks, one reading an hour is enough.
  void check_drives(File& file) {
    std::set<std::size_t> kept;
    std::set<std::pair<std::string, std::int64_t>> hours;
    for (const auto& row : file.rows("SELECT discard_bytes, serial, minute FROM drive_minute JOIN drive ON drive.id = "
                                     "drive_minute.drive")) {
      kept.insert(std::stoul(row[0]));
      hours.emplace(row[1], std::stoll(row[2]) / 60);
    }
    for (std::size_t number = 0; number < added_.size(); ++number) {
      const Added& one = added_[number];
      const bool whole = written_at_ - one.measured < 14 * kDay;
      ASSERT_TRUE(!is_young(one) || kept.count(number) > 0 || (!whole && hours.count({one.disk, one.minute / 60}) > 0))
          << "reading " << number;
    }
  }

  /// Each I/O once: in its minute, or in the hour where minutes are no longer kept.
  void check_devices(File& file) {
    using Place = std::pair<std::string, std::int64_t>;  // of a device in an hour
    std::map<Place, std::int64_t> found;
    for (const auto& row : file.rows(
             "SELECT identity, at & 4294967295, load FROM device_minute JOIN device ON device.id = at >> 32 UNION ALL "
             "SELECT identity, at & 4294967295, load FROM device_hour JOIN device ON device.id = at >> 32 WHERE at & "
             "4294967295 < minutes_from")) {
      const auto load = decode({reinterpret_cast<const std::uint8_t*>(row[2].data()), row[2].size()});
      ASSERT_TRUE(load);
      found[{row[0], std::stoll(row[1]) / 60}] += static_cast<std::int64_t>(load->operations[0].ios);
    }
    std::map<Place, std::int64_t> young;
    std::map<Place, std::int64_t> all;
    for (const Added& one : added_) {
      ++all[{one.disk, one.minute / 60}];
      young[{one.disk, one.minute / 60}] += is_young(one) ? 1 : 0;
    }
    for (const auto& [place, ios] : all) {
      ASSERT_GE(found[place], young[place]) << place.first << " in hour " << place.second;
      ASSERT_LE(found[place], ios) << place.first << " in hour " << place.second;
    }
  }

  /// A number means one name for ever, and each row's number has one.
  void check_names(File& file) {
    for (const char* table : {"device", "tenant", "drive"}) {
      const std::string name = table == std::string("device")  ? "identity"
                               : table == std::string("drive") ? "serial"
                                                               : "name";
      for (const auto& row : file.rows("SELECT id, " + name + " FROM " + table)) {
        const auto& known = names_[table].emplace(row[0], row[1]).first->second;
        ASSERT_EQ(known, row[1]) << table << " " << row[0] << " was given out twice";
      }
    }
    for (const char* table : {"device_minute", "device_hour", "tenant_minute", "tenant_hour"}) {
      ASSERT_TRUE(
          file.rows("SELECT at FROM " + std::string(table) + " WHERE at >> 32 NOT IN (SELECT id FROM device)").empty())
          << table;
    }
    ASSERT_TRUE(file.rows("SELECT 1 FROM drive_minute WHERE drive NOT IN (SELECT id FROM drive)").empty());
    const auto tenants = file.keys("SELECT id FROM tenant");
    for (const char* table : {"tenant_minute", "tenant_hour"}) {
      for (const auto& row : file.rows("SELECT identity, at & 4294967295, tenants FROM " + std::string(table) +
                                       " JOIN device ON device.id = at >> 32")) {
        const auto numbered = decode_tenants({reinterpret_cast<const std::uint8_t*>(row[2].data()), row[2].size()});
        ASSERT_TRUE(numbered);
        for (const NumberedTenant& one : *numbered) {
          const std::string number = std::to_string(one.id);
          ASSERT_EQ(tenants.count(number), 1U) << "tenant " << number << " has rows and no name";
          const std::string name = names_["tenant"][number];
          ASSERT_TRUE(std::any_of(added_.begin(), added_.end(),
                                  [&](const Added& what) {
                                    return what.disk == row[0] && what.tenant == name &&
                                           what.minute / 60 == std::stoll(row[1]) / 60;
                                  }))
              << name << " is blamed for what it did not do";
        }
      }
    }
  }

  std::int64_t retention_;
  Rig rig_;
  std::int64_t measured_ = 0;    // by now
  std::int64_t written_at_ = 0;  // by the last batch
  std::uint64_t rows_ = 0;       // of this daemon
  RowLedger before_;
  std::vector<Added> added_;
  std::map<std::string, std::map<std::string, std::string>> names_;
};

std::int64_t some_jump() {
  const auto size = *rc::gen::oneOf(
      rc::gen::element(std::int64_t{60}, std::int64_t{61}, kDay, 30 * kDay, kYear, 10 * kYear, 75 * kYear),
      rc::gen::inRange<std::int64_t>(60, 75 * kYear));
  return *rc::gen::element(std::int64_t{1}, std::int64_t{-1}) * size;
}

RC_GTEST_PROP(Clocks, whatever_they_show_nothing_young_is_gone_and_everything_that_is_was_counted, ()) {
  const auto retention = *rc::gen::element(kDay, 3 * kDay, 30 * kDay);
  Oracle oracle(retention);
  const model::Minute right = oracle.now();
  for (int steps = *rc::gen::inRange(5, 60); steps > 0; --steps) {
    switch (*rc::gen::inRange(0, 10)) {
      case 0:
        oracle.set_clock(oracle.now() + std::chrono::minutes(some_jump()));
        break;
      case 1:  // a clock without a battery, or with another epoch
        oracle.set_clock(*rc::gen::element(model::Minute{} + 5min, model::Minute{} + 34714080min + 60min, right));
        break;
      case 2:
        oracle.restart(*rc::gen::element(std::int64_t{0}, std::int64_t{1}, std::int64_t{90}, 40 * kDay),
                       *rc::gen::arbitrary<bool>());
        break;
      case 3:
        oracle.wait(*rc::gen::inRange<std::int64_t>(60, 3 * kDay));
        break;
      default:
        break;
    }
    oracle.wait(*rc::gen::inRange<std::int64_t>(3, 40));
    oracle.write(*rc::gen::element<std::string>("sda", "sdb"),
                 *rc::gen::element<std::string>("a.service", "b.service", "c.service", "d.service"));
    oracle.check();
    RC_ASSERT(!testing::Test::HasFailure());
  }
  oracle.settle(3);
  oracle.check();
  RC_ASSERT(!testing::Test::HasFailure());
}

/// A life with a wrong clock in it: for how long, and by how much, in minutes.
struct Wrong {
  const char* what;
  std::int64_t ahead;
  std::int64_t lasts;
  int times = 1;
};

class WrongClock : public testing::TestWithParam<Wrong> {};

TEST_P(WrongClock, costs_nothing) {
  const Wrong& wrong = GetParam();
  Oracle oracle(30 * kDay);
  const auto measure = [&](std::int64_t minutes) {
    for (std::int64_t passed = 0; passed < minutes;) {
      const std::int64_t step = minutes > 500 ? 240 : 4;
      oracle.wait(step);
      oracle.write("sda", "a.service");
      passed += step;
    }
  };
  measure(3 * kDay);
  for (int i = 0; i < wrong.times; ++i) {
    const model::Minute before = oracle.now();
    oracle.set_clock(before + std::chrono::minutes(wrong.ahead));
    measure(wrong.lasts);
    oracle.set_clock(before + std::chrono::minutes(wrong.lasts));
    measure(8);
    oracle.check();
  }
  const RowLedger ledger = oracle.rig().status().rows;
  for (const auto& [table, rows] : ledger.tables()) {
    EXPECT_EQ(rows.all_removed(), 0U) << table;
  }
  // A whole minute of a right clock is kept at once, not only when its hour is over.
  const auto reader = Reader::open(oracle.rig().file()).value();
  const auto minutes = reader->minutes("sda", {oracle.now() - 5min, oracle.now() + 1min}).value();
  ASSERT_FALSE(minutes.empty());
  EXPECT_EQ(minutes.back().start, oracle.now());
  EXPECT_EQ(minutes.back().length, 1min);
  EXPECT_EQ(reader->devices()->size(), 1U);
  EXPECT_EQ(reader->devices()->at(0).last, oracle.now()) << "what was stamped in the future is not believed";
  // And when it is old by the clock that counts, it goes.
  oracle.wait(31 * kDay);
  oracle.settle(60);
  oracle.check();
  EXPECT_EQ(oracle.old_left(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Clocks, WrongClock,
    testing::Values(Wrong{"an hour", 60, 4}, Wrong{"an hour for a day", 60, kDay}, Wrong{"a day", kDay, 4},
                    Wrong{"a year for a day", kYear, kDay}, Wrong{"2036", 10 * kYear, 4},
                    Wrong{"75 years", 75 * kYear, 4}, Wrong{"75 years for a day", 75 * kYear, kDay},
                    Wrong{"1970", -std::int64_t{28'999'000}, 4},
                    Wrong{"1970 for a day", -std::int64_t{28'999'000}, kDay}, Wrong{"a month behind", -30 * kDay, 4},
                    Wrong{"back and forth", 10 * kYear, 4, 20}, Wrong{"an hour, back and forth", 60, 4, 20}),
    [](const auto& row) {
      std::string name(row.param.what);
      std::replace_if(
          name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// ---- what is stamped in the future

TEST(StampedAhead, is_marked_and_neither_hides_nor_displaces_what_is_true) {
  Oracle oracle(30 * kDay);
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) {
      oracle.wait(3);
      oracle.write("sda", "a.service");
    }
  };
  write(2);
  const model::Minute before = oracle.now();
  oracle.set_clock(before + 1h);
  write(2);  // stamped 63 and 66 minutes later
  const model::Minute ahead = oracle.now();
  oracle.set_clock(before + 6min);
  write(25);
  const auto reader = Reader::open(oracle.rig().file()).value();
  const auto series = reader->series("sda", {before - 1h, before + 3h}).value();
  std::uint64_t ios = 0;
  for (const auto& point : series.points) {
    ios += point.load.operations[0].ios;
  }
  EXPECT_EQ(ios, 27U) << "without the two that are not believed";
  ASSERT_EQ(series.clock_ahead.size(), 2U) << "which are shown";
  EXPECT_EQ(series.clock_ahead.back().from, ahead);
  const auto marked = [](const auto& rows) {
    return std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.clock_ahead; });
  };
  EXPECT_EQ(series.spikes.size(), 29U);
  EXPECT_EQ(marked(series.spikes), 2);
  EXPECT_EQ(marked(series.bursts), 2);
  EXPECT_EQ(marked(series.waits), 2);
  EXPECT_EQ(marked(series.settings), 2);
  EXPECT_EQ(marked(series.marks), 2);
  EXPECT_EQ(oracle.rig().recall({"sda", "m", "f"})->minutes.size(), 27U);
  // However long the host is off afterwards.
  oracle.restart(40 * kDay, true);
  write(1);
  EXPECT_EQ(marked(reader->series("sda", {before - 1h, before + 3h})->spikes), 2);
}

TEST(StampedAhead, is_not_what_a_clock_that_was_behind_seems_to_show) {
  Oracle oracle(30 * kDay);
  oracle.wait(3);
  oracle.write("sda", "a.service");
  const model::Minute before = oracle.now();
  for (const auto behind : {before - std::chrono::minutes(300 * kDay), model::Minute{} + 5min}) {
    oracle.set_clock(behind);
    oracle.wait(3);
    oracle.write("sda", "a.service");
    oracle.set_clock(before + 10min);
    oracle.wait(3);
    oracle.write("sda", "a.service");
  }
  const auto reader = Reader::open(oracle.rig().file()).value();
  const auto series = reader->series("sda", {before - 1h, before + 3h}).value();
  EXPECT_EQ(series.spikes.size(), 3U);
  for (const model::PastSpike& spike : series.spikes) {
    EXPECT_FALSE(spike.clock_ahead);
  }
  EXPECT_TRUE(series.clock_ahead.empty());
  EXPECT_GT(oracle.rig().status().reach.minutes, model::Minute{} + std::chrono::minutes(50 * kYear))
      << "a clock that was never set says nothing of how far back the history goes";
}

}  // namespace
}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
// Is every row accounted for, and is what a file says of itself corrected where its rows say otherwise?
#include <fmt/format.h>

#include <limits>

#include "tests/unit/history_rig.h"

namespace ssdpulse::history {
namespace {

constexpr int kMinutes = 200;

DeviceMinute minute_of(Minute minute) {
  DeviceMinute row;
  row.device = {"wwid 1", "sda", "Model", "Serial"};
  row.minute = minute;
  row.load.measured_ms = 60'000;
  row.load.operations[0].ios = 1;
  row.tenants = {{"a.service", {}}};
  return row;
}

/// A history of some hours, that was closed.
void fill(Rig& rig) {
  History& history = rig.start();
  for (int i = 0; i < kMinutes; ++i) {
    rig.set_now(kBegin + std::chrono::minutes(i));
    Batch batch{{row_at(rig.now())}, {}};
    batch.device_minutes = {minute_of(rig.now())};
    history.add(std::move(batch));
    EXPECT_TRUE(rig.wait_rows(2U * static_cast<std::uint64_t>(i + 1)));
  }
  EXPECT_TRUE(history.keep({kBegin, "a mark"}).get().has_value());
  rig.stop();
}

std::string count(const Rig& rig, const std::string& table) { return rig.sql("SELECT count(*) FROM " + table); }

TEST(Account, of_a_file_that_was_left_alone_agrees_with_its_rows) {
  Rig rig;
  fill(rig);
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 0U);
  rig.stop();
  for (const char* table : kTables) {
    EXPECT_EQ(rig.sql("SELECT 2 * json_extract(value, '$[0]') - (SELECT sum(value) FROM json_each(tables.value)) FROM "
                      "account, json_each(account.rows) AS tables WHERE tables.key = '" +
                      std::string(table) + "'"),
              count(rig, table))
        << table;
  }
}

// What a wrong number says of the clocks would delete right rows, hide them, or keep new ones out.
TEST(Account, that_is_wrong_costs_no_row) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const char* column : {"measured_ms", "wall", "wall_measured", "drive_minutes_thinned_to", "tenant_bytes",
                             "minutes_reach", "hours_reach"}) {
    for (const std::int64_t value : {-kMost - 1, std::int64_t{-1}, std::int64_t{1} << 40U, kMost / 2, kMost}) {
      Rig rig;
      rig.options().limits.retention = std::chrono::hours(24);
      fill(rig);
      const std::string set = fmt::format("UPDATE account SET {} = {}", column, value);
      rig.sql(set);
      rig.start();
      rig.set_now(rig.now() + 1min);
      Batch batch;
      batch.device_minutes = {minute_of(rig.now())};
      rig.running().add(std::move(batch));
      ASSERT_TRUE(rig.wait_rows(1)) << set << ": " << rig.status().reason;
      EXPECT_EQ(rig.status().corrections, 1U) << set;
      EXPECT_EQ(rig.status().reach.minutes, kBegin) << set;
      EXPECT_EQ(rig.recall()->minutes.size(), static_cast<std::size_t>(kMinutes)) << set;
      EXPECT_TRUE(rig.set_aside_files().empty()) << set;
      rig.stop();
      EXPECT_EQ(count(rig, "device_minute"), std::to_string(kMinutes + 1)) << set;
      EXPECT_EQ(count(rig, "mark"), "1") << set;
    }
  }
}

TEST(Account, says_which_rows_another_program_removed_or_added) {
  Rig rig;
  fill(rig);
  rig.sql("DELETE FROM device_minute WHERE rowid IN (SELECT rowid FROM device_minute LIMIT 7)");
  rig.sql("INSERT INTO mark (at_ms, text, measured) VALUES (1, 'forged', 0)");
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 1U);
  constexpr auto kUnreadable = static_cast<std::size_t>(Removal::unreadable);
  EXPECT_EQ(rig.status().rows.at("device_minute").removed.at(kUnreadable), 7U);
  EXPECT_EQ(rig.status().rows.at("mark").inserted, 1U);
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 0U) << "it is corrected once";
}

TEST(Account, of_rows_that_is_no_account_makes_a_file_damaged) {
  for (const char* rows :
       {"", "x", "[]", "{\"mark\":1}", "{\"mark\":[1]}", "{\"mark\":[1,2,3,4,-5,6]}", "{\"x\":[1]}"}) {
    Rig rig;
    fill(rig);
    rig.sql(std::string("UPDATE account SET rows = '") + rows + "'");
    rig.start();
    rig.expect_works();
    EXPECT_EQ(rig.set_aside_files().size(), std::string(rows) == "[]" ? 0U : 1U) << rows;
  }
}

}  // namespace
}  // namespace ssdpulse::history

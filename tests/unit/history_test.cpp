// SPDX-License-Identifier: Apache-2.0
// Does the history return what it was given, and stay within its bounds?
#include "daemon/history/history.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/history/history_reader.h"
#include "tests/unit/history_rig.h"

namespace ssdpulse::history {
namespace {

// ---- what goes in comes out

Uint128 some_count() {
  const auto high = *rc::gen::arbitrary<std::uint64_t>();
  const auto low = *rc::gen::arbitrary<std::uint64_t>();
  return *rc::gen::element(Uint128{high} << 64U | low, Uint128{low}, ~Uint128{0}, Uint128{1} << 127U,
                           Uint128{1} << 64U);
}

std::optional<ByteCounter> some_counter() {
  if (*rc::gen::inRange(0, 4) == 0) {
    return std::nullopt;
  }
  return ByteCounter{some_count(), *rc::gen::arbitrary<std::uint64_t>(),
                     *rc::gen::element(Rounding::exact, Rounding::up, Rounding::unknown)};
}

std::optional<double> some_real() {
  if (*rc::gen::inRange(0, 3) == 0) {
    return std::nullopt;
  }
  return *rc::gen::element(0.0, -40.0, 1.0, 0.01, 1e-9, 3.0, std::numeric_limits<double>::max(),
                           std::numeric_limits<double>::denorm_min());
}

model::DriveMinute some_row(model::Minute minute) {
  model::DriveMinute row;
  row.drive = {kDrive.serial, kDrive.model, *rc::gen::string<std::string>()};
  row.minute = minute;
  row.boottime = std::chrono::nanoseconds(*rc::gen::arbitrary<std::int64_t>());
  row.source = *rc::gen::string<std::string>();
  row.writes = {some_counter(), some_counter()};
  if (*rc::gen::arbitrary<bool>()) {
    row.host_count_before = some_count();
  }
  for (auto* real : {&row.percentage_used, &row.available_spare, &row.temperature_celsius}) {
    *real = some_real();
  }
  row.discard_bytes = *rc::gen::arbitrary<std::uint64_t>();
  return row;
}

RC_GTEST_PROP(RoundTrip, gives_back_exactly_what_was_added_also_after_a_restart, ()) {
  Rig rig;
  rig.options().limits.retention = std::chrono::hours(24);
  History* history = &rig.start();
  std::vector<model::DriveMinute> rows(*rc::gen::inRange<std::size_t>(1, 6));
  std::vector<model::DriveMinute> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = some_row(kBegin - std::chrono::minutes(rows.size() - 1 - i));
    model::DriveMinute other = some_row(rows[i].minute);
    other.drive.serial = "another";
    others.push_back(other);
    history->add({{others.back(), rows[i]}, {}});
  }
  const auto state = *rc::gen::arbitrary<model::Bytes>();
  history->add({{}, {{rows.back().drive, state}}});
  if (*rc::gen::arbitrary<bool>()) {
    history = &rig.start();
  } else {
    RC_ASSERT(rig.wait_rows(2 * rows.size() + 1));
  }
  const auto recalled = rig.recall();
  RC_ASSERT(recalled.has_value());
  RC_ASSERT(recalled->minutes.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    expect_equal(recalled->minutes[i], rows[i]);
  }
  RC_ASSERT(recalled->state.has_value());
  RC_ASSERT(recalled->state->drive == rows.back().drive);
  RC_ASSERT(recalled->state->bytes == state);
  RC_ASSERT(!testing::Test::HasFailure());
  RC_ASSERT(rig.status().rows_unreadable == 0U);
}

TEST(RoundTrip, counters_are_sixteen_bytes_big_endian_for_every_other_reader) {
  Rig rig;
  model::DriveMinute row = row_at(kBegin);
  row.writes.host = ByteCounter{Uint128{0x0123456789abcdefULL} << 64U | 0xfedcba9876543210ULL, 512, Rounding::unknown};
  row.writes.media.reset();
  rig.start().add({{row}, {}});
  rig.stop();
  EXPECT_EQ(rig.sql("SELECT hex(host_count) FROM drive_minute"), "0123456789ABCDEFFEDCBA9876543210");
  EXPECT_EQ(rig.sql("SELECT host_unit_bytes || ' ' || host_rounding FROM drive_minute"), "512 2");
  EXPECT_EQ(rig.sql("SELECT media_count IS NULL AND media_unit_bytes IS NULL FROM drive_minute"), "1");
  EXPECT_EQ(rig.sql("SELECT minute FROM drive_minute"), "29000000");
  EXPECT_EQ(rig.sql("SELECT serial || model || firmware || last_measured FROM drive"), "S1Model AF10");
  EXPECT_EQ(rig.sql("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(rig.sql("PRAGMA user_version"), "1");
  EXPECT_EQ(rig.sql("PRAGMA auto_vacuum"), "2");
}

TEST(Spikes, are_rows_with_their_evidence) {
  Rig rig;
  model::LatencySpike spike;
  spike.device = "nvme0n1";
  spike.operation = model::Operation::write;
  spike.begin = kBegin + 1500ms;
  spike.duration = 2500ms;
  spike.peak_seconds = 0.25;
  spike.baseline_seconds = 0.001;
  spike.ios = 17;
  spike.excess_seconds = 1.5;
  spike.cause = model::SpikeCause::gc;
  spike.evidence = {{score_of(model::SpikeCause::gc), 0.5}, {model::EvidenceKey::media_written_bytes, 4096}};
  spike.missing = {"this", "and that"};
  model::Batch batch;
  batch.spikes = {spike};
  rig.start().add(batch);
  ASSERT_TRUE(rig.wait_rows(1));
  rig.stop();
  EXPECT_EQ(rig.sql("SELECT begin_ms || ' ' || device || ' ' || operation || ' ' || duration_seconds || ' ' || "
                    "peak_seconds || ' ' || baseline_seconds || ' ' || excess_seconds || ' ' || ios || ' ' || cause "
                    "FROM latency_spike"),
            "1740000001500 nvme0n1 write 2.5 0.25 0.001 1.5 17 gc");
  EXPECT_EQ(rig.sql("SELECT evidence || '|' || missing FROM latency_spike"),
            "media_written_bytes=4096 gc_score=0.5|this; and that");
  rig.set_now(kBegin + 91 * 24h);
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.sql("SELECT count(*) FROM latency_spike"), "1") << "nothing was measured in these months";
  rig.set_now(kBegin + 182 * 24h);
  rig.expect_works();
  rig.stop();
  EXPECT_EQ(rig.sql("SELECT count(*) FROM latency_spike"), "0") << "older than the retention";
}

TEST(RoundTrip, a_second_row_of_a_minute_replaces_the_first) {
  Rig rig;
  History& history = rig.start();
  model::DriveMinute row = row_at(kBegin);
  history.add({{row}, {}});
  row.discard_bytes = 7;
  history.add({{row}, {}});
  ASSERT_TRUE(rig.wait_rows(2));
  const auto recalled = rig.recall();
  ASSERT_EQ(recalled->minutes.size(), 1U);
  EXPECT_EQ(recalled->minutes[0].discard_bytes, 7U);
}

TEST(Recall, distinguishes_drives_of_the_same_serial_by_subsystem) {
  Rig rig;
  History& history = rig.start();
  const model::DriveKey one{"S1", "Model A", "F1", "nqn.one"};
  const model::DriveKey other{"S1", "Model A", "F1", "nqn.other"};
  history.add({{row_at(kBegin, one), row_at(kBegin, other)}, {{one, {1}}, {other, {2}}}});
  ASSERT_TRUE(rig.wait_rows(4));
  for (const model::DriveKey& key : {one, other}) {
    const auto recalled = rig.recall(key);
    ASSERT_EQ(recalled->minutes.size(), 1U);
    expect_equal(recalled->minutes[0], row_at(kBegin, key));
    EXPECT_EQ(recalled->state->drive, key);
    EXPECT_EQ(recalled->state->bytes, model::Bytes{key == one ? std::uint8_t{1} : std::uint8_t{2}});
  }
}

TEST(Recall, covers_all_firmware_of_a_drive_from_then_until_now) {
  Rig rig;
  History& history = rig.start();
  const model::DriveKey newer{"S1", "Model A", "F2"};
  for (int i = -5; i <= 5; ++i) {
    history.add({{row_at(kBegin + std::chrono::minutes(i), i < 0 ? kDrive : newer),
                  row_at(kBegin + std::chrono::minutes(i), {"S1", "Model B", "F1"})},
                 {{i < 0 ? kDrive : newer, {static_cast<std::uint8_t>(i)}}}});
  }
  ASSERT_TRUE(rig.wait_rows(33));
  const auto recalled = rig.recall(newer, kBegin - 2min);
  ASSERT_TRUE(recalled.has_value());
  ASSERT_EQ(recalled->minutes.size(), 3U);  // anything after the clock's time is not history
  EXPECT_EQ(recalled->minutes[0].drive, kDrive);
  EXPECT_EQ(recalled->minutes[2].drive, newer);
  EXPECT_EQ(recalled->state->drive, newer);
  EXPECT_EQ(recalled->state->bytes, model::Bytes{5});
  history.add({{}, {{kDrive, {99}}}});  // back to the old firmware
  ASSERT_TRUE(rig.wait_rows(34));
  EXPECT_EQ(rig.recall()->state->drive, kDrive);
  EXPECT_EQ(rig.recall()->state->bytes, model::Bytes{99});
  const auto unknown = rig.recall({"S2", "Model A", "F1"});
  EXPECT_TRUE(unknown.has_value() && unknown->minutes.empty() && !unknown->state.has_value());
}

// ---- bounds

TEST(Bounds, rows_older_than_the_retention_go_a_step_at_a_time) {
  Rig rig;
  rig.options().limits.retention = std::chrono::hours(24);
  rig.options().max_pending_rows = 10'000;
  History& history = rig.start();
  for (int i = 0; i < 50; ++i) {
    model::Batch batch;
    for (int k = 0; k < 100; ++k) {
      batch.minutes.push_back(row_at(kBegin + std::chrono::minutes(i * 100 + k)));
    }
    rig.set_now(kBegin + std::chrono::minutes(i * 100 + 99));
    history.add(std::move(batch));
  }
  ASSERT_TRUE(rig.wait_rows(5000));
  rig.set_now(kBegin + 4999min + 24h);  // only the newest of the old batches is still young enough
  history.add({{row_at(kBegin + 4999min + 24h)}, {}});
  ASSERT_TRUE(rig.wait_rows(5001));
  EXPECT_LE(rig.status().rows.at("drive_minute").all_removed(), 4600U);
  for (int i = 0; i < 6; ++i) {
    history.add({{row_at(kBegin + 4999min + 24h)}, {}});
  }
  ASSERT_TRUE(rig.wait_rows(5007));
  const RowLedger rows = rig.status().rows;
  EXPECT_EQ(rows.at("drive_minute").removed.at(static_cast<std::size_t>(Removal::age)), 4900U);
  EXPECT_EQ(rows.at("drive_minute").removed.at(static_cast<std::size_t>(Removal::repeated)), 6U);
  const auto recalled = rig.recall();
  ASSERT_EQ(recalled->minutes.size(), 101U);
  EXPECT_EQ(recalled->minutes[0].minute, kBegin + 4900min);
}

TEST(Bounds, a_drive_goes_with_its_last_row_and_its_id_brings_nothing_back) {
  Rig rig;
  rig.options().limits.retention = std::chrono::hours(24);
  History& history = rig.start();
  history.add({{row_at(kBegin, {"old", "m", "f"})}, {{{"old", "m", "f"}, {1}}}});
  ASSERT_TRUE(rig.wait_rows(2));
  rig.set_now(kBegin + 24h);
  history.add({{row_at(kBegin + 24h)}, {}});
  ASSERT_TRUE(rig.wait_rows(3));
  EXPECT_EQ(rig.recall({"old", "m", "f"})->minutes.size(), 1U);
  rig.set_now(kBegin + 24h + 1min);
  history.add({{row_at(kBegin + 24h + 1min)}, {}});
  history.add({{row_at(kBegin + 24h + 1min, {"new", "m", "f"})}, {}});
  ASSERT_TRUE(rig.wait_rows(5));
  EXPECT_TRUE(rig.recall({"old", "m", "f"})->minutes.empty());
  EXPECT_FALSE(rig.recall({"old", "m", "f"})->state.has_value());
  EXPECT_EQ(rig.recall({"new", "m", "f"})->minutes.size(), 1U);
  rig.stop();
  EXPECT_EQ(rig.sql("SELECT count(*) FROM drive"), "2");
}

/// Also of a file whose pages have another size: the limit is in bytes.
class SizeLimit : public testing::TestWithParam<int> {};

TEST_P(SizeLimit, the_oldest_rows_make_room_when_it_is_reached) {
  Rig rig;
  rig.directory_exists();
  rig.sql("PRAGMA page_size = " + std::to_string(GetParam()) + "; PRAGMA auto_vacuum = INCREMENTAL; " +
          "CREATE TABLE one (value); DROP TABLE one");
  rig.options().limits = {std::chrono::hours(3650 * 24), kMinSizeLimit};
  rig.options().max_pending_rows = 200'000;
  History& history = rig.start();
  constexpr int kBatches = 300;
  constexpr int kDrives = 100;
  for (int i = 0; i < kBatches; ++i) {
    model::Batch batch;
    for (int drive = 0; drive < kDrives; ++drive) {
      batch.minutes.push_back(row_at(kBegin + std::chrono::minutes(i), {std::to_string(drive), "m", "f"}));
    }
    batch.states.push_back({{"0", "m", "f"}, model::Bytes(2000, 1)});
    rig.set_now(kBegin + std::chrono::minutes(i));
    history.add(std::move(batch));
  }
  ASSERT_TRUE(rig.wait_rows(kBatches * (kDrives + 1))) << rig.status().reason;
  EXPECT_EQ(rig.status().failures, 0U);
  EXPECT_GT(rig.status().rows.at("drive_minute").all_removed(), 10'000U);
  EXPECT_GT(rig.status().bytes_on_disk, kMinSizeLimit / 2);
  const auto kept = rig.recall({"0", "m", "f"})->minutes;
  ASSERT_GT(kept.size(), 20U);
  EXPECT_EQ(kept.back().minute, kBegin + std::chrono::minutes(kBatches - 1));
  EXPECT_EQ(kept.back().minute - kept.front().minute, std::chrono::minutes(kept.size() - 1));  // no hole
  rig.stop();
  EXPECT_LE(std::filesystem::file_size(rig.file()), kMinSizeLimit);
  EXPECT_EQ(rig.sql("PRAGMA page_size"), std::to_string(GetParam()));
  EXPECT_EQ(rig.sql("PRAGMA integrity_check"), "ok");
}

INSTANTIATE_TEST_SUITE_P(Pages, SizeLimit, testing::Values(4096, 16384));

TEST(Bounds, a_shorter_retention_gives_the_space_back) {
  Rig rig;
  rig.options().max_pending_rows = 100'000;
  History* history = &rig.start();
  for (int i = 0; i < 40; ++i) {
    model::Batch batch;
    for (int k = 0; k < 1000; ++k) {
      batch.minutes.push_back(row_at(kBegin + std::chrono::minutes(i * 1000 + k)));
    }
    rig.set_now(kBegin + std::chrono::minutes(i * 1000 + 999));
    history->add(std::move(batch));
  }
  ASSERT_TRUE(rig.wait_rows(40'000));
  const std::uint64_t before = rig.status().bytes_on_disk;
  rig.options().limits.retention = std::chrono::hours(24);
  history = &rig.start();
  rig.set_now(kBegin + 40'000min);
  for (int i = 0; i < 80; ++i) {
    history->add({{row_at(kBegin + 40'000min)}, {}});
  }
  ASSERT_TRUE(rig.wait_rows(80));
  EXPECT_LT(rig.status().bytes_on_disk, before * 3 / 4);
  EXPECT_EQ(rig.recall()->minutes.size(), 2001U) << "the batches of the last day and a half";
}

TEST(Bounds, what_waits_for_the_disk_is_bounded_and_the_oldest_goes) {
  Rig rig;
  rig.options().directory += "/missing/parent";
  rig.options().max_pending_rows = 10;
  History& history = rig.start();
  for (int i = 0; i < 25; ++i) {
    history.add({{row_at(kBegin + std::chrono::minutes(i - 25))}, {{kDrive, {static_cast<std::uint8_t>(i)}}}});
  }
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 2; }));
  EXPECT_EQ(rig.status().rows_dropped(), 16U) << "minutes alone";
  EXPECT_EQ(rig.status().rows_written(), 0U);
  EXPECT_FALSE(rig.status().up);
  EXPECT_NE(rig.status().reason.find("No such file or directory"), std::string::npos) << rig.status().reason;
  EXPECT_FALSE(rig.recall().has_value());
  std::filesystem::create_directories(std::filesystem::path(rig.directory()).parent_path());
  ASSERT_TRUE(rig.wait_rows(10));
  EXPECT_TRUE(rig.status().up);
  EXPECT_EQ(rig.status().reason, "");
  EXPECT_EQ(rig.recall()->minutes.size(), 9U);
  EXPECT_EQ(rig.recall()->state->bytes, model::Bytes{24});
  struct stat status {};
  ASSERT_EQ(::stat(rig.directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0750U);
}

TEST(Bounds, a_state_that_waits_makes_room_for_its_successor_which_is_no_loss) {
  Rig rig;
  rig.options().directory += "/missing/parent";
  rig.options().max_pending_rows = 10;
  History& history = rig.start();
  const model::DriveKey other{"S2", "Model A", "F1"};
  history.add({{}, {{other, {9}}, {kDrive, {99}}}});
  for (int i = 0; i < 8; ++i) {
    history.add({{row_at(kBegin + std::chrono::minutes(i - 8))}, {{kDrive, {static_cast<std::uint8_t>(i)}}}});
  }
  std::filesystem::create_directories(std::filesystem::path(rig.directory()).parent_path());
  ASSERT_TRUE(rig.wait_rows(10));
  EXPECT_EQ(rig.status().rows_dropped(), 0U);
  EXPECT_EQ(rig.recall()->minutes.size(), 8U);
  EXPECT_EQ(rig.recall()->state->bytes, model::Bytes{7});
  ASSERT_TRUE(rig.recall(other)->state) << "which has no successor";
  EXPECT_EQ(rig.recall(other)->state->bytes, model::Bytes{9});
}

TEST(Bounds, what_no_file_would_take_is_dropped_and_counted) {
  Rig rig;
  History& history = rig.start();
  model::DriveMinute row = row_at(kBegin);
  row.source = std::string(model::kMaxNameBytes + 1, 'x');
  history.add({{row, row_at(kBegin, {std::string(model::kMaxNameBytes + 1, 'x'), "", ""})},
               {{kDrive, model::Bytes(model::kMaxStateBytes + 1)}}});
  EXPECT_EQ(rig.status().rows_dropped(), 3U);
  history.add({{}, {{kDrive, model::Bytes(model::kMaxStateBytes, 3)}}});
  ASSERT_TRUE(rig.wait_rows(1));
  EXPECT_EQ(rig.recall()->state->bytes.size(), model::kMaxStateBytes);
}

TEST(Bounds, a_batch_that_the_file_refuses_is_dropped_and_the_next_is_written) {
  Rig rig;
  History& history = rig.start();
  rig.expect_works();
  const Status before = rig.status();
  model::Batch refused{{row_at(kBegin + 1min)}, {}};
  refused.bursts.push_back({kBegin, "sda", "fstrim", std::numeric_limits<double>::quiet_NaN(), 1});  // NULL
  history.add(refused);
  rig.expect_works();
  EXPECT_EQ(rig.status().rows_dropped(), before.rows_dropped() + 2);
  EXPECT_EQ(rig.status().failures, before.failures + 1);
  const auto recalled = rig.recall();
  ASSERT_TRUE(recalled.has_value());
  EXPECT_EQ(recalled->minutes.back().minute, kBegin) << "nothing of it is there";
}

TEST(Directory, what_waits_is_written_at_the_end_where_there_is_room_by_then) {
  Rig rig;
  rig.options().directory += "/missing/parent";
  rig.options().retry_interval = 1h;
  rig.set_now(kBegin);
  rig.start().add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures == 1; }));
  std::filesystem::create_directories(std::filesystem::path(rig.directory()).parent_path());
  rig.stop();
  rig.start();
  const auto recalled = rig.recall();
  ASSERT_TRUE(recalled) << recalled.error().message;
  EXPECT_EQ(recalled->minutes.size(), 1U);
}

TEST(Directory, belongs_to_one_daemon_at_a_time) {
  Rig rig;
  rig.start().add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(rig.wait_rows(1));
  Options options;
  options.directory = rig.directory();
  options.retry_interval = 10ms;
  auto other = History::open(options);
  ASSERT_TRUE(other);
  const auto soon = [&](bool up) {
    for (int i = 0; i < 500 && (*other)->status().up != up; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    return (*other)->status();
  };
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(soon(false).up);
  EXPECT_NE(soon(false).reason.find("another ssdpulse keeps its history in " + rig.directory()), std::string::npos);
  rig.stop();
  EXPECT_TRUE(soon(true).up) << soon(true).reason;
}

TEST(Directory, cannot_be_locked_by_who_may_only_read_it) {
  Rig rig;
  rig.directory_exists();
  const util::UniqueFd directory(::open(rig.directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(directory.get(), LOCK_EX | LOCK_NB), 0);
  rig.start().add({{row_at(kBegin)}, {}});
  EXPECT_TRUE(rig.wait_rows(1));
  const auto mode = std::filesystem::status(rig.directory() + "/lock").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

// ---- marks: whoever sets one waits until it is on the disk

model::Mark mark_at(std::chrono::system_clock::time_point at, std::string id = "") {
  return {.at = at, .text = "deployed", .id = std::move(id)};
}

TEST(Marks, are_on_the_disk_when_they_are_confirmed) {
  Rig rig;
  rig.start().add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(rig.wait_rows(1));
  const auto reader = Reader::open(rig.file());
  const model::Window all{kBegin - std::chrono::hours(1), kBegin + std::chrono::hours(1)};
  for (int i = 1; i <= 12; ++i) {
    const auto at = rig.running().keep(mark_at(kBegin)).get();
    ASSERT_TRUE(at) << at.error().message;
    EXPECT_EQ(*at, kBegin + std::chrono::milliseconds(i - 1)) << "another one has its millisecond";
    const auto marks = (*reader)->marks(all);  // by another connection, as after a kill
    ASSERT_TRUE(marks) << marks.error().message;
    EXPECT_EQ(marks->size(), static_cast<std::size_t>(i));
  }
}

TEST(Marks, are_kept_once_however_often_they_are_sent) {
  Rig rig;
  rig.start();
  const auto first = rig.running().keep(mark_at(kBegin, "a-1")).get();
  const auto again = rig.running().keep(mark_at(kBegin + std::chrono::seconds(3), "a-1")).get();
  const auto other = rig.running().keep(mark_at(kBegin + std::chrono::seconds(3), "a-2")).get();
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(*again, *first);
  EXPECT_EQ(*other, kBegin + std::chrono::seconds(3));
  const auto marks = (*Reader::open(rig.file()))->marks({kBegin, kBegin + std::chrono::hours(1)});
  ASSERT_TRUE(marks);
  EXPECT_EQ(marks->size(), 2U);
}

TEST(Marks, are_refused_with_the_reason_while_the_history_is_down) {
  Rig rig;
  rig.options().directory += "/missing/twice";
  rig.start();
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 0; }));
  const auto refused = rig.running().keep(mark_at(kBegin)).get();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot create"), std::string::npos) << refused.error().message;
  EXPECT_EQ(rig.status().given.at("mark").surplus, 1U);
}

TEST(Options, only_an_absolute_directory_will_do) {
  EXPECT_FALSE(History::open({.directory = ""}).has_value());
  EXPECT_FALSE(History::open({.directory = "state"}).has_value());
}

}  // namespace
}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
// What the programs of volumes count, of each story that a bio can have.
#include <gtest/gtest.h>

#include <numeric>

#include "bpf/abi/block_abi.h"
#include "tests/unit/fake_volumes.h"

namespace {

constexpr __u32 kRead = 0, kWrite = 1, kDiscard = 3, kPassthrough = 34;
constexpr __u8 kIoError = 10;
constexpr __u64 kMinute = 60'000'000'000;

const volume_cell& volume(__u32 operation_class) { return *fake_volumes_cell(0, operation_class); }
const volume_cell& member(__u32 operation_class) { return *fake_volumes_cell(1, operation_class); }

__u64 timed_in_histogram(const volume_cell& cell) {
  return std::accumulate(std::begin(cell.latency), std::end(cell.latency), __u64{0});
}

class VolumePrograms : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { fake_volumes_boot(GetParam() ? 1 : 0); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, VolumePrograms, testing::Bool(),
                         [](const auto& old) { return old.param ? "with_a_hash" : "with_slots"; });

TEST_P(VolumePrograms, time_a_bio_from_its_submission_to_its_end) {
  fake_volumes_submit(0, FAKE_VOLUME, kWrite, 8192);
  fake_now += 2'000'000;
  fake_volumes_end(0, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_WRITE).submitted, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).bytes, 8192U);
  EXPECT_EQ(volume(CLASS_WRITE).timed, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).failed, 0U);
  EXPECT_EQ(volume(CLASS_WRITE).sum_ns, 2'000'000U);
  EXPECT_EQ(volume(CLASS_WRITE).latency[latency_word(2'000'000)], 1U);
  EXPECT_EQ(volume(CLASS_READ).submitted, 0U);
  EXPECT_EQ(member(CLASS_WRITE).submitted, 0U);
}

TEST_P(VolumePrograms, count_one_bio_once_whatever_it_is_split_into) {
  fake_volumes_submit(0, FAKE_VOLUME, kRead, 1 << 20);
  fake_volumes_end(1, FAKE_VOLUME, 0);  // a part that was split off: it was never submitted
  EXPECT_EQ(timed_in_histogram(volume(CLASS_READ)), 0U);
  fake_volumes_end(0, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_READ).submitted, 1U);
  EXPECT_EQ(volume(CLASS_READ).timed, 1U);
}

TEST_P(VolumePrograms, time_a_bio_that_was_remapped_to_a_member_as_the_volumes) {
  fake_volumes_submit(0, FAKE_VOLUME, kRead, 4096);
  fake_volumes_end(0, FAKE_MEMBER, 0);
  EXPECT_EQ(volume(CLASS_READ).timed, 1U);
  EXPECT_EQ(member(CLASS_READ).timed, 0U);
}

TEST_P(VolumePrograms, keep_a_volume_and_its_member_apart) {
  fake_volumes_submit(0, FAKE_VOLUME, kRead, 4096);
  fake_now += 100;
  fake_volumes_submit(1, FAKE_MEMBER, kRead, 4096);
  fake_now += 1000;
  fake_volumes_end(1, FAKE_MEMBER, 0);
  fake_now += 10;
  fake_volumes_end(0, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_READ).sum_ns, 1110U);
  EXPECT_EQ(member(CLASS_READ).sum_ns, 1000U);
}

TEST_P(VolumePrograms, count_errors_of_any_kind) {
  fake_volumes_submit(0, FAKE_VOLUME, kWrite, 512);
  fake_volumes_end(0, FAKE_VOLUME, kIoError);
  EXPECT_EQ(volume(CLASS_WRITE).failed, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).timed, 1U);
}

TEST_P(VolumePrograms, time_the_bios_of_a_request_when_it_ends) {
  for (__u32 bio = 0; bio < 3; ++bio) {
    fake_volumes_submit(bio, FAKE_MEMBER, kWrite, 4096);
  }
  fake_now += 500;
  fake_volumes_request_end(0, 3, 2 * 4096, 0, 0);
  EXPECT_EQ(member(CLASS_WRITE).timed, 2U) << "a part of it";
  EXPECT_EQ(member(CLASS_WRITE).sum_ns, 1000U);
  fake_volumes_request_end(2, 1, 4096, -5, 0);
  EXPECT_EQ(member(CLASS_WRITE).timed, 3U);
  EXPECT_EQ(member(CLASS_WRITE).failed, 1U);
  fake_volumes_end(2, FAKE_MEMBER, 0);
  EXPECT_EQ(member(CLASS_WRITE).timed, 3U) << "some kernels pass the bio's tracepoint, too";
}

TEST_P(VolumePrograms, time_a_durable_write_with_the_flush_that_follows_it) {
  fake_volumes_submit(0, FAKE_MEMBER, kWrite, 4096);
  fake_now += 100;
  fake_volumes_request_end(0, 1, 4096, 0, 1);  // its data
  EXPECT_EQ(member(CLASS_WRITE).timed, 0U);
  fake_now += 4000;
  fake_volumes_request_end(0, 1, 4096, 0, 0);
  EXPECT_EQ(member(CLASS_WRITE).sum_ns, 4100U);
}

TEST_P(VolumePrograms, do_not_time_what_was_not_done_or_ended_in_pieces) {
  constexpr __u8 kAgain = 12;
  fake_volumes_submit(0, FAKE_VOLUME, kRead, 4096);
  fake_volumes_end(0, FAKE_VOLUME, kAgain);
  fake_volumes_submit(1, FAKE_VOLUME, kRead, 4096);
  fake_volumes_request_end(1, 1, 4096, -11, 0);
  fake_volumes_submit(2, FAKE_VOLUME, kRead, 4096);
  fake_volumes_split(2);
  fake_volumes_request_end(2, 1, 4096, 0, 0);
  EXPECT_EQ(volume(CLASS_READ).untimed, 3U);
  EXPECT_EQ(volume(CLASS_READ).timed, 0U);
  EXPECT_EQ(volume(CLASS_READ).failed, 0U);
}

TEST_P(VolumePrograms, know_a_flush_by_its_flag_and_lack_of_data) {
  fake_volumes_submit(0, FAKE_VOLUME, kWrite | FAKE_PREFLUSH, 0);
  fake_volumes_submit(1, FAKE_VOLUME, kWrite | FAKE_PREFLUSH, 4096);
  fake_volumes_submit(2, FAKE_VOLUME, kDiscard, 1 << 30);
  EXPECT_EQ(volume(CLASS_FLUSH).submitted, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).submitted, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).bytes, 4096U);
  EXPECT_EQ(volume(CLASS_DISCARD).bytes, 1U << 30);
}

TEST_P(VolumePrograms, ignore_devices_without_a_row_and_operations_that_no_volume_has) {
  fake_volumes_submit(0, FAKE_STRANGER, kWrite, 4096);
  fake_volumes_submit(1, FAKE_VOLUME, kPassthrough, 4096);
  fake_volumes_end(0, FAKE_STRANGER, 0);
  fake_volumes_end(1, FAKE_VOLUME, 0);
  for (__u32 operation_class = 0; operation_class < VOLUME_CLASSES; ++operation_class) {
    EXPECT_EQ(volume(operation_class).submitted, 0U);
    EXPECT_EQ(volume(operation_class).timed, 0U);
  }
}

TEST_P(VolumePrograms, count_an_end_that_no_program_saw_when_its_memory_is_used_again) {
  fake_volumes_submit(0, FAKE_VOLUME, kRead, 4096);
  fake_volumes_submit(0, FAKE_STRANGER, kWrite, 4096);
  EXPECT_EQ(volume(CLASS_READ).missed, 1U);
  fake_volumes_end(0, FAKE_STRANGER, 0);
  EXPECT_EQ(volume(CLASS_READ).timed, 0U) << "that was the end of another bio";
}

TEST_P(VolumePrograms, count_bios_for_which_there_is_no_room) {
  for (__u32 bio = 0; bio < BIO_WAYS + 2; ++bio) {
    fake_volumes_submit(bio, FAKE_VOLUME, kRead, 4096);
  }
  EXPECT_EQ(volume(CLASS_READ).submitted, __u64{BIO_WAYS} + 2);
  EXPECT_EQ(volume(CLASS_READ).untimed, 2U);
  for (__u32 bio = 0; bio < BIO_WAYS + 2; ++bio) {
    fake_volumes_end(bio, FAKE_VOLUME, 0);
  }
  EXPECT_EQ(volume(CLASS_READ).timed, __u64{BIO_WAYS});
}

/// On older kernels the others of a chain end unreported; newer ones, which have slots, report them.
TEST(VolumeChains, are_not_in_flight_for_ever) {
  fake_volumes_boot(1);
  fake_volumes_chain(0);
  fake_volumes_submit(0, FAKE_VOLUME, kWrite, 4096);
  fake_volumes_submit(1, FAKE_VOLUME, kWrite, 4096);
  fake_volumes_end(1, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_WRITE).submitted, 2U);
  EXPECT_EQ(volume(CLASS_WRITE).untimed, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).timed, 1U);
  fake_volumes_submit(0, FAKE_VOLUME, kWrite, 4096);
  EXPECT_EQ(volume(CLASS_WRITE).missed, 0U);
}

TEST(VolumeSlots, are_taken_from_bios_that_are_too_old_where_room_is_wanted) {
  fake_volumes_boot(0);
  for (__u32 bio = 0; bio < BIO_WAYS; ++bio) {
    fake_volumes_submit(bio, FAKE_VOLUME, kRead, 4096);
  }
  fake_now += 6 * kMinute;
  fake_volumes_submit(5, FAKE_VOLUME, kWrite, 4096);
  EXPECT_EQ(volume(CLASS_READ).missed, 1U);
  EXPECT_EQ(volume(CLASS_WRITE).untimed, 0U);
  fake_volumes_end(5, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_WRITE).timed, 1U);
  fake_volumes_end(1, FAKE_VOLUME, 0);
  EXPECT_EQ(volume(CLASS_READ).sum_ns, 6 * kMinute) << "whoever is left is timed, however late it ends";
}

TEST(VolumeStamps, hold_any_time_class_and_row) {
  constexpr __u64 kYear = 365ULL * 86'400'000'000'000ULL;
  const __u64 stamp = bio_stamp(kYear + 5, CLASS_ZONE, VOLUME_MAX_ROWS - 1);
  EXPECT_EQ(bio_age_ns(stamp, kYear + 12), 7);
  EXPECT_EQ(bio_age_ns(stamp, kYear + 3), -2) << "clocks of CPUs may differ a little";
  EXPECT_EQ(bio_age_ns(stamp, kYear + 5 + 3ULL * 86'400'000'000'000ULL), 3LL * 86'400'000'000'000LL);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Does the log name the file system that was discarded on, and no neighbour, and does it stay short?
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/block/block_source.h"
#include "daemon/discards/discard_stage.h"
#include "daemon/model/block_io.h"
#include "daemon/model/device.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::discards {
namespace {

using model::DiscardSubmitter;
using model::DiscardTrigger;

constexpr std::uint64_t kMiB = 1 << 20;

template <typename Enum>
std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

std::size_t times(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto position = text.find(words); position != std::string::npos; position = text.find(words, position + 1)) {
    ++found;
  }
  return found;
}

/// One disk: a partition mounted with discard, one without, and one that carries a pool, with a volume over that and a
/// plain one next to it. No gap ends a burst here, so each one is over at the second reading.
class Rig {
 public:
  Rig() {
    tick_.settings.discard_gap = std::chrono::nanoseconds(0);
    device_->name = "sda";
    inventory.volumes = {{"dm-0", 252, 0, "dm-0", true},  {"dm-1", 252, 1, "dm-1", false},
                         {"dm-2", 252, 2, "dm-2", false}, {"sda", 8, 0, "sda", false},
                         {"sda1", 8, 1, "sda", false},    {"sda2", 8, 2, "sda", false},
                         {"sda3", 8, 3, "sda", true}};
    inventory.memberships = {
        {"dm-0", "sda", "dm", "pool"}, {"dm-1", "sda", "dm", "thin"}, {"dm-2", "sda", "dm", "plain"}};
    inventory.filesystems = {{"sda", "/online", "ext4", true, {"sda1"}},
                             {"sda", "/quiet", "ext4", false, {"sda2"}},
                             {"sda", "/thin", "xfs", false, {"dm-1"}}};
    for (const model::Volume& volume : inventory.volumes) {
      tick_.discards[volume.name];
    }
    tick_.devices.resize(1);
    tick_.devices[0].block = {device_, io_, {}, 0};
    tick_.at = model::SteadyTime(std::chrono::hours(1));
    tick_.wall = model::WallTime(std::chrono::hours(500'000));
    observe();
  }

  void submit(const std::string& volume, DiscardSubmitter who, std::uint64_t bytes) {
    model::DiscardSubmissions& cell = tick_.discards.at(volume)[at(who)];
    cell.bytes += bytes;
    ++cell.ranges;
    cell.first_ns = cell.last_ns = static_cast<std::uint64_t>(tick_.at.time_since_epoch().count());
    cell.submitter = "somebody";
  }
  void complete(std::uint64_t bytes) {
    model::OperationIo& discards = io_->operations[model::index(model::Operation::discard)];
    ++discards.issues;
    ++discards.completions;
    discards.bytes += bytes;
  }
  /// Begins a request that does not end.
  void begin_request() {
    model::OperationIo& discards = io_->operations[model::index(model::Operation::discard)];
    ++discards.issues;
    ++discards.in_flight;
  }
  /// `wall_later`: how far the wall clock advances, if not by the same amount.
  void observe(std::chrono::nanoseconds later = std::chrono::milliseconds(1),
               std::optional<std::chrono::nanoseconds> wall_later = {}) {
    tick_.at += later;
    tick_.wall += wall_later.value_or(later);
    tick_.inventory = std::make_shared<const model::Inventory>(inventory);
    snapshot_ = {};
    snapshot_.devices.emplace_back();
    const model::Findings findings = stage_.observe(tick_);
    findings.values(snapshot_);
    for (const log::Line& line : findings.effects.lines) {
      words_ += line.text + '\n';
    }
    bursts.insert(bursts.end(), findings.effects.rows.bursts.begin(), findings.effects.rows.bursts.end());
  }
  [[nodiscard]] model::WallTime wall() const { return tick_.wall; }
  /// One burst, from its submission until it is reported.
  void burst(const std::string& volume, DiscardSubmitter who, std::uint64_t bytes) {
    submit(volume, who, bytes);
    complete(bytes);
    observe();
    observe();
  }
  std::uint64_t bytes(DiscardTrigger trigger) { return snapshot_.devices[0].discards[at(trigger)].bytes; }
  /// The arrays that have a burst of this trigger in progress.
  std::string active(DiscardTrigger trigger) {
    std::string arrays;
    for (const auto& array : snapshot_.array_discards) {
      arrays += array.active[at(trigger)] ? array.array + " " : "";
    }
    return arrays;
  }
  [[nodiscard]] const std::string& words() const { return words_; }
  /// Another disk takes the name.
  void replace() {
    *io_ = {};
    io_->since = tick_.wall;
  }

  model::Inventory inventory;
  std::vector<model::PastBurst> bursts;  // for the history

 private:
  std::shared_ptr<model::Device> device_ = std::make_shared<model::Device>();
  std::shared_ptr<model::DeviceIo> io_ = std::make_shared<model::DeviceIo>();
  model::Tick tick_;
  model::Snapshot snapshot_;
  Discards stage_;
  std::string words_;
};

TEST(Discards, names_the_file_system_that_was_discarded_on) {
  Rig rig;
  rig.burst("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  rig.burst("sda1", DiscardSubmitter::kernel, 200 * kMiB);
  rig.burst("sda", DiscardSubmitter::blkdiscard, 300 * kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), 200 * kMiB);
  const std::string words = rig.words();
  EXPECT_NE(words.find("ranges=1 comm=\"somebody\" filesystem=\"/quiet\" array=\"\""), std::string::npos) << words;
  EXPECT_NE(words.find("ranges=1 comm=\"somebody\" filesystem=\"/online\" array=\"\""), std::string::npos) << words;
  EXPECT_NE(words.find("ranges=1 comm=\"somebody\" filesystem=\"\" array=\"\""), std::string::npos) << words;
  EXPECT_EQ(words.find("use one of the two"), std::string::npos) << words;
}

TEST(Discards, names_the_volume_that_was_discarded_on_and_no_ranges_that_it_did_not_see) {
  Rig rig;
  rig.submit("dm-1", DiscardSubmitter::fstrim, 300 * kMiB);
  rig.submit("dm-0", DiscardSubmitter::kernel, 100 * kMiB);
  rig.complete(100 * kMiB);
  rig.observe();
  EXPECT_EQ(rig.active(DiscardTrigger::fstrim), "dm-1 ");
  EXPECT_EQ(rig.active(DiscardTrigger::other), "");
  rig.observe();
  EXPECT_EQ(rig.bytes(DiscardTrigger::fstrim), 100 * kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::other), 0U);
  const std::string words = rig.words();
  EXPECT_EQ(times(words, "discard burst"), 1U) << words;
  EXPECT_NE(words.find("requests=1 comm=\"somebody\" filesystem=\"/thin\" array=\"dm-1\""), std::string::npos) << words;
}

TEST(Discards, an_array_is_active_whoever_discards_on_it) {
  for (const auto& [who, trigger] : {std::pair(DiscardSubmitter::fstrim, DiscardTrigger::fstrim),
                                     {DiscardSubmitter::blkdiscard, DiscardTrigger::blkdiscard},
                                     {DiscardSubmitter::mkfs, DiscardTrigger::mkfs},
                                     {DiscardSubmitter::other, DiscardTrigger::other}}) {
    Rig rig;
    rig.submit("dm-2", who, 100 * kMiB);
    rig.complete(100 * kMiB);
    rig.observe();
    EXPECT_EQ(rig.active(trigger), "dm-2 ") << at(trigger);
  }
}

TEST(Discards, accuses_the_file_system_that_has_both) {
  Rig rig;
  rig.burst("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  rig.burst("sda1", DiscardSubmitter::fstrim, 100 * kMiB);
  rig.burst("sda1", DiscardSubmitter::fstrim, 100 * kMiB);
  const std::string words = rig.words();
  EXPECT_EQ(times(words, "use one of the two"), 1U) << words;
  EXPECT_NE(words.find("volume=sda1 filesystem=\"/online\" is mounted with discard and also trimmed"),
            std::string::npos)
      << words;
}

TEST(Discards, small_bursts_have_a_line_an_hour) {
  Rig rig;
  for (int i = 0; i < 50; ++i) {
    rig.burst("sda1", DiscardSubmitter::kernel, 4096);
  }
  rig.burst("sda1", DiscardSubmitter::kernel, 64 * kMiB);
  rig.burst("sda1", DiscardSubmitter::kernel, 64 * kMiB);
  const std::string words = rig.words();
  EXPECT_EQ(times(words, "discard burst"), 2U) << words;
  EXPECT_EQ(times(words, "bytes=4096 "), 1U) << words;
  EXPECT_EQ(times(words, "bytes=67108864 "), 1U) << "they do not hide a large one:" << words;
}

TEST(Discards, what_was_sent_just_before_the_umount_was_online) {
  Rig rig;
  rig.submit("sda1", DiscardSubmitter::kernel, kMiB);
  rig.complete(kMiB);
  rig.inventory.filesystems.erase(rig.inventory.filesystems.begin());
  rig.observe();
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), kMiB);
  rig.observe();
  rig.burst("sda1", DiscardSubmitter::kernel, kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::other), kMiB);
}

TEST(Discards, times_are_those_of_the_tick) {
  Rig rig;
  rig.burst("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  EXPECT_NE(rig.words().find("begin=2027-01-15T08:00:00.001Z end="), std::string::npos) << rig.words();
}

TEST(Discards, a_burst_began_when_the_clock_of_that_time_said) {
  Rig rig;
  const model::WallTime begin = rig.wall();
  rig.submit("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  rig.complete(100 * kMiB);
  rig.observe(std::chrono::seconds(1));
  rig.observe(std::chrono::seconds(1), std::chrono::hours(1));  // the clock was set
  ASSERT_EQ(rig.bursts.size(), 1U);
  EXPECT_EQ(rig.bursts[0].begin, begin);
}

TEST(Discards, a_long_one_is_announced_once_before_it_ends) {
  Rig rig;
  rig.submit("sda2", DiscardSubmitter::fstrim, 300 * kMiB);
  rig.complete(100 * kMiB);
  rig.begin_request();
  for (int second = 0; second < 130; ++second) {
    rig.observe(std::chrono::seconds(1));
  }
  EXPECT_EQ(times(rig.words(), "discard burst continues device=sda trigger=fstrim"), 1U) << rig.words();
  EXPECT_EQ(times(rig.words(), "discard burst device="), 0U) << rig.words();
}

TEST(Discards, another_disk_of_the_name_has_figures_of_its_own) {
  Rig rig;
  rig.burst("sda1", DiscardSubmitter::kernel, 64 * kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), 64 * kMiB);
  rig.replace();
  rig.observe();
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), 0U);
  rig.burst("sda1", DiscardSubmitter::kernel, 4 * kMiB);
  EXPECT_EQ(rig.bytes(DiscardTrigger::online), 4 * kMiB);
}

}  // namespace
}  // namespace ssdpulse::discards

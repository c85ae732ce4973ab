// SPDX-License-Identifier: Apache-2.0
// Is each file system reported with what was sent to its own volume, and with nothing sent to its neighbours?
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/discards/discard_bursts.h"

namespace ssdpulse::discards {
namespace {

using model::DiscardSubmitter;
using model::DiscardTrigger;
using model::Filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

template <typename Enum>
std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

/// Two partitions of one disk, and a volume over two others.
struct Host {
  std::vector<Filesystem> mounted{{"sda", "/online", "ext4", true, {"sda1"}},
                                  {"sda", "/quiet", "ext4", false, {"sda2"}},
                                  {"sdb", "/wide", "xfs", true, {"dm-0"}},
                                  {"sdc", "/wide", "xfs", true, {"dm-0"}},
                                  {"sdd", "/unseen", "xfs", true, {"sdd7"}}};
  std::map<std::string, model::DiscardSubmitters> submitted{{"sda", {}}, {"sda1", {}}, {"sda2", {}}, {"dm-0", {}}};
  FilesystemDiscardCounter counter;
  std::chrono::system_clock::time_point now{std::chrono::seconds(1000)};

  void submit(const std::string& volume, DiscardSubmitter who, std::uint64_t bytes) {
    submitted.at(volume)[at(who)].bytes += bytes;
  }
  /// "volume mountpoint" of those that were found to be trimmed twice.
  std::vector<std::string> observe() {
    now += std::chrono::seconds(1);
    std::vector<std::string> twice;
    for (const auto& figures : counter.observe(mounted, submitted, now)) {
      twice.push_back(figures.volume + " " + figures.mountpoint.raw());
    }
    return twice;
  }
  model::FilesystemDiscards of(const std::string& volume) {
    model::FilesystemDiscards found;
    for (const auto& figures : counter.figures()) {
      if (figures.volume == volume) {
        EXPECT_EQ(found.volume, "") << "twice";
        found = figures;
      }
    }
    return found;
  }
  std::uint64_t bytes(const std::string& volume, DiscardTrigger trigger) { return of(volume).bytes[at(trigger)]; }
};

using Strings = std::vector<std::string>;

TEST(FilesystemDiscards, nobody_is_accused_of_what_its_neighbour_does) {
  Host host;
  EXPECT_EQ(host.observe(), Strings{});
  host.submit("sda1", DiscardSubmitter::kernel, 4 * kMiB);
  host.submit("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  host.submit("sda", DiscardSubmitter::fstrim, 7 * kMiB);  // from a partition that is not distinguished
  EXPECT_EQ(host.observe(), Strings{});
  EXPECT_EQ(host.bytes("sda1", DiscardTrigger::online), 4 * kMiB);
  EXPECT_EQ(host.bytes("sda1", DiscardTrigger::fstrim), 0U);
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::fstrim), 100 * kMiB);
  EXPECT_TRUE(host.of("sda1").mounted_with_discard);
  EXPECT_EQ(host.of("sda1").mountpoint, "/online");
  EXPECT_EQ(host.counter.figures().size(), 3U) << "who is not watched is not told of";
}

TEST(FilesystemDiscards, trimmed_twice_is_reported_once_per_mount) {
  Host host;
  host.observe();
  host.submit("dm-0", DiscardSubmitter::fstrim, kMiB);
  EXPECT_EQ(host.observe(), Strings{"dm-0 /wide"}) << "once, whatever the number of its drives";
  EXPECT_EQ(host.bytes("dm-0", DiscardTrigger::fstrim), kMiB);
  host.submit("dm-0", DiscardSubmitter::fstrim, kMiB);
  EXPECT_EQ(host.observe(), Strings{});
  const auto mounted = host.mounted;
  host.mounted.clear();
  EXPECT_EQ(host.observe(), Strings{});
  EXPECT_TRUE(host.counter.figures().empty());
  host.mounted = mounted;
  EXPECT_EQ(host.observe(), Strings{});
  EXPECT_EQ(host.bytes("dm-0", DiscardTrigger::fstrim), 0U) << "mounted anew, counted anew";
  EXPECT_EQ(host.of("dm-0").since, host.now);
  host.submit("dm-0", DiscardSubmitter::fstrim, kMiB);
  EXPECT_EQ(host.observe(), Strings{"dm-0 /wide"});
}

TEST(FilesystemDiscards, of_before_the_mount_or_its_option_are_not_counted) {
  Host host;
  host.submit("sda2", DiscardSubmitter::mkfs, 100 * kMiB);
  host.observe();
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::mkfs), 0U);
  host.submit("sda2", DiscardSubmitter::fstrim, 100 * kMiB);
  host.observe();
  host.mounted[1].discard = true;
  EXPECT_EQ(host.observe(), Strings{});
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::fstrim), 0U);
  host.submit("sda2", DiscardSubmitter::fstrim, kMiB);
  EXPECT_EQ(host.observe(), Strings{"sda2 /quiet"});
}

TEST(FilesystemDiscards, threads_of_the_kernel_are_online_where_it_is_mounted_so) {
  Host host;
  host.observe();
  host.submit("sda1", DiscardSubmitter::kernel, kMiB);
  host.submit("sda2", DiscardSubmitter::kernel, 2 * kMiB);
  host.observe();
  EXPECT_EQ(host.bytes("sda1", DiscardTrigger::online), kMiB);
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::online), 0U);
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::other), 2 * kMiB);
}

TEST(FilesystemDiscards, programs_are_online_where_the_file_system_discards_in_their_context) {
  struct Row {
    const char* fstype;
    std::set<std::string> options;
    std::optional<bool> journal;
    DiscardTrigger trigger;
  };
  for (const Row& row : std::vector<Row>{
           {"ext4", {"discard"}, true, DiscardTrigger::other},
           {"ext4", {"discard"}, {}, DiscardTrigger::other},
           {"ext4", {"discard"}, false, DiscardTrigger::online},
           {"ext4", {"discard", "data=writeback"}, true, DiscardTrigger::online},
           {"ext4", {"data=writeback"}, true, DiscardTrigger::other},
           {"ext2", {"discard"}, false, DiscardTrigger::online},
           {"vfat", {"discard"}, {}, DiscardTrigger::online},
           {"f2fs", {"discard"}, {}, DiscardTrigger::online},
           {"btrfs", {"discard"}, {}, DiscardTrigger::online},
           {"btrfs", {"discard=async"}, {}, DiscardTrigger::other},
           {"xfs", {"discard"}, {}, DiscardTrigger::other},
       }) {
    SCOPED_TRACE(std::string(row.fstype) + " " + (row.options.empty() ? "" : *row.options.begin()));
    Host host;
    Filesystem& one = host.mounted[0];
    one.fstype = row.fstype;
    one.options = {row.options.begin(), row.options.end()};
    one.unshown.journal = row.journal;
    one.discard = row.options.count("discard") + row.options.count("discard=async") > 0;
    host.observe();
    host.submit("sda1", DiscardSubmitter::other, kMiB);
    host.submit("sda1", DiscardSubmitter::fstrim, 2 * kMiB);
    host.submit("sda1", DiscardSubmitter::blkdiscard, 3 * kMiB);
    host.observe();
    EXPECT_EQ(host.bytes("sda1", row.trigger), kMiB);
    EXPECT_EQ(host.bytes("sda1", DiscardTrigger::fstrim), 2 * kMiB);
    EXPECT_EQ(host.bytes("sda1", DiscardTrigger::blkdiscard), 3 * kMiB);
  }
}

TEST(FilesystemDiscards, never_fall_when_a_volume_restarts) {
  Host host;
  host.observe();
  host.submit("sda2", DiscardSubmitter::fstrim, 10 * kMiB);
  host.observe();
  host.submitted.at("sda2")[at(DiscardSubmitter::fstrim)].bytes = kMiB;  // another disk under the same name
  host.observe();
  EXPECT_EQ(host.bytes("sda2", DiscardTrigger::fstrim), 11 * kMiB);
}

}  // namespace
}  // namespace ssdpulse::discards

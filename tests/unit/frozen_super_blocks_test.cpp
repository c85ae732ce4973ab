// SPDX-License-Identifier: Apache-2.0
// Which file systems are said to be frozen, and by whom, from what the kernel sends?
#include <gtest/gtest.h>

#include <cstring>

#include "daemon/block/freezes.h"

namespace ssdpulse::block {
namespace {

using Commands = std::map<std::string, util::OutsideText>;

constexpr __u32 kDevice = (253U << 20) | 3;
constexpr bool kFrozen = true;
constexpr bool kByThaw = true;

freeze_event event(bool frozen, const char* name, bool by_thaw = false, __u32 device = kDevice) {
  freeze_event made{device, frozen ? 1U : 0U, by_thaw ? 1U : 0U, {}};
  std::memcpy(made.name, name, std::min(std::strlen(name), sizeof(made.name)));
  return made;
}

TEST(frozen_super_blocks, are_those_frozen_and_not_thawed_with_who_froze_them_first) {
  FrozenSuperBlocks blocks;
  blocks.observe({event(kFrozen, "qemu-ga")}, 0);
  EXPECT_EQ(blocks.commands(), (Commands{{"253:3", "qemu-ga"}}));
  blocks.observe({event(kFrozen, "fsfreeze")}, 0);  // refused: it is frozen already
  EXPECT_EQ(blocks.commands(), (Commands{{"253:3", "qemu-ga"}}));
  blocks.observe({event(kFrozen, "dmsetup", kByThaw)}, 0);  // one of two
  EXPECT_EQ(blocks.commands(), (Commands{{"253:3", ""}}));
  blocks.observe({event(!kFrozen, "qemu-ga", kByThaw)}, 0);
  EXPECT_TRUE(blocks.commands().empty());
  blocks.observe({event(kFrozen, "a"), event(kFrozen, "b", false, 42), event(!kFrozen, "kworker", kByThaw)}, 0);
  EXPECT_EQ(blocks.commands(), (Commands{{"0:42", "b"}}));
}

TEST(frozen_super_blocks, are_forgotten_when_a_change_was_lost) {
  FrozenSuperBlocks blocks;
  blocks.observe({event(kFrozen, "a")}, 0);
  blocks.observe({}, 1);
  EXPECT_TRUE(blocks.commands().empty());
  blocks.observe({event(kFrozen, "a")}, 1);
  EXPECT_TRUE(blocks.commands().empty()) << "its thaw may be what was lost";
  blocks.observe({event(kFrozen, "a")}, 1);
  EXPECT_EQ(blocks.commands().size(), 1U);
}

TEST(frozen_super_blocks, keep_names_as_they_are) {
  FrozenSuperBlocks blocks;
  blocks.observe({event(kFrozen, "\x1b[2J\xff 0123456789")}, 0);
  EXPECT_EQ(blocks.commands().at("253:3"), "\x1b[2J\xff 0123456789");
}

}  // namespace
}  // namespace ssdpulse::block

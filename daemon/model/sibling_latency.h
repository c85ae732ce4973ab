// SPDX-License-Identifier: Apache-2.0
// SiblingFigures: which of the drives that ought to be alike is slower than the others at equal load. Values only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"

namespace ssdpulse::model {

enum class SiblingKind : std::uint8_t {
  array,  // members of one array or volume, of one drive model
  paths,  // of device-mapper's multipath: ways to one drive
  model,  // drives of one model, firmware and size on this host
};
inline constexpr auto kSiblingKindNames = util::names<SiblingKind>({"array", "paths", "model"});

/// Devices that ought to take as long as each other.
struct SiblingGroup {
  std::string name;  // the array's, as the kernel names it, or kSameModel
  SiblingKind kind = SiblingKind::array;
  std::vector<std::string> members;  // sorted
  bool operator==(const SiblingGroup&) const = default;
};
/// A device is in one such group at most, so that its name need not tell them apart.
inline constexpr std::string_view kSameModel = "model";

/// A device is slow only if the lower bound of its ratio has been above this for so long.
inline constexpr double kSlowerThanSiblings = 1.5;
inline constexpr std::chrono::minutes kSlowerFor{10};

/// Of reads or writes of one device, over the last minutes.
struct SiblingRatio {
  std::string device;
  Operation operation = Operation::read;
  std::string group;  // SiblingGroup::name
  SiblingKind kind = SiblingKind::array;
  double ratio = 1;  // of its usual (median) device time to that of the median sibling, at equal load
  double lower = 1;  // bounds of the interval at 95 %
  double upper = 1;
  double median_seconds = 0;               // its own
  double sibling_seconds = 0;              // of the median sibling, at its load
  bool slow = false;                       // the claim
  std::vector<std::string> siblings = {};  // that it was compared with and that are not slow themselves; if it is slow
};

struct SiblingFigures {
  std::vector<SiblingGroup> groups;
  std::vector<SiblingRatio> ratios = {};  // by group, operation and device
  std::size_t groups_left_out = 0;        // there are too many to compare
};

}  // namespace ssdpulse::model

// SPDX-License-Identifier: Apache-2.0
// FrozenSuperBlocks: which super blocks are frozen, by what the freeze programs have sent. Pure.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bpf/abi/freeze_abi.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::block {

class FrozenSuperBlocks {
 public:
  /// `lost`: events so far that found no room. What may be out of date is forgotten: a freeze is not claimed rather
  /// than claimed for ever.
  void observe(const std::vector<freeze_event>& events, std::uint64_t lost);
  void forget() { commands_.clear(); }

  /// By MAJOR:MINOR as in mountinfo: the command that froze it first; empty where it is not known who keeps it frozen.
  [[nodiscard]] const std::map<std::string, util::OutsideText>& commands() const { return commands_; }

 private:
  std::map<std::string, util::OutsideText> commands_;
  std::uint64_t lost_ = 0;
  bool lost_before_ = false;
};

}  // namespace ssdpulse::block

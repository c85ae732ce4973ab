// SPDX-License-Identifier: Apache-2.0
// What the first line must say of each cause, written down apart from the table that it is made from.
#pragma once

#include <array>

#include "daemon/base/complete.h"
#include "daemon/model/spike_cause.h"

namespace ssdpulse::test {

struct CauseWords {
  model::SpikeCause cause;
  util::Text more;   // with more load than usual: see model::Load
  util::Text usual;  // without
};

inline constexpr std::array kCauseWords{
    CauseWords{model::SpikeCause::discard, "because discards (trim)", "because discards (trim)"},
    CauseWords{model::SpikeCause::flush, "flush", "flush"},
    CauseWords{model::SpikeCause::gc, "garbage collection", "garbage collection"},
    CauseWords{model::SpikeCause::queue, "on the host before", "on the host before"},
    CauseWords{model::SpikeCause::saturation, "too much load", "queue slots"},
    CauseWords{model::SpikeCause::thermal, "throttling to cool down", "throttling to cool down"},
    CauseWords{model::SpikeCause::error, "I/Os fail", "sent again"},
    CauseWords{model::SpikeCause::unknown, "nothing measured here explains", "because the drive itself"},
};
static_assert(util::is_table_of<model::SpikeCause>(kCauseWords, &CauseWords::cause), "words for each cause");

}  // namespace ssdpulse::test

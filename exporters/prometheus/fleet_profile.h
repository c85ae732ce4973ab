// SPDX-License-Identifier: Apache-2.0
// The fleet profile: what critical and warning alerts read about a disk, about 60 series, for a Prometheus that
// scrapes thousands of them. A series that no such alert reads is left out; values of a label that no alert
// distinguishes are added up under one. Names and types are those of the full page, so rules and dashboards need no
// other form.
#pragma once

#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

/// Reduces the samples of a family to the profile: a family that is not in it keeps none. `of_daemon`: the family is
/// about the daemon itself, and kept whole unless the profile names it. Histograms keep few of their classic bounds.
void reduce_to_fleet(const FamilyDescription& family, bool of_daemon, std::vector<Sample>& samples);

}  // namespace ssdpulse::exposition

// SPDX-License-Identifier: Apache-2.0
// What does a server get that understands native histograms? Delimited io.prometheus.client.MetricFamily messages:
// each histogram in its native form and, in the same message, with the classic buckets of the text page.
#pragma once

#include <string>
#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

inline constexpr const char* kProtobufContentType =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

std::string render_protobuf(const std::vector<Family>& families);

}  // namespace ssdpulse::exposition

// SPDX-License-Identifier: Apache-2.0
// The page for servers that understand native histograms: delimited io.prometheus.client.MetricFamily messages, each
// histogram in its native form and, if wanted, in the same message with the classic buckets of the text page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

inline constexpr const char* kProtobufContentType =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

enum class Buckets : std::uint8_t {
  native_and_classic,  // a server that stores no native histograms takes the others
  native,              // a quarter smaller
};

std::string render_protobuf(const std::vector<Family>& families, Buckets buckets = Buckets::native_and_classic);

}  // namespace ssdpulse::exposition

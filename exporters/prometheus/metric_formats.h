// SPDX-License-Identifier: Apache-2.0
// Chooses the format for a client, from its Accept header (RFC 9110, 12.5).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/prometheus/metric_family.h"

namespace ssdpulse::exposition {

/// native_protobuf: histograms only in their native form.
enum class Format : std::uint8_t { text, protobuf, native_protobuf };

/// Protobuf only if the client names it and prefers it, or likes both equally; never by a wildcard. Without a header,
/// or if the client accepts neither, text: a scraper gets something it can complain about rather than a 406.
/// `native_alone`: the client has stated that it has no use for classic buckets if it gets native ones.
Format choose_format(std::string_view accept, bool native_alone = false);

// The plain Prometheus text page: format 0.0.4, classic histograms; prometheus-cpp writes all else.

inline constexpr const char* kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

/// Doubles are written with 16 significant digits, those of histograms with as many as needed.
std::string render_text(const std::vector<Family>& families);

// Writes bucket counts as the spans and deltas of a Prometheus native histogram.

struct BucketSpan {
  std::int32_t offset;   // the first span: its first native index; later ones: empty buckets skipped before it
  std::uint32_t length;  // consecutive buckets that are not empty
  bool operator==(const BucketSpan&) const = default;
};

struct NativeBuckets {
  std::vector<BucketSpan> spans;
  std::vector<std::int64_t> deltas;  // first absolute, then the difference to the bucket listed before
};

/// counts[i] is the count of native index first_index + i. Empty buckets are not listed.
/// Counts of 2^63 and more cannot be written in this format.
NativeBuckets native_buckets(std::span<const std::uint64_t> counts, std::int32_t first_index);

// The page for servers that understand native histograms: delimited io.prometheus.client.MetricFamily messages, each
// histogram in its native form and, if wanted, in the same message with the classic buckets of the text page.

inline constexpr const char* kProtobufContentType =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

enum class Buckets : std::uint8_t {
  native_and_classic,  // a server that stores no native histograms takes the others
  native,              // a quarter smaller
};

std::string render_protobuf(const std::vector<Family>& families, Buckets buckets = Buckets::native_and_classic);

}  // namespace ssdpulse::exposition

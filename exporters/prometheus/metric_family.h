// SPDX-License-Identifier: Apache-2.0
// Family: a metric family before it is rendered. Its FamilyDescription drives all formats and the list of metrics.
// Histograms borrow the Snapshot's buckets: a Family must not outlive the Snapshot that it was collected from.
#pragma once

#include <linux/types.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/model/snapshot.h"

namespace ssdpulse::exposition {

struct Label {
  std::string_view name;  // a literal
  std::string value;
  auto operator<=>(const Label&) const = default;
};
using Labels = std::vector<Label>;

/// Which native index each bucket has, and at which native indexes the classic bounds lie: multiples of 2^schema.
/// Classic bounds are a subset of the native ones, so deriving them loses nothing; anything above the last is only in
/// le="+Inf".
struct HistogramScale {
  int schema;       // index i holds (2^((i-1)/2^schema), 2^(i/2^schema)]
  int first_index;  // native index of the first bucket after the zero bucket
  int first_classic_index;
  int last_classic_index;
  int classic_step;
  std::span<const int> classic_indexes = {};  // ascending, instead of the range above; empty: the range
};
/// Classic bounds: the powers of two of a second from 2^-20 (954 ns) to 2^6 (64 s).
inline constexpr HistogramScale kLatencyScale{3, LATENCY_FIRST_NATIVE_INDEX - 1, -160, LATENCY_LAST_NATIVE_INDEX, 8};
/// Classic bounds: the powers of two from 512 bytes to 2 GiB; a request never exceeds 4 GiB - 1.
inline constexpr HistogramScale kSizeScale{0, 0, 9, 31, 1};
/// Classic bounds: the powers of two from 1 I/O to 65536.
inline constexpr HistogramScale kDepthScale{0, 0, 0, 16, 1};

/// Width of the zero bucket: no positive latency (at least 1 ns) and no positive size falls into it.
inline constexpr double kZeroThreshold = 1.0 / (1 << 30);

struct Histogram {
  const HistogramScale* scale;
  std::uint64_t zero_count;
  std::span<const std::uint64_t> counts;  // counts[i]: native index scale->first_index + i; not cumulative
  double sum;

  [[nodiscard]] std::uint64_t count() const;
};

struct ClassicBucket {
  double upper_bound;  // inclusive
  std::uint64_t cumulative_count;
};
/// All classic buckets except +Inf, which is the histogram's count().
std::vector<ClassicBucket> classic_buckets(const Histogram& histogram);

/// Seconds and bytes are doubles in both formats. Sums are kept exactly as integers; the one rounding is here, so the
/// exposed value is the nearest double as long as the integer is below 2^53 (104 days of summed nanoseconds, 9 PB) and
/// within 2^-52 of it, relatively, beyond.
inline double to_double(std::uint64_t value) { return static_cast<double>(value); }
inline double to_seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

/// The histogram must not be empty.
Histogram to_histogram(const model::LatencyHistogram& latency);
Histogram to_histogram(const model::SizeHistogram& size);
Histogram to_histogram(const model::DepthHistogram& depth);

struct Sample {
  Labels labels;
  std::variant<double, Histogram> value;
  std::optional<model::WallTime> created;  // counters and histograms: when they began at zero
};

/// Collects the samples of one family. Labels with an empty value are left out, as Prometheus sees no difference.
class Samples {
 public:
  /// A value that is not known adds no sample.
  void add(Labels labels, std::optional<double> value, std::optional<model::WallTime> created = std::nullopt);
  void add(Labels labels, const Histogram& histogram, std::optional<model::WallTime> created);
  /// A gauge of 1; a second with the same labels is dropped, because a server may refuse duplicates.
  void add_info(Labels labels);

  [[nodiscard]] std::vector<Sample> take() { return std::move(samples_); }

 private:
  std::vector<Sample> samples_;
  std::set<Labels> infos_;
};

enum class Type : std::uint8_t { counter, gauge, histogram };

/// Which latency modes can see what the family counts; in the others it is absent, never 0.
enum class Modes : std::uint8_t { all, full_only };

struct LabelDescription {
  std::string_view name;
  std::string_view meaning;                       // a phrase
  std::span<const std::string_view> values = {};  // every value that there can be; empty if they are not enumerated
};

/// Counter or gauge: a histogram has to say so itself.
constexpr Type type_of(std::string_view family) { return family.ends_with("_total") ? Type::counter : Type::gauge; }

/// The base unit that the name carries, or empty.
constexpr std::string_view unit_of(std::string_view family) {
  if (family.ends_with("_total")) {
    family.remove_suffix(std::string_view("_total").size());
  }
  for (const std::string_view unit : std::to_array<std::string_view>({"seconds", "bytes", "ratio", "ios"})) {
    if (family.ends_with(unit) && family[family.size() - unit.size() - 1] == '_') {
      return unit;
    }
  }
  return {};
}

inline constexpr std::span<const LabelDescription> kNoLabels{};
inline constexpr std::string_view kNeverAbsent;

/// One entry of a table in families_*.cpp: what a page shows of the family, and what `ssdpulse metrics` prints about
/// it.
struct FamilyDescription {
  std::string_view name;
  std::string_view help;  // sentences
  void (*collect)(const model::Snapshot&, Samples&);
  std::span<const LabelDescription> labels = kNoLabels;  // a label with an empty value is left out of a sample
  std::string_view absent = kNeverAbsent;                // when, apart from `modes`: a phrase
  Modes modes = Modes::all;
  Type type = type_of(name);  // the default is never histogram
  std::string_view unit = unit_of(name);
};

struct Family {
  const FamilyDescription* description;
  std::vector<Sample> samples;
};

}  // namespace ssdpulse::exposition

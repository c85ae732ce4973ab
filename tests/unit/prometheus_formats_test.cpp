// SPDX-License-Identifier: Apache-2.0
// Do both formats agree, with exactly the Snapshot's content? The protobuf page is decoded with the published message
// definition, the text page with the few lines below; neither uses the code under test.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"
#include "metrics.pb.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::exposition {
namespace {

namespace pb = io::prometheus::client;
using Series = std::map<std::string, double>;

std::vector<pb::MetricFamily> decode(const std::string& page) {
  google::protobuf::io::ArrayInputStream input(page.data(), static_cast<int>(page.size()));
  std::vector<pb::MetricFamily> families;
  for (;;) {
    pb::MetricFamily family;
    bool clean_end = false;
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&family, &input, &clean_end)) {
      EXPECT_TRUE(clean_end) << "the page breaks off after " << families.size() << " families";
      return families;
    }
    EXPECT_TRUE(family.unknown_fields().empty());
    families.push_back(std::move(family));
  }
}

std::string escape(const std::string& value) {
  std::string result;
  for (const char c : value) {
    result += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return result;
}

std::string key(const std::string& name, const pb::Metric& metric, const std::string& le = {}) {
  std::map<std::string, std::string> labels;
  for (const auto& label : metric.label()) {
    labels[label.name()] = label.value();
  }
  if (!le.empty()) {
    labels["le"] = le;
  }
  std::string result = name + "{";
  for (const auto& [label, value] : labels) {
    result += label + "=\"" + escape(value) + "\",";
  }
  return result + "}";
}

std::string shortest(double bound) {
  std::ostringstream out;
  out.precision(17);
  out << bound;
  return out.str();
}

// The series that a server without native histograms would read from the message.
Series series_of(const std::vector<pb::MetricFamily>& families) {
  Series series;
  const auto put = [&](const std::string& name, double value) {
    EXPECT_TRUE(series.emplace(name, value).second) << "twice: " << name;
  };
  for (const auto& family : families) {
    for (const auto& metric : family.metric()) {
      if (family.type() == pb::COUNTER) {
        put(key(family.name(), metric), metric.counter().value());
      } else if (family.type() == pb::GAUGE) {
        put(key(family.name(), metric), metric.gauge().value());
      } else {
        const auto& histogram = metric.histogram();
        for (const auto& bucket : histogram.bucket()) {
          put(key(family.name() + "_bucket", metric, shortest(bucket.upper_bound())),
              static_cast<double>(bucket.cumulative_count()));
        }
        put(key(family.name() + "_bucket", metric, "+Inf"), static_cast<double>(histogram.sample_count()));
        put(key(family.name() + "_sum", metric), histogram.sample_sum());
        put(key(family.name() + "_count", metric), static_cast<double>(histogram.sample_count()));
      }
    }
  }
  return series;
}

// name{label="value",...} number: splits at the closing brace outside quotes and sorts the labels.
Series series_of(const std::string& text) {
  Series series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::map<std::string, std::string> labels;
    auto at = line.find_first_of("{ ");
    const auto name = line.substr(0, at);
    if (line[at] == '{') {
      ++at;
      while (line[at] != '}') {
        const auto equals = line.find('=', at);
        auto end = equals + 2;
        while (line[end] != '"') {
          end += line[end] == '\\' ? 2 : 1;
        }
        labels[line.substr(at, equals - at)] = line.substr(equals + 2, end - equals - 2);
        at = line[end + 1] == ',' ? end + 2 : end + 1;
      }
      ++at;
    }
    std::string full = name + "{";
    for (const auto& [label, value] : labels) {
      full += label + "=\"" + (label == "le" && value != "+Inf" ? shortest(std::stod(value)) : value) + "\",";
    }
    EXPECT_TRUE(series.emplace(full + "}", std::stod(line.substr(at))).second) << "twice: " << line;
  }
  return series;
}

void expect_equal(const Series& text, const Series& protobuf) {
  for (const auto& [name, value] : protobuf) {
    const auto found = text.find(name);
    ASSERT_NE(found, text.end()) << "only in protobuf: " << name;
    // Text has 16 significant digits.
    ASSERT_NEAR(found->second, value, std::abs(value) * 1e-15) << name;
  }
  for (const auto& [name, value] : text) {
    ASSERT_TRUE(protobuf.count(name) == 1) << "only in text: " << name;
  }
}

TEST(Formats, AgreeSampleForSample) {
  const bool held = rc::check("text and protobuf hold the same series", [] {
    const auto snapshot = test::random::snapshot();
    const auto families = collect(snapshot);
    const auto protobuf = series_of(decode(render_protobuf(families)));
    RC_ASSERT(!protobuf.empty());
    expect_equal(series_of(render_text(families)), protobuf);
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(held);
}

TEST(Formats, NativeAloneLacksTheClassicBucketsAndNothingElse) {
  const bool held = rc::check("what is left of a page without classic buckets", [] {
    const auto snapshot = test::random::snapshot();
    const auto families = collect(snapshot);
    auto both = decode(render_protobuf(families));
    const auto native = decode(render_protobuf(families, Buckets::native));
    RC_ASSERT(native.size() == both.size());
    for (std::size_t i = 0; i < both.size(); ++i) {
      for (auto& metric : *both[i].mutable_metric()) {
        if (metric.has_histogram()) {
          RC_ASSERT(metric.histogram().bucket_size() > 0);
          metric.mutable_histogram()->clear_bucket();
        }
      }
      RC_ASSERT(native[i].SerializeAsString() == both[i].SerializeAsString());
    }
  });
  EXPECT_TRUE(held);
}

const pb::MetricFamily* find(const std::vector<pb::MetricFamily>& families, const std::string& name) {
  for (const auto& family : families) {
    if (family.name() == name) {
      return &family;
    }
  }
  return nullptr;
}

// The one histogram of one family, from a Snapshot that has it as the total latency or the size of reads.
pb::Histogram exposed(const model::OperationIo& read, const std::string& family_name) {
  auto snapshot = test::small_snapshot();
  model::DeviceIo io;
  io.operations[0] = read;
  io.since = test::at(1'700'000'000'250);
  snapshot.devices[0].io = std::make_shared<const model::DeviceIo>(io);
  const auto families = decode(render_protobuf(collect(snapshot)));
  const auto* family = find(families, family_name);
  if (family == nullptr || family->metric_size() != 1) {
    ADD_FAILURE() << family_name << " is missing or not alone";
    return {};
  }
  return family->metric(0).histogram();
}

std::map<int, std::uint64_t> native_of(const pb::Histogram& histogram) {
  std::map<int, std::uint64_t> result;
  int index = 0;
  int next = 0;
  std::int64_t count = 0;
  for (const auto& span : histogram.positive_span()) {
    index += span.offset();
    for (std::uint32_t i = 0; i < span.length(); ++i) {
      count += histogram.positive_delta(next++);
      result[index++] = static_cast<std::uint64_t>(count);
    }
  }
  EXPECT_EQ(next, histogram.positive_delta_size());
  return result;
}

TEST(Latency, NativeBucketsHoldTheKernelsWords) {
  const bool held = rc::check("words, count, sum and classic buckets", [] {
    model::OperationIo read;
    read.total_latency = test::random::latency();
    const auto& words = read.total_latency.words;
    const auto histogram = exposed(read, "ssdpulse_io_latency_seconds");
    RC_ASSERT(histogram.schema() == 3);
    RC_ASSERT(histogram.zero_threshold() == std::ldexp(1.0, -30));
    RC_ASSERT(histogram.zero_count() == words[0]);
    RC_ASSERT(histogram.sample_count() == std::accumulate(words.begin(), words.end(), std::uint64_t{0}));
    std::map<int, std::uint64_t> expected;
    for (std::size_t word = 1; word < words.size(); ++word) {
      if (words[word] != 0) {
        // A word's native index by its bound in seconds, not by its place.
        const double bound = static_cast<double>(latency_upper_bound_ns[word]) / 1e9;
        const int index = word == LATENCY_OVER_WORD ? 49 : static_cast<int>(std::lround(std::log2(bound) * 8));
        expected[index] = words[word];
      }
    }
    RC_ASSERT(native_of(histogram) == expected);
    // Classic: everything whose upper bound in whole nanoseconds is not above the classic bound.
    RC_ASSERT(histogram.bucket_size() == 27);
    for (int i = 0; i < histogram.bucket_size(); ++i) {
      const double bound = std::ldexp(1.0, i - 20);
      std::uint64_t within = 0;
      for (std::size_t word = 0; word < LATENCY_OVER_WORD; ++word) {
        within += static_cast<double>(latency_upper_bound_ns[word]) <= bound * 1e9 ? words[word] : 0;
      }
      RC_ASSERT(histogram.bucket(i).upper_bound() == bound);
      RC_ASSERT(histogram.bucket(i).cumulative_count() == within);
    }
    // strtod rounds a decimal number to the nearest double.
    const auto sum_ns = read.total_latency.sum_ns;
    const auto nanoseconds = std::to_string(1'000'000'000 + sum_ns % 1'000'000'000).substr(1);
    const double seconds = std::stod(std::to_string(sum_ns / 1'000'000'000) + "." + nanoseconds);
    if (sum_ns < (1ULL << 53)) {
      RC_ASSERT(histogram.sample_sum() == seconds);
    } else {
      RC_ASSERT(std::abs(histogram.sample_sum() - seconds) <= seconds * std::numeric_limits<double>::epsilon());
    }
  });
  EXPECT_TRUE(held);
}

TEST(Size, NativeBucketsHoldTheKernelsWords) {
  const bool held = rc::check("words, count, sum and classic buckets", [] {
    model::OperationIo read;
    read.size = test::random::histogram<model::SizeHistogram>(SIZE_WORDS);
    const auto& words = read.size.words;
    const auto histogram = exposed(read, "ssdpulse_io_size_bytes");
    RC_ASSERT(histogram.schema() == 0);
    RC_ASSERT(histogram.zero_threshold() > 0);
    RC_ASSERT(histogram.zero_threshold() < 1);
    RC_ASSERT(histogram.zero_count() == words[0]);
    std::map<int, std::uint64_t> expected;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] != 0) {
        expected[static_cast<int>(i) - 1] = words[i];
      }
    }
    RC_ASSERT(native_of(histogram) == expected);
    RC_ASSERT(histogram.bucket_size() == 23);
    for (int i = 0; i < histogram.bucket_size(); ++i) {
      const int exponent = 9 + i;
      RC_ASSERT(histogram.bucket(i).upper_bound() == std::ldexp(1.0, exponent));
      RC_ASSERT(histogram.bucket(i).cumulative_count() ==
                std::accumulate(words.begin(), words.begin() + exponent + 2, std::uint64_t{0}));
    }
  });
  EXPECT_TRUE(held);
}

TEST(Size, FourKibibytesFallIntoTheirOwnBucket) {
  model::OperationIo read;
  read.size = test::size({{size_word(4096), 1}, {size_word(4097), 1}}, 8193);
  const auto histogram = exposed(read, "ssdpulse_io_size_bytes");
  EXPECT_EQ(native_of(histogram), (std::map<int, std::uint64_t>{{12, 1}, {13, 1}}));
  EXPECT_EQ(histogram.bucket(3).upper_bound(), 4096);
  EXPECT_EQ(histogram.bucket(3).cumulative_count(), 1U);
}

TEST(Histogram, WithoutACountIsStillNative) {
  model::OperationIo read;
  read.total_latency = test::latency({}, 0);
  const auto histogram = exposed(read, "ssdpulse_io_latency_seconds");
  EXPECT_GT(histogram.zero_threshold(), 0);
  EXPECT_TRUE(histogram.has_sample_count());
}

TEST(CreatedTimestamp, IsOnCountersAndHistograms) {
  const auto snapshot = test::small_snapshot();
  for (const auto& family : decode(render_protobuf(collect(snapshot)))) {
    for (const auto& metric : family.metric()) {
      if (family.type() == pb::GAUGE) {
        continue;
      }
      const bool drives_own = family.name().rfind("ssdpulse_nvme_", 0) == 0 ||
                              family.name() == "ssdpulse_write_ladder_bytes_total";  // its rungs reported and media
      if (drives_own && family.type() == pb::COUNTER && !metric.counter().has_created_timestamp()) {
        continue;  // it began with the drive, and the time of that is unknown
      }
      if (family.name() == "ssdpulse_model_sampled_writes_total") {
        continue;  // it began with the model, which outlives the daemon
      }
      if (family.name().find("_io_pressure_seconds_total") != std::string::npos ||
          family.name() == "ssdpulse_device_busy_seconds_total") {
        continue;  // the kernel's own, which began with it, a cgroup or a disk
      }
      const auto& created =
          family.type() == pb::COUNTER ? metric.counter().created_timestamp() : metric.histogram().created_timestamp();
      EXPECT_EQ(created.seconds(), 1'700'000'000) << family.name();
      EXPECT_EQ(created.nanos(), 250'000'000) << family.name();
    }
  }
}

TEST(Families, SayTypeHelpAndUnit) {
  const auto snapshot = test::small_snapshot();
  std::set<std::string> names;
  for (const auto& family : decode(render_protobuf(collect(snapshot)))) {
    EXPECT_TRUE(names.insert(family.name()).second) << family.name();
    EXPECT_FALSE(family.help().empty()) << family.name();
    EXPECT_EQ(family.help().back(), '.') << family.name();
    auto stem = family.name();
    const bool total = stem.size() > 6 && stem.compare(stem.size() - 6, 6, "_total") == 0;
    EXPECT_EQ(total, family.type() == pb::COUNTER) << family.name();
    if (total) {
      stem.resize(stem.size() - 6);
    }
    // The name ends with its unit, and only families whose name ends with a unit have one.
    const auto last = stem.substr(stem.rfind('_') + 1);
    const bool unit = std::set<std::string>{"seconds", "bytes", "ios", "ratio", "celsius"}.count(last) != 0;
    EXPECT_EQ(family.unit(), unit ? last : "") << family.name();
  }
  std::size_t described = 0;
  for (const Topic& topic : topics()) {
    described += topic.families().size();
  }
  EXPECT_EQ(names.size(), described) << "the small Snapshot should have every family";
}

}  // namespace
}  // namespace ssdpulse::exposition

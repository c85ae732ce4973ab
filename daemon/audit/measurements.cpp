// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/measurements.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ssdpulse::audit {
namespace {

constexpr std::string_view kBucket = "_bucket";

/// NAME="VALUE",... up to the closing brace; false if it is something else.
bool take_labels(std::string_view& line, std::map<std::string, std::string, std::less<>>& labels) {
  while (!line.empty() && line.front() != '}') {
    const std::size_t is = line.find("=\"");
    if (is == std::string_view::npos) {
      return false;
    }
    const std::string name(line.substr(0, is));
    line.remove_prefix(is + 2);
    std::string value;
    while (!line.empty() && line.front() != '"') {
      if (line.front() == '\\' && line.size() > 1) {
        line.remove_prefix(1);
        value += line.front() == 'n' ? '\n' : line.front();
      } else {
        value += line.front();
      }
      line.remove_prefix(1);
    }
    if (line.empty()) {
      return false;
    }
    line.remove_prefix(1);
    labels[name] = value;
    if (!line.empty() && line.front() == ',') {
      line.remove_prefix(1);
    }
  }
  if (line.empty()) {
    return false;
  }
  line.remove_prefix(1);
  return true;
}

std::optional<double> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value)
                                                                                          : std::nullopt;
}

}  // namespace

Measurements Measurements::parse(std::string_view page, double time_scale) {
  Measurements measured;
  measured.time_scale_ = time_scale;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    const std::size_t name_end = std::min(line.find_first_of("{ "), line.size());
    const std::string name(line.substr(0, name_end));
    line.remove_prefix(name_end);
    const bool bucket =
        name.size() > kBucket.size() && name.compare(name.size() - kBucket.size(), kBucket.size(), kBucket) == 0;
    if (name.empty() || name.front() == '#' || bucket) {
      continue;
    }
    Sample sample;
    if (!line.empty() && line.front() == '{') {
      line.remove_prefix(1);
      if (!take_labels(line, sample.labels)) {
        continue;
      }
    }
    if (const auto value = number_in(line)) {
      sample.value = *value;
      measured.samples_[name].push_back(std::move(sample));
    }
  }
  return measured;
}

std::vector<const Measurements::Sample*> Measurements::matching(std::string_view name, Labels where) const {
  std::vector<const Sample*> found;
  const auto samples = samples_.find(name);
  if (samples == samples_.end()) {
    return found;
  }
  for (const Sample& sample : samples->second) {
    const bool fits = std::all_of(where.begin(), where.end(), [&](const auto& wanted) {
      const auto label = sample.labels.find(wanted.first);
      return label != sample.labels.end() && label->second == wanted.second;
    });
    if (fits) {
      found.push_back(&sample);
    }
  }
  return found;
}

std::optional<double> Measurements::sum(std::string_view name, Labels where) const {
  const auto found = matching(name, where);
  double total = 0;
  for (const Sample* sample : found) {
    total += sample->value;
  }
  return found.empty() ? std::nullopt : std::optional(total);
}

std::optional<double> Measurements::largest(std::string_view name, Labels where) const {
  std::optional<double> most;
  for (const Sample* sample : matching(name, where)) {
    most = std::max(most.value_or(sample->value), sample->value);
  }
  return most;
}

std::set<std::string> Measurements::values_of(std::string_view name, std::string_view label, Labels where) const {
  std::set<std::string> values;
  for (const Sample* sample : matching(name, where)) {
    if (const auto value = sample->labels.find(label); value != sample->labels.end()) {
      values.insert(value->second);
    }
  }
  return values;
}

std::string Measurements::label(std::string_view name, std::string_view label, Labels where) const {
  const auto found = matching(name, where);
  if (found.empty()) {
    return {};
  }
  const auto value = found.front()->labels.find(label);
  return value == found.front()->labels.end() ? std::string() : value->second;
}

std::optional<double> Measurements::observed_seconds() const {
  const auto now = sum("ssdpulse_snapshot_timestamp_seconds", {});
  const auto start = sum("process_start_time_seconds", {});
  return now && start && *now >= *start ? std::optional((*now - *start) / time_scale_) : std::nullopt;
}

std::optional<double> Measurements::per_day(std::string_view name, Labels where) const {
  const auto seconds = observed_seconds();
  const auto total = sum(name, where);
  return seconds && *seconds >= 1 && total ? std::optional(*total * kSecondsPerDay / *seconds) : std::nullopt;
}

}  // namespace ssdpulse::audit

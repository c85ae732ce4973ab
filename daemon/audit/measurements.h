// SPDX-License-Identifier: Apache-2.0
// What the running daemon has measured, according to its metrics page. Empty if no daemon answers.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::audit {

inline constexpr double kSecondsPerDay = 86400;

class Measurements {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// Reads Prometheus' text format. Leaves out invalid lines, and buckets. Never fails.
  /// `time_scale`: how much faster the daemon's clock ran than the host's; 1 except in tests.
  static Measurements parse(std::string_view page, double time_scale = 1);

  [[nodiscard]] bool empty() const { return samples_.empty(); }

  /// Over all series with these labels; nothing if there is none.
  [[nodiscard]] std::optional<double> sum(std::string_view name, Labels where) const;
  /// The largest of them.
  [[nodiscard]] std::optional<double> largest(std::string_view name, Labels where) const;
  /// Each value of a label among them, once.
  [[nodiscard]] std::set<std::string> values_of(std::string_view name, std::string_view label, Labels where) const;
  /// A label of the first of them; empty if there is none.
  [[nodiscard]] std::string label(std::string_view name, std::string_view label, Labels where) const;

  /// For how long the daemon has been counting. Everything else counts from then on.
  [[nodiscard]] std::optional<double> observed_seconds() const;
  /// sum(), divided by the days of observed_seconds(); nothing within the first second.
  [[nodiscard]] std::optional<double> per_day(std::string_view name, Labels where) const;

 private:
  struct Sample {
    std::map<std::string, std::string, std::less<>> labels;
    double value = 0;
  };
  [[nodiscard]] std::vector<const Sample*> matching(std::string_view name, Labels where) const;

  std::map<std::string, std::vector<Sample>, std::less<>> samples_;
  double time_scale_ = 1;
};

}  // namespace ssdpulse::audit

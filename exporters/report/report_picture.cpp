// SPDX-License-Identifier: Apache-2.0
// The picture of a report: the latencies of its windows as one curve each, on one logarithmic scale. Heights are square
// roots of shares: on a linear scale nobody would see the one I/O in a hundred that a p99 speaks of.
#include <fmt/format.h>
#include <linux/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bpf/abi/latency_buckets.h"
#include "exporters/report/report_forms.h"
#include "exporters/words/report.h"
#include "exporters/words/shared.h"

namespace ssdpulse::report {
namespace {

using compare::Side;
using model::Latency;

struct Operation {
  std::string_view id;  // what the ids of its rows begin with
  Latency latency;
  const char* name;
};
constexpr std::array kOperations{Operation{"read.", Latency::read_total, words::shared::kReadsHead},
                                 Operation{"write.", Latency::write_total, words::shared::kWritesHead},
                                 Operation{"commit.", Latency::commit, words::report::kCommits},
                                 Operation{"flush.", Latency::flush, words::report::kFlushes}};

struct Curve {
  const char* style;  // its class
  const char* name;
  std::vector<double> shares;  // by column
};

/// Columns of `merged` buckets each, from `first` on.
struct Axis {
  std::size_t first = LATENCY_OVER_WORD;
  std::size_t last = 0;
  std::size_t merged = 1;

  [[nodiscard]] std::size_t columns() const { return (last - first) / merged + 1; }
  /// Where a latency lies, in columns.
  [[nodiscard]] double at(double seconds) const {
    const double bucket = std::log2(seconds) * 8 - LATENCY_FIRST_NATIVE_INDEX + LATENCY_FIRST_NATIVE_WORD + 1;
    return (bucket - static_cast<double>(first)) / static_cast<double>(merged);
  }
};

struct Picture {
  const Operation* operation = nullptr;
  Axis axis;
  std::vector<Curve> curves;  // none: there is nothing to show
  double highest = 0;
};

using Counts = std::vector<double>;

Counts counts_of(const Side& side, Latency latency) {
  Counts counts(LATENCY_OVER_WORD + 1);
  for (const model::MinuteOf& minute : side.minutes) {
    for (const auto& [bucket, count] : minute.load.latency(latency).words) {
      counts[std::min<std::size_t>(bucket, LATENCY_OVER_WORD)] += static_cast<double>(count);
    }
  }
  return counts;
}

/// No curves if there are no such I/Os.
Picture picture_of(const DeviceReport& device, const Operation& operation, std::size_t max_columns) {
  constexpr double kSeen = 1e-5;  // a smaller share only makes the scale longer
  Picture picture{.operation = &operation, .axis = {}, .curves = {}};
  std::vector<Curve> curves;
  std::vector<Counts> all;
  const auto add = [&](const char* style, const char* name, const Side& side) {
    curves.push_back({style, name, {}});
    all.push_back(counts_of(side, picture.operation->latency));
    const double total = std::accumulate(all.back().begin(), all.back().end(), 0.0);
    for (std::size_t bucket = LATENCY_FIRST_NATIVE_WORD; bucket < LATENCY_OVER_WORD; ++bucket) {
      all.back()[bucket] /= std::max(total, 1.0);
      if (all.back()[bucket] > kSeen) {
        picture.axis.first = std::min(picture.axis.first, bucket);
        picture.axis.last = std::max(picture.axis.last, bucket);
      }
    }
  };
  if (device.question.before) {
    add("before", words::report::kBefore, *device.question.before);
  }
  if (device.during) {
    add("during", words::report::kDuring, device.during->side);
  }
  add(device.question.before ? "after" : "all", device.question.before ? words::report::kAfter : words::shared::kAll,
      device.question.after);
  if (picture.axis.first > picture.axis.last) {
    return picture;
  }
  picture.axis.merged = (picture.axis.last - picture.axis.first) / max_columns + 1;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    Curve& curve = curves[i];
    curve.shares.resize(picture.axis.columns());
    for (std::size_t bucket = picture.axis.first; bucket <= picture.axis.last; ++bucket) {
      curve.shares[(bucket - picture.axis.first) / picture.axis.merged] += all[i][bucket];
    }
    picture.highest = std::max(picture.highest, *std::max_element(curve.shares.begin(), curve.shares.end()));
  }
  picture.curves = std::move(curves);
  return picture;
}

/// Of what the row that matters most is about, or else of whatever there is.
Picture picture_of(const DeviceReport& device, std::size_t max_columns) {
  const auto rows = by_weight(device.comparison);
  std::vector<const Operation*> operations;
  for (const Operation& operation : kOperations) {
    const bool first = !rows.empty() && rows[0]->id.starts_with(operation.id);
    operations.insert(first ? operations.begin() : operations.end(), &operation);
  }
  Picture picture;
  for (std::size_t i = 0; i < operations.size() && picture.curves.empty(); ++i) {
    picture = picture_of(device, *operations[i], max_columns);
  }
  return picture;
}

/// 1, 10, 100 us, ... : where it lies in columns, and its text.
std::vector<std::pair<double, std::string>> ticks_of(const Axis& axis) {
  std::vector<std::pair<double, std::string>> ticks;
  for (double seconds = 1e-6; seconds < 100; seconds *= 10) {
    const double at = axis.at(seconds);
    if (at >= 0 && at <= static_cast<double>(axis.columns())) {
      ticks.emplace_back(at, value_text(seconds, Unit::seconds));
    }
  }
  return ticks;
}

constexpr double kPlotWidth = 720;
constexpr double kPlotHeight = 200;
constexpr double kPlotTop = 34;  // room for two labels

/// The outline of a curve, closed along its foot.
std::string path_of(const Curve& curve, double highest) {
  const double width = kPlotWidth / static_cast<double>(curve.shares.size());
  std::string path = fmt::format("M0 {}", kPlotTop + kPlotHeight);
  for (std::size_t i = 0; i < curve.shares.size(); ++i) {
    path += fmt::format("V{:.1f}H{:.1f}", kPlotTop + kPlotHeight * (1 - std::sqrt(curve.shares[i] / highest)),
                        width * static_cast<double>(i + 1));
  }
  return path + fmt::format("V{}", kPlotTop + kPlotHeight);
}

/// A line at the p99 of one window, and its value.
std::string mark_svg(const Picture& picture, std::optional<double> seconds, const char* style, const char* name,
                     double y) {
  if (!seconds) {
    return "";
  }
  const double x =
      std::clamp(kPlotWidth * picture.axis.at(*seconds) / static_cast<double>(picture.axis.columns()), 0.0, kPlotWidth);
  const bool left = x > kPlotWidth / 2;
  return fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" class="{3}"/>)"
                     R"(<text x="{4:.1f}" y="{5}" text-anchor="{6}">p99 {7}: {8}</text>)",
                     x, y - 10, kPlotTop + kPlotHeight, style, x + (left ? -4 : 4), y, left ? "end" : "start", name,
                     value_text(seconds, Unit::seconds));
}

const Row* p99_of(const Comparison& comparison, const Operation& operation) {
  const auto row = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                [&](const Row& one) { return one.id == std::string(operation.id) + "p99"; });
  return row == comparison.rows.end() ? nullptr : &*row;
}

std::string title_of(const DeviceReport& device, const Picture& picture) {
  return fmt::format(words::report::kOperationOn, picture.operation->name, device.comparison.device.name);
}

}  // namespace

std::string picture_text(const DeviceReport& device, bool blocks) {
  constexpr std::size_t kTextColumns = 64;
  constexpr std::array kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array kAscii{" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  const Picture picture = picture_of(device, kTextColumns);
  if (picture.curves.empty()) {
    return "";
  }
  std::string text = util::for_terminal(title_of(device, picture)) + "\n";
  for (const Curve& curve : picture.curves) {
    std::string line = fmt::format("  {:8}", curve.name);
    for (const double share : curve.shares) {
      constexpr double kTextLevels = kBlocks.size() - 1;
      const auto level = static_cast<std::size_t>(std::ceil(kTextLevels * std::sqrt(share / picture.highest)));
      line += blocks ? kBlocks[level] : kAscii[level];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::string labels;
  for (const auto& [at, label] : ticks_of(picture.axis)) {
    const auto column = static_cast<std::size_t>(at);
    if (column >= labels.size() + (labels.empty() ? 0 : 1)) {
      labels.resize(column, ' ');
      labels += "|" + label;
    }
  }
  return text + "          " + labels + "\n";
}

std::string picture_svg(const DeviceReport& device) {
  const Picture picture = picture_of(device, LATENCY_OVER_WORD);
  if (picture.curves.empty()) {
    return "";
  }
  const std::string title = util::for_html(title_of(device, picture));
  std::string svg = fmt::format(R"(<figure class="picture"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">)",
                                kPlotWidth, kPlotTop + kPlotHeight + 20, title);
  for (const auto& [at, label] : ticks_of(picture.axis)) {
    const double x = kPlotWidth * at / static_cast<double>(picture.axis.columns());
    svg += fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" class="tick"/>)"
                       R"(<text x="{0:.1f}" y="{3}" text-anchor="{4}">{5}</text>)",
                       x, kPlotTop, kPlotTop + kPlotHeight + 4, kPlotTop + kPlotHeight + 17,
                       x < 20                ? "start"
                       : x > kPlotWidth - 20 ? "end"
                                             : "middle",
                       label);
  }
  for (const Curve& curve : picture.curves) {
    svg += fmt::format(R"(<path d="{}" class="{}"/>)", path_of(curve, picture.highest), curve.style);
  }
  if (const Row* row = p99_of(device.comparison, *picture.operation)) {
    svg += mark_svg(picture, row->before, "before", words::report::kBefore, kPlotTop - 20) +
           mark_svg(picture, row->after, "after", words::report::kAfter, kPlotTop - 4);
  }
  const char* windows = picture.curves.size() == 1 ? words::report::kOneWindow
                        : device.during            ? words::report::kThreeWindows
                                                   : words::report::kTwoWindows;
  return svg + "</svg><figcaption>" + fmt::format(words::report::kPictureOf, title, windows) +
         "</figcaption></figure>\n";
}

}  // namespace ssdpulse::report

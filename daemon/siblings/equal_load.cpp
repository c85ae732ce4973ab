// SPDX-License-Identifier: Apache-2.0
#include "daemon/siblings/equal_load.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "daemon/compare/load_classes.h"
#include "daemon/compare/window_figures.h"

namespace ssdpulse::siblings {
namespace {

using model::Operation;

constexpr std::array kCompared{Operation::read, Operation::write};
/// Of a class, for its median; compare::kMinBeyond is for rarer I/Os.
constexpr double kMinIos = 30;
constexpr std::size_t kMinSlices = 6;
/// One of so many siblings, at least, must have such a load. Of more, those count that are nearest in depth, and all
/// that are within this factor (a logarithm).
constexpr std::size_t kSiblingsForEach = 3;
constexpr double kAlikeDepth = 0.2;
constexpr double kFastest = 0.1;
/// While anything is in flight, one I/O is: less only because the kernel rounds busy time up.
constexpr double kShallow = 1.5;
constexpr double kMebibyte = 1 << 20;
/// Writes for each commit: with fewer, they are not compared.
constexpr double kFewCommits = 100;

/// The word of a SizeHistogram that holds so many bytes.
std::uint8_t word_of(double bytes) {
  const auto whole = static_cast<std::uint64_t>(std::max(1.0, std::ceil(bytes)));
  return static_cast<std::uint8_t>(1 + std::bit_width(whole - 1));
}

/// The word in which half of the I/Os between two readings end; nothing if they are not known.
std::optional<std::uint8_t> median_word(const model::SizeHistogram& before, const model::SizeHistogram& now) {
  const auto added = model::added(before.words, now.words);
  return added && model::count(*added) > 0
             ? std::optional(static_cast<std::uint8_t>(model::quantile_bucket(*added, 0.5)))
             : std::nullopt;
}

/// That these I/Os took together, if none had taken much longer than the median: a few that are stuck are no load that
/// the others could feel.
double usual_seconds(const model::SparseBuckets& times) {
  constexpr double kMaxOfMedian = 4;
  if (times.empty()) {
    return 0;
  }
  const double longest = kMaxOfMedian * model::upper_bound_seconds(model::quantile_bucket(times, 0.5));
  return std::accumulate(times.begin(), times.end(), 0.0, [&](double sum, const auto& bucket) {
    return sum + static_cast<double>(bucket.second) * std::min(longest, model::upper_bound_seconds(bucket.first));
  });
}

std::int64_t in_flight_now(const model::DeviceInterval& interval) {
  return std::accumulate(
      interval.operations.begin(), interval.operations.end(), std::int64_t{0},
      [](std::int64_t sum, const model::OperationInterval& one) { return sum + one.in_flight_after; });
}

/// 0: below 1; then in powers of `base`.
std::uint8_t class_of(double value, double base) {
  constexpr double kMaxClass = 40;
  return value < 1 ? 0
                   : static_cast<std::uint8_t>(std::min(kMaxClass, 1 + std::floor(std::log(value) / std::log(base))));
}

std::vector<double> dense(const model::SparseBuckets& sparse) {
  std::vector<double> buckets(LATENCY_OVER_WORD + 1);
  for (const auto& [bucket, ios] : sparse) {
    buckets[bucket] = static_cast<double>(ios);
  }
  return buckets;
}

/// What is left without a part of them.
model::SparseBuckets subtract(const model::SparseBuckets& all, const model::SparseBuckets& part) {
  model::SparseBuckets left;
  auto taken = part.begin();
  for (const auto& [bucket, ios] : all) {
    const bool both = taken != part.end() && taken->first == bucket;
    if (!both || ios > taken->second) {
      left.emplace_back(bucket, both ? ios - taken->second : ios);
    }
    taken += both ? 1 : 0;
  }
  return left;
}

/// Of ratios; the lower of the two middle ones of an even number: that to the slower sibling.
template <typename Siblings, typename Value>
double middle(const Siblings& siblings, Value value_of) {
  std::vector<double> values(siblings.size());
  std::transform(siblings.begin(), siblings.end(), values.begin(), value_of);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void LoadCell::operator+=(const LoadCell& more) {
  model::add(device_times, more.device_times);
  depth_sum += more.depth_sum;
  in_flight_sum += more.in_flight_sum;
  ticks += more.ticks;
  busy_ticks += more.busy_ticks;
}

void LoadWindow::add(const model::DeviceTick& device, std::optional<double> busy_ratio, bool disturbed) {
  slices_.back().disturbed = slices_.back().disturbed || disturbed;
  if (!device.interval || !device.block.io) {
    stretch_.known = false;
    return;
  }
  const double seconds = static_cast<double>(device.interval->measured_ms) / 1000;
  slices_.back().seconds += seconds;
  slices_.back().written_bytes += device.interval->operation(Operation::write).bytes;
  stretch_.known = stretch_.known && busy_ratio.has_value();
  stretch_.busy_seconds += busy_ratio.value_or(0) * seconds;
  ++stretch_.ticks;
  stretch_.busy_ticks += in_flight_now(*device.interval) > 0 ? 1 : 0;
  model::add(stretch_.sum, *device.interval);
  stretch_.begin = stretch_.begin ? stretch_.begin : device.block.io;
  stretch_.end = device.block.io;
}

void LoadWindow::end_stretch() {
  // The sizes of the first second of all are not known; later ones begin where the stretch before ended.
  Stretch next;
  next.begin = stretch_.known ? stretch_.end : nullptr;
  const Stretch ended = std::exchange(stretch_, std::move(next));
  const double seconds = static_cast<double>(ended.sum.measured_ms) / 1000;
  if (!ended.known || !ended.begin || ended.busy_seconds <= 0 || seconds <= 0) {
    return;
  }
  double in_flight = 0;
  for (const model::OperationInterval& operation : ended.sum.operations) {
    in_flight += usual_seconds(operation.in_device().words);
  }
  const double depth = in_flight / ended.busy_seconds;
  const double written = static_cast<double>(ended.sum.operation(Operation::write).bytes) / seconds;
  const auto commits = static_cast<double>(model::count(ended.sum.operation(Operation::commit).total.words));
  for (const Operation operation : kCompared) {
    const model::OperationInterval& did = ended.sum.operation(operation);
    const auto& times = did.device[model::index(model::During::none)].words;
    const auto median = median_word(ended.begin->operation(operation).size, ended.end->operation(operation).size);
    // Writes that are to be durable at once (FUA) take longer than those that end in the drive's cache.
    const bool durable = operation == Operation::write && kFewCommits * commits > static_cast<double>(did.ios);
    if (times.empty() || did.ios == 0 || !median || durable) {
      continue;
    }
    const LoadClass load{.operation = operation,
                         .sequential = 2 * did.sequential_bytes >= did.bytes,
                         .median_bytes = *median,
                         .mean_bytes = word_of(static_cast<double>(did.bytes) / static_cast<double>(did.ios)),
                         .depth = class_of(depth / kShallow, 2),
                         .written = class_of(written / kMebibyte, 4)};
    LoadCell& cell = slices_.back().cells[load];
    model::add(cell.device_times, times);
    const auto ios = static_cast<double>(model::count(times));
    cell.depth_sum += depth * ios;
    cell.in_flight_sum += in_flight / seconds * ios;
    cell.ticks += ended.ticks;
    cell.busy_ticks += ended.busy_ticks;
  }
}

void LoadWindow::end_slice() {
  const Slice& ended = slices_.back();
  if (ended.seconds > 0) {
    const double rate = static_cast<double>(ended.written_bytes) / ended.seconds;
    const double hours = std::chrono::duration<double, std::ratio<3600>>(kSlice).count();
    hours_ = std::min(1.0, hours_ + hours);
    written_lately_ += (rate - written_lately_) * hours / hours_;
  }
  slices_.emplace_back();
  if (slices_.size() > kSlices + 1) {
    slices_.pop_front();
  }
}

bool LoadWindow::disturbed() const {
  return std::any_of(slices_.begin(), slices_.end(), [](const Slice& slice) { return slice.disturbed; });
}

std::optional<EqualLoad::Times> EqualLoad::times_of(const LoadWindow& window, const LoadClass& load) {
  std::vector<const LoadCell*> cells;  // by slice, the last of which has just begun
  LoadCell all;
  for (std::size_t slice = 0; slice + 1 < window.slices().size(); ++slice) {
    const auto found = window.slices()[slice].cells.find(load);
    cells.push_back(found == window.slices()[slice].cells.end() ? nullptr : &found->second);
    if (cells.back() != nullptr) {
      all += *cells.back();
    }
  }
  const auto ios = static_cast<double>(model::count(all.device_times));
  const auto total = dense(all.device_times);
  const auto median = compare::log_quantile(total, 0.5);
  const auto fastest = compare::log_quantile(total, kFastest);
  if (ios < kMinIos || !median || !fastest) {
    return std::nullopt;
  }
  Times times{.ios = ios,
              .log_depth = std::log(std::max(1.0, all.depth_sum / ios)),
              .log_most_depth = std::log(all.in_flight_sum / ios * all.ticks / std::max(0.1, all.busy_ticks)),
              .log_fastest = *fastest};
  times.log_most_depth = std::max(times.log_most_depth, times.log_depth);
  times.log_median.fill(*median);
  times.log_mean.fill(std::log(usual_seconds(all.device_times) / ios));
  for (std::size_t slice = 0; slice < cells.size(); ++slice) {
    if (cells[slice] != nullptr) {
      const auto without = subtract(all.device_times, cells[slice]->device_times);
      const auto left = compare::log_quantile(dense(without), 0.5);
      times.log_median[1 + slice] = left.value_or(*median);
      times.log_mean[1 + slice] =
          left ? std::log(usual_seconds(without) / static_cast<double>(model::count(without))) : times.log_mean[0];
    }
  }
  return times;
}

EqualLoad::EqualLoad(const std::vector<const LoadWindow*>& members, Operation operation) : members_(members.size()) {
  for (std::size_t member = 0; member < members.size(); ++member) {
    Member& known = members_[member];
    std::map<LoadClass, double> ios;
    const auto& slices = members[member]->slices();
    known.complete_slices = slices.size() - 1;
    for (std::size_t slice = 0; slice < known.complete_slices; ++slice) {
      bool any = false;
      for (const auto& [load, cell] : slices[slice].cells) {
        if (load.operation == operation) {
          ios[load] += static_cast<double>(model::count(cell.device_times));
          any = true;
        }
      }
      known.slices += any ? 1 : 0;
    }
    std::vector<std::pair<double, LoadClass>> heaviest;
    for (const auto& [load, count] : ios) {
      known.ios += count;
      heaviest.emplace_back(-count, load);
    }
    std::sort(heaviest.begin(), heaviest.end());
    heaviest.resize(std::min(heaviest.size(), kMaxLoads));
    for (const auto& [count, load] : heaviest) {
      if (const auto times = times_of(*members[member], load)) {
        known.loads.emplace(load, *times);
      }
    }
  }
}

// A drive with fewer than 20 I/Os a second may sleep between them and take milliseconds to wake (APST, link power
// management); one with several times as many does not, and is no measure for it.
constexpr double kMaySleepIos = 20 * std::chrono::duration<double>(LoadWindow::kSlices * LoadWindow::kSlice).count();
constexpr double kAwake = 8;

std::optional<EqualLoad::Against> EqualLoad::against(const Member& sibling, const LoadClass& load, const Times& own) {
  // Of the sibling's loads, the next deeper and the next shallower one: with neither would it take longer than that.
  struct Bound {
    const Times* times = nullptr;
    double deeper = HUGE_VAL;  // than it the device is
    bool waits = true;         // I/Os wait for one another
  };
  Bound above;
  Bound below;
  for (const auto& [theirs, times] : sibling.loads) {
    if (theirs.is_like(load) && theirs.written >= load.written &&
        !(own.ios < kMaySleepIos && times.ios > kAwake * own.ios)) {
      const double deeper = (theirs.depth < load.depth ? own.log_most_depth : own.log_depth) - times.log_depth;
      Bound& bound = deeper > 0 ? below : above;
      if (std::fabs(deeper) < std::fabs(bound.deeper)) {
        bound = {&times, deeper, theirs.depth > 0 || load.depth > 0};
      }
    }
  }
  std::optional<Against> tightest;
  for (const Bound& bound : {above, below}) {
    if (bound.times == nullptr) {
      continue;
    }
    Against one{.unlike = std::min(std::fabs(above.deeper), std::fabs(below.deeper)),
                .log_fastest = own.log_fastest - bound.times->log_fastest};
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      // What many wait in few bursts is in the mean, as their depth is, and need not be in the median.
      const double by_median = own.log_median[draw] - bound.times->log_median[draw];
      const double by_mean = own.log_mean[draw] - bound.times->log_mean[draw];
      one.log_ratio[draw] = (bound.waits ? std::min(by_median, by_mean) : by_median) - std::max(0.0, bound.deeper);
    }
    if (!tightest || one.log_ratio[0] > tightest->log_ratio[0]) {
      tightest = one;
    }
  }
  return tightest;
}

std::vector<EqualLoad::Against> EqualLoad::nearest(std::size_t member, const LoadClass& load, const Times& own,
                                                   std::size_t min_siblings) const {
  std::vector<Against> siblings;
  for (std::size_t other = 0; other < members_.size(); ++other) {
    if (auto one = other == member ? std::nullopt : against(members_[other], load, own)) {
      one->sibling = other;
      siblings.push_back(*one);
    }
  }
  const std::size_t enough = std::max(min_siblings, (members_.size() + kSiblingsForEach - 2) / kSiblingsForEach);
  if (siblings.size() < enough) {
    return {};
  }
  std::sort(siblings.begin(), siblings.end(), [](const Against& a, const Against& b) { return a.unlike < b.unlike; });
  const auto end = std::find_if(siblings.begin() + static_cast<std::ptrdiff_t>(enough), siblings.end(),
                                [](const Against& one) { return one.unlike > kAlikeDepth; });
  siblings.erase(end, siblings.end());
  return siblings;
}

std::optional<EqualLoadRatio> EqualLoad::ratio_of(std::size_t member, std::size_t min_siblings) const {
  const Member& known = members_[member];
  if (known.slices < kMinSlices) {
    return std::nullopt;
  }
  std::array<double, kDraws> log_ratio{};
  double ios = 0, log_fastest = 0, log_median = 0;
  std::set<std::size_t> siblings;
  for (const auto& [load, own] : known.loads) {
    const std::vector<Against> others = nearest(member, load, own, min_siblings);
    if (others.empty()) {
      continue;
    }
    ios += own.ios;
    log_median += own.ios * own.log_median[0];
    log_fastest += own.ios * middle(others, [](const Against& one) { return one.log_fastest; });
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      log_ratio[draw] += own.ios * middle(others, [draw](const Against& one) { return one.log_ratio[draw]; });
    }
    for (const Against& one : others) {
      siblings.insert(one.sibling);
    }
  }
  if (ios == 0 || ios < compare::kMinCommonShare * known.ios) {
    return std::nullopt;
  }
  for (double& value : log_ratio) {
    value /= ios;
  }
  // The jackknife: what each slice contributes to the ratio, whatever is alike within it.
  const auto without = std::span(log_ratio).subspan(1, known.complete_slices);
  const auto count = static_cast<double>(without.size());
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / count;
  const double squares = std::accumulate(without.begin(), without.end(), 0.0, [&](double sum, double value) {
    return sum + (value - mean) * (value - mean);
  });
  EqualLoadRatio result;
  result.change = compare::change_by(log_ratio[0], squares * (count - 1) / count, static_cast<double>(known.slices - 1),
                                     compare::kResolution);
  result.interval = compare::corrected(result.change, 1 - compare::kConfidence);
  result.fastest_ratio = std::exp(log_fastest / ios);
  result.median_seconds = std::exp(log_median / ios);
  result.sibling_seconds = result.median_seconds / result.change.ratio;
  result.siblings.assign(siblings.begin(), siblings.end());
  return result;
}

}  // namespace ssdpulse::siblings

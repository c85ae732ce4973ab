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
/// One of so many siblings, at least, has an equal load.
constexpr std::size_t kSiblingsForEach = 3;
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

/// 0: below 1; then in powers of `base`.
std::uint8_t class_of(double value, double base) {
  constexpr double kMaxClass = 40;
  return value < 1 ? 0
                   : static_cast<std::uint8_t>(std::min(kMaxClass, 1 + std::floor(std::log(value) / std::log(base))));
}

std::vector<double> dense(std::size_t words, const std::vector<const model::SparseBuckets*>& parts) {
  std::vector<double> buckets(words);
  for (const model::SparseBuckets* part : parts) {
    for (const auto& [bucket, ios] : *part) {
      buckets[bucket] += static_cast<double>(ios);
    }
  }
  return buckets;
}

/// The upper of the two middle ones of an even number: the slower sibling.
double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

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
    cell.depth_sum += depth * static_cast<double>(model::count(times));
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

EqualLoad::Times EqualLoad::times_of(const LoadWindow& window, const LoadClass& load, bool or_more_written) {
  LoadClass last = load;
  last.written = or_more_written ? UINT8_MAX : load.written;
  std::vector<std::vector<const model::SparseBuckets*>> parts;  // by slice
  std::vector<const model::SparseBuckets*> all;
  double depth_sum = 0;
  // The last slice has just begun.
  for (std::size_t slice = 0; slice + 1 < window.slices().size(); ++slice) {
    const auto& cells = window.slices()[slice].cells;
    auto& of_slice = parts.emplace_back();
    for (auto cell = cells.lower_bound(load); cell != cells.end() && cell->first <= last; ++cell) {
      of_slice.push_back(&cell->second.device_times);
      depth_sum += cell->second.depth_sum;
    }
    all.insert(all.end(), of_slice.begin(), of_slice.end());
  }
  Times times;
  if (all.empty()) {
    return times;
  }
  const std::vector<double> total = dense(LATENCY_OVER_WORD + 1, all);
  times.ios = std::accumulate(total.begin(), total.end(), 0.0);
  if (times.ios < kMinIos) {
    return times;
  }
  times.log_depth = std::log(std::max(1.0, depth_sum / times.ios));
  times.log_median[0] = compare::log_quantile(total, 0.5);
  times.log_fastest = compare::log_quantile(total, kFastest);
  for (std::size_t slice = 0; slice < parts.size(); ++slice) {
    if (parts[slice].empty()) {
      times.log_median[1 + slice] = times.log_median[0];
      continue;
    }
    std::vector<double> without = total;
    const std::vector<double> left_out = dense(total.size(), parts[slice]);
    std::transform(total.begin(), total.end(), left_out.begin(), without.begin(), std::minus<>());
    times.log_median[1 + slice] = compare::log_quantile(without, 0.5);
  }
  for (auto& value : times.log_median) {
    value = value ? value : times.log_median[0];
  }
  return times;
}

EqualLoad::EqualLoad(const std::vector<const LoadWindow*>& members, Operation operation) : members_(members.size()) {
  std::set<LoadClass> loads;
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
      if (-count >= kMinIos) {
        known.own.emplace(load, times_of(*members[member], load, false));
        loads.insert(load);
      }
    }
  }
  for (std::size_t member = 0; member < members.size(); ++member) {
    for (const LoadClass& load : loads) {
      if (Times times = times_of(*members[member], load, true); times.log_median[0]) {
        members_[member].as_sibling.emplace(load, std::move(times));
      }
    }
  }
}

std::optional<EqualLoad::Reference> EqualLoad::reference_of(std::size_t member, const LoadClass& load, const Times& own,
                                                            std::size_t min_siblings) const {
  Reference reference{};
  std::array<std::vector<double>, kDraws> medians;
  std::vector<double> fastest;
  for (std::size_t other = 0; other < members_.size(); ++other) {
    const auto found = members_[other].as_sibling.find(load);
    if (other == member || found == members_[other].as_sibling.end() || !found->second.log_fastest) {
      continue;
    }
    const Times& times = found->second;
    const double deeper = std::max(0.0, own.log_depth - times.log_depth);
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      medians[draw].push_back(*times.log_median[draw] + deeper);
    }
    fastest.push_back(*times.log_fastest);
    reference.siblings.push_back(other);
  }
  if (reference.siblings.size() < min_siblings || kSiblingsForEach * reference.siblings.size() < members_.size() - 1) {
    return std::nullopt;
  }
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    reference.log_median[draw] = middle(std::move(medians[draw]));
  }
  reference.log_fastest = middle(std::move(fastest));
  return reference;
}

std::optional<EqualLoadRatio> EqualLoad::ratio_of(std::size_t member, std::size_t min_siblings) const {
  const Member& known = members_[member];
  if (known.slices < kMinSlices) {
    return std::nullopt;
  }
  std::array<double, kDraws> log_ratio{};
  double ios = 0, log_fastest = 0, log_median = 0;
  std::vector<std::size_t> siblings;
  for (const auto& [load, own] : known.own) {
    if (!own.log_median[0] || !own.log_fastest) {
      continue;
    }
    const auto reference = reference_of(member, load, own, min_siblings);
    if (!reference) {
      continue;
    }
    ios += own.ios;
    log_fastest += own.ios * (*own.log_fastest - reference->log_fastest);
    log_median += own.ios * *own.log_median[0];
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      log_ratio[draw] += own.ios * (*own.log_median[draw] - reference->log_median[draw]);
    }
    siblings.insert(siblings.end(), reference->siblings.begin(), reference->siblings.end());
  }
  if (ios == 0 || ios < compare::kMinCommonShare * known.ios) {
    return std::nullopt;
  }
  for (double& value : log_ratio) {
    value /= ios;
  }
  std::sort(siblings.begin(), siblings.end());
  siblings.erase(std::unique(siblings.begin(), siblings.end()), siblings.end());
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
  result.siblings = std::move(siblings);
  return result;
}

}  // namespace ssdpulse::siblings

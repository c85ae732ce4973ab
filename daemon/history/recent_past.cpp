// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/recent_past.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "daemon/base/varints.h"
#include "daemon/model/latency_buckets.h"

namespace ssdpulse::history {
namespace {

using model::Operation;
using util::VarintReader;
using util::VarintWriter;

Tail tail_of(const SparseBuckets& buckets) {
  Tail tail;
  tail.ios = model::count(buckets);
  if (tail.ios > 0) {
    tail.p50 = static_cast<std::uint8_t>(model::quantile_bucket(buckets, 0.5));
    tail.p99 = static_cast<std::uint8_t>(model::quantile_bucket(buckets, 0.99));
    tail.p999 = static_cast<std::uint8_t>(model::quantile_bucket(buckets, 0.999));
  }
  return tail;
}

OperationColumn column_of(const model::OperationInterval& interval) {
  OperationColumn column;
  column.buckets = interval.total.words;
  column.total = tail_of(column.buckets);
  column.device = tail_of(interval.in_device().words);
  column.queue = tail_of(interval.queue.words);
  column.ios = column.device.ios > 0 ? column.device.ios : column.total.ios;
  column.bytes = interval.bytes;
  column.in_flight = interval.in_flight_after;
  return column;
}

/// The device times of an operation's I/Os while it was in flight, alone or with the other.
SparseBuckets during(const model::OperationInterval& interval, model::During only) {
  SparseBuckets words = interval.device[index(only)].words;
  model::add(words, interval.device[index(model::During::both)].words);
  return words;
}

void put(VarintWriter& out, const Tail& tail) {
  out.put(tail.ios);
  if (tail.ios > 0) {
    out.put(tail.p50).put(tail.p99).put(tail.p999);
  }
}

std::uint8_t take_word(VarintReader& in) { return static_cast<std::uint8_t>(in.take(LATENCY_OVER_WORD)); }

Tail take_tail(VarintReader& in) {
  Tail tail;
  tail.ios = in.take();
  if (tail.ios > 0) {
    tail.p50 = take_word(in);
    tail.p99 = take_word(in);
    tail.p999 = take_word(in);
  }
  return tail;
}

bool is_idle(const OperationColumn& column) { return column == OperationColumn{}; }

void put(VarintWriter& out, const OperationColumn& column) {
  out.put(column.ios).put(column.bytes);
  put(out, column.total);
  put(out, column.device);
  put(out, column.queue);
  out.put_signed(column.in_flight);
  model::put(out, column.buckets);
}

OperationColumn take_operation(VarintReader& in) {
  OperationColumn column;
  column.ios = in.take();
  column.bytes = in.take();
  column.total = take_tail(in);
  column.device = take_tail(in);
  column.queue = take_tail(in);
  column.in_flight = in.take_signed();
  column.buckets = model::take_buckets(in);
  return column;
}

// A frame's bytes: for each device the lengths of its name and column (little-endian, 2 bytes each), the column in
// summary, name, column.
static_assert(std::is_trivially_copyable_v<ColumnSummary>);
constexpr std::size_t kLengths = 4;
constexpr std::size_t kHeader = kLengths + sizeof(ColumnSummary);

std::size_t number_at(const char* bytes) {
  return static_cast<std::uint8_t>(bytes[0]) | static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[1])) << 8;
}

void append_number(std::string& out, std::size_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8 & 0xFF));
}

std::string bytes_of(const Ring::Frame& frame) {
  std::string bytes;
  for (const auto& [device, summary, column] : frame.entries) {
    if (device.size() <= 0xFFFF && column.size() <= 0xFFFF) {
      append_number(bytes, device.size());
      append_number(bytes, column.size());
      bytes.append(reinterpret_cast<const char*>(&summary), sizeof summary);
      bytes += device;
      bytes += column;
    }
  }
  bytes.shrink_to_fit();
  return bytes;
}

struct View {
  std::string_view device;
  std::string_view column;
  ColumnSummary summary;
};

/// Takes the first entry off a frame and returns it; nothing: there is none left.
std::optional<View> take_entry(std::string_view& frame) {
  if (frame.size() < kHeader) {
    return std::nullopt;
  }
  const std::size_t name = number_at(frame.data());
  const std::size_t column = number_at(frame.data() + 2);
  View view{frame.substr(kHeader, name), frame.substr(kHeader + name, column), {}};
  std::memcpy(&view.summary, frame.data() + kLengths, sizeof view.summary);
  frame.remove_prefix(kHeader + name + column);
  return view;
}

std::optional<std::string> column_in(std::string_view frame, std::string_view device) {
  while (const auto entry = take_entry(frame)) {
    if (entry->device == device) {
      return std::string(entry->column);
    }
  }
  return std::nullopt;
}

/// A frame mostly has the devices of the one before, in the same order: `index` is then the device's position.
std::vector<std::optional<ColumnSummary>>& columns_of(Ring::Summaries& summaries, std::string_view device,
                                                      std::size_t index, std::size_t frames) {
  auto& devices = summaries.devices;
  if (index < devices.size() && devices[index].name == device) {
    return devices[index].columns;
  }
  const auto found =
      std::find_if(devices.begin(), devices.end(), [device](const auto& one) { return one.name == device; });
  if (found != devices.end()) {
    return found->columns;
  }
  return devices
      .emplace_back(Ring::Summaries::Device{std::string(device), std::vector<std::optional<ColumnSummary>>(frames)})
      .columns;
}

/// The length of a column during which the clock was set back.
constexpr std::chrono::milliseconds kUsualLength{1000};
constexpr std::chrono::milliseconds kClockStep{500};  // less means that the clock is being slewed

template <typename Mark>
void keep_newest(std::vector<Mark>& marks, std::size_t max_marks) {
  if (marks.size() > max_marks) {
    marks.erase(marks.begin(), marks.end() - static_cast<std::ptrdiff_t>(max_marks));
  }
}

}  // namespace

ColumnSummary summarize(const Column& column) {
  ColumnSummary summary;
  summary.marks = static_cast<std::uint8_t>((column.in_spike ? ColumnSummary::kSpike : 0) |
                                            (column.bursts != 0 ? ColumnSummary::kBurst : 0) |
                                            (column.errors > 0 ? ColumnSummary::kError : 0));
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    const Tail& total = column.operations[i].total;
    summary.p99[i] = total.ios > 0 ? total.p99 : std::uint8_t{0};
  }
  return summary;
}

Column column_of(const model::DeviceInterval& interval, const model::DeviceSnapshot& after) {
  Column column;
  for (const Operation operation : kLiveOperations) {
    column.operations[operation] = column_of(interval.operation(operation));
  }
  for (const Operation operation : {Operation::read, Operation::write}) {
    const model::OperationInterval& one = interval.operation(operation);
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.during[index(operation)][during] = tail_of(one.device[during].words);
    }
    column.queue_ns += one.queue.sum_ns;
    column.device_ns += one.device_ns();
  }
  column.reads_during_discard = during(interval.operation(Operation::read), model::During::discard);
  column.reads_during_flush = during(interval.operation(Operation::read), model::During::flush);
  for (const model::OperationInterval& one : interval.operations) {
    column.errors += one.errors;
  }
  column.losses = std::accumulate(interval.losses.begin(), interval.losses.end(), std::uint64_t{0});
  for (std::size_t trigger = 0; trigger < model::kDiscardTriggers; ++trigger) {
    column.bursts = static_cast<std::uint8_t>(column.bursts | (after.discards[trigger].active ? 1U << trigger : 0U));
  }
  column.in_spike = std::any_of(after.spikes.begin(), after.spikes.end(),
                                [](const model::SpikeFigures& one) { return one.active.has_value(); });
  return column;
}

// An idle operation takes one bit.
std::string encode(const Column& column) {
  VarintWriter out;
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    busy |= (is_idle(column.operations[i]) ? 0ULL : 1ULL) << i;
  }
  out.put(busy).put(column.errors).put(column.losses).put(column.bursts).put(column.in_spike ? 1 : 0);
  for (const OperationColumn& one : column.operations) {
    if (!is_idle(one)) {
      put(out, one);
    }
  }
  for (const auto& operation : column.during) {
    for (const Tail& tail : operation) {
      put(out, tail);
    }
  }
  if (busy != 0) {
    model::put(out, column.reads_during_discard);
    model::put(out, column.reads_during_flush);
    out.put(column.queue_ns).put(column.device_ns);
  }
  return out.take();
}

std::optional<Column> decode(std::string_view bytes) {
  VarintReader in(bytes);
  Column column;
  const std::uint64_t busy = in.take((1U << kLiveOperations.size()) - 1);
  column.errors = in.take();
  column.losses = in.take();
  column.bursts = static_cast<std::uint8_t>(in.take(0xFF));
  column.in_spike = in.take(1) != 0;
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    if ((busy >> i & 1) != 0) {
      column.operations[i] = take_operation(in);
    }
  }
  for (auto& operation : column.during) {
    for (Tail& tail : operation) {
      tail = take_tail(in);
    }
  }
  if (busy != 0) {
    column.reads_during_discard = model::take_buckets(in);
    column.reads_during_flush = model::take_buckets(in);
    column.queue_ns = in.take();
    column.device_ns = in.take();
  }
  return in.whole() ? std::optional(std::move(column)) : std::nullopt;
}

void Ring::push(const Frame& frame) {
  std::string bytes = bytes_of(frame);
  if (bytes.size() > limit_bytes_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  while (frames_.size() >= kFrames || bytes_ + bytes.size() > limit_bytes_) {
    bytes_ -= frames_.front().bytes.size();
    frames_.pop_front();
  }
  bytes_ += bytes.size();
  frames_.push_back({std::move(bytes), frame.number, frame.end, frame.length});
}

std::vector<Second> Ring::after(std::uint64_t number, std::string_view device) const {
  std::vector<Second> seconds;
  const std::lock_guard lock(mutex_);
  seconds.reserve(frames_.size());
  for (const StoredFrame& frame : frames_) {
    if (frame.number > number) {
      seconds.push_back({frame.number, frame.end, frame.length, column_in(frame.bytes, device)});
    }
  }
  return seconds;
}

Ring::Summaries Ring::summaries(std::uint64_t newest) const {
  Summaries summaries;
  const std::lock_guard lock(mutex_);
  std::size_t frames = frames_.size();
  while (frames > 0 && frames_[frames - 1].number > newest) {
    --frames;
  }
  summaries.numbers.reserve(frames);
  summaries.ends.reserve(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const StoredFrame& frame = frames_[i];
    summaries.numbers.push_back(frame.number);
    summaries.ends.push_back(frame.end);
    std::string_view rest = frame.bytes;
    std::size_t device = 0;
    while (const auto entry = take_entry(rest)) {
      columns_of(summaries, entry->device, device++, frames)[i] = entry->summary;
    }
  }
  return summaries;
}

Ring::Reach Ring::reach() const {
  const std::lock_guard lock(mutex_);
  if (frames_.empty()) {
    return {};
  }
  const StoredFrame& oldest = frames_.front();
  return {oldest.number, frames_.back().number, oldest.end - oldest.length};
}

void RecentPast::observe(const model::Snapshot& snapshot, std::optional<std::chrono::steady_clock::time_point> at) {
  std::map<std::string, DeviceState> before;
  before.swap(states_);
  Ring::Frame frame{snapshot.number, snapshot.taken_at, {}, {}};
  // From rounded ends, so that lengths add up to the time between any two of them.
  const auto rounded = [](model::WallTime time) { return std::chrono::round<std::chrono::milliseconds>(time); };
  frame.length = rounded(snapshot.taken_at) - rounded(last_.value_or(snapshot.taken_at));
  if (at && last_at_) {
    const auto elapsed = std::chrono::round<std::chrono::milliseconds>(*at - *last_at_);
    frame.length = std::chrono::abs(frame.length - elapsed) >= kClockStep ? elapsed : frame.length;
  }
  last_at_ = at;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const std::string& name = device.device->name;
    const DeviceState& then = before[name];
    DeviceState& now = states_[name];
    if (device.io && device.interval) {
      const Column column = column_of(*device.interval, device);
      frame.entries.push_back({name, summarize(column), encode(column)});
    }
    note_bursts(device, then, now, snapshot.taken_at);
  }
  if (frame.length < frame.length.zero()) {
    frame.length = kUsualLength;
  }
  if (last_) {
    ring_.push(frame);
  }
  last_ = snapshot.taken_at;
  const std::lock_guard lock(mutex_);
  // A burst ends when its device disappears. A later burst of a device of that name is another one.
  for (model::Burst& burst : bursts_) {
    if (!burst.end && states_.count(burst.device) == 0) {
      burst.end = snapshot.taken_at;
    }
  }
  since_ = std::min(since_.value_or(snapshot.taken_at), snapshot.taken_at);
  spikes_.insert(spikes_.end(), snapshot.spikes_ended.begin(), snapshot.spikes_ended.end());
  for (std::size_t i = 0; i + kMarks < spikes_.size(); ++i) {
    const auto end = spikes_[i].begin + std::chrono::ceil<model::WallTime::duration>(spikes_[i].duration);
    forgotten_until_ = std::max(forgotten_until_.value_or(end), end);
  }
  std::copy_if(snapshot.host.waits.begin(), snapshot.host.waits.end(), std::back_inserter(waits_),
               [](const model::HostWait& wait) { return wait.over; });
  keep_newest(spikes_, kMarks);
  keep_newest(waits_, kMarks);
  keep_newest(bursts_, kMarks);
}

model::Burst* RecentPast::open_burst(const std::string& device, model::DiscardTrigger trigger) {
  const auto found = std::find_if(bursts_.rbegin(), bursts_.rend(), [&](const model::Burst& burst) {
    return burst.device == device && burst.trigger == trigger && !burst.end;
  });
  return found == bursts_.rend() ? nullptr : &*found;
}

void RecentPast::note_bursts(const model::DeviceSnapshot& device, const DeviceState& before, DeviceState& now,
                             model::WallTime at) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    const model::DiscardBursts& seen = device.discards[i];
    const auto trigger = static_cast<model::DiscardTrigger>(i);
    const std::uint64_t bytes_before = before.seen ? before.burst_bytes[i] : seen.bytes;
    if (seen.active && !before.bursting[i]) {
      bursts_.push_back({device.device->name, trigger, last_.value_or(at), std::nullopt, 0});
    }
    if (model::Burst* burst = before.bursting[i] || seen.active ? open_burst(device.device->name, trigger) : nullptr) {
      burst->bytes = seen.bytes - std::min(seen.bytes, bytes_before);
      burst->end = seen.active ? std::nullopt : std::optional(at);
    }
    now.bursting[i] = seen.active;
    now.burst_bytes[i] = seen.active ? bytes_before : seen.bytes;
  }
  now.seen = true;
}

std::vector<model::LatencySpike> RecentPast::ended_spikes() const {
  const std::lock_guard lock(mutex_);
  return spikes_;
}

std::vector<model::HostWait> RecentPast::ended_waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

std::vector<model::Burst> RecentPast::bursts() const {
  const std::lock_guard lock(mutex_);
  return bursts_;
}

std::optional<model::WallTime> RecentPast::since() const {
  const std::lock_guard lock(mutex_);
  return since_;
}

std::optional<model::WallTime> RecentPast::remembered_since() const {
  const std::lock_guard lock(mutex_);
  return since_ && forgotten_until_ ? std::max(since_, forgotten_until_) : since_;
}

}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
// The list of every measured device, worst first.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "daemon/base/figure_text.h"
#include "daemon/model/device_title.h"
#include "daemon/model/incident.h"
#include "daemon/spikes/sibling_words.h"
#include "exporters/page/page_json.h"

namespace ssdpulse::page {
namespace {

using history::Column;
using history::Second;
using model::kLiveOperations;
using model::Operation;

constexpr std::size_t kNow = 10;    // columns that make up "now": enough I/Os for a p99, few enough to be now
constexpr std::size_t kStrip = 10;  // columns in one cell of the strip

/// With fewer I/Os, the 99th percentile is simply the slowest one.
constexpr std::uint64_t kEnoughForP99 = 100;

/// A 99th percentile beyond this many times its usual is not as usual, even where it is no spike.
constexpr double kHigh = 3;

/// What the past has about one device.
struct Recent {
  const model::DeviceSnapshot* device;
  std::vector<std::optional<history::ColumnSummary>> summaries;  // as far as memory reaches
  model::WallTime reach_begin;
  std::vector<Second> seconds;                 // the last kNow
  std::vector<std::optional<Column>> columns;  // of those, with buckets
};

Recent recent_of(const model::DeviceSnapshot& device, const history::RecentPast& past,
                 const history::Ring::Summaries& summaries, const model::Snapshot& snapshot) {
  const std::string& name = device.device->name;
  const auto found = std::find_if(summaries.devices.begin(), summaries.devices.end(),
                                  [&](const history::Ring::Summaries::Device& one) { return one.name == name; });
  const std::size_t frames = summaries.numbers.size();
  Recent recent{
      &device,
      found == summaries.devices.end() ? std::vector<std::optional<history::ColumnSummary>>(frames) : found->columns,
      frames == 0 ? snapshot.taken_at : summaries.ends.front(),
      past.ring().after(frames > kNow ? summaries.numbers[frames - kNow - 1] : 0, name),
      {}};
  while (!recent.seconds.empty() && recent.seconds.back().number > snapshot.number) {
    recent.seconds.pop_back();
  }
  for (const Second& second : recent.seconds) {
    recent.columns.push_back(second.bytes ? history::decode(*second.bytes) : std::nullopt);
  }
  return recent;
}

/// Reads during which something else was in flight.
constexpr Field<model::SparseBuckets> kDuringFields[] = {
    {"ios", kCount, [](const model::SparseBuckets& reads) { return model::count(reads); }},
    {"p99", or_null(kSeconds),
     [](const model::SparseBuckets& reads) {
       const std::uint64_t ios = model::count(reads);
       return ios < kEnoughForP99 ? Json() : latency_of(model::quantile_bucket(reads, 0.99));
     },
     "null: of fewer than 100."},
};
constexpr Object<model::SparseBuckets> kDuring{"during", "Device times of the reads during which it was in flight.",
                                               kDuringFields};

/// What the last seconds had of one operation.
struct OperationNow {
  std::uint64_t ios = 0;
  std::uint64_t bytes = 0;
  model::SparseBuckets buckets;
  Json standstill = absent();  // seconds, or null

  [[nodiscard]] Json quantile(double share) const {
    return buckets.empty() ? Json() : latency_of(model::quantile_bucket(buckets, share));
  }
};

constexpr Field<OperationNow> kOperationFields[] = {
    {"ios", kCount, member_of<&OperationNow::ios>},
    {"bytes", kCount, member_of<&OperationNow::bytes>},
    {"p50", or_null(kSeconds), [](const OperationNow& one) { return one.quantile(0.5); }},
    {"p99", or_null(kSeconds), [](const OperationNow& one) { return one.quantile(0.99); }},
    {"p999", or_null(kSeconds), [](const OperationNow& one) { return one.quantile(0.999); }},
    {"standstill_seconds", may_be_absent(or_null(kSeconds)), member_of<&OperationNow::standstill>,
     "Of reads, writes and commits: for how long none has completed while some wait; the quantiles are of those that "
     "did before. null: that is not so."},
};
constexpr Object<OperationNow> kOperation{"now", "", kOperationFields};

/// The share of the I/Os' time that was spent in the queue; null without any time.
Json queue_share_of(std::uint64_t queue_ns, std::uint64_t device_ns) {
  const double all = static_cast<double>(queue_ns) + static_cast<double>(device_ns);
  return all == 0 ? Json() : Json(std::round(static_cast<double>(queue_ns) / all * 1000) / 1000);
}

/// The last seconds, from the end of the snapshot `from` to that of the snapshot `to`.
struct Now {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  model::WallTime begin;
  model::WallTime end;
  double seconds = 0;
  model::ByOperation<OperationNow, kLiveOperations> operations;
  Column sum;          // of reads during discards and flushes, and of the times
  bool timed = false;  // the reads' times in the device are known
  std::int64_t in_flight = 0;
  std::optional<double> busy_ratio;
};

template <Operation kOf>
Json operation_of(const Now& now) {
  return kOperation(now.operations[kOf]);
}

constexpr Field<Now> kNowFields[] = {
    {"from", kCount, member_of<&Now::from>},
    {"to", kCount, member_of<&Now::to>},
    {"begin", kNumber, time_of<&Now::begin>, "When the snapshot `from` was taken; `end`: the snapshot `to`."},
    {"end", kNumber, time_of<&Now::end>},
    {"seconds", kSeconds, member_of<&Now::seconds>},
    {"read", defined_as("now"), [](const Now& now) { return operation_of<Operation::read>(now); }},
    {"write", defined_as("now"), [](const Now& now) { return operation_of<Operation::write>(now); }},
    {"flush", defined_as("now"), [](const Now& now) { return operation_of<Operation::flush>(now); }},
    {"discard", defined_as("now"), [](const Now& now) { return operation_of<Operation::discard>(now); }},
    {"commit", defined_as("now"), [](const Now& now) { return operation_of<Operation::commit>(now); }},
    {"reads_during_discard", or_null(defined_as("during")),
     [](const Now& now) { return now.timed ? kDuring(now.sum.reads_during_discard) : Json(); },
     "null: reads had no device times; likewise the next."},
    {"reads_during_flush", or_null(defined_as("during")),
     [](const Now& now) { return now.timed ? kDuring(now.sum.reads_during_flush) : Json(); }},
    {"queue_share", or_null(kRatio), [](const Now& now) { return queue_share_of(now.sum.queue_ns, now.sum.device_ns); },
     "Of the time of reads and writes in queue and device; null: the time in the queue is not known."},
    {"in_flight", kInteger, member_of<&Now::in_flight>},
    {"busy_ratio", or_null(kSeconds), [](const Now& now) { return now.busy_ratio ? rounded(*now.busy_ratio) : Json(); },
     "Share of the last seconds in which anything was in flight; null: the kernel keeps no count."},
};
constexpr Object<Now> kNowObject{
    "last_seconds", "The last ten seconds: what was added from the snapshot `from` to the snapshot `to`.", kNowFields};

std::optional<Now> now_of(const Recent& recent) {
  Now now;
  std::uint64_t device_reads = 0;  // whose time in the device is known
  std::size_t begin = recent.columns.size();
  for (std::size_t i = 0; i < recent.columns.size(); ++i) {
    if (!recent.columns[i]) {
      continue;
    }
    begin = std::min(begin, i);
    now.seconds += static_cast<double>(recent.seconds[i].length.count()) / 1000;
    const auto& operations = recent.columns[i]->operations;
    for (const Operation operation : kLiveOperations) {
      now.operations[operation].ios += operations[operation].ios;
      now.operations[operation].bytes += operations[operation].bytes;
      model::add(now.operations[operation].buckets, operations[operation].buckets);
    }
    model::add(now.sum.reads_during_discard, recent.columns[i]->reads_during_discard);
    model::add(now.sum.reads_during_flush, recent.columns[i]->reads_during_flush);
    device_reads += operations[Operation::read].device.ios;
    // With iostats=0 the kernel does not record when an I/O began: only its time in the device is known.
    if (operations[Operation::read].queue.ios + operations[Operation::write].queue.ios > 0) {
      now.sum.queue_ns += recent.columns[i]->queue_ns;
      now.sum.device_ns += recent.columns[i]->device_ns;
    }
  }
  if (begin == recent.columns.size()) {
    return std::nullopt;
  }
  const Second& first_second = recent.seconds[begin];
  now.from = first_second.number - 1;
  now.to = recent.seconds.back().number;
  now.begin = first_second.end - first_second.length;
  now.end = recent.seconds.back().end;
  now.timed = device_reads > 0 || now.operations[Operation::read].buckets.empty();
  const auto& last = *std::find_if(recent.columns.rbegin(), recent.columns.rend(),
                                   [](const auto& column) { return column.has_value(); });
  now.in_flight = last->operations[Operation::read].in_flight + last->operations[Operation::write].in_flight;
  if (const auto& utilisation = recent.device->utilisation) {
    now.busy_ratio = utilisation->busy_ratio;
  }
  return now;
}

constexpr auto kShown = std::to_array({Operation::read, Operation::write, Operation::commit});

/// For how long no I/O of the kind has completed while some wait; null where that is not so. A commit is not a request
/// by itself: it waits with all else.
Json standstill_of(const std::vector<model::LatencySpike>& spikes, Operation operation) {
  double longest = 0;
  for (const model::LatencySpike& spike : spikes) {
    const bool of_device = operation == Operation::commit;
    if (of_device || spike.operation == operation) {
      longest = std::max(longest, amount(spike.evidence, of_device ? model::EvidenceKey::device_standstill_seconds
                                                                   : model::EvidenceKey::standstill_seconds));
    }
  }
  return longest >= spikes::kStandstillSeconds ? rounded(longest) : Json();
}

/// What spikes are judged by: the same value everywhere.
struct Baselines {
  const model::DeviceSnapshot& device;
  double model::SpikeBaseline::*value;

  /// Null until it is known.
  [[nodiscard]] Json of(Operation operation) const {
    const auto& baseline = device.spikes[operation].baseline;
    return baseline ? rounded((*baseline).*value) : Json();
  }
};

constexpr Field<Baselines> kBaselinesFields[] = {
    {"read", or_null(kSeconds), [](const Baselines& one) { return one.of(Operation::read); }},
    {"write", or_null(kSeconds), [](const Baselines& one) { return one.of(Operation::write); }},
    {"commit", or_null(kSeconds), [](const Baselines& one) { return one.of(Operation::commit); }},
};
constexpr Object<Baselines> kBaselines{"baselines", "By operation; null: not known yet.", kBaselinesFields};

struct AboveBaseline {
  std::string_view operation;
  double times = 0;
};

constexpr auto kShownNames = names_of(kShown);

constexpr Field<AboveBaseline> kAboveBaselineFields[] = {
    {"operation", one_of(kShownNames), member_of<&AboveBaseline::operation>},
    {"times",
     {.name = "number", .limits = R"("minimum": 3)"},
     [](const AboveBaseline& above) { return std::round(above.times * 10) / 10; },
     "Of its baseline."},
};
constexpr Object<AboveBaseline> kAboveBaseline{"above_baseline", "", kAboveBaselineFields};

/// The operation whose p99 exceeds its usual most, if that is far; nothing if none does, and while the last ten seconds
/// still have some of a spike that is over.
std::optional<AboveBaseline> above_baseline_of(const Recent& recent, std::optional<Now>& now) {
  const model::DeviceSnapshot& device = *recent.device;
  if (!now || std::any_of(recent.columns.begin(), recent.columns.end(),
                          [](const auto& column) { return column && column->in_spike; })) {
    return std::nullopt;
  }
  std::optional<AboveBaseline> above;
  double highest = kHigh;
  for (const Operation operation : kShown) {
    const auto& baseline = device.spikes[operation].baseline;
    const OperationNow& one = now->operations[operation];
    const Json p99 = one.quantile(0.99);
    if (!baseline || one.ios < kEnoughForP99 || p99.is_null()) {
      continue;
    }
    const double times = p99.get<double>() / baseline->p99_seconds;
    if (times > highest) {
      highest = times;
      above = {name(operation), times};
    }
  }
  return above;
}

struct Strip {
  Json tails = Json::array();
  Json marks = Json::array();
};

constexpr Field<Strip> kStripFields[] = {
    {"columns_per_cell", kCount, [](const Strip&) { return kStrip; }},
    {"p99", defined_as("words"), member_of<&Strip::tails>},
    {"marks", defined_as("counts"), member_of<&Strip::marks>},
};
constexpr Object<Strip> kStripObject{
    "strip",
    "The worst p99 of reads and writes of each cell, as a word, 0 without I/Os; marks: 1 spike, 2 burst, 4 error, "
    "added up.",
    kStripFields};

/// One cell per ten seconds: the worst p99 of reads and writes as a word, 0 without I/Os, null if not measured;
/// and whether there was a spike (1), a burst (2), an error (4).
Json strip_of(const Recent& recent) {
  Strip strip;
  const std::size_t columns = recent.summaries.size();
  const std::size_t spare = columns % kStrip;  // cells keep their columns as time passes
  for (std::size_t i = 0; i < columns;) {
    const std::size_t end = std::min(columns, i + (i == 0 && spare > 0 ? spare : kStrip));
    std::optional<std::uint8_t> worst;
    unsigned mark = 0;
    for (; i < end; ++i) {
      if (const auto& summary = recent.summaries[i]) {
        worst = std::max({worst.value_or(0), summary->p99[Operation::read], summary->p99[Operation::write]});
        mark |= summary->marks;
      }
    }
    strip.tails.push_back(worst ? Json(*worst) : Json());
    strip.marks.push_back(mark);
  }
  return kStripObject(strip);
}

std::size_t spike_seconds(const Recent& recent) {
  return static_cast<std::size_t>(std::count_if(recent.summaries.begin(), recent.summaries.end(),
                                                [](const auto& summary) { return summary && summary->in_spike(); }));
}

Json value_of(const model::NvmeDrive& drive, model::NvmeField field, std::string_view label = "") {
  for (const model::NvmeValue& value : drive.values) {
    if (value.field == field && value.endurance_group == 0 && (label.empty() || value.label == label)) {
      return value.value;
    }
  }
  return {};
}

/// The longest window that is known, and lifetime before 5m: what a drive wears in five minutes means little.
const model::WriteAmplificationRatio* best_of(const model::WriteAmplification& waf) {
  const model::WriteAmplificationRatio* best = nullptr;
  for (const char* window : {"5m", "lifetime", "1h", "24h", "7d"}) {
    for (const model::WriteAmplificationRatio& ratio : waf.ratios) {
      best = ratio.window == window ? &ratio : best;
    }
  }
  return best;
}

struct Amplification {
  const model::WriteAmplification& waf;
  const model::WriteAmplificationRatio* best;  // null: none is known
};

constexpr Field<Amplification> kAmplificationFields[] = {
    {"ratio", or_null(kSeconds), [](const Amplification& one) { return one.best ? Json(one.best->ratio) : Json(); },
     "null: not known; then the next three are absent."},
    {"lower", may_be_absent(kSeconds),
     [](const Amplification& one) { return one.best ? Json(one.best->lower) : absent(); }},
    {"upper", may_be_absent(kSeconds),
     [](const Amplification& one) { return one.best ? Json(one.best->upper) : absent(); }},
    {"window", may_be_absent(kText),
     [](const Amplification& one) { return one.best ? Json(one.best->window) : absent(); }},
    {"source", kText, [](const Amplification& one) { return util::for_json(one.waf.source); }, "Empty: there is none."},
    {"reason", kText, [](const Amplification& one) { return util::for_json(one.waf.reason); },
     "Why there is no better source, or none."},
};
constexpr Object<Amplification> kAmplification{"write_amplification", "", kAmplificationFields};

/// The shortest estimate.
std::optional<double> life_of(const model::NvmeDrive& drive) {
  std::optional<double> life;
  for (const model::LifeRemaining& remaining : drive.write_amplification.life_remaining) {
    life = std::min(life.value_or(remaining.seconds), remaining.seconds);
  }
  return life;
}

constexpr Field<model::NvmeDrive> kNvmeFields[] = {
    {"controller", kText, [](const model::NvmeDrive& drive) { return drive.identity->controller; }},
    {"up", kFlag, [](const model::NvmeDrive& drive) { return drive.polling.up; }, "Its log pages are read."},
    {"reason", kText, [](const model::NvmeDrive& drive) { return util::for_json(drive.polling.reason); },
     "Why they are not."},
    {"write_amplification", defined_as("write_amplification"),
     [](const model::NvmeDrive& drive) {
       return kAmplification({drive.write_amplification, best_of(drive.write_amplification)});
     }},
    {"used_ratio", or_null(kSeconds),
     [](const model::NvmeDrive& drive) { return value_of(drive, model::NvmeField::percentage_used_ratio); },
     "Of its rated life; may exceed 1."},
    {"life_seconds", or_null(kNumber), [](const model::NvmeDrive& drive) { return life_of(drive); },
     "Until then, by the shortest estimate."},
    {"spare_ratio", or_null(kSeconds),
     [](const model::NvmeDrive& drive) { return value_of(drive, model::NvmeField::available_spare_ratio); }},
    {"temperature_celsius", or_null(kNumber),
     [](const model::NvmeDrive& drive) { return value_of(drive, model::NvmeField::temperature_celsius, "composite"); }},
};
constexpr Object<model::NvmeDrive> kNvme{"nvme", "", kNvmeFields};

/// What the flash model reports about the drive, in words; null: not modelled yet, or the models are turned off.
Json modelled_json(const model::Snapshot& snapshot, const std::string& device) {
  const model::FlashEstimate* const drive = flash::estimate_of(snapshot, device);
  return drive == nullptr ? Json() : Json(util::for_json(flash::amplification_text(*drive)));
}

struct Mount {
  const model::Filesystem& filesystem;
  const model::FilesystemRoom* room;  // null: not known
  std::optional<double> full_in_seconds;
};

constexpr Field<Mount> kMountFields[] = {
    {"mountpoint", kText, [](const Mount& mount) { return util::for_json(mount.filesystem.mountpoint); }},
    {"fstype", kText, [](const Mount& mount) { return util::for_json(mount.filesystem.fstype); }},
    {"discard", kFlag, [](const Mount& mount) { return mount.filesystem.discard; }},
    {"size_bytes", or_null(kCount),
     [](const Mount& mount) { return mount.room ? Json(mount.room->size_bytes) : Json(); },
     "null: not known; likewise the next."},
    {"available_bytes", or_null(kCount),
     [](const Mount& mount) { return mount.room ? Json(mount.room->available_bytes) : Json(); }},
    {"full_in_seconds", or_null(kSeconds), member_of<&Mount::full_in_seconds>,
     "If it goes on filling as in the last hours; null: it does not."},
};
constexpr Object<Mount> kMount{"mount", "", kMountFields};

Json mounts_of(const model::Snapshot& snapshot, const std::string& device) {
  Json mounts = Json::array();
  for (const model::Filesystem& filesystem : snapshot.filesystems) {
    if (filesystem.device == device && mounts.size() < 16) {
      const model::FilesystemRoom* room = model::room_of(snapshot.host, filesystem.mountpoint);
      mounts.push_back(
          kMount({filesystem, room, room != nullptr ? model::seconds_until_full(snapshot.host, *room) : std::nullopt}));
    }
  }
  return mounts;
}

Json arrays_of(const model::Snapshot& snapshot, const std::string& device) {
  Json arrays = Json::array();
  for (const model::Membership& membership : snapshot.memberships) {
    if (membership.device == device && arrays.size() < 16) {
      arrays.push_back(membership.name.empty() ? membership.array : util::for_json(membership.name));
    }
  }
  return arrays;
}

/// The list's entry for one device is made from this.
struct DeviceView {
  const Recent& recent;
  const model::Snapshot& snapshot;
  const spikes::Situation& situation;
  const model::Device& device;
  model::DeviceTitle title;
  Json spikes = Json::array();  // that go on
  std::optional<Now> now = {};
  std::optional<AboveBaseline> above_baseline = {};
};

DeviceView view_of(const Recent& recent, const model::Snapshot& snapshot, const spikes::Situation& situation) {
  const model::Device& device = *recent.device->device;
  DeviceView view{recent, snapshot, situation, device, model::device_title(snapshot, device.name)};
  std::vector<model::LatencySpike> own;
  std::copy_if(snapshot.spikes_going_on.begin(), snapshot.spikes_going_on.end(), std::back_inserter(own),
               [&](const model::LatencySpike& spike) { return spike.device == device.name; });
  // As the first line speaks of them: the one that names the incident first. A sender's own backlog slows nobody else:
  // the drive is busy, not slow.
  for (const model::Incident& incident : model::incidents_of({}, own)) {
    for (const model::LatencySpike& spike : incident.spikes) {
      view.spikes.push_back(spike_json(spike, false, situation.bursts, spikes::load_of(incident)));
    }
  }
  view.now = now_of(recent);
  for (const Operation operation : kShown) {
    if (view.now) {
      view.now->operations[operation].standstill = standstill_of(own, operation);
    }
  }
  view.above_baseline = above_baseline_of(recent, view.now);
  return view;
}

constexpr auto kStates = std::to_array<std::string_view>({"slow", "high", "ok", "idle", "unknown", "unseen"});

const char* state_of(const DeviceView& view) {
  const auto ios = [&](Operation operation) { return view.now->operations[operation].ios; };
  const bool idle = !view.now || ios(Operation::read) + ios(Operation::write) + ios(Operation::discard) == 0;
  return view.recent.device->unseen ? "unseen"
         : !view.device.iostats     ? "unknown"
         : !view.spikes.empty()     ? "slow"
         : !view.now                ? "unknown"
         : idle                     ? "idle"
         : view.above_baseline      ? "high"
                                    : "ok";
}

/// Those of this device that have ended within memory.
std::int64_t spikes_ended_of(const DeviceView& view) {
  const auto of_this = [&](const model::LatencySpike& spike) { return spike.device == view.device.name; };
  const auto lately = [&](const model::LatencySpike& spike) {
    return of_this(spike) && spike.begin + spike.duration >= view.recent.reach_begin;
  };
  return std::count_if(view.situation.ended.begin(), view.situation.ended.end(), lately) +
         std::count_if(view.snapshot.spikes_unjudged.begin(), view.snapshot.spikes_unjudged.end(), of_this);
}

std::int64_t bursts_of(const DeviceView& view) {
  return std::count_if(view.situation.bursts.begin(), view.situation.bursts.end(), [&](const model::Burst& burst) {
    return burst.device == view.device.name && burst.end.value_or(view.snapshot.taken_at) >= view.recent.reach_begin;
  });
}

constexpr Field<DeviceView> kDeviceFields[] = {
    {"name", kText, [](const DeviceView& view) { return util::for_json(view.device.name); }},
    {"title", kSentence, [](const DeviceView& view) { return view.title.full; },
     "As people know it: what is mounted from it, or its volume, then its name."},
    {"use", kText, [](const DeviceView& view) { return view.title.use; },
     "The title without its name; empty: nothing is known."},
    {"model", kText, [](const DeviceView& view) { return util::for_json(view.device.model); }},
    {"serial", kText, [](const DeviceView& view) { return util::for_json(view.device.serial); }},
    {"firmware", kText, [](const DeviceView& view) { return util::for_json(view.device.firmware); }},
    {"transport", kText, [](const DeviceView& view) { return util::for_json(view.device.transport); }},
    {"scheduler", kText, [](const DeviceView& view) { return util::for_json(view.device.scheduler); }},
    {"size_bytes", kCount, [](const DeviceView& view) { return view.device.size_bytes; }},
    {"mounts", list_of(defined_as("mount")),
     [](const DeviceView& view) { return mounts_of(view.snapshot, view.device.name); }},
    {"arrays", list_of(kText), [](const DeviceView& view) { return arrays_of(view.snapshot, view.device.name); },
     "Arrays and volumes that it is a member of."},
    {"state", one_of(kStates), [](const DeviceView& view) { return state_of(view); },
     "high: no spike, but the p99 of an operation is now more than 3 times its baseline, of 100 I/Os or more. unseen: "
     "no request of the device is seen, although it does I/O or may do so."},
    {"slower_than_siblings", kText,
     [](const DeviceView& view) {
       const std::string words = spikes::sibling_words(view.snapshot, view.device.name);
       return util::for_json(words.substr(words.empty() ? 0 : 1), util::kLongestSentence);
     },
     "Than drives that ought to be like it, at equal load, for 10 minutes or more; empty: it is not."},
    {"now", or_null(defined_as("last_seconds")),
     [](const DeviceView& view) { return view.now ? kNowObject(*view.now) : Json(); }},
    {"above_baseline", or_null(defined_as("above_baseline")),
     [](const DeviceView& view) { return view.above_baseline ? kAboveBaseline(*view.above_baseline) : Json(); },
     "The operation whose p99 exceeds its baseline most; null: none by more than 3 times."},
    {"baseline_p99", defined_as("baselines"),
     [](const DeviceView& view) {
       return kBaselines({*view.recent.device, &model::SpikeBaseline::p99_seconds});
     },
     "The baseline that spikes are judged by, under a load like the one of now."},
    {"baseline_learned_seconds", defined_as("baselines"),
     [](const DeviceView& view) {
       return kBaselines({*view.recent.device, &model::SpikeBaseline::learned_seconds});
     },
     "Seconds without a spike, with enough I/Os, that the baseline rests on."},
    {"spikes", list_of(defined_as("spike")), member_of<&DeviceView::spikes>, "Those that go on."},
    {"spikes_ended", kCount, [](const DeviceView& view) { return spikes_ended_of(view); }},
    {"spike_seconds", kCount, [](const DeviceView& view) { return spike_seconds(view.recent); }},
    {"bursts", kCount, [](const DeviceView& view) { return bursts_of(view); }},
    {"strip", defined_as("strip"), [](const DeviceView& view) { return strip_of(view.recent); }},
    {"modelled", or_null(kText), [](const DeviceView& view) { return modelled_json(view.snapshot, view.device.name); },
     "What the flash model says of the drive, in words; null: nothing yet, or it is switched off."},
    {"nvme", or_null(defined_as("nvme")),
     [](const DeviceView& view) {
       const model::NvmeDrive* drive = model::drive_of(view.snapshot, view.device.name);
       return drive == nullptr ? Json() : kNvme(*drive);
     },
     "null: no NVMe drive."},
};
constexpr Object<DeviceView> kDevice{"device", "", kDeviceFields};

/// The order changes when something happens, not with every second's noise.
auto order_of(const Recent& recent, const model::Snapshot& snapshot, const std::string& first) {
  double excess = 0;
  for (const model::LatencySpike& spike : snapshot.spikes_going_on) {
    excess += spike.device == recent.device->device->name ? 1 + spike.excess_seconds : 0;
  }
  const bool is_first = recent.device->device->name == first;  // what the first line is about
  return std::tuple(-excess, is_first ? 0.0 : 1.0, -static_cast<double>(spike_seconds(recent)));
}

struct Devices {
  spikes::Why why;
  const std::vector<model::Burst>& bursts;
  history::Ring::Reach reach;
  Json devices;
};

constexpr Field<history::Ring::Reach> kReachFields[] = {
    {"first", kCount, member_of<&history::Ring::Reach::first>, "The number of the oldest snapshot."},
    {"begin", or_null(kNumber),
     [](const history::Ring::Reach& reach) { return reach.first == 0 ? Json() : Json(seconds_of(reach.begin)); }},
};
constexpr Object<history::Ring::Reach> kReach{"reach", "How far back the seconds go.", kReachFields};

constexpr Field<Devices> kDevicesFields[] = {
    {"why", defined_as("why"), [](const Devices& all) { return why_json(all.why, all.bursts); }},
    {"reach", defined_as("reach"), [](const Devices& all) { return kReach(all.reach); }},
    {"devices", list_of(defined_as("device")), member_of<&Devices::devices>},
};
constexpr Object<Devices> kDevicesAnswer{"devices", "/api/v1/devices: the measured ones, worst first.", kDevicesFields,
                                         Head::snapshot};

}  // namespace

Definitions device_definitions() {
  return {kOperation,   kDuring,        kNowObject, kBaselines, kAboveBaseline, kMount,
          kStripObject, kAmplification, kNvme,      kDevice,    kReach,         kDevicesAnswer};
}

Json devices_json(const model::Snapshot& snapshot, const history::RecentPast& past) {
  const auto situation = spikes::situation_of(snapshot, past);
  Devices all{spikes::why(situation), situation.bursts, past.ring().reach(), Json::array()};
  const auto summaries = past.ring().summaries(snapshot.number);
  using Entry = std::pair<std::tuple<double, double, double>, Json>;
  std::vector<Entry> entries;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const Recent recent = recent_of(device, past, summaries, snapshot);
    entries.emplace_back(order_of(recent, snapshot, all.why.device), kDevice(view_of(recent, snapshot, situation)));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  for (Entry& entry : entries) {
    all.devices.push_back(std::move(entry.second));
  }
  return kDevicesAnswer.answer(snapshot, all);
}

}  // namespace ssdpulse::page

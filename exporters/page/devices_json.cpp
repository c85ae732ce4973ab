// SPDX-License-Identifier: Apache-2.0
// The list: every measured device, worst first.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "daemon/live/format.h"
#include "daemon/model/device_title.h"
#include "daemon/model/incidents.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

using live::Column;
using live::Second;
using model::kLiveOperations;
using model::Operation;

constexpr std::size_t kNow = 10;    // columns that make up "now": enough I/Os for a p99, few enough to be now
constexpr std::size_t kStrip = 10;  // columns in one cell of the strip

/// With fewer I/Os, the 99th percentile is simply the slowest one.
constexpr std::uint64_t kEnoughForP99 = 100;

/// A 99th percentile beyond this many times its usual is not as usual, even where it is no spike.
constexpr double kHigh = 3;

/// The list's entry for one device is made from this.
struct DeviceView {
  const model::DeviceSnapshot* device;
  std::vector<std::optional<live::ColumnSummary>> summaries;  // as far as memory reaches
  model::WallTime reach_begin;
  std::vector<Second> seconds;                 // the last kNow
  std::vector<std::optional<Column>> columns;  // of those, with buckets
};

DeviceView view_of(const model::DeviceSnapshot& device, const live::RecentPast& past,
                   const live::Ring::Summaries& summaries, const model::Snapshot& snapshot) {
  const std::string& name = device.device->name;
  const auto found = std::find_if(summaries.devices.begin(), summaries.devices.end(),
                                  [&](const live::Ring::Summaries::Device& one) { return one.name == name; });
  const std::size_t frames = summaries.numbers.size();
  DeviceView view{
      &device,
      found == summaries.devices.end() ? std::vector<std::optional<live::ColumnSummary>>(frames) : found->columns,
      frames == 0 ? snapshot.taken_at : summaries.ends.front(),
      past.ring().after(frames > kNow ? summaries.numbers[frames - kNow - 1] : 0, name),
      {}};
  while (!view.seconds.empty() && view.seconds.back().number > snapshot.number) {
    view.seconds.pop_back();
  }
  for (const Second& second : view.seconds) {
    view.columns.push_back(second.bytes ? live::decode(*second.bytes) : std::nullopt);
  }
  return view;
}

Json during_json(const model::SparseBuckets& reads) {
  const std::uint64_t ios = model::count(reads);
  return {{"ios", ios}, {"p99", ios < kEnoughForP99 ? Json() : latency_of(model::quantile_bucket(reads, 0.99))}};
}

/// The share of the I/Os' time that was spent in the queue; null without any time.
Json queue_share_of(std::uint64_t queue_ns, std::uint64_t device_ns) {
  const double all = static_cast<double>(queue_ns) + static_cast<double>(device_ns);
  return all == 0 ? Json() : Json(std::round(static_cast<double>(queue_ns) / all * 1000) / 1000);
}

Json now_of(const DeviceView& view) {
  double seconds = 0;
  model::ByOperation<std::uint64_t, kLiveOperations> ios{};
  model::ByOperation<std::uint64_t, kLiveOperations> bytes{};
  model::ByOperation<model::SparseBuckets, kLiveOperations> buckets;
  Column sum;                      // of reads during discards and flushes, and of the times
  std::uint64_t device_reads = 0;  // whose time in the device is known
  std::size_t begin = view.columns.size();
  for (std::size_t i = 0; i < view.columns.size(); ++i) {
    if (!view.columns[i]) {
      continue;
    }
    begin = std::min(begin, i);
    seconds += static_cast<double>(view.seconds[i].length.count()) / 1000;
    const auto& operations = view.columns[i]->operations;
    for (const Operation operation : kLiveOperations) {
      ios[operation] += operations[operation].ios;
      bytes[operation] += operations[operation].bytes;
      model::add(buckets[operation], operations[operation].buckets);
    }
    model::add(sum.reads_during_discard, view.columns[i]->reads_during_discard);
    model::add(sum.reads_during_flush, view.columns[i]->reads_during_flush);
    device_reads += operations[Operation::read].device.ios;
    // With iostats=0 the kernel does not record when an I/O began: only its time in the device is known.
    if (operations[Operation::read].queue.ios + operations[Operation::write].queue.ios > 0) {
      sum.queue_ns += view.columns[i]->queue_ns;
      sum.device_ns += view.columns[i]->device_ns;
    }
  }
  if (begin == view.columns.size()) {
    return {};
  }
  const Second& first_second = view.seconds[begin];
  Json now{{"from", first_second.number - 1},
           {"to", view.seconds.back().number},
           {"begin", seconds_of(first_second.end - first_second.length)},
           {"end", seconds_of(view.seconds.back().end)},
           {"seconds", seconds}};
  for (const Operation operation : kLiveOperations) {
    const auto quantile = [&](double share) {
      return buckets[operation].empty() ? Json() : latency_of(model::quantile_bucket(buckets[operation], share));
    };
    now[name(operation)] = {{"ios", ios[operation]},
                            {"bytes", bytes[operation]},
                            {"p50", quantile(0.5)},
                            {"p99", quantile(0.99)},
                            {"p999", quantile(0.999)}};
  }
  const bool timed = device_reads > 0 || buckets[Operation::read].empty();
  now["reads_during_discard"] = timed ? during_json(sum.reads_during_discard) : Json();
  now["reads_during_flush"] = timed ? during_json(sum.reads_during_flush) : Json();
  now["queue_share"] = queue_share_of(sum.queue_ns, sum.device_ns);
  const Column& last =
      *std::find_if(view.columns.rbegin(), view.columns.rend(), [](const auto& column) { return column.has_value(); })
           ->
           operator->();
  now["in_flight"] = last.operations[Operation::read].in_flight + last.operations[Operation::write].in_flight;
  const auto& utilisation = view.device->utilisation;
  now["busy_ratio"] = utilisation && utilisation->busy_ratio ? Json(rounded(*utilisation->busy_ratio)) : Json();
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
  return longest >= live::kStandstillSeconds ? rounded(longest) : Json();
}

/// What spikes are judged by: the same value everywhere. Null until it is known.
Json baselines_of(const model::DeviceSnapshot& device, double model::SpikeBaseline::*value) {
  Json usual;
  for (const Operation operation : kShown) {
    const auto& baseline = device.spikes[operation].baseline;
    usual[name(operation)] = baseline ? rounded((*baseline).*value) : Json();
  }
  return usual;
}

/// The operation whose p99 exceeds its usual most, if that is far; null if none does, and while the last ten seconds
/// still have some of a spike that is over.
Json above_baseline_of(const DeviceView& view, const Json& now) {
  const model::DeviceSnapshot& device = *view.device;
  Json above_baseline;
  if (std::any_of(view.columns.begin(), view.columns.end(),
                  [](const auto& column) { return column && column->in_spike; })) {
    return above_baseline;
  }
  double most = kHigh;
  for (const Operation operation : kShown) {
    const auto& baseline = device.spikes[operation].baseline;
    if (!baseline || now.is_null() || now[name(operation)]["ios"] < kEnoughForP99 ||
        now[name(operation)]["p99"].is_null()) {
      continue;
    }
    const double times = now[name(operation)]["p99"].get<double>() / baseline->p99_seconds;
    if (times > most) {
      most = times;
      above_baseline = {{"operation", name(operation)}, {"times", std::round(times * 10) / 10}};
    }
  }
  return above_baseline;
}

/// One cell per ten seconds: the worst p99 of reads and writes as a word, 0 without I/Os, null if not measured;
/// and whether there was a spike (1), a burst (2), an error (4).
Json strip_of(const DeviceView& view) {
  Json tails = Json::array();
  Json marks = Json::array();
  const std::size_t columns = view.summaries.size();
  const std::size_t spare = columns % kStrip;  // cells keep their columns as time passes
  for (std::size_t i = 0; i < columns;) {
    const std::size_t end = std::min(columns, i + (i == 0 && spare > 0 ? spare : kStrip));
    std::optional<std::uint8_t> worst;
    unsigned mark = 0;
    for (; i < end; ++i) {
      if (const auto& summary = view.summaries[i]) {
        worst = std::max({worst.value_or(0), summary->p99[Operation::read], summary->p99[Operation::write]});
        mark |= summary->marks;
      }
    }
    tails.push_back(worst ? Json(*worst) : Json());
    marks.push_back(mark);
  }
  return {{"columns_per_cell", kStrip}, {"p99", std::move(tails)}, {"marks", std::move(marks)}};
}

std::size_t spike_seconds(const DeviceView& view) {
  return static_cast<std::size_t>(std::count_if(view.summaries.begin(), view.summaries.end(),
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
Json amplification_of(const model::WriteAmplification& waf) {
  const model::WriteAmplificationRatio* best = nullptr;
  for (const char* window : {"5m", "lifetime", "1h", "24h", "7d"}) {
    for (const model::WriteAmplificationRatio& ratio : waf.ratios) {
      best = ratio.window == window ? &ratio : best;
    }
  }
  if (best == nullptr) {
    return {{"ratio", nullptr}, {"source", util::for_json(waf.source)}, {"reason", util::for_json(waf.reason)}};
  }
  return {{"ratio", best->ratio},
          {"lower", best->lower},
          {"upper", best->upper},
          {"window", best->window},
          {"source", util::for_json(waf.source)},
          {"reason", util::for_json(waf.reason)}};
}

Json nvme_json(const model::NvmeDrive* drive) {
  if (drive == nullptr) {
    return {};
  }
  Json life;  // the shortest estimate
  for (const model::LifeRemaining& remaining : drive->write_amplification.life_remaining) {
    life = life.is_null() || remaining.seconds < life.get<double>() ? Json(remaining.seconds) : life;
  }
  return {{"controller", drive->identity->controller},
          {"up", drive->polling.up},
          {"reason", util::for_json(drive->polling.reason)},
          {"write_amplification", amplification_of(drive->write_amplification)},
          {"used_ratio", value_of(*drive, model::NvmeField::percentage_used_ratio)},
          {"life_seconds", std::move(life)},
          {"spare_ratio", value_of(*drive, model::NvmeField::available_spare_ratio)},
          {"temperature_celsius", value_of(*drive, model::NvmeField::temperature_celsius, "composite")}};
}

/// What the flash model reports about the drive, in words; null: not modelled yet, or the models are turned off.
Json modelled_json(const model::Snapshot& snapshot, const std::string& device) {
  const model::FlashEstimate* const drive = live::estimate_of(snapshot, device);
  return drive == nullptr ? Json() : Json(util::for_json(live::flash_words(*drive)));
}

Json mounts_of(const model::Snapshot& snapshot, const std::string& device) {
  Json mounts = Json::array();
  for (const model::Filesystem& filesystem : snapshot.filesystems) {
    if (filesystem.device == device && mounts.size() < 16) {
      Json mount{{"mountpoint", util::for_json(filesystem.mountpoint)},
                 {"fstype", util::for_json(filesystem.fstype)},
                 {"discard", filesystem.discard},
                 {"size_bytes", nullptr},
                 {"available_bytes", nullptr},
                 {"full_in_seconds", nullptr}};
      if (const model::FilesystemRoom* room = model::room_of(snapshot.host, filesystem.mountpoint)) {
        mount["size_bytes"] = room->size_bytes;
        mount["available_bytes"] = room->available_bytes;
        if (const auto left = model::seconds_until_full(snapshot.host, *room)) {
          mount["full_in_seconds"] = *left;
        }
      }
      mounts.push_back(std::move(mount));
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

Json device_json(const DeviceView& view, const model::Snapshot& snapshot, const live::Situation& situation) {
  const model::Device& device = *view.device->device;
  std::vector<model::LatencySpike> own;
  std::copy_if(snapshot.spikes_going_on.begin(), snapshot.spikes_going_on.end(), std::back_inserter(own),
               [&](const model::LatencySpike& spike) { return spike.device == device.name; });
  // As the first line speaks of them: the one that names the incident first. A sender's own backlog slows nobody else:
  // the drive is busy, not slow.
  Json spikes = Json::array();
  for (const model::Incident& incident : model::incidents_of({}, own)) {
    for (const model::LatencySpike& spike : incident.spikes) {
      spikes.push_back(spike_json(spike, false, situation.bursts, live::load_of(incident)));
    }
  }
  const auto of_this = [&](const auto& mark) { return mark.device == device.name; };
  const auto lately = [&](const model::LatencySpike& spike) {
    return of_this(spike) && spike.begin + spike.duration >= view.reach_begin;
  };
  const model::DeviceTitle title = model::device_title(snapshot, device.name);
  Json now = now_of(view);
  for (const Operation operation : kShown) {
    if (!now.is_null()) {
      now[name(operation)]["standstill_seconds"] = standstill_of(own, operation);
    }
  }
  Json above_baseline = above_baseline_of(view, now);
  const bool idle =
      now.is_null() || (now["read"]["ios"] == 0 && now["write"]["ios"] == 0 && now["discard"]["ios"] == 0);
  const char* state = view.device->unseen        ? "unseen"
                      : !device.iostats          ? "unknown"
                      : !spikes.empty()          ? "slow"
                      : now.is_null()            ? "unknown"
                      : idle                     ? "idle"
                      : above_baseline.is_null() ? "ok"
                                                 : "high";
  return {
      {"name", util::for_json(device.name)},
      {"title", title.full},
      {"use", title.use},
      {"model", util::for_json(device.model)},
      {"serial", util::for_json(device.serial)},
      {"firmware", util::for_json(device.firmware)},
      {"transport", util::for_json(device.transport)},
      {"scheduler", util::for_json(device.scheduler)},
      {"size_bytes", device.size_bytes},
      {"mounts", mounts_of(snapshot, device.name)},
      {"arrays", arrays_of(snapshot, device.name)},
      {"state", state},
      {"now", std::move(now)},
      {"above_baseline", std::move(above_baseline)},
      {"baseline_p99", baselines_of(*view.device, &model::SpikeBaseline::p99_seconds)},
      {"baseline_learned_seconds", baselines_of(*view.device, &model::SpikeBaseline::learned_seconds)},
      {"spikes", std::move(spikes)},
      {"spikes_ended", std::count_if(situation.ended.begin(), situation.ended.end(), lately) +
                           std::count_if(snapshot.spikes_unjudged.begin(), snapshot.spikes_unjudged.end(), of_this)},
      {"spike_seconds", spike_seconds(view)},
      {"bursts", std::count_if(situation.bursts.begin(), situation.bursts.end(),
                               [&](const live::Burst& burst) {
                                 return of_this(burst) && burst.end.value_or(snapshot.taken_at) >= view.reach_begin;
                               })},
      {"strip", strip_of(view)},
      {"modelled", modelled_json(snapshot, device.name)},
      {"nvme", nvme_json(drive_of(snapshot, device.name))}};
}

/// The order changes when something happens, not with every second's noise.
auto need_of(const DeviceView& view, const model::Snapshot& snapshot, const std::string& first) {
  double excess = 0;
  for (const model::LatencySpike& spike : snapshot.spikes_going_on) {
    excess += spike.device == view.device->device->name ? 1 + spike.excess_seconds : 0;
  }
  const bool is_first = view.device->device->name == first;  // what the first line is about
  return std::tuple(-excess, is_first ? 0.0 : 1.0, -static_cast<double>(spike_seconds(view)));
}

}  // namespace

Json devices_json(const model::Snapshot& snapshot, const live::RecentPast& past) {
  const auto situation = situation_of(snapshot, past);
  const auto reach = past.ring().reach();
  Json answer = head_of(snapshot);
  const live::Why why = live::why(situation);
  answer["why"] = why_json(why, situation.bursts);
  answer["reach"] = {{"first", reach.first}, {"begin", reach.first == 0 ? Json() : Json(seconds_of(reach.begin))}};
  answer["devices"] = Json::array();
  const auto summaries = past.ring().summaries(snapshot.number);
  using Entry = std::pair<std::tuple<double, double, double>, Json>;
  std::vector<Entry> entries;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const DeviceView view = view_of(device, past, summaries, snapshot);
    entries.emplace_back(need_of(view, snapshot, why.device), device_json(view, snapshot, situation));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  for (Entry& entry : entries) {
    answer["devices"].push_back(std::move(entry.second));
  }
  return answer;
}

}  // namespace ssdpulse::page

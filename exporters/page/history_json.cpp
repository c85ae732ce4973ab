// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/history_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "daemon/model/tenant_io.h"
#include "daemon/spikes/past_spikes.h"
#include "daemon/spikes/spike_words.h"
#include "exporters/page/page_json.h"
#include "exporters/words/page.h"

namespace ssdpulse::page {
namespace {

using model::Latency;
using model::Operation;
using model::PastDay;
using model::SparseHistogram;

Json time_json(const std::optional<model::PastTime>& time) { return time ? Json(seconds_of(*time)) : Json(); }

Json mean(const SparseHistogram& histogram) {
  return histogram.empty()
             ? Json()
             : rounded(static_cast<double>(histogram.sum_ns) / 1e9 / static_cast<double>(histogram.count()));
}

/// Lower bound of the bucket of the quickest I/O.
Json shortest(const SparseHistogram& histogram) {
  const std::uint8_t bucket = histogram.empty() ? std::uint8_t{0} : histogram.words.front().first;
  return histogram.empty() ? Json() : bucket == 0 ? Json(0.0) : latency_of(static_cast<std::uint8_t>(bucket - 1));
}

/// Upper bound of the bucket of the slowest I/O.
Json longest(const SparseHistogram& histogram) {
  return histogram.empty() ? Json() : latency_of(histogram.words.back().first);
}

/// One kind of I/O in one point.
struct KindPoint {
  const model::DeviceInterval& load;
  Latency latency;
  std::optional<Operation> operation = {};  // where bytes are known

  [[nodiscard]] const SparseHistogram& total() const { return load.latency(latency); }
  [[nodiscard]] bool is_transfer() const { return operation == Operation::read || operation == Operation::write; }
  [[nodiscard]] const SparseHistogram& device(model::During during) const {
    return load.operation(*operation).device[index(during)];
  }
};

template <model::During kDuring>
Json ios_during(const KindPoint& point) {
  return point.is_transfer() ? Json(point.device(kDuring).count()) : absent();
}

template <model::During kDuring>
Json p99_during(const KindPoint& point) {
  return point.is_transfer() ? quantile_of(point.device(kDuring), 0.99) : absent();
}

constexpr Field<KindPoint> kKindPointFields[] = {
    {"ios", kCount, [](const KindPoint& point) { return point.total().count(); }},
    {"min", or_null(kSeconds), [](const KindPoint& point) { return shortest(point.total()); }},
    {"mean", or_null(kSeconds), [](const KindPoint& point) { return mean(point.total()); }},
    {"max", or_null(kSeconds), [](const KindPoint& point) { return longest(point.total()); }},
    {"p50", or_null(kSeconds), [](const KindPoint& point) { return quantile_of(point.total(), 0.5); }},
    {"p99", or_null(kSeconds), [](const KindPoint& point) { return quantile_of(point.total(), 0.99); }},
    {"p999", or_null(kSeconds), [](const KindPoint& point) { return quantile_of(point.total(), 0.999); }},
    {"bytes", may_be_absent(kCount),
     [](const KindPoint& point) {
       return point.operation ? Json(point.load.operations[index(*point.operation)].bytes) : absent();
     },
     "Of reads, writes and discards."},
    {"queue_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) {
       const Latency queue = point.operation == Operation::read ? Latency::read_queue : Latency::write_queue;
       return point.is_transfer() ? quantile_of(point.load.latency(queue), 0.99) : absent();
     },
     "Of reads and writes, as all that follow."},
    {"device_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) {
       return point.is_transfer() ? quantile_of(point.load.operation(*point.operation).in_device(), 0.99) : absent();
     }},
    {"during_none_ios", may_be_absent(kCount),
     [](const KindPoint& point) { return ios_during<model::During::none>(point); },
     "By what else was in flight; p99: in the device."},
    {"during_none_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) { return p99_during<model::During::none>(point); }},
    {"during_discard_ios", may_be_absent(kCount),
     [](const KindPoint& point) { return ios_during<model::During::discard>(point); }},
    {"during_discard_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) { return p99_during<model::During::discard>(point); }},
    {"during_flush_ios", may_be_absent(kCount),
     [](const KindPoint& point) { return ios_during<model::During::flush>(point); }},
    {"during_flush_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) { return p99_during<model::During::flush>(point); }},
    {"during_both_ios", may_be_absent(kCount),
     [](const KindPoint& point) { return ios_during<model::During::both>(point); }},
    {"during_both_p99", may_be_absent(or_null(kSeconds)),
     [](const KindPoint& point) { return p99_during<model::During::both>(point); }},
};
constexpr Object<KindPoint> kKindPoint{
    "history_kind",
    "Arrays with one entry a point: min and max are bounds of the quickest and the slowest, mean is exact, quantiles "
    "are upper bounds of buckets.",
    kKindPointFields, Head::none, Layout::arrays};

using Points = std::vector<model::SeriesPoint>;

template <typename Value>
Json by_point(const Points& points, Value value) {
  Json all = Json::array();
  for (const model::SeriesPoint& point : points) {
    all.push_back(value(point.load));
  }
  return points.empty() ? absent() : all;
}

Json kind_json(const Points& points, Latency latency, std::optional<Operation> operation = {}) {
  std::vector<KindPoint> kind;
  for (const model::SeriesPoint& point : points) {
    kind.push_back({point.load, latency, operation});
  }
  return points.empty() ? absent() : kKindPoint.arrays(kind);
}

std::uint64_t errors_of(const model::DeviceInterval& load) {
  return std::accumulate(
      load.operations.begin(), load.operations.end(), std::uint64_t{0},
      [](std::uint64_t errors, const model::OperationInterval& operation) { return errors + operation.errors; });
}

std::uint64_t losses_of(const model::DeviceInterval& load) {
  return std::accumulate(load.losses.begin(), load.losses.end(), std::uint64_t{0});
}

constexpr Field<Points> kPointsFields[] = {
    {"start", list_of(kNumber),
     [](const Points& points) {
       Json starts = Json::array();
       for (const model::SeriesPoint& point : points) {
         starts.push_back(seconds_of(point.start));
       }
       return starts;
     },
     "Of each point. Without points, all else is absent."},
    {"measured_seconds", may_be_absent(list_of(kSeconds)),
     [](const Points& points) {
       return by_point(points,
                       [](const model::DeviceInterval& load) { return static_cast<double>(load.measured_ms) / 1000; });
     },
     "Of the point's time."},
    {"read", may_be_absent(defined_as("history_kind")),
     [](const Points& points) { return kind_json(points, Latency::read_total, Operation::read); }},
    {"write", may_be_absent(defined_as("history_kind")),
     [](const Points& points) { return kind_json(points, Latency::write_total, Operation::write); }},
    {"flush", may_be_absent(defined_as("history_kind")),
     [](const Points& points) { return kind_json(points, Latency::flush); }},
    {"commit", may_be_absent(defined_as("history_kind")),
     [](const Points& points) { return kind_json(points, Latency::commit); }},
    {"discard", may_be_absent(defined_as("history_kind")),
     [](const Points& points) { return kind_json(points, Latency::discard, Operation::discard); }},
    {"errors", may_be_absent(list_of(kCount)), [](const Points& points) { return by_point(points, errors_of); }},
    {"losses", may_be_absent(list_of(kCount)), [](const Points& points) { return by_point(points, losses_of); }},
};
constexpr Object<Points> kPoints{"history_points", "", kPointsFields};

struct TenantView {
  const model::TenantLoad& tenant;
  std::optional<std::size_t> point = {};  // absent: of the whole window
};

template <Operation kOperation>
Json totals_of(const TenantView& view) {
  return attributed_json(view.tenant.totals[kOperation]);
}

constexpr Field<TenantView> kPastTenantFields[] = {
    {"point", may_be_absent(kCount), [](const TenantView& view) { return view.point ? Json(*view.point) : absent(); },
     "Its number, counted from 0."},
    {"name", kText, [](const TenantView& view) { return util::for_json(view.tenant.name); }},
    {"title", kText, [](const TenantView& view) { return util::for_json(model::tenant_title(view.tenant.name)); },
     "For people: the root's is not its name."},
    {"read", defined_as("attributed"), [](const TenantView& view) { return totals_of<Operation::read>(view); }},
    {"write", defined_as("attributed"), [](const TenantView& view) { return totals_of<Operation::write>(view); }},
    {"discard", defined_as("attributed"), [](const TenantView& view) { return totals_of<Operation::discard>(view); }},
};
constexpr Object<TenantView> kPastTenant{"history_tenant", "", kPastTenantFields};

Json past_tenants_json(const model::Series& series, bool totals) {
  Json all = Json::array();
  std::vector<model::TenantLoad> sum;
  for (std::size_t i = 0; i < series.tenants.size(); ++i) {
    if (totals) {
      model::add(sum, series.tenants[i]);
      continue;
    }
    for (const model::TenantLoad& tenant : series.tenants[i]) {
      all.push_back(kPastTenant({tenant, i}));
    }
  }
  for (const model::TenantLoad& tenant : sum) {
    all.push_back(kPastTenant({tenant}));
  }
  return all;
}

const SparseHistogram& histogram_of(const model::DeviceInterval& load, Operation operation) {
  constexpr model::ByOperation<Latency, model::kLiveOperations> kLatencies{
      Latency::read_total, Latency::write_total, Latency::flush, Latency::discard, Latency::commit};
  return load.latency(kLatencies[operation]);
}

/// The histograms of each point's minutes added up: nothing is lost but time resolution.
Json levels_of(const model::Series& series, const std::string& name) {
  Json levels = Json::array();
  const auto operation = operation_in(name);
  for (const model::SeriesPoint& point : series.points) {
    levels.push_back(operation ? heat_text(histogram_of(point.load, *operation).words) : "");
  }
  return levels;
}

constexpr Field<model::PastDevice> kPastDeviceFields[] = {
    {"name", kText, text_of<&model::PastDevice::name>, "The kernel's last one."},
    {"model", kText, text_of<&model::PastDevice::model>},
    {"serial", kText, text_of<&model::PastDevice::serial>},
    {"first", kNumber, time_of<&model::PastDevice::first>, "Of what is kept, as the next."},
    {"last", kNumber, time_of<&model::PastDevice::last>},
};
constexpr Object<model::PastDevice> kPastDevice{"history_device", "", kPastDeviceFields};

constexpr std::string_view kClockAhead = "It was stamped by a clock that went back to an earlier time since.";

constexpr Field<model::SettingChange> kSettingFields[] = {
    {"at", kNumber, time_of<&model::SettingChange::at>},
    {"device", or_null(kText), [](const model::SettingChange& change) { return text_or_null(change.device); },
     "null: the host."},
    {"name", kText, sentence_of<&model::SettingChange::name>},
    {"before", or_null(kText),
     [](const model::SettingChange& change) {
       return change.before ? Json(util::for_json(*change.before, util::kLongestSentence)) : Json();
     },
     "null: seen for the first time."},
    {"value", kText, sentence_of<&model::SettingChange::value>},
    {"clock_ahead", kFlag, member_of<&model::SettingChange::clock_ahead>, kClockAhead},
};
constexpr Object<model::SettingChange> kSetting{"history_setting", "", kSettingFields};

constexpr Field<model::Mark> kMarkFields[] = {
    {"at", kNumber, time_of<&model::Mark::at>},
    {"text", kText, text_of<&model::Mark::text>},
    {"clock_ahead", kFlag, member_of<&model::Mark::clock_ahead>, kClockAhead},
};
constexpr Object<model::Mark> kMark{"history_mark", "", kMarkFields};

struct PastSpikeView {
  const model::PastSpike& past;
  spikes::Explanation explanation;
  spikes::EvidenceWords evidence;
};

constexpr Field<PastSpikeView> kPastSpikeFields[] = {
    {"begin", kNumber, [](const PastSpikeView& view) { return seconds_of(view.past.begin); }},
    {"seconds", kSeconds, [](const PastSpikeView& view) { return view.past.duration_seconds; }},
    {"operation", kText, [](const PastSpikeView& view) { return util::for_json(view.past.operation); }},
    {"cause", kText, [](const PastSpikeView& view) { return util::for_json(view.past.cause); }},
    {"words", kText,
     [](const PastSpikeView& view) {
       return util::for_json(view.explanation.because, util::kLongestSentence) +
              (view.past.clock_ahead ? std::string(" ") + words::page::kClockWasAhead : "");
     }},
    {"peak_seconds", kNumber, [](const PastSpikeView& view) { return view.past.peak_seconds; }},
    {"baseline_seconds", kNumber, [](const PastSpikeView& view) { return view.past.baseline_seconds; }},
    {"excess_seconds", kNumber, [](const PastSpikeView& view) { return view.past.excess_seconds; }},
    {"ios", kCount, [](const PastSpikeView& view) { return view.past.ios; }},
    {"evidence", kText,
     [](const PastSpikeView& view) { return util::for_json(view.past.evidence, util::kLongestSentence); },
     "As it is kept: names and numbers."},
    {"sentences", list_of(kText), [](const PastSpikeView& view) { return sentences_json(view.evidence.decided); },
     "What decided the cause."},
    {"ruled_out", list_of(kText), [](const PastSpikeView& view) { return sentences_json(view.evidence.ruled_out); },
     "Why it is not another cause."},
    {"other", list_of(kText), [](const PastSpikeView& view) { return sentences_json(view.evidence.other); },
     "Figures that decided nothing."},
    {"missing", kText,
     [](const PastSpikeView& view) { return util::for_json(view.past.missing, util::kLongestSentence); }},
    {"next", kText, [](const PastSpikeView& view) { return view.explanation.next; }},
    {"runbook", defined_as("runbook"), [](const PastSpikeView& view) { return view.explanation.runbook; }},
    {"has_columns", kFlag, [](const PastSpikeView& view) { return view.past.has_columns; },
     "The seconds around it are kept."},
    {"clock_ahead", kFlag, [](const PastSpikeView& view) { return view.past.clock_ahead; }, kClockAhead},
};
constexpr Object<PastSpikeView> kPastSpike{"history_spike", "", kPastSpikeFields};

Json spikes_json(const model::Series& series) {
  std::vector<model::Burst> bursts;
  for (const model::PastBurst& burst : series.bursts) {
    bursts.push_back(spikes::burst_of(burst));
  }
  Json all = Json::array();
  for (const model::PastSpike& past : series.spikes) {
    const model::LatencySpike spike = spikes::spike_of(past);
    all.push_back(
        kPastSpike({past, spikes::explain(spike, bursts, spikes::Tense::past), spikes::evidence_words(spike)}));
  }
  return all;
}

constexpr Field<model::PastBurst> kPastBurstFields[] = {
    {"begin", kNumber, time_of<&model::PastBurst::begin>},
    {"seconds", kSeconds, member_of<&model::PastBurst::duration_seconds>},
    {"trigger", kText, text_of<&model::PastBurst::trigger>},
    {"bytes", kCount, member_of<&model::PastBurst::bytes>},
    {"clock_ahead", kFlag, member_of<&model::PastBurst::clock_ahead>, kClockAhead},
};
constexpr Object<model::PastBurst> kPastBurst{"history_burst", "", kPastBurstFields};

/// Volumes and disks have their kernel's names: how they were called then is not kept.
Json waits_json(const std::vector<model::PastWait>& waits) {
  Json all = Json::array();
  for (const model::PastWait& past : waits) {
    if (const auto wait = spikes::wait_of(past)) {
      all.push_back(wait_mark_json(*wait, {}, past.clock_ahead));
    }
  }
  return all;
}

constexpr Field<model::PastWear> kWearFields[] = {
    {"at", kNumber, time_of<&model::PastWear::at>},
    {"percentage_used", or_null(kNumber), member_of<&model::PastWear::percentage_used>,
     "0.01 is one percent, like the spare."},
    {"available_spare", or_null(kNumber), member_of<&model::PastWear::available_spare>},
    {"temperature_celsius", or_null(kNumber), member_of<&model::PastWear::temperature_celsius>},
    {"host_bytes", or_null(kNumber), member_of<&model::PastWear::host_bytes>,
     "Written since the point before, by the drive's own counters, as media_bytes."},
    {"media_bytes", or_null(kNumber), member_of<&model::PastWear::media_bytes>},
    {"source", kText, text_of<&model::PastWear::source>},
    {"host_unit_bytes", or_null(kSeconds),
     [](const model::PastWear& one) { return one.host_unit_bytes > 0 ? Json(one.host_unit_bytes) : Json(); },
     "In which the drive counts, as media_unit_bytes: host_bytes and media_bytes are each off by less than one."},
    {"media_unit_bytes", or_null(kSeconds),
     [](const model::PastWear& one) { return one.media_unit_bytes > 0 ? Json(one.media_unit_bytes) : Json(); }},
};
constexpr Object<model::PastWear> kWear{"history_wear", "", kWearFields};

constexpr Field<model::Window> kWindowFields[] = {
    {"from", kNumber, time_of<&model::Window::from>},
    {"to", kNumber, time_of<&model::Window::to>},
};
constexpr Object<model::Window> kPastWindow{"history_window", "", kWindowFields};

constexpr Field<model::PastReach> kPastReachFields[] = {
    {"minutes", or_null(kNumber), [](const model::PastReach& reach) { return time_json(reach.minutes); }},
    {"hours", or_null(kNumber), [](const model::PastReach& reach) { return time_json(reach.hours); }},
};
constexpr Object<model::PastReach> kPastReach{"history_reach", "The oldest time with minutes, and with hours.",
                                              kPastReachFields};

struct HistoryView {
  const model::Series& series;
  const HistoryWish& wish;
};

constexpr Field<HistoryView> kHistoryFields[] = {
    {"device", defined_as("history_device"), [](const HistoryView& view) { return kPastDevice(view.series.device); }},
    {"from", kNumber, [](const HistoryView& view) { return seconds_of(view.series.window.from); }},
    {"to", kNumber, [](const HistoryView& view) { return seconds_of(view.series.window.to); }},
    {"step_seconds",
     {.name = "integer", .limits = R"("minimum": 60)"},
     [](const HistoryView& view) { return std::chrono::seconds(view.series.step).count(); }},
    {"reach", defined_as("history_reach"), [](const HistoryView& view) { return kPastReach(view.series.reach); }},
    {"points", defined_as("history_points"), [](const HistoryView& view) { return kPoints(view.series.points); }},
    {"heat", may_be_absent(defined_as("heat")),
     [](const HistoryView& view) {
       return view.wish.heat.empty() ? absent() : heat_json(view.wish.heat, levels_of(view.series, view.wish.heat));
     }},
    {"bounds_seconds", may_be_absent(list_of(kSeconds)),
     [](const HistoryView& view) { return view.wish.heat.empty() ? absent() : bounds_json(); }, "With heat."},
    {"tenants", list_of(defined_as("history_tenant")),
     [](const HistoryView& view) { return past_tenants_json(view.series, view.wish.tenant_totals); }},
    {"wear", list_of(defined_as("history_wear")), [](const HistoryView& view) { return kWear.list(view.series.wear); }},
    {"spikes", list_of(defined_as("history_spike")), [](const HistoryView& view) { return spikes_json(view.series); }},
    {"bursts", list_of(defined_as("history_burst")),
     [](const HistoryView& view) { return kPastBurst.list(view.series.bursts); }},
    {"waits", list_of(defined_as("wait")), [](const HistoryView& view) { return waits_json(view.series.waits); }},
    {"settings", list_of(defined_as("history_setting")),
     [](const HistoryView& view) { return kSetting.list(view.series.settings); }},
    {"marks", list_of(defined_as("history_mark")),
     [](const HistoryView& view) { return kMark.list(view.series.marks); }},
    {"clock_ahead", list_of(defined_as("history_window")),
     [](const HistoryView& view) { return kPastWindow.list(view.series.clock_ahead); }},
    {"cut", kFlag, [](const HistoryView& view) { return view.series.cut; },
     "There are more spikes, bursts or waits: the newest are here."},
};
constexpr Object<HistoryView> kHistory{
    "history",
    "/api/v1/history/DEVICE?from=&to=&points=&heat=&tenants=: at most 2000 points of equal length. A time that is "
    "missing was not measured, or lies in clock_ahead: what was recorded then was stamped by a clock that went back "
    "to an earlier time since. Marks, spikes, bursts and changes are of the whole window. heat=read, write, flush, "
    "discard or commit: a column of a heatmap for each point, as in live, and bounds_seconds. tenants=total: of the "
    "whole window instead of each point, without `point`.",
    kHistoryFields};

struct HistoryList {
  const std::vector<model::PastDevice>& devices;
  std::uint64_t devices_left_out;
  const std::vector<model::SettingChange>& settings;
  const std::vector<model::Mark>& marks;
};

constexpr Field<HistoryList> kHistoryListFields[] = {
    {"devices", list_of(defined_as("history_device")),
     [](const HistoryList& all) { return kPastDevice.list(all.devices); },
     "Of more than 1000, those that were measured last."},
    {"devices_left_out", kCount, member_of<&HistoryList::devices_left_out>},
    {"settings", list_of(defined_as("history_setting")),
     [](const HistoryList& all) { return kSetting.list(all.settings); }},
    {"marks", list_of(defined_as("history_mark")), [](const HistoryList& all) { return kMark.list(all.marks); }},
};
constexpr Object<HistoryList> kHistoryList{
    "history_list",
    "/api/v1/history?from=&to=: which devices are known; settings that changed and marks in that time. Also what POST "
    "/api/v1/marks answers.",
    kHistoryListFields};

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The last day of every device in slots, and its last hour in figures.

template <typename Value>
Json by_slot(const PastDay::Device& device, Value value) {
  Json all = Json::array();
  for (const PastDay::Slot& slot : device.slots) {
    all.push_back(value(slot));
  }
  return all;
}

struct Worst {
  std::size_t slot;
  const PastDay::Worst& spike;
};

constexpr Field<Worst> kWorstFields[] = {
    {"slot", {.name = "integer", .limits = R"("minimum": 0, "maximum": 95)"}, member_of<&Worst::slot>},
    {"begin", kNumber, [](const Worst& worst) { return seconds_of(worst.spike.begin); }},
    {"seconds", kSeconds, [](const Worst& worst) { return worst.spike.duration_seconds; }},
    {"operation", kText, [](const Worst& worst) { return util::for_json(worst.spike.operation); }},
    {"cause", kText, [](const Worst& worst) { return util::for_json(worst.spike.cause); }},
    {"peak_seconds", kNumber, [](const Worst& worst) { return worst.spike.peak_seconds; }},
    {"excess_seconds", kNumber, [](const Worst& worst) { return worst.spike.excess_seconds; }},
};
constexpr Object<Worst> kWorst{"day_worst", "", kWorstFields};

Json worst_of(const PastDay::Device& device) {
  Json all = Json::array();
  for (std::size_t i = 0; i < device.slots.size(); ++i) {
    if (const auto& worst = device.slots.at(i).worst) {
      all.push_back(kWorst({i, *worst}));
    }
  }
  return all;
}

constexpr Field<SparseHistogram> kFigureFields[] = {
    {"ios", kCount, [](const SparseHistogram& total) { return total.count(); }},
    {"p50", or_null(kSeconds), [](const SparseHistogram& total) { return quantile_of(total, 0.5); }},
    {"p99", or_null(kSeconds), [](const SparseHistogram& total) { return quantile_of(total, 0.99); }},
    {"p999", or_null(kSeconds), [](const SparseHistogram& total) { return quantile_of(total, 0.999); }},
};
constexpr Object<SparseHistogram> kFigures{
    "day_figures", "Of total latency; quantiles are upper bounds of buckets, null without I/Os.", kFigureFields};

constexpr Field<PastDay::Device> kHourFields[] = {
    {"measured_seconds", kSeconds,
     [](const PastDay::Device& device) { return static_cast<double>(device.hour_measured_ms) / 1000; }},
    {"read", defined_as("day_figures"), [](const PastDay::Device& device) { return kFigures(device.hour_reads); }},
    {"write", defined_as("day_figures"), [](const PastDay::Device& device) { return kFigures(device.hour_writes); }},
};
constexpr Object<PastDay::Device> kHour{"day_hour", "", kHourFields};

constexpr Field<PastDay::Device> kDayDeviceFields[] = {
    {"name", kText, text_of<&PastDay::Device::name>},
    {"measured_minutes", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) { return by_slot(device, member_of<&PastDay::Slot::measured_minutes>); },
     "Of each slot; 0: nothing was recorded."},
    {"spikes", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) { return by_slot(device, member_of<&PastDay::Slot::spikes>); },
     "That touch the slot, as the next."},
    {"bursts", list_of(kCount, PastDay::kSlots),
     [](const PastDay::Device& device) { return by_slot(device, member_of<&PastDay::Slot::bursts>); }},
    {"worst", list_of(defined_as("day_worst")), [](const PastDay::Device& device) { return worst_of(device); },
     "Of each slot with spikes the one by which most was waited."},
    {"spikes_in_all", kCount, member_of<&PastDay::Device::spikes>, "Each once, however many slots it touches."},
    {"bursts_in_all", kCount, member_of<&PastDay::Device::bursts>},
    {"hour", or_null(defined_as("day_hour")),
     [](const PastDay::Device& device) { return device.hour_measured_ms == 0 ? Json() : kHour(device); },
     "null: nothing was recorded."},
};
constexpr Object<PastDay::Device> kDayDevice{"day_device", "", kDayDeviceFields};

constexpr Object<model::Window> kDayWindow{"day_window", "", kWindowFields};

/// The time before which nothing is kept.
Json oldest(const model::PastReach& reach) {
  if (!reach.minutes && !reach.hours) {
    return {};
  }
  return seconds_of(
      std::min(reach.minutes.value_or(model::PastTime::max()), reach.hours.value_or(model::PastTime::max())));
}

struct Day {
  const PastDay* past;  // null: nothing is known
  std::string_view reason;
};

constexpr Field<Day> kDayFields[] = {
    {"reason", or_null(kText),
     [](const Day& day) {
       return day.past == nullptr ? Json(util::for_json(day.reason, util::kLongestSentence)) : Json();
     },
     "Why nothing is known; null: it is."},
    {"day", or_null(defined_as("day_window")),
     [](const Day& day) { return day.past ? kDayWindow(day.past->window) : Json(); }, "The last slot is not over."},
    {"hour", or_null(defined_as("day_window")),
     [](const Day& day) { return day.past ? kDayWindow(day.past->hour) : Json(); }},
    {"slot_seconds",
     {.name = "integer", .limits = R"("const": 900)"},
     [](const Day&) { return std::chrono::seconds(PastDay::kSlot).count(); }},
    {"oldest", or_null(kNumber), [](const Day& day) { return day.past ? oldest(day.past->reach) : Json(); },
     "Before it nothing is kept."},
    {"devices", list_of(defined_as("day_device")),
     [](const Day& day) { return day.past ? kDayDevice.list(day.past->devices) : Json::array(); },
     "Those that were there in the day; of a name, the device that had it last."},
};
constexpr Object<Day> kDay{
    "day",
    "/api/v1/day: by the history, the last 24 hours of every device in slots, and its last 60 whole minutes. Made once "
    "a minute, with an ETag. A spike is here once it is over.",
    kDayFields};

}  // namespace

Definitions history_definitions() {
  return {kKindPoint, kPoints, kPastTenant, kPastDevice, kSetting, kMark,       kPastSpike,
          kPastBurst, kWear,   kPastWindow, kPastReach,  kHistory, kHistoryList};
}

std::string history_json(const model::Series& series, const HistoryWish& wish) {
  return dumped(kHistory({series, wish}));
}

void MinutesJson::add(const model::MinuteOf& minute) {
  Json one{{"start", seconds_of(minute.start)},
           {"seconds", std::chrono::seconds(minute.length).count()},
           {"measured_ms", minute.load.measured_ms}};
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    const model::OperationInterval& load = minute.load.operations.at(i);
    if (load != model::OperationInterval{}) {
      one["operations"][std::string(model::kOperationNames.at(i))] = {{"ios", load.ios},
                                                                      {"bytes", load.bytes},
                                                                      {"sequential_bytes", load.sequential_bytes},
                                                                      {"queue_full_ns", load.queue_full_ns},
                                                                      {"errors", load.errors}};
    }
  }
  for (std::size_t i = 0; i < model::kLosses; ++i) {
    if (minute.load.losses.at(i) > 0) {
      one["losses"][std::string(model::kLossNames.at(i))] = minute.load.losses.at(i);
    }
  }
  for (std::size_t i = 0; i < model::kLatencies; ++i) {
    const SparseHistogram& histogram = minute.load.latency(static_cast<Latency>(i));
    if (!histogram.empty()) {
      Json buckets = Json::array();
      for (const auto& [bucket, ios] : histogram.words) {
        buckets.push_back({bucket, ios});
      }
      one["latencies"][std::string(model::kLatencyNames.at(i))] = {{"sum_ns", histogram.sum_ns},
                                                                   {"words", std::move(buckets)}};
    }
  }
  text_ += (any_ ? "," : "") + dumped(one);
  any_ = true;
}

std::string MinutesJson::take() { return std::move(text_) + "]}"; }

std::string history_list_json(const std::vector<model::PastDevice>& devices,
                              const std::vector<model::SettingChange>& settings, const std::vector<model::Mark>& marks,
                              std::uint64_t devices_left_out) {
  return dumped(kHistoryList({devices, devices_left_out, settings, marks}));
}

bool is_heat(const std::string& name) { return !name.empty() && operation_in(name).has_value(); }

bool is_printable(const std::string& text) {
  constexpr std::size_t kMaxCharacters = 128;  // as many as util::for_json() keeps
  return !text.empty() && text.size() <= 4 * kMaxCharacters && util::for_json(text) == text;
}

Definitions day_definitions() { return {kWorst, kFigures, kHour, kDayDevice, kDayWindow, kDay}; }

Json day_json(const model::PastDay* past, std::string_view reason) { return kDay({past, reason}); }

}  // namespace ssdpulse::page

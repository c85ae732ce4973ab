// SPDX-License-Identifier: Apache-2.0
// One device second by second: arrays by field, because neighbours in time are alike and compress well.
#include <fmt/format.h>

#include "daemon/spikes/host_wait_words.h"
#include "daemon/spikes/past_spikes.h"
#include "exporters/page/history_json.h"
#include "exporters/page/page_json.h"

namespace ssdpulse::page {
namespace {

using history::Column;
using history::OperationColumn;
using history::Second;
using history::Tail;
using model::Operation;

constexpr std::chrono::milliseconds kRounding{2};  // of the times at which columns end

/// Null if I/Os ended but none was timed.
Json heat_of(const OperationColumn& column) {
  return column.buckets.empty() && column.ios > 0 ? Json() : Json(heat_text(column.buckets));
}

/// The arrays of an answer; each has one entry per column.
class Columns {
 public:
  void add(const Second& second, Operation heat) {
    json_["milliseconds"].push_back(second.length.count());
    column_ = second.bytes ? history::decode(*second.bytes) : std::nullopt;
    for (const Operation operation : model::kLiveOperations) {
      add_operation(operation);
    }
    for (std::size_t operation = 0; operation < 2; ++operation) {
      for (std::size_t during = 0; during < model::kDurings; ++during) {
        const std::string name =
            fmt::format("{}_during_{}", model::kOperationNames[operation], model::kDuringNames[during]);
        const auto of = [&](const Column& column) -> const Tail& { return column.during[operation][during]; };
        if (during != 0) {  // else it is the rest of the total
          put(name + "_ios", [&](const Column& column) { return Json(of(column).ios); });
        }
        put(name + "_p99", [&](const Column& column) { return bucket(of(column), of(column).p99); });
      }
    }
    put("errors", [](const Column& column) { return Json(column.errors); });
    put("losses", [](const Column& column) { return Json(column.losses); });
    put("bursts", [](const Column& column) { return Json(column.bursts); });
    put("spikes", [](const Column& column) { return Json(column.in_spike); });
    heats_.push_back(column_ ? heat_of(column_->operations[heat]) : Json());
  }

  Json take(Json& heats) {
    heats = std::move(heats_);
    return std::move(json_);
  }

 private:
  template <typename Value>
  void put(const std::string& name, Value value) {
    json_[name].push_back(column_ ? value(*column_) : Json());
  }

  /// Null without I/Os: there is no quantile then.
  static Json bucket(const Tail& tail, std::uint8_t quantile) { return tail.ios > 0 ? Json(quantile) : Json(); }

  void add_operation(Operation operation) {
    const std::string name(model::name(operation));
    const auto of = [operation](const Column& column) -> const OperationColumn& {
      return column.operations[operation];
    };
    put(name + "_ios", [&](const Column& column) { return Json(of(column).ios); });
    put(name + "_p99", [&](const Column& column) { return bucket(of(column).total, of(column).total.p99); });
    if (operation != Operation::flush && operation != Operation::discard) {
      put(name + "_p50", [&](const Column& column) { return bucket(of(column).total, of(column).total.p50); });
      put(name + "_p999", [&](const Column& column) { return bucket(of(column).total, of(column).total.p999); });
    }
    if (operation != Operation::commit && operation != Operation::flush) {
      put(name + "_bytes", [&](const Column& column) { return Json(of(column).bytes); });
    }
    if (operation == Operation::read || operation == Operation::write) {
      put(name + "_in_flight", [&](const Column& column) { return Json(of(column).in_flight); });
      put(name + "_device_p99", [&](const Column& column) { return bucket(of(column).device, of(column).device.p99); });
      put(name + "_queue_p99", [&](const Column& column) { return bucket(of(column).queue, of(column).queue.p99); });
    }
  }

  Json json_ = Json::object();
  Json heats_ = Json::array();
  std::optional<Column> column_;
};

struct Marks {
  Json spikes = Json::array();
  Json bursts = Json::array();
  Json waits = Json::array();
};

constexpr Field<Marks> kMarksFields[] = {
    {"spikes", list_of(defined_as("spike")), member_of<&Marks::spikes>},
    {"bursts", list_of(defined_as("burst")), member_of<&Marks::bursts>},
    {"waits", list_of(defined_as("wait")), member_of<&Marks::waits>},
};
constexpr Object<Marks> kMarks{"live_marks", "", kMarksFields};

/// Those of the device that are going on, or ended after `from`.
Json marks_of(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& device,
              model::WallTime from) {
  Marks marks;
  const auto bursts = past.bursts();
  // The cause of a spike is final some time after its end.
  constexpr std::chrono::minutes kFinalLater{2};
  for (const model::LatencySpike& spike : past.ended_spikes()) {
    if (spike.device == device && spike.begin + spike.duration >= from - kFinalLater) {
      marks.spikes.push_back(spike_json(spike, true, bursts));
    }
  }
  for (const model::LatencySpike& spike : snapshot.spikes_unjudged) {
    if (spike.device == device) {
      marks.spikes.push_back(spike_json(spike, true, bursts));
    }
  }
  for (const model::LatencySpike& spike : snapshot.spikes_going_on) {
    if (spike.device == device) {
      marks.spikes.push_back(spike_json(spike, false, bursts));
    }
  }
  for (const model::Burst& burst : bursts) {
    if (burst.device == device && burst.end.value_or(snapshot.taken_at) >= from) {
      marks.bursts.push_back(burst_json(burst));
    }
  }
  const auto add_wait = [&](const model::HostWait& wait) {
    // A wait is over some seconds after its last proof.
    if (spikes::concerns(wait, device, snapshot) && (!wait.over || end_of(wait) >= from - kFinalLater)) {
      marks.waits.push_back(wait_mark_json(wait, snapshot));
    }
  };
  const auto ended = past.ended_waits();
  std::for_each(ended.begin(), ended.end(), add_wait);
  std::for_each(snapshot.host.waits.begin(), snapshot.host.waits.end(), add_wait);
  return kMarks(marks);
}

struct ClockStep {
  std::uint64_t column;
  model::WallTime at;
  std::int64_t milliseconds;
};

constexpr Field<ClockStep> kClockStepFields[] = {
    {"column", kCount, member_of<&ClockStep::column>},
    {"at", kNumber, time_of<&ClockStep::at>},
    {"milliseconds", kInteger, member_of<&ClockStep::milliseconds>},
};
constexpr Object<ClockStep> kClockStep{"clock_step", "", kClockStepFields};

struct Heat {
  std::string operation;
  Json levels;
};

constexpr Field<Heat> kHeatFields[] = {
    {"operation", one_of(model::kLiveOperationNames), member_of<&Heat::operation>},
    {"levels", list_of(or_null({.name = "string", .limits = R"("pattern": "^([0-9]+:[0-r]+)?$")"})),
     member_of<&Heat::levels>,
     "FIRST:LEVELS, the word of the first level and one level for each word from there: '0' none, '1' one I/O, '2' two "
     "or three, each sign further twice as many. Empty: no I/Os. null: not measured."},
};
constexpr Object<Heat> kHeat{"heat", "", kHeatFields};

struct LiveView {
  std::string device;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  Json begin = {};
  Json columns = {};
  std::vector<ClockStep> steps = {};
  Heat heat = {};
  Json marks = {};
};

constexpr std::size_t kBuckets = std::size_t{LATENCY_OVER_WORD} + 1;

constexpr Field<LiveView> kLiveFields[] = {
    {"device", kText, member_of<&LiveView::device>},
    {"from", kCount, member_of<&LiveView::from>},
    {"to", kCount, member_of<&LiveView::to>},
    {"begin", or_null(kNumber), member_of<&LiveView::begin>, "When the first column begins."},
    {"columns", defined_as("columns"), member_of<&LiveView::columns>},
    {"clock_steps", list_of(defined_as("clock_step")), [](const LiveView& view) { return kClockStep.list(view.steps); },
     "Columns that do not begin when the one before ended, and by how much: the clock was set, or the host slept. "
     "Elsewhere each begins where the one before ends."},
    {"heat", defined_as("heat"), [](const LiveView& view) { return kHeat(view.heat); }},
    {"marks", defined_as("live_marks"), member_of<&LiveView::marks>},
    {"bounds_seconds", may_be_absent(list_of(kSeconds, kBuckets)),
     [](const LiveView& view) { return view.from == 0 ? bounds_json() : absent(); }, "With since=0."},
};
constexpr Object<LiveView> kLive{
    "live",
    "/api/v1/devices/NAME/live?since=N&heat=KIND: the columns of the snapshots after N, up to `to`. An answer whose "
    "`from` is 0 is all there is. Each array has one entry a column; null: the device was not measured then, or, of "
    "quantiles, nothing was done.",
    kLiveFields, Head::snapshot};

struct ColumnView {
  const std::string& device;
  const Second& second;
  Column column;
};

Json latency_json(const Column& column) {
  Json latency = Json::object();
  for (const Operation operation : model::kLiveOperations) {
    Json buckets = Json::array();
    for (const auto& [bucket, ios] : column.operations[operation].buckets) {
      buckets.push_back({bucket, ios});
    }
    latency[name(operation)] = std::move(buckets);
  }
  return latency;
}

constexpr Field<ColumnView> kColumnFields[] = {
    {"device", kText, [](const ColumnView& view) { return view.device; }},
    {"column", kCount, [](const ColumnView& view) { return view.second.number; }},
    {"end", kNumber, [](const ColumnView& view) { return seconds_of(view.second.end); }},
    {"seconds", kSeconds,
     [](const ColumnView& view) { return static_cast<double>(view.second.length.count()) / 1000; }},
    {"latency", map_of(defined_as("histogram")), [](const ColumnView& view) { return latency_json(view.column); }},
};
constexpr Object<ColumnView> kColumn{
    "column",
    "/api/v1/devices/NAME/column?snapshot=N: the exact histograms of total latency of one column, as pairs of word and "
    "I/Os.",
    kColumnFields, Head::snapshot};

struct PastSeconds {
  const std::string& device;
  Json end = Json::array();
  Json columns = {};
  Heat heat = {};
};

constexpr Field<PastSeconds> kPastSecondsFields[] = {
    {"device", kText, [](const PastSeconds& view) { return util::for_json(view.device); }},
    {"end", list_of(kNumber), member_of<&PastSeconds::end>},
    {"columns", defined_as("columns"), member_of<&PastSeconds::columns>},
    {"heat", defined_as("heat"), [](const PastSeconds& past) { return kHeat(past.heat); }},
    {"bounds_seconds", list_of(kSeconds), [](const PastSeconds&) { return bounds_json(); }},
};
constexpr Object<PastSeconds> kPastSeconds{
    "history_seconds",
    "/api/v1/history/DEVICE?seconds=1&from=&to=&heat=: of an hour at most, the seconds around spikes, as far as they "
    "are kept; columns as in live, and when each ends.",
    kPastSecondsFields};

}  // namespace

Json heat_json(const std::string& operation, Json levels) { return kHeat({operation, std::move(levels)}); }

Definitions live_definitions() { return {kMarks, kClockStep, kHeat, kLive, kColumn, kPastSeconds}; }

Json live_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& device,
               std::uint64_t since, Operation heat) {
  auto seconds = past.ring().after(since == 0 ? 0 : since - 1, device);  // also the snapshot before
  Columns columns;
  LiveView view{.device = device, .from = since, .to = since};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Second& second = seconds[i];
    if (second.number <= since || second.number > snapshot.number) {  // the ring may be a snapshot ahead
      continue;
    }
    columns.add(second, heat);
    const auto begin = second.end - second.length;
    if (i > 0) {
      const auto step = std::chrono::round<std::chrono::milliseconds>(begin - seconds[i - 1].end);
      if (std::chrono::abs(step) > kRounding) {
        view.steps.push_back({second.number, begin, step.count()});
      }
    }
    view.begin = view.begin.is_null() ? Json(seconds_of(begin)) : view.begin;
    view.to = second.number;
  }
  std::erase_if(seconds, [since](const Second& second) { return second.number <= since; });
  view.heat.operation = name(heat);
  view.columns = columns.take(view.heat.levels);
  view.marks = marks_of(snapshot, past, device, seconds.empty() ? snapshot.taken_at : seconds.front().end);
  return kLive.answer(snapshot, view);
}

Json column_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& device,
                 std::uint64_t number) {
  const auto seconds = past.ring().after(number == 0 ? 0 : number - 1, device);
  const auto column = seconds.empty() || seconds.front().number != number || !seconds.front().bytes
                          ? std::nullopt
                          : history::decode(*seconds.front().bytes);
  if (!column) {
    return {};
  }
  return kColumn.answer(snapshot, {device, seconds.front(), *column});
}

std::string past_seconds_json(const std::string& device, const std::vector<std::vector<std::uint8_t>>& blobs,
                              const model::Window& window, const std::string& heat) {
  std::vector<Second> seconds;
  for (const auto& blob : blobs) {
    for (Second& second : spikes::seconds_in({reinterpret_cast<const char*>(blob.data()), blob.size()})) {
      const bool follows = seconds.empty() || second.end > seconds.back().end;  // else an earlier one contained it
      if (follows && second.end > window.from && second.end - second.length < window.to) {
        seconds.push_back(std::move(second));
      }
    }
  }
  PastSeconds past{device};
  Columns columns;
  for (const Second& second : seconds) {
    columns.add(second, operation_in(heat).value_or(Operation::read));
    past.end.push_back(seconds_of(second.end));
  }
  past.heat.operation = heat;
  past.columns = columns.take(past.heat.levels);
  return kPastSeconds(past).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ssdpulse::page

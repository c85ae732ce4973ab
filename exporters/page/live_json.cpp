// SPDX-License-Identifier: Apache-2.0
// One device second by second: arrays by field, because neighbours in time are alike and compress well.
#include <fmt/format.h>

#include "daemon/live/host_wait_words.h"
#include "daemon/live/spike_context.h"
#include "exporters/page/history_json.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

using live::Column;
using live::OperationColumn;
using live::Second;
using live::Tail;
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
    column_ = second.bytes ? live::decode(*second.bytes) : std::nullopt;
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
        put(name + "_p99", [&](const Column& column) { return word(of(column), of(column).p99); });
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
  static Json word(const Tail& tail, std::uint8_t of) { return tail.ios > 0 ? Json(of) : Json(); }

  void add_operation(Operation operation) {
    const std::string name(model::name(operation));
    const auto of = [operation](const Column& column) -> const OperationColumn& {
      return column.operations[operation];
    };
    put(name + "_ios", [&](const Column& column) { return Json(of(column).ios); });
    put(name + "_p99", [&](const Column& column) { return word(of(column).total, of(column).total.p99); });
    if (operation != Operation::flush && operation != Operation::discard) {
      put(name + "_p50", [&](const Column& column) { return word(of(column).total, of(column).total.p50); });
      put(name + "_p999", [&](const Column& column) { return word(of(column).total, of(column).total.p999); });
    }
    if (operation != Operation::commit && operation != Operation::flush) {
      put(name + "_bytes", [&](const Column& column) { return Json(of(column).bytes); });
    }
    if (operation == Operation::read || operation == Operation::write) {
      put(name + "_in_flight", [&](const Column& column) { return Json(of(column).in_flight); });
      put(name + "_device_p99", [&](const Column& column) { return word(of(column).device, of(column).device.p99); });
      put(name + "_queue_p99", [&](const Column& column) { return word(of(column).queue, of(column).queue.p99); });
    }
  }

  Json json_ = Json::object();
  Json heats_ = Json::array();
  std::optional<Column> column_;
};

/// Those of the device that are going on, or ended after `from`.
Json marks_of(const model::Snapshot& snapshot, const live::RecentPast& past, const std::string& device,
              model::WallTime from) {
  Json marks{{"spikes", Json::array()}, {"bursts", Json::array()}, {"waits", Json::array()}};
  const auto bursts = past.bursts();
  // The cause of a spike is final some time after its end.
  constexpr std::chrono::minutes kFinalLater{2};
  for (const model::LatencySpike& spike : past.ended_spikes()) {
    if (spike.device == device && spike.begin + spike.duration >= from - kFinalLater) {
      marks["spikes"].push_back(spike_json(spike, true, bursts));
    }
  }
  for (const model::LatencySpike& spike : snapshot.spikes_unjudged) {
    if (spike.device == device) {
      marks["spikes"].push_back(spike_json(spike, true, bursts));
    }
  }
  for (const model::LatencySpike& spike : snapshot.spikes_going_on) {
    if (spike.device == device) {
      marks["spikes"].push_back(spike_json(spike, false, bursts));
    }
  }
  for (const live::Burst& burst : bursts) {
    if (burst.device == device && burst.end.value_or(snapshot.taken_at) >= from) {
      marks["bursts"].push_back(burst_json(burst));
    }
  }
  const auto add_wait = [&](const model::HostWait& wait) {
    // A wait is over some seconds after its last proof.
    if (live::concerns(wait, device, snapshot) && (!wait.over || end_of(wait) >= from - kFinalLater)) {
      marks["waits"].push_back(wait_mark_json(wait, snapshot));
    }
  };
  const auto ended = past.ended_waits();
  std::for_each(ended.begin(), ended.end(), add_wait);
  std::for_each(snapshot.host.waits.begin(), snapshot.host.waits.end(), add_wait);
  return marks;
}

}  // namespace

Json live_json(const model::Snapshot& snapshot, const live::RecentPast& past, const std::string& device,
               std::uint64_t since, Operation heat) {
  auto seconds = past.ring().after(since == 0 ? 0 : since - 1, device);  // also the one before
  Columns columns;
  Json first;
  Json steps = Json::array();
  std::uint64_t last = since;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Second& second = seconds[i];
    if (second.number <= since || second.number > snapshot.number) {  // the ring may be one ahead
      continue;
    }
    columns.add(second, heat);
    const auto begin = second.end - second.length;
    if (i > 0) {
      const auto step = std::chrono::round<std::chrono::milliseconds>(begin - seconds[i - 1].end);
      if (std::chrono::abs(step) > kRounding) {
        steps.push_back({{"column", second.number}, {"at", seconds_of(begin)}, {"milliseconds", step.count()}});
      }
    }
    first = first.is_null() ? Json(seconds_of(begin)) : first;
    last = second.number;
  }
  std::erase_if(seconds, [since](const Second& second) { return second.number <= since; });
  Json answer = head_of(snapshot);
  answer["device"] = device;
  answer["from"] = since;
  answer["to"] = last;
  answer["begin"] = std::move(first);
  Json heats;
  Json arrays = columns.take(heats);
  answer["columns"] = std::move(arrays);
  answer["clock_steps"] = std::move(steps);
  answer["heat"] = {{"operation", name(heat)}, {"levels", std::move(heats)}};
  answer["marks"] = marks_of(snapshot, past, device, seconds.empty() ? snapshot.taken_at : seconds.front().end);
  if (since == 0) {
    answer["bounds_seconds"] = bounds_json();
  }
  return answer;
}

Json column_json(const model::Snapshot& snapshot, const live::RecentPast& past, const std::string& device,
                 std::uint64_t number) {
  const auto seconds = past.ring().after(number == 0 ? 0 : number - 1, device);
  if (seconds.empty() || seconds.front().number != number || !seconds.front().bytes) {
    return {};
  }
  const Second& second = seconds.front();
  const auto column = live::decode(*second.bytes);
  if (!column) {
    return {};
  }
  Json answer = head_of(snapshot);
  answer["device"] = device;
  answer["column"] = number;
  answer["end"] = seconds_of(second.end);
  answer["seconds"] = static_cast<double>(second.length.count()) / 1000;
  answer["latency"] = Json::object();
  for (const Operation operation : model::kLiveOperations) {
    Json buckets = Json::array();
    for (const auto& [word, ios] : column->operations[operation].buckets) {
      buckets.push_back({word, ios});
    }
    answer["latency"][name(operation)] = std::move(buckets);
  }
  return answer;
}

std::string past_seconds_json(const std::string& device, const std::vector<std::vector<std::uint8_t>>& blobs,
                              const model::Window& window, const std::string& heat) {
  std::vector<Second> seconds;
  for (const auto& blob : blobs) {
    for (Second& second : live::seconds_in({reinterpret_cast<const char*>(blob.data()), blob.size()})) {
      const bool follows = seconds.empty() || second.end > seconds.back().end;  // else an earlier one contained it
      if (follows && second.end > window.from && second.end - second.length < window.to) {
        seconds.push_back(std::move(second));
      }
    }
  }
  Json answer{{"device", util::for_json(device)}, {"end", Json::array()}};
  Columns columns;
  for (const Second& second : seconds) {
    columns.add(second, operation_in(heat).value_or(Operation::read));
    answer["end"].push_back(seconds_of(second.end));
  }
  Json heats;
  answer["columns"] = columns.take(heats);
  answer["heat"] = {{"operation", heat}, {"levels", std::move(heats)}};
  answer["bounds_seconds"] = bounds_json();
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ssdpulse::page

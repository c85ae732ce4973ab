// SPDX-License-Identifier: Apache-2.0
// PastAnswers: everything that a history answers about a window, each answer as a text in which no value is rounded, so
// that two files, or one file twice, can be compared.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/history/load_codec.h"
#include "daemon/history/past_reader.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

class PastAnswers {
 public:
  template <typename Answer>
  static std::string text_of(const Answer& answer) {
    PastAnswers text;
    text.put(answer);
    return text.out_.str();
  }

  /// What is asked, of these devices; a question that fails has its error.
  static std::vector<Outcome<std::string>> of(PastReader& past, const model::Window& window,
                                              const std::set<std::string>& devices) {
    const auto text = [](const auto& answer) { return text_of(answer); };
    std::vector<Outcome<std::string>> all;
    std::uint64_t left_out = 0;
    all.push_back(past.devices(&left_out).map(text));
    all.push_back(past.devices_called(devices).map(text));
    all.push_back(past.marks(window).map(text));
    all.push_back(past.settings(window).map(text));
    all.push_back(past.day(window.to - std::chrono::hours(1)).map(text));
    for (auto at = window.from + std::chrono::minutes(10); at < window.to; at += std::chrono::hours(2)) {
      all.push_back(past.moment(at).map(text));
    }
    for (const std::string& device : devices) {
      std::vector<model::MinuteOf> minutes;
      all.push_back(
          past.minutes(device, window, [&](model::MinuteOf&& one) { minutes.push_back(std::move(one)); }).map([&] {
            return text_of(minutes);
          }));
      all.push_back(past.series(device, window, 1000).map(text));
      all.push_back(past.series(device, window, 3).map(text));  // of hours
      all.push_back(past.seconds(device, window).map(text));
    }
    return all;
  }

 private:
  template <typename Value>
  void put(const Value& value) requires(std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
    if constexpr (std::is_floating_point_v<Value>) {
      out_ << std::hexfloat << value << ' ';
    } else {
      out_ << static_cast<std::int64_t>(value) << ' ';
    }
  }
  void put(const std::string& text) { out_ << text.size() << ':' << text << ' '; }
  void put(const model::Bytes& bytes) { put(std::string(bytes.begin(), bytes.end())); }
  void put(const util::OutsideText& text) { put(text.raw()); }
  template <typename Clock, typename Duration>
  void put(const std::chrono::time_point<Clock, Duration>& at) {
    put(at.time_since_epoch().count());
  }
  template <typename Unit, typename Period>
  void put(const std::chrono::duration<Unit, Period>& duration) {
    put(duration.count());
  }
  template <typename Value>
  void put(const std::optional<Value>& value) {
    value ? put(*value) : put('-');
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) {
      put(value);
    }
  }
  template <typename Value, std::size_t kSize>
  void put(const std::array<Value, kSize>& values) {
    for (const Value& value : values) {
      put(value);
    }
  }
  template <typename... Values>
  void all(const Values&... values) {
    (put(values), ...);
  }

  void put(const model::DeviceInterval& load) { put(encode(load)); }
  void put(const model::SparseHistogram& one) {
    for (const auto& [word, ios] : one.words) {
      all(word, ios);
    }
    put(one.sum_ns);
  }
  void put(const model::AttributedTotals& one) { all(one.ios, one.bytes, one.device_ns); }
  void put(const model::TenantLoad& one) { all(one.name, one.totals); }
  void put(const model::MinuteOf& one) { all(one.device, one.start, one.length, one.load); }
  void put(const model::Window& one) { all(one.from, one.to); }
  void put(const model::PastReach& one) { all(one.minutes, one.hours); }
  void put(const model::PastDevice& one) { all(one.name, one.model, one.serial, one.first, one.last, one.identity); }
  void put(const model::Mark& one) { all(one.at, one.text, one.clock_ahead); }
  void put(const model::SettingChange& one) {
    all(one.at, one.device, one.name, one.before, one.value, one.identity, one.clock_ahead);
  }
  void put(const model::PastSpike& one) {
    all(one.begin, one.device, one.operation, one.duration_seconds, one.peak_seconds, one.baseline_seconds, one.ios);
    all(one.cause, one.evidence, one.missing, one.has_columns, one.excess_seconds, one.clock_ahead);
  }
  void put(const model::PastWait& one) {
    all(one.begin, one.cause, one.subject, one.device, one.tenant, one.duration_seconds, one.evidence, one.file,
        one.clock_ahead);
  }
  void put(const model::PastBurst& one) {
    all(one.begin, one.device, one.trigger, one.duration_seconds, one.bytes, one.clock_ahead);
  }
  void put(const model::PastMoment::Measured& one) { all(one.device, one.measured_ms, one.ios); }
  void put(const model::PastMoment& one) {
    all(one.window, one.devices, one.spikes, one.bursts, one.waits, one.recorded_until, one.recorded_from, one.reach);
  }
  void put(const model::PastDay::Worst& one) {
    all(one.begin, one.operation, one.cause, one.duration_seconds, one.peak_seconds, one.excess_seconds);
  }
  void put(const model::PastDay::Slot& one) { all(one.measured_minutes, one.spikes, one.bursts, one.worst); }
  void put(const model::PastDay::Device& one) {
    all(one.name, one.slots, one.spikes, one.bursts, one.hour_measured_ms, one.hour_reads, one.hour_writes);
  }
  void put(const model::PastDay& one) { all(one.window, one.hour, one.devices, one.reach); }
  void put(const model::PastWear& one) {
    all(one.at, one.percentage_used, one.available_spare, one.temperature_celsius, one.host_bytes, one.media_bytes);
    all(one.source, one.host_unit_bytes, one.media_unit_bytes);
  }
  void put(const model::SeriesPoint& one) { all(one.start, one.load); }
  void put(const model::Series& one) {
    all(one.device, one.window, one.step, one.points, one.tenants, one.wear, one.spikes, one.bursts, one.waits);
    all(one.settings, one.marks, one.clock_ahead, one.cut, one.reach);
  }

  void put(const model::DriveKey& one) { all(one.serial, one.model, one.firmware, one.nqn); }
  void put(model::Uint128 one) { all(static_cast<std::uint64_t>(one >> 64U), static_cast<std::uint64_t>(one)); }
  void put(const model::ByteCounter& one) { all(one.count, one.unit_bytes, one.rounding); }
  void put(const model::DriveMinute& one) {
    all(one.drive, one.minute, one.boottime, one.source, one.writes.host, one.writes.media, one.host_count_before);
    all(one.percentage_used, one.available_spare, one.temperature_celsius, one.discard_bytes);
  }
  void put(const model::DriveState& one) { all(one.drive, one.bytes); }
  void put(const model::Recalled& one) { all(one.minutes, one.state, one.unreadable); }

  std::ostringstream out_;
};

}  // namespace ssdpulse::history

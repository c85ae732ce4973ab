// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/device_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ssdpulse::block {
namespace {

using log::field;
using log::quoted;
using model::IoError;

constexpr std::chrono::minutes kWindow{1};
constexpr std::uint64_t kIosPerLoss = 1000;
constexpr std::uint64_t kMinLosses = 10;

std::uint64_t sum(const LostShare& share) {
  return std::accumulate(share.lost.begin(), share.lost.end(), std::uint64_t{0});
}

LostShare since_the_start(const model::DeviceIo& io) {
  LostShare share;
  for (std::size_t i = 0; i < kLostIos.size(); ++i) {
    share.lost[i] = io.losses[model::index(kLostIos[i])];
  }
  share.ios = std::accumulate(io.operations.begin(), io.operations.end(), sum(share),
                              [](std::uint64_t ios, const auto& one) { return ios + one.completions; });
  return share;
}

/// Answers rather than failures: a REQ_NOWAIT request that would have to wait, and a command the device does not know.
bool ignored(IoError error) { return error == IoError::again || error == IoError::unsupported; }

struct Errors {
  std::uint64_t count = 0;
  std::string kinds;  // operation/kind, of all errors ever seen
};

Errors errors_of(const model::DeviceIo& io) {
  Errors errors;
  for (std::size_t operation = 0; operation < model::kOperations; ++operation) {
    for (std::size_t kind = 0; kind < model::kIoErrors; ++kind) {
      const std::uint64_t count = io.operations[operation].errors[kind];
      if (count == 0 || ignored(static_cast<IoError>(kind))) {
        continue;
      }
      errors.count += count;
      errors.kinds += fmt::format("{}{}/{}", errors.kinds.empty() ? "" : ",", model::kOperationNames[operation],
                                  model::kIoErrorNames[kind]);
    }
  }
  return errors;
}

}  // namespace

std::optional<LostShare> RecentLosses::observe(const model::DeviceIo& io, Time at) {
  if (begin_ && at - *begin_ < kWindow) {
    return std::nullopt;
  }
  const LostShare now = since_the_start(io);
  const auto began = std::exchange(begin_, at);
  const LostShare before = std::exchange(at_begin_, now);
  if (!began) {
    return std::nullopt;
  }
  LostShare share;
  for (std::size_t i = 0; i < kLostIos.size(); ++i) {
    share.lost[i] = now.lost[i] - before.lost[i];
  }
  share.ios = now.ios - before.ios;
  share.duration = at - *began;
  const std::uint64_t lost = sum(share);
  return lost >= kMinLosses && lost * kIosPerLoss > share.ios ? std::optional(share) : std::nullopt;
}

model::Findings Losses::observe(const model::Tick& tick) {
  model::Findings findings;
  devices_.observe(tick, [&](std::size_t /*number*/, const model::DeviceTick& device, RecentLosses& losses) {
    const std::string& name = device.block.device->name;
    const auto share = device.block.io ? losses.observe(*device.block.io, tick.at) : std::nullopt;
    const auto suppressed = share ? limiter_.admit(name, tick.at) : std::nullopt;
    if (suppressed) {
      findings.effects.lines.push_back(
          log::line(log::Level::warning, "I/Os were not measured", field("device", name),
                    field("completion_missed", share->lost[0]), field("stray", share->lost[1]),
                    field("slot_collision", share->lost[2]), field("of", share->ios),
                    field("seconds", "{:.0f}", share->duration.count()), field("runbook", "SsdpulseLosingEvents"),
                    field("suppressed", *suppressed)));
    }
  });
  return findings;
}

model::Findings DeviceEvents::observe(const model::Tick& tick) {
  model::Findings findings;
  std::vector<log::Line>& lines = findings.effects.lines;
  std::map<std::string, std::shared_ptr<const model::Device>> now;
  devices_.observe(tick, [&](std::size_t /*number*/, const model::DeviceTick& device, State& state) {
    const std::string& name = device.block.device->name;
    now.emplace(name, device.block.device);
    if (!std::exchange(state.seen, true) && !first_) {
      lines.push_back(log::line(log::Level::info, "device came", field("device", name),
                                quoted("model", util::for_log(device.block.device->model)),
                                quoted("serial", util::for_log(device.block.device->serial)),
                                field("size_bytes", device.block.device->size_bytes)));
    }
    const Errors errors = device.block.io ? errors_of(*device.block.io) : Errors{};
    const std::uint64_t more = errors.count - std::min(errors.count, state.errors);
    state.errors = errors.count;
    const auto suppressed = more > 0 ? limiter_.admit(name, tick.at) : std::nullopt;
    if (suppressed) {
      lines.push_back(log::line(log::Level::warning, "I/O errors", field("device", name), field("new", more),
                                field("total", errors.count), field("kinds", errors.kinds),
                                field("runbook", "SsdpulseIoErrors"), field("suppressed", *suppressed)));
    }
  });
  for (const auto& [name, device] : before_) {
    if (now.find(name) == now.end()) {
      lines.push_back(log::line(log::Level::info, "device gone", field("device", name),
                                quoted("model", util::for_log(device->model)),
                                quoted("serial", util::for_log(device->serial))));
    }
  }
  const bool same = now == before_ && tick.inventory == inventory_;
  before_ = std::move(now);
  first_ = false;
  if (!same) {
    report_clashes(tick, lines);
  }
  return findings;
}

void DeviceEvents::report_clashes(const model::Tick& tick, std::vector<log::Line>& lines) {
  inventory_ = tick.inventory;
  std::vector<const model::Device*> devices;
  for (const auto& [name, device] : before_) {
    devices.push_back(device.get());
  }
  auto now =
      model::reported_clashes(devices, tick.inventory ? tick.inventory->memberships : std::vector<model::Membership>{});
  for (const model::IdentityClash& clash : now) {
    if (std::find(clashes_.begin(), clashes_.end(), clash) == clashes_.end()) {
      lines.push_back(log::line(log::Level::warning, "devices",
                                quoted("identity", util::for_log(model::clash_text(clash), util::kLongestSentence))));
    }
  }
  clashes_ = std::move(now);
}

}  // namespace ssdpulse::block

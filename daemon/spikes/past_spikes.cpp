// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/past_spikes.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "daemon/base/varints.h"
#include "daemon/spikes/io_window.h"

namespace ssdpulse::spikes {
namespace {

std::string bytes_between(const history::Ring& ring, const std::string& device, model::WallTime begin,
                          model::WallTime end) {
  util::VarintWriter out;
  for (const history::Second& second : ring.after(0, device)) {
    if (second.end < begin || second.end > end || out.size() > SpikeContext::kMaxBytes - (64U << 10)) {
      continue;
    }
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(second.end.time_since_epoch());
    const std::string_view column = second.bytes ? std::string_view(*second.bytes) : "";
    out.put(second.number).put(static_cast<std::uint64_t>(at.count()));
    out.put(static_cast<std::uint64_t>(second.length.count())).put(column.size()).append(column);
  }
  return out.take();
}

template <typename Value>
std::optional<Value> number_in(std::string_view text) {
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Takes the text before the separator off it, and the separator too.
std::string_view take_until(std::string_view& text, char separator) {
  const auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

/// NAME:NUMBER,...; names have neither blanks nor commas, but may have colons.
template <typename Value>
std::vector<model::SpikeTenant> tenants_in(std::string_view list, Value model::SpikeTenant::*value) {
  std::vector<model::SpikeTenant> tenants;
  while (!list.empty() && tenants.size() < model::kMaxSpikeTenants) {
    const auto one = take_until(list, ',');
    const auto colon = one.rfind(':');
    const auto number = colon == std::string_view::npos ? std::nullopt : number_in<Value>(one.substr(colon + 1));
    if (number && util::is_plain_name(one.substr(0, colon))) {
      model::SpikeTenant tenant;
      tenant.name = one.substr(0, colon);
      tenant.*value = *number;
      tenants.push_back(std::move(tenant));
    }
  }
  return tenants;
}

void take_evidence(std::string_view text, model::LatencySpike& spike) {
  while (!text.empty()) {
    const auto one = take_until(text, ' ');
    const auto equals = one.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    const auto name = one.substr(0, equals);
    const auto value = one.substr(equals + 1);
    if (name == "heaviest") {
      spike.heaviest = tenants_in(value, &model::SpikeTenant::bytes);
    } else if (name == "committers") {
      spike.committers = tenants_in(value, &model::SpikeTenant::commits);
    } else if (name == "slowed") {
      spike.slowed = tenants_in(value, &model::SpikeTenant::waited_seconds);
    } else if (name == "active_tenants") {
      spike.active_tenants = number_in<std::uint64_t>(value).value_or(0);
    } else if (const auto number = number_in<double>(value)) {
      const auto* row = std::find_if(model::kEvidence.begin(), model::kEvidence.end(),
                                     [&](const model::EvidenceRow& known) { return known.name == name; });
      if (row != model::kEvidence.end()) {
        spike.evidence.emplace(static_cast<model::EvidenceKey>(row - model::kEvidence.begin()), *number);
      }
    }
  }
}

template <typename Enum, typename Names>
Enum enum_of(const util::OutsideText& text, const Names& names, Enum otherwise) {
  const auto found = std::find(names.begin(), names.end(), text);
  return found == names.end() ? otherwise : static_cast<Enum>(found - names.begin());
}

}  // namespace

std::vector<history::Second> seconds_in(std::string_view bytes) {
  constexpr std::uint64_t kMaxTime = 4'000'000'000'000;  // ms since the epoch
  std::vector<history::Second> seconds;
  util::VarintReader in(bytes);
  while (!in.whole()) {
    const std::uint64_t number = in.take();
    const model::WallTime end{std::chrono::milliseconds(in.take(kMaxTime))};
    const std::chrono::milliseconds length(in.take(kMaxTime));
    const std::string_view column = in.take_bytes(in.take());
    if (!in.good()) {
      break;
    }
    const bool measured = !column.empty() && history::decode(column);
    seconds.push_back({number, end, length, measured ? std::optional(std::string(column)) : std::nullopt});
  }
  return seconds;
}

void SpikeContext::take(const model::LatencySpike& spike) {
  const auto duration = std::chrono::duration_cast<model::WallTime::duration>(spike.duration);
  Waiting next{spike.device, spike.begin - kAround, spike.begin + duration + kAround, spike.excess_seconds};
  const auto known = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.device == next.device && one.begin <= next.end && next.begin <= one.end;
  });
  if (known == waiting_.end()) {
    waiting_.push_back(std::move(next));
    return;
  }
  known->begin = std::min(known->begin, next.begin);
  known->end = std::max(known->end, next.end);
  known->excess_seconds = std::max(known->excess_seconds, next.excess_seconds);
}

std::vector<SpikeSeconds> SpikeContext::due(const model::Snapshot& snapshot, const history::Ring& ring) {
  // Memory reaches a quarter of an hour back: what lasts longer is kept in parts.
  constexpr std::chrono::minutes kMaxLength{12};
  for (const model::LatencySpike& spike : snapshot.spikes_ended) {
    take(spike);
  }
  std::vector<SpikeSeconds> done;
  std::erase_if(waiting_, [&](const Waiting& one) {
    const bool over = one.end <= snapshot.taken_at || snapshot.taken_at - one.begin > kMaxLength;
    if (over) {
      done.push_back({one.device, one.begin, std::min(one.end, snapshot.taken_at), one.excess_seconds,
                      bytes_between(ring, one.device, one.begin, one.end)});
    }
    return over;
  });
  return done;
}

model::LatencySpike spike_of(const model::PastSpike& past) {
  model::LatencySpike spike;
  spike.device = past.device;
  spike.operation =
      model::operation_named(past.operation.raw(), model::kSpikeOperations).value_or(model::Operation::read);
  spike.begin = past.begin;
  spike.duration = nanoseconds_of(past.duration_seconds);
  spike.peak_seconds = past.peak_seconds;
  spike.baseline_seconds = past.baseline_seconds;
  spike.excess_seconds = past.excess_seconds;
  spike.ios = past.ios;
  spike.cause = enum_of(past.cause, model::kSpikeCauseNames, model::SpikeCause::unknown);
  take_evidence(past.evidence.raw(), spike);
  for (std::string_view missing = past.missing.raw(); !missing.empty();) {
    const auto one = missing.substr(0, missing.find("; "));
    missing.remove_prefix(std::min(missing.size(), one.size() + 2));
    spike.missing.push_back(util::for_json(one));
  }
  return spike;
}

model::Burst burst_of(const model::PastBurst& past) {
  const auto trigger = enum_of(past.trigger, model::kDiscardTriggerNames,
                               static_cast<model::DiscardTrigger>(model::kDiscardTriggers - 1));
  const auto end =
      past.begin + std::chrono::duration_cast<model::WallTime::duration>(nanoseconds_of(past.duration_seconds));
  return {past.device, trigger, past.begin, end, past.bytes};
}

std::optional<model::HostWait> wait_of(const model::PastWait& past) {
  const auto cause = std::find(model::kHostWaitCauseNames.begin(), model::kHostWaitCauseNames.end(), past.cause);
  if (cause == model::kHostWaitCauseNames.end()) {
    return std::nullopt;
  }
  model::HostWait wait{static_cast<model::HostWaitCause>(cause - model::kHostWaitCauseNames.begin()), past.subject,
                       past.device, past.tenant, past.begin};
  wait.duration = nanoseconds_of(past.duration_seconds);
  wait.over = true;
  for (std::string_view text = past.evidence.raw(); !text.empty();) {
    const auto one = take_until(text, ' ');
    const auto equals = one.find('=');
    const auto number = equals == std::string_view::npos ? std::nullopt : number_in<double>(one.substr(equals + 1));
    if (equals != std::string_view::npos && one.substr(0, equals) == model::kWaitCommand) {
      wait.command = one.substr(equals + 1);
    } else if (number && util::is_plain_name(one.substr(0, equals))) {
      wait.evidence.emplace(one.substr(0, equals), *number);
    }
  }
  wait.file = util::for_json(past.file);
  return wait;
}

}  // namespace ssdpulse::spikes

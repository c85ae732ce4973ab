// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/past_spikes.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace ssdpulse::live {
namespace {

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
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
    const auto what = one.substr(0, equals);
    const auto said = one.substr(equals + 1);
    if (what == "heaviest") {
      spike.heaviest = tenants_in(said, &model::SpikeTenant::bytes);
    } else if (what == "committers") {
      spike.committers = tenants_in(said, &model::SpikeTenant::commits);
    } else if (what == "slowed") {
      spike.slowed = tenants_in(said, &model::SpikeTenant::waited_seconds);
    } else if (what == "active_tenants") {
      spike.active_tenants = number_in<std::uint64_t>(said).value_or(0);
    } else if (const auto number = number_in<double>(said)) {
      const auto* row = std::find_if(model::kEvidence.begin(), model::kEvidence.end(),
                                     [&](const model::EvidenceRow& known) { return known.name == what; });
      if (row != model::kEvidence.end()) {
        spike.evidence.emplace(static_cast<model::EvidenceKey>(row - model::kEvidence.begin()), *number);
      }
    }
  }
}

template <typename Enum, typename Names>
Enum enum_of(const util::OutsideText& said, const Names& names, Enum otherwise) {
  const auto found = std::find(names.begin(), names.end(), said);
  return found == names.end() ? otherwise : static_cast<Enum>(found - names.begin());
}

}  // namespace

model::LatencySpike spike_of(const model::PastSpike& past) {
  model::LatencySpike spike;
  spike.device = past.device;
  spike.operation =
      model::operation_named(past.operation.raw(), model::kSpikeOperations).value_or(model::Operation::read);
  spike.begin = past.begin;
  spike.duration = nanoseconds(past.duration_seconds);
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

Burst burst_of(const model::PastBurst& past) {
  const auto trigger = enum_of(past.trigger, model::kDiscardTriggerNames,
                               static_cast<model::DiscardTrigger>(model::kDiscardTriggers - 1));
  const auto end =
      past.begin + std::chrono::duration_cast<model::WallTime::duration>(nanoseconds(past.duration_seconds));
  return {past.device, trigger, past.begin, end, past.bytes};
}

std::optional<model::HostWait> wait_of(const model::PastWait& past) {
  const auto cause = std::find(model::kHostWaitCauseNames.begin(), model::kHostWaitCauseNames.end(), past.cause);
  if (cause == model::kHostWaitCauseNames.end()) {
    return std::nullopt;
  }
  model::HostWait wait{static_cast<model::HostWaitCause>(cause - model::kHostWaitCauseNames.begin()), past.subject,
                       past.device, past.tenant, past.begin};
  wait.duration = nanoseconds(past.duration_seconds);
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

}  // namespace ssdpulse::live

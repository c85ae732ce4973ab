// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/evidence_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "daemon/live/explanations.h"
#include "daemon/live/format.h"
#include "daemon/model/incidents.h"
#include "daemon/model/tenant_title.h"

namespace ssdpulse::live {
namespace {

using model::EvidenceForm;
using model::EvidenceKey;
using model::EvidenceRow;
using model::SpikeCause;

std::string times_words(double value) {
  if (value >= 0.8 && value < 1.25) {
    return "as many as usual";
  }
  if (value < 0.05) {
    return "hardly any";
  }
  return value >= 100 ? "over 100 times the usual number of" : format_factor(value) + " the usual number of";
}

std::string value_words(const EvidenceRow& row, double value) {
  switch (row.form) {
    case EvidenceForm::share:
      return fmt::format("{:.0f} %", value * 100);
    case EvidenceForm::number:
      return fmt::format("{:g}", value);
    case EvidenceForm::bytes:
      return format_size(value);
    case EvidenceForm::seconds:
      return format_duration(value);
    case EvidenceForm::times:
      return times_words(value);
    case EvidenceForm::flag:
    case EvidenceForm::hidden:
      break;
  }
  return "";
}

/// "There was 3 times the usual number of I/O" is no English: load has words of its own.
std::string sentence_of(EvidenceKey key, double value) {
  const EvidenceRow& row = evidence_row(key);
  if (key == EvidenceKey::load_to_baseline) {
    return value >= 0.8 && value < 1.25 ? "The load was as usual."
           : value < 0.05               ? "There was hardly any load."
                                        : fmt::format("The load was {} the usual.", format_factor(value));
  }
  if (row.form == EvidenceForm::times && value >= 0.8 && value < 1.25) {
    std::string text = fmt::format(fmt::runtime(row.sentence), "as many");
    text.insert(text.size() - 1, " as usual");
    return text;
  }
  return fmt::format(fmt::runtime(row.sentence), value_words(row, value));
}

/// What counts little beside the first is left out.
bool is_negligible(const model::SpikeTenant& one, const model::SpikeTenant& first) {
  constexpr double kPart = 0.05;
  const auto little = [](auto part, auto whole) {
    return static_cast<double>(part) <= kPart * static_cast<double>(whole);
  };
  return little(one.bytes, first.bytes) && little(one.commits, first.commits) &&
         little(one.waited_seconds, first.waited_seconds);
}

/// "backup.service (1.2 GB), db.service (3 MB)"
template <typename Words>
std::string list_of(const std::vector<model::SpikeTenant>& tenants, Words words) {
  std::vector<std::string> names;
  for (const model::SpikeTenant& tenant : tenants) {
    if (&tenant != &tenants.front() && is_negligible(tenant, tenants.front())) {
      continue;
    }
    names.push_back(fmt::format("{} ({})", model::tenant_title(tenant.name), words(tenant)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

EvidenceWords evidence_words(const model::LatencySpike& spike) {
  EvidenceWords words;
  const bool commits = spike.operation == model::Operation::commit;
  const bool stands_still = amount(spike.evidence, EvidenceKey::standstill_seconds) >= kStandstillSeconds;
  const std::string ios = spike.ios == 0 && stands_still ? "What was sent last still waits"
                          : commits ? format_count(spike.ios, "commit was slow", "commits were slow")
                                    : format_count(spike.ios, "I/O was slow", "I/Os were slow");
  const bool has_amount = spike.excess_seconds > 0 && !(spike.ios == 0 && stands_still);
  words.decided.push_back(has_amount ? fmt::format("{}; together they waited {} beyond what is usual.", ios,
                                                   format_latency(spike.excess_seconds))
                                     : ios + ".");
  if (!spike.heaviest.empty() && spike.cause != SpikeCause::unknown) {
    words.decided.push_back(fmt::format(
        "{} most, beyond their own usual: {}.", spike.cause == SpikeCause::discard ? "Discarded" : "Read and wrote",
        list_of(spike.heaviest,
                [](const model::SpikeTenant& one) { return format_size(static_cast<double>(one.bytes)); })));
  }
  if (!spike.committers.empty() && spike.cause == SpikeCause::flush) {
    words.decided.push_back(fmt::format("Committed most, beyond their own usual: {}.",
                                        list_of(spike.committers, [](const model::SpikeTenant& one) {
                                          return format_count(one.commits, "commit", "commits");
                                        })));
  }
  const model::SpikeTenant* culprit = model::culprit_of(spike);
  std::vector<model::SpikeTenant> slowed = spike.slowed;
  std::erase_if(slowed, [&](const model::SpikeTenant& one) {
    return culprit != nullptr && one.name == culprit->name && spike.active_tenants > 1;
  });
  if (!slowed.empty()) {
    words.decided.push_back(
        fmt::format("Slowed most, added up beyond their own usual: {}.",
                    list_of(slowed, [](const model::SpikeTenant& one) { return format_latency(one.waited_seconds); })));
  }
  bool failed = false;
  for (const auto& [key, value] : spike.evidence) {
    const EvidenceRow& row = evidence_row(key);
    if (row.form == EvidenceForm::hidden || (stands_still && key == EvidenceKey::depth_to_baseline)) {
      continue;  // the depth is of what has completed
    }
    failed = failed || row.cause == SpikeCause::error;
    const bool against = value < row.against;
    const bool proves = key == EvidenceKey::device_share && spike.cause == SpikeCause::unknown;
    const bool general = row.cause == SpikeCause::unknown && key != EvidenceKey::device_share &&
                         key != EvidenceKey::accepted_as_baseline;
    auto& list = proves || general || (row.cause == spike.cause && row.cause != SpikeCause::unknown && !against)
                     ? words.decided
                 : against && row.cause != spike.cause ? words.ruled_out
                                                       : words.other;
    list.push_back(sentence_of(key, value));
  }
  if (!failed) {
    words.ruled_out.emplace_back("No I/O failed.");
  }
  return words;
}

}  // namespace ssdpulse::live

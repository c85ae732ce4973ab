// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/base/figure_text.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::spikes {
namespace {

using model::end_of;
using model::EvidenceForm;
using model::EvidenceKey;
using model::EvidenceRow;
using model::LatencySpike;
using model::SpikeCause;

constexpr double kMoreLoad = 1.25;  // times the usual
constexpr auto kUnits = std::to_array<std::string_view>({".service", ".slice", ".scope"});

/// The reason of discards, by who trims.
struct TriggerRow {
  model::DiscardTrigger trigger;
  util::Text because;
  util::Text next;
};
constexpr std::array kTriggers{
    TriggerRow{model::DiscardTrigger::fstrim, "because fstrim [is|was] trimming a file system on it",
               "It can be stopped (systemctl stop fstrim.service) and run again later: in quiet hours, or in smaller "
               "pieces (discard_max_bytes)."},
    TriggerRow{model::DiscardTrigger::online,
               "because its file system, mounted with discard, [trims|trimmed] what was deleted",
               "Mount it with nodiscard, and trim in quiet hours instead (fstrim.timer)."},
    TriggerRow{model::DiscardTrigger::blkdiscard, "because blkdiscard [is|was] discarding space on it",
               "Stop it, or discard in steps (blkdiscard --step)."},
    TriggerRow{model::DiscardTrigger::mkfs, "because mkfs [is|was] discarding space on it",
               "Create file systems without discarding (mkfs.ext4 -E nodiscard, mkfs.xfs -K), or in quiet hours."},
    TriggerRow{model::DiscardTrigger::other,
               "because something other than fstrim, blkdiscard and mkfs [is|was] discarding space on it",
               model::kTrimLater},
};
static_assert(util::is_table_of<model::DiscardTrigger>(kTriggers, &TriggerRow::trigger));

std::string in_tense(std::string_view text, Tense tense) {
  std::string words;
  while (!text.empty()) {
    const auto open = text.find('[');
    words += text.substr(0, open);
    if (open == std::string_view::npos) {
      break;
    }
    const auto middle = text.find('|', open);
    const auto close = text.find(']', open);
    words += tense == Tense::present ? text.substr(open + 1, middle - open - 1)
                                     : text.substr(middle + 1, close - middle - 1);
    text.remove_prefix(close + 1);
  }
  return words;
}

/// The trigger of the burst on the device that overlaps the spike longest; nothing if none does.
std::optional<model::DiscardTrigger> trigger_of(const LatencySpike& spike, const std::vector<model::Burst>& bursts) {
  constexpr std::chrono::seconds kTimeTolerance{2};
  const model::Burst* longest = nullptr;
  auto longest_overlap = -kTimeTolerance - kTimeTolerance;
  for (const model::Burst& burst : bursts) {
    if (burst.device != spike.device) {
      continue;
    }
    const auto overlap = std::chrono::duration_cast<std::chrono::seconds>(
        std::min(burst.end.value_or(end_of(spike)), end_of(spike)) - std::max(burst.begin, spike.begin));
    if (overlap >= -kTimeTolerance &&
        (longest == nullptr || std::pair(overlap, burst.bytes) > std::pair(longest_overlap, longest->bytes))) {
      longest = &burst;
      longest_overlap = overlap;
    }
  }
  return longest == nullptr ? std::nullopt : std::optional(longest->trigger);
}

/// `load`: absent: its own.
const model::SpikeSentence& cause_sentence(const LatencySpike& spike, std::optional<Load> load) {
  return model::info(spike.cause).sentences.of(spike.operation, load.value_or(load_of(spike)));
}

bool is_usual(double times) { return times >= 0.8 && times < 1.25; }

std::string times_words(double value) {
  if (is_usual(value)) {
    return "as many as usual";
  }
  if (value < 0.05) {
    return "hardly any";
  }
  return value >= 100 ? "over 100 times the usual number of" : util::format_factor(value) + " the usual number of";
}

std::string value_words(const EvidenceRow& row, double value) {
  switch (row.form) {
    case EvidenceForm::share:
      return fmt::format("{:.0f} %", value * 100);
    case EvidenceForm::number:
      return fmt::format("{:g}", value);
    case EvidenceForm::bytes:
      return util::format_size(value);
    case EvidenceForm::seconds:
      return util::format_duration(value);
    case EvidenceForm::times:
      return times_words(value);
    case EvidenceForm::flag:
    case EvidenceForm::hidden:
      break;
  }
  return "";
}

/// Load has sentences of its own: "There was 3 times the usual number of I/O" is not English.
std::string sentence_of(EvidenceKey key, double value) {
  const EvidenceRow& row = evidence_row(key);
  if (key == EvidenceKey::load_to_baseline) {
    return is_usual(value) ? "The load was as usual."
           : value < 0.05  ? "There was hardly any load."
                           : fmt::format("The load was {} the usual.", util::format_factor(value));
  }
  if (row.form == EvidenceForm::times && is_usual(value)) {
    std::string text = fmt::format(fmt::runtime(row.sentence), "as many");
    text.insert(text.size() - 1, " as usual");
    return text;
  }
  return fmt::format(fmt::runtime(row.sentence), value_words(row, value));
}

/// Whether a tenant is too small, compared with the first, to be listed.
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

std::string next_for_load(std::string next, const LatencySpike& spike) {
  constexpr std::string_view kDrive = "Otherwise check the drive:";
  const auto load = spike.evidence.find(EvidenceKey::load_to_baseline);
  if (next != model::kSlowFlush.view() || load == spike.evidence.end() || load->second >= kMoreLoad) {
    return next;
  }
  return "Check the drive:" + next.substr(next.find(kDrive) + kDrive.size());
}

std::string next_for_culprit(std::string next, const std::string& culprit) {
  const std::string title = model::tenant_title(culprit);
  const bool is_unit = std::any_of(kUnits.begin(), kUnits.end(), [&](std::string_view kind) {
    return culprit.size() > kind.size() && culprit.compare(culprit.size() - kind.size(), kind.size(), kind) == 0;
  });
  const auto replace = [&next](std::string_view words, const std::string& by) {
    if (const auto at = next.find(words); at != std::string::npos) {
      next.replace(at, words.size(), by);
    }
  };
  replace("Find out who calls fsync so often, and have it commit", "Have " + title + " commit");
  replace("what sends most", title);
  if (culprit != "fstrim.service") {
    replace("systemctl stop fstrim.service", "it runs in " + title);
  }
  if (is_unit) {
    replace("set-property --runtime UNIT", "set-property --runtime " + title);
  }
  return next;
}

Load load_of(const LatencySpike& spike) {
  // Nearly all of the time was measured to be the drive's, and nothing else happened.
  constexpr double kNearlyAll = 0.9;
  const auto value = [&spike](EvidenceKey key) { return amount(spike.evidence, key); };
  const bool drive_alone = value(EvidenceKey::device_share) >= kNearlyAll && value(EvidenceKey::load_to_baseline) > 0 &&
                           value(EvidenceKey::load_to_baseline) < kMoreLoad &&
                           value(EvidenceKey::during_flushes_share) < 1 - kNearlyAll &&
                           value(EvidenceKey::during_discards_share) < 1 - kNearlyAll;
  const bool more = spike.cause == SpikeCause::unknown ? !drive_alone
                    : spike.cause == SpikeCause::flush ? value(EvidenceKey::flushes_to_baseline) >= model::kMoreFlushes
                    : spike.cause == SpikeCause::error
                        ? value(EvidenceKey::errors) >= 1 || value(EvidenceKey::other_errors) >= 1
                        : value(EvidenceKey::load_to_baseline) >= kMoreLoad;
  return more ? Load::more : Load::usual;
}

Load load_of(const model::Incident& incident) {
  const LatencySpike& headline = incident.headline();
  return std::any_of(incident.spikes.begin(), incident.spikes.end(),
                     [&](const LatencySpike& spike) {
                       return spike.device == headline.device && spike.cause == headline.cause &&
                              load_of(spike) == Load::more;
                     })
             ? Load::more
             : Load::usual;
}

std::string short_words(const LatencySpike& spike, std::optional<Load> load) {
  const bool stands_still = amount(spike.evidence, EvidenceKey::standstill_seconds) >= kStandstillSeconds;
  if (stands_still && spike.cause == SpikeCause::unknown) {
    return "nothing completes";
  }
  std::string words(cause_sentence(spike, load).title.view());
  if (const model::SpikeTenant* culprit = model::culprit_of(spike)) {
    words += " by " + culprit->name;
  }
  return stands_still ? words + ", nothing completes" : words;
}

Explanation explain(const LatencySpike& spike, const std::vector<model::Burst>& bursts, Tense tense,
                    std::optional<Load> load) {
  const model::SpikeSentence& sentence = cause_sentence(spike, load);
  const auto trigger = spike.cause == SpikeCause::discard ? trigger_of(spike, bursts) : std::nullopt;
  if (trigger) {
    const TriggerRow& by = kTriggers.at(static_cast<std::size_t>(*trigger));
    return {in_tense(by.because, tense), std::string(by.next.view()), sentence.runbook};
  }
  std::string because = in_tense(sentence.because, tense);
  if (spike.cause == SpikeCause::unknown && !spike.missing.empty()) {
    because += fmt::format(" ({})", fmt::join(spike.missing, "; "));
  }
  return {std::move(because), std::string(sentence.next.view()), sentence.runbook};
}

EvidenceWords evidence_words(const model::LatencySpike& spike) {
  EvidenceWords words;
  const bool commits = spike.operation == model::Operation::commit;
  const bool stands_still = amount(spike.evidence, EvidenceKey::standstill_seconds) >= kStandstillSeconds;
  const std::string ios = spike.ios == 0 && stands_still ? "What was sent last still waits"
                          : commits ? util::format_count(spike.ios, "commit was slow", "commits were slow")
                                    : util::format_count(spike.ios, "I/O was slow", "I/Os were slow");
  const bool has_amount = spike.excess_seconds > 0 && !(spike.ios == 0 && stands_still);
  words.decided.push_back(has_amount ? fmt::format("{}; together they waited {} beyond what is usual.", ios,
                                                   util::format_latency(spike.excess_seconds))
                                     : ios + ".");
  if (!spike.heaviest.empty() && spike.cause != SpikeCause::unknown) {
    words.decided.push_back(fmt::format(
        "{} most, compared with their usual: {}.", spike.cause == SpikeCause::discard ? "Discarded" : "Read and wrote",
        list_of(spike.heaviest,
                [](const model::SpikeTenant& one) { return util::format_size(static_cast<double>(one.bytes)); })));
  }
  if (!spike.committers.empty() && spike.cause == SpikeCause::flush) {
    words.decided.push_back(fmt::format("Committed most, compared with their usual: {}.",
                                        list_of(spike.committers, [](const model::SpikeTenant& one) {
                                          return util::format_count(one.commits, "commit", "commits");
                                        })));
  }
  const model::SpikeTenant* culprit = model::culprit_of(spike);
  std::vector<model::SpikeTenant> slowed = spike.slowed;
  std::erase_if(slowed, [&](const model::SpikeTenant& one) {
    return culprit != nullptr && one.name == culprit->name && spike.active_tenants > 1;
  });
  if (!slowed.empty()) {
    words.decided.push_back(fmt::format(
        "Slowed most (extra wait over all their I/Os): {}.",
        list_of(slowed, [](const model::SpikeTenant& one) { return util::format_latency(one.waited_seconds); })));
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

}  // namespace ssdpulse::spikes

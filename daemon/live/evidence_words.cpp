// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/evidence_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "daemon/live/explanations.h"
#include "daemon/live/words.h"
#include "daemon/model/incidents.h"
#include "daemon/model/tenant_title.h"

namespace ssdpulse::live {
namespace {

using model::SpikeCause;

/// How a value becomes a sentence; `{}` in the text stands for it.
enum class Form : std::uint8_t { share, times, number, bytes, seconds, plain };

struct EvidenceRow {
  const char* key;
  Form form;
  const char* text;
  SpikeCause cause;     // that it speaks for
  double against = -1;  // a value below it speaks against that cause; -1: no value does
};

constexpr double kNoMore = 1.25;     // times the usual load
constexpr double kLittle = 0.3;      // of the slow time
constexpr double kHardlyFull = 0.1;  // of the time

constexpr EvidenceRow kEvidence[] = {
    {"outliers", Form::number, "{} I/Os were far slower than all others.", SpikeCause::unknown},
    {"longest_device_standstill_seconds", Form::seconds, "Nothing completed for {}.", SpikeCause::unknown},
    {"during_discards_share", Form::share, "{} of the slow time in the device overlapped discards.",
     SpikeCause::discard, kLittle},
    {"discards_to_baseline", Form::times, "There were {} discards.", SpikeCause::discard, kNoMore},
    {"during_flushes_share", Form::share, "{} of the slow time in the device overlapped flushes.", SpikeCause::flush,
     kLittle},
    {"flushes_to_baseline", Form::times, "There were {} flushes.", SpikeCause::flush, model::kMoreFlushes},
    {"flush_to_commit", Form::share, "A slow flush takes {} as long as a slow commit (99th percentiles).",
     SpikeCause::flush, model::kFlushPartOfCommit},
    {"queue_share", Form::share, "{} of the slow time was spent waiting on the host.", SpikeCause::queue, kLittle},
    {"device_share", Form::share, "{} of the slow time was spent in the device.", SpikeCause::unknown},
    {"load_to_baseline", Form::times, "There was {} I/O.", SpikeCause::saturation, kNoMore},
    {"depth_to_baseline", Form::times, "There were {} I/Os of this kind in flight.", SpikeCause::saturation},
    {"queue_full_share", Form::share, "All queue slots were in use for {} of the time.", SpikeCause::saturation,
     kHardlyFull},
    {"full_speed_share", Form::share, "The device went on at full speed for {} of the time.", SpikeCause::saturation},
    {"errors", Form::number, "I/Os that failed: {}.", SpikeCause::error},
    {"failovers", Form::number, "I/Os that moved to another path: {}.", SpikeCause::error},
    {"requeues", Form::number, "I/Os that the driver gave back, to be sent again: {}.", SpikeCause::error},
    {"other_errors", Form::number, "I/Os of other operations that failed: {}.", SpikeCause::error},
    {"other_requeues", Form::number, "I/Os of other operations that the driver gave back: {}.", SpikeCause::error},
    {"retry_share", Form::share, "{} of the slow time was spent on sending I/Os again.", SpikeCause::error},
    {"host_written_bytes", Form::bytes, "According to the drive, the host wrote {}.", SpikeCause::gc},
    {"media_written_bytes", Form::bytes, "According to the drive, it wrote {} to its media.", SpikeCause::gc},
    {"baseline_write_amplification", Form::number, "Its usual write amplification is {}.", SpikeCause::gc},
    {"gc_events", Form::number, "Garbage collections that the drive reports: {}.", SpikeCause::gc},
    {"free_blocks", Form::share, "The drive has {} of its free blocks left.", SpikeCause::gc},
    {"thermal_events", Form::number, "Times that the drive throttled to cool down: {}.", SpikeCause::thermal},
    {"thermal_warning", Form::plain, "The drive warns about its temperature.", SpikeCause::thermal},
    {"accepted_as_baseline", Form::plain, "It lasted so long that it now counts as usual.", SpikeCause::unknown},
};

std::string times_words(double value) {
  if (value >= 0.8 && value < 1.25) {
    return "as many as usual";
  }
  if (value < 0.05) {
    return "hardly any";
  }
  return value >= 100 ? "over 100 times the usual number of" : factor_words(value) + " the usual number of";
}

std::string value_words(const EvidenceRow& row, double value) {
  switch (row.form) {
    case Form::share:
      return fmt::format("{:.0f} %", value * 100);
    case Form::number:
      return fmt::format("{:g}", value);
    case Form::bytes:
      return size_words(value);
    case Form::seconds:
      return duration_words(value);
    case Form::times:
      return times_words(value);
    case Form::plain:
      break;
  }
  return "";
}

/// "There was 3 times the usual number of I/O" is no English: load has words of its own.
std::string sentence_of(const EvidenceRow& row, double value) {
  if (row.key == std::string_view("load_to_baseline")) {
    return value >= 0.8 && value < 1.25 ? "The load was as usual."
           : value < 0.05               ? "There was hardly any load."
                                        : fmt::format("The load was {} the usual.", factor_words(value));
  }
  if (row.form == Form::times && value >= 0.8 && value < 1.25) {
    std::string text = fmt::format(fmt::runtime(row.text), "as many");
    text.insert(text.size() - 1, " as usual");
    return text;
  }
  return fmt::format(fmt::runtime(row.text), value_words(row, value));
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
  const bool commits = spike.operation == model::SpikeOperation::commit;
  const auto standstill = spike.evidence.find("standstill_seconds");
  const bool stands_still = standstill != spike.evidence.end() && standstill->second >= kStandstillSeconds;
  const std::string ios = spike.ios == 0 && stands_still ? "What was sent last still waits"
                          : commits ? count_words(spike.ios, "commit was slow", "commits were slow")
                                    : count_words(spike.ios, "I/O was slow", "I/Os were slow");
  const bool has_amount = spike.excess_seconds > 0 && !(spike.ios == 0 && stands_still);
  words.decided.push_back(has_amount ? fmt::format("{}; together they waited {} beyond what is usual.", ios,
                                                   latency_words(spike.excess_seconds))
                                     : ios + ".");
  if (!spike.heaviest.empty() && spike.cause != SpikeCause::unknown) {
    words.decided.push_back(fmt::format(
        "{} most, beyond their own usual: {}.", spike.cause == SpikeCause::discard ? "Discarded" : "Read and wrote",
        list_of(spike.heaviest,
                [](const model::SpikeTenant& one) { return size_words(static_cast<double>(one.bytes)); })));
  }
  if (!spike.committers.empty() && spike.cause == SpikeCause::flush) {
    words.decided.push_back(fmt::format("Committed most, beyond their own usual: {}.",
                                        list_of(spike.committers, [](const model::SpikeTenant& one) {
                                          return count_words(one.commits, "commit", "commits");
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
                    list_of(slowed, [](const model::SpikeTenant& one) { return latency_words(one.waited_seconds); })));
  }
  bool failed = false;
  for (const EvidenceRow& row : kEvidence) {
    const auto found = spike.evidence.find(row.key);
    if (found == spike.evidence.end()) {
      continue;
    }
    const double value = found->second;
    if (stands_still && row.key == std::string_view("depth_to_baseline")) {
      continue;  // of what has completed
    }
    failed = failed || row.cause == SpikeCause::error;
    const bool against = value < row.against;
    const bool proves = row.key == std::string_view("device_share") && spike.cause == SpikeCause::unknown;
    const bool general = row.cause == SpikeCause::unknown && row.key != std::string_view("device_share") &&
                         row.key != std::string_view("accepted_as_baseline");
    auto& list = proves || general || (row.cause == spike.cause && row.cause != SpikeCause::unknown && !against)
                     ? words.decided
                 : against && row.cause != spike.cause ? words.ruled_out
                                                       : words.other;
    list.push_back(sentence_of(row, value));
  }
  if (!failed) {
    words.ruled_out.emplace_back("No I/O failed.");
  }
  return words;
}

}  // namespace ssdpulse::live

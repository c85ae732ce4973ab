// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/cost_parts.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::advice {
namespace {

using model::Effort;
using model::KernelDecision;
using model::KernelFeature;
using model::RunShare;

// On the machine of overhead.md.
constexpr double kSampleNs = 4;    // each write of a modelled drive
constexpr double kPageHintNs = 4;  // each buffered write

constexpr std::string_view kNotConfigured = "off: configured";
constexpr std::string_view kLimited = "off: limits.cpu";
constexpr std::string_view kNotNeeded = "off: not needed by this kernel";

/// Runs of a program in that time, and what they took.
struct Work {
  double runs = 0;
  std::optional<double> ns;
};

Work operator+(const Work& left, const Work& right) {
  return {left.runs + right.runs, left.ns && right.ns ? std::optional(*left.ns + *right.ns) : std::nullopt};
}

Work accounted(const model::RecentCost& recent, std::string_view prefix) {
  Work work{0, 0.0};
  for (const auto& [name, program] : recent.accounted) {
    if (name.starts_with(prefix)) {
      work = work + Work{program.runs, program.ns};
    }
  }
  return work;
}

constexpr RunShare share_at(Effort effort) { return model::kRunShares[static_cast<std::size_t>(effort)]; }
constexpr RunShare least(RunShare a, RunShare b) {
  return {std::min(a.issue, b.issue), std::min(a.completion, b.completion)};
}
constexpr RunShare operator-(RunShare a, RunShare b) { return {a.issue - b.issue, a.completion - b.completion}; }

/// What a part takes of a run that does everything.
struct Shares {
  RunShare completions;
  RunShare device_time;
  RunShare attribution;
};

/// Each effort does without one more of them. Where there is no issue program, the second is not there either.
Shares shares_of(Effort effort, bool completion_only, bool attribution) {
  const RunShare now = share_at(effort);
  const RunShare timed = least(now, share_at(Effort::essentials));
  RunShare least_part = least(now, share_at(Effort::completions));
  least_part.issue = 0;  // latency.mode completion-only has no issue program
  Shares shares{completion_only ? timed : least_part, completion_only ? RunShare{0, 0} : timed - least_part,
                attribution ? now - timed : RunShare{0, 0}};
  return shares;
}

class Parts {
 public:
  Parts(const model::Snapshot& snapshot, const model::RecentCost& recent)
      : snapshot_(snapshot),
        recent_(recent),
        effort_(snapshot.own_cost.effort),
        // As configured: latency_mode also says completion-only while limits.cpu has an effect. Only a daemon with an
        // issue program decides how writes are classed.
        completion_only_(!snapshot.kernel_features.contains(KernelFeature::write_class)) {}

  std::vector<CostPart> list() {
    add_parts_of_each_io();
    add_other_hooks();
    add_threads();
    return std::move(parts_);
  }

 private:
  [[nodiscard]] bool decided(KernelFeature feature, KernelDecision decision) const {
    return model::decided(snapshot_.kernel_features, feature, decision);
  }

  void add(CostPart part, const std::optional<Work>& work) {
    if (!part.off.empty()) {
      part.source = CostSource::unknown;
    } else if (work) {
      part.runs_per_second = work->runs / recent_.seconds;
      if (work->ns) {
        part.cpu_ratio = *work->ns / 1e9 / recent_.seconds / recent_.cpus;
        part.ns_per_run = work->runs > 0 ? std::optional(*work->ns / work->runs) : std::nullopt;
      } else {
        part.source = CostSource::unknown;
      }
    }
    parts_.push_back(part);
  }

  /// A part of both programs, which happens once for each I/O.
  [[nodiscard]] Work part_of(RunShare share, RunShare all) const {
    if (recent_.accounted.empty()) {
      const auto& cost = recent_.run_cost;
      return {recent_.completions, cost ? std::optional(recent_.issues * cost->issue_ns * share.issue +
                                                        recent_.completions * cost->completion_ns * share.completion)
                                        : std::nullopt};
    }
    const auto of = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
    const Work issues = accounted(recent_, "on_issue");
    const Work completions = accounted(recent_, "on_complete");
    return {completions.runs,
            *issues.ns * of(share.issue, all.issue) + *completions.ns * of(share.completion, all.completion)};
  }

  void add_parts_of_each_io() {
    const bool attribution = snapshot_.kernel_features.contains(KernelFeature::io_path);
    const auto [completions, device_time, attributed] = shares_of(effort_, completion_only_, attribution);
    const RunShare all{completions.issue + device_time.issue + attributed.issue,
                       completions.completion + device_time.completion + attributed.completion};
    const auto source = recent_.accounted.empty() ? CostSource::estimate : CostSource::account_share;
    const auto limited = [&](Effort without) { return effort_ >= without ? kLimited : std::string_view(); };
    add({.name = "completions",
         .tells = "total latency, sizes, errors",
         .change = "devices.exclude",
         .off = limited(Effort::nothing),
         .source = source},
        part_of(completions, all));
    // At the effort `completions` its hook still runs.
    add({.name = "device_time",
         .tells = "device and queue time, hints",
         .change = "latency.mode: completion-only",
         .off = completion_only_ ? kNotConfigured : limited(Effort::nothing),
         .source = source},
        part_of(device_time, all));
    add({.name = "page_hints",
         .tells = "hints of buffered writes",
         .change = "writes.page_hints: never",
         .off = why_no_lookups().value_or(limited(Effort::completions)),
         .of = "device_time",
         .source = CostSource::elsewhere,
         .at_most = true},
        Work{recent_.writes, recent_.writes * kPageHintNs});
    add({.name = "attribution",
         .tells = "tenants and paths",
         .change = "attribution.enabled: false",
         .off = attribution ? limited(Effort::essentials) : kNotConfigured,
         .source = source},
        part_of(attributed, all));
    add({.name = "flash_samples",
         .tells = "what flash models read",
         .change = "flash_model.enabled: false",
         .off = snapshot_.flash ? limited(Effort::essentials) : kNotConfigured,
         .of = attribution ? "attribution" : "completions",
         .source = CostSource::elsewhere},
        Work{recent_.sampled_writes, recent_.sampled_writes * kSampleNs});
  }

  /// Why no hints are looked up in pages, whatever the effort; absent: they are.
  [[nodiscard]] std::optional<std::string_view> why_no_lookups() const {
    if (completion_only_ || decided(KernelFeature::page_hints, KernelDecision::never)) {
      return kNotConfigured;
    }
    const bool done = decided(KernelFeature::page_hints, KernelDecision::always) ||
                      decided(KernelFeature::write_hint, KernelDecision::page) ||
                      decided(KernelFeature::write_hint, KernelDecision::bio_or_page);
    return done ? std::nullopt : std::optional(kNotNeeded);
  }

  /// Nobody counts their runs but the kernel's account.
  void add_other_hooks() {
    const auto work = [&](auto... prefixes) {
      return recent_.accounted.empty() ? std::nullopt : std::optional((accounted(recent_, prefixes) + ...));
    };
    const auto source = recent_.accounted.empty() ? CostSource::unknown : CostSource::account;
    const std::string_view limited = effort_ == Effort::nothing ? kLimited : std::string_view();
    const bool every_bio = decided(KernelFeature::discard_submitters, KernelDecision::every_bio);
    const bool none = decided(KernelFeature::discard_submitters, KernelDecision::not_hooked);
    if (every_bio) {
      add({.name = "every_bio",
           .tells = "who discards: runs for each bio",
           .change = "latency.mode: completion-only",
           .off = limited,
           .source = source},
          work("on_bio"));
    } else {
      add({.name = "discards",
           .tells = "who discards: runs for discards",
           .off = none ? "off: not hooked" : limited,
           .source = source},
          work("on_discard"));
    }
    const auto volumes = snapshot_.kernel_features.find(KernelFeature::volume_times);
    const bool has_volumes = decided(KernelFeature::volume_times, KernelDecision::every_bio);
    add({.name = "volumes",
         .tells = "times of volumes: runs for each bio",
         .change = "volumes.enabled: false",
         .off = has_volumes ? (effort_ == Effort::everything ? std::string_view() : kLimited)
                : volumes == snapshot_.kernel_features.end()                   ? kNotConfigured
                : decided(KernelFeature::volume_times, KernelDecision::absent) ? "off: no volume at the start"
                                                                               : "off: not possible here",
         .source = source},
        work("on_volume"));
    add({.name = "freezes",
         .tells = "frozen file systems",
         .off = decided(KernelFeature::freezes, KernelDecision::not_hooked) ? "off: not hooked" : limited,
         .source = source},
        work("on_frozen", "on_thawed"));
  }

  void add_thread(CostPart part, double seconds) {
    part.source = CostSource::scheduler;
    if (part.off.empty()) {
      part.cpu_ratio = seconds / recent_.seconds / recent_.cpus;
    }
    parts_.push_back(part);
  }

  void add_threads() {
    double named = 0;
    const auto take = [&](std::string_view name) {
      const auto found = recent_.cpu.thread_seconds.find(std::string(name));
      const double seconds = found == recent_.cpu.thread_seconds.end() ? 0 : found->second;
      named += seconds;
      return seconds;
    };
    const auto unless = [](bool on) { return on ? std::string_view() : kNotConfigured; };
    add_thread({.name = "tick", .tells = "counters, spikes, log pages", .change = "devices.exclude"}, take("ssdpulse"));
    add_thread({.name = "flash_models",
                .tells = "modelled write amplification",
                .change = "flash_model.enabled: false",
                .off = unless(snapshot_.flash != nullptr)},
               take("flash-models"));
    add_thread({.name = "history",
                .tells = "the past",
                .change = "history.directory: \"\"",
                .off = unless(snapshot_.history.has_value())},
               take("history"));
    add_thread({.name = "audit", .tells = "advice in the status"}, take("audit"));
    add_thread({.name = "scrapes", .tells = "/metrics", .change = "metrics.exclude"}, take("http-scrape"));
    add_thread({.name = "viewers", .tells = "the page, top, why, history", .change = "web.page: false"},
               take("http-page") + take("http-history") + take("history-reader"));
    add_thread({.name = "connections", .tells = "sends answers of both"}, take("http"));
    // Also of threads that were too short-lived to have been seen.
    add_thread({.name = "rest", .tells = "logins, room in file systems, ..."},
               std::max(0.0, recent_.cpu.process_seconds - named));
    parts_.push_back({.name = "log_reader", .tells = "reads NVMe log pages", .change = "nvme.poll_interval"});
  }

  const model::Snapshot& snapshot_;
  const model::RecentCost& recent_;
  const Effort effort_;
  const bool completion_only_;
  std::vector<CostPart> parts_;
};

/// Of the programs in the kernel; nothing if what an I/O costs is not known.
std::optional<CostTotal> total_of_programs(const std::vector<CostPart>& parts, bool accounted) {
  CostTotal total;
  for (const CostPart& part : parts) {
    const bool counts = part.source == CostSource::estimate || part.source == CostSource::account_share ||
                        part.source == CostSource::account;
    if (counts && part.of.empty()) {
      total.cpu_ratio += part.cpu_ratio.value_or(0);
    } else if (part.name == "completions" && part.off.empty()) {
      return std::nullopt;
    }
  }
  total.lower = total.cpu_ratio / (accounted ? 1 : kEstimateFactor);
  total.upper = total.cpu_ratio * (accounted ? 1 : kEstimateFactor);
  return total;
}

}  // namespace

CostReport cost_report(const model::Snapshot& snapshot) {
  const auto& recent = snapshot.own_cost.recent;
  if (!recent || recent->seconds <= 0) {
    return {};
  }
  CostReport report{recent->seconds, recent->cpus, Parts(snapshot, *recent).list(), {}, {}, {}};
  report.programs = total_of_programs(report.parts, !recent->accounted.empty());
  report.daemon = recent->cpu.process_seconds / recent->seconds / recent->cpus;
  if (report.programs) {
    report.total = {report.programs->cpu_ratio + *report.daemon, report.programs->lower + *report.daemon,
                    report.programs->upper + *report.daemon};
  }
  return report;
}

}  // namespace ssdpulse::advice

// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/device_spikes.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::spikes {
namespace {

using model::Operation;

bool has_long(const OperationInterval& window) { return slowest_seconds(window.total.words) >= kLongSeconds; }

/// An operation's load relative to its usual one: in I/Os, in bytes, or in bytes per I/O, whichever is highest.
double load_of(double ios, double bytes, double seconds, const UsualOperation& usual) {
  constexpr double kLargerIos = 1.2;  // size matters a little less
  const auto ratio = [](double part, double whole) { return whole > 0 ? part / whole : part; };
  const double size = ratio(ratio(bytes, ios), ratio(usual.bytes_per_second, usual.ios_per_second));
  return std::max({ratio(ios, usual.ios_per_second * seconds), ratio(bytes, usual.bytes_per_second * seconds),
                   usual.bytes_per_second > 0 ? size / kLargerIos : 0});
}

}  // namespace

void UsualWait::learn(const OperationInterval& window, double seconds, double limit) {
  const auto all = static_cast<double>(window.total.count());
  const auto slow = static_cast<double>(count_above(window.total.words, limit));
  const double slow_waited = excess_above(window.total.words, limit, 0);
  if (all <= slow) {
    return;
  }
  const double past = std::exp(-seconds / kSeconds);
  ios_ = past * ios_ + all - slow;
  waited_ = past * waited_ + std::max(0.0, seconds_of(window.total.sum_ns) - slow_waited);
}

std::optional<double> UsualWait::seconds() const { return ios_ > 0 ? std::optional(waited_ / ios_) : std::nullopt; }

std::vector<model::LatencySpike> DeviceSpikes::observe(SpikeTick tick) {
  has_drive_ = tick.drive != nullptr;
  drive_up_ = has_drive_ && tick.drive->polling.up;
  if (has_drive_) {
    readings_.observe(*tick.drive, !any_open());
  }
  if (tick.interval) {
    take_window({now_, tick.at, tick.interval}, tick);
  }
  now_ = tick.at;
  return finish(tick.at);
}

bool DeviceSpikes::any_open() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const Channel& channel) { return channel.open; });
}

void DeviceSpikes::take_window(const IoWindow& window, SpikeTick& tick) {
  recent_.push_back({window, tick.floor_seconds, std::move(tick.tenants)});
  missed_at_ = window.missed() > 0 ? window.end : missed_at_;
  for (const Operation operation : model::kSpikeOperations) {
    Channel& channel = channels_[operation];
    const auto event = channel.detector.observe(window.begin, window.end, window.operation(operation),
                                                tick.floor_seconds, surroundings(window, operation, tick));
    if (event == SpikeDetector::Event::began) {
      open(channel, operation, tick);
    } else if (channel.open) {
      channel.open->span = *channel.detector.span();
      claim(recent_.back(), *channel.open);
    }
    if (event == SpikeDetector::Event::ended) {
      last_spike_end_ = std::max(last_spike_end_, channel.open->span.ended);
      waiting_.push_back(std::move(*channel.open));
      channel.open.reset();
    }
  }
  while (recent_.size() > kMaxRecent) {
    forget(recent_.front());
    recent_.pop_front();
  }
}

/// The load over the last seconds, or 1/kByChance of that in this window alone if that is higher.
double DeviceSpikes::load(Operation operation) const {
  const UsualOperation& usual = usual_.operation(operation);
  double ios = 0, bytes = 0, seconds = 0, now = 0;
  for (std::size_t back = 0; back < std::min(kLoadWindows, recent_.size()); ++back) {
    const IoWindow& window = recent_[recent_.size() - 1 - back].window;
    const OperationInterval& own = window.operation(operation);
    ios += static_cast<double>(own.ios);
    bytes += static_cast<double>(own.bytes);
    seconds += window.seconds();
    now = back == 0 ? load_of(ios, bytes, seconds, usual) : now;
  }
  return std::max(load_of(ios, bytes, seconds, usual), now / kByChance);
}

/// The same of the tenants that usually send this operation, and what they did just now; absent if they are not known.
std::optional<DeviceSpikes::SendersLoad> DeviceSpikes::senders_load(Operation operation) const {
  const auto attributed = attributed_operation(operation);
  const double usual_rate =
      usual_.operation(attributed == model::Operation::read ? Operation::read : Operation::write).ios_per_second;
  std::vector<const TenantWork*> work;
  double seconds = 0;
  std::optional<double> now;
  std::optional<double> just_now;
  for (std::size_t back = 0; back < std::min(kLoadWindows, recent_.size()); ++back) {
    const Recent& recent = recent_[recent_.size() - 1 - back];
    work.push_back(&recent.tenants);
    seconds += recent.window.seconds();
    now = back == 0 ? usual_senders_.load(attributed, usual_rate, work, seconds) : now;
    just_now = back == 1 ? usual_senders_.load(attributed, usual_rate, work, seconds) : just_now;
  }
  const auto lately = usual_senders_.load(attributed, usual_rate, work, seconds);
  return lately ? std::optional(SendersLoad{std::max(*lately, now.value_or(0) / kByChance), just_now.value_or(*lately)})
                : std::nullopt;
}

Surroundings DeviceSpikes::surroundings(const IoWindow& window, Operation operation, const SpikeTick& tick) const {
  Surroundings around;
  if (usual_.ios_per_second() > 0) {
    around.operation_load = load(operation);
    around.load = std::max({around.operation_load, load(Operation::read), load(Operation::write)});
    // More commits and flushes are no reason by themselves: whose they are is only known by the writes beside them.
    const bool by_count = operation == Operation::read || operation == Operation::write;
    const auto senders = senders_load(operation);
    around.own_load = senders ? std::max(senders->lately, by_count ? around.operation_load : 0) : around.load;
    around.senders_just_now = senders ? senders->just_now : around.load;
    around.ios_per_second = static_cast<double>(window.ios()) / window.seconds();
    around.bytes_per_second = static_cast<double>(window.bytes()) / window.seconds();
    around.usual_rate = usual_.operation(operation).ios_per_second;
  }
  for (const Operation other : {Operation::read, Operation::write}) {
    around.others_long = around.others_long || (other != operation && has_long(window.operation(other)));
  }
  for (const Channel& other : channels_) {
    around.others_in_spike = around.others_in_spike || (&other != &channels_[operation] && other.open &&
                                                        other.open->span.kind != EvidenceKind::rare);
  }
  around.unseen_lately =
      operation == Operation::flush && missed_at_ && seconds_between(*missed_at_, window.end) < kUnseenSeconds;
  if (tick.kernel_in_flight && operation == Operation::read) {
    around.kernel_in_flight = tick.kernel_in_flight->reads;
  } else if (tick.kernel_in_flight && operation == Operation::write) {
    around.kernel_in_flight = tick.kernel_in_flight->writes;
  }
  return around;
}

void DeviceSpikes::open(Channel& channel, Operation operation, const SpikeTick& tick) {
  const SpikeSpan& span = *channel.detector.span();
  const auto age = std::chrono::duration_cast<model::WallTime::duration>(tick.at - span.began);
  channel.open = Waiting{operation,
                         span,
                         tick.wall - age,
                         SpikeTally(operation, span.limit),
                         usual_,
                         channel.usual_wait.seconds(),
                         SpikeTenants(usual_tenants_)};
  for (Recent& recent : recent_) {
    if (recent.window.end > span.began && !recent.in_spike[operation]) {
      claim(recent, *channel.open);
    }
  }
}

void DeviceSpikes::claim(Recent& recent, Waiting& spike) {
  const OperationInterval& window = recent.window.operation(spike.operation);
  recent.in_spike[spike.operation] = true;
  if (spike.usual_wait && spike.span.kind == EvidenceKind::rare) {
    // All I/Os except the outliers are fine while the spike lasts: their wait is the usual one.
    spike.excess_seconds += excess_above(window.total.words, spike.span.limit, *spike.usual_wait);
  } else if (spike.usual_wait) {
    spike.excess_seconds +=
        seconds_of(window.total.sum_ns) - *spike.usual_wait * static_cast<double>(window.total.count());
  }
  // The windows after its end, until it has been quiet for long enough, say nothing about the cause.
  if (recent.window.begin < spike.span.ended) {
    spike.tally.add(recent.window, spike.usual);
    spike.tenants.add(recent.tenants, recent.window.seconds());
  }
}

/// No spike can claim this window any more. If none did, the window was normal, and so were its operations, except for
/// the I/Os beyond the limit.
void DeviceSpikes::forget(const Recent& oldest) {
  for (const Operation operation : model::kSpikeOperations) {
    Channel& channel = channels_[operation];
    const auto limit = channel.detector.limit_seconds(oldest.floor_seconds);
    const OperationInterval& window = oldest.window.operation(operation);
    if (oldest.in_spike[operation] || !limit) {
      continue;
    }
    if (const auto usual = channel.usual_wait.seconds()) {
      figures_[operation].excess_seconds[index(model::SpikeCause::unknown)] +=
          excess_above(window.total.words, *limit, *usual);
    }
    channel.usual_wait.learn(window, oldest.window.seconds(), *limit);
  }
  for (const auto operation : {Operation::read, Operation::write}) {
    if (!oldest.in_spike[operation]) {
      usual_tenants_.learn(oldest.tenants, attributed_operation(operation), oldest.window.seconds());
    }
  }
  if (!any_open() && oldest.window.begin >= last_spike_end_) {
    usual_.learn(oldest.window);
    usual_senders_.learn(oldest.tenants, oldest.window.seconds());
  }
}

CauseVerdict DeviceSpikes::judge(const Waiting& spike, SteadyTime ended) const {
  if (!has_drive_) {
    return find_cause(spike.tally, spike.usual, nullptr);
  }
  const DriveVerdict drive = readings_.judge(spike.span.began, ended);
  return find_cause(spike.tally, spike.usual, &drive);
}

DeviceSpikes::Judged DeviceSpikes::judge_alone(Waiting& spike, bool open, SteadyTime now) {
  CauseVerdict verdict = judge(spike, open ? now : spike.span.ended);
  Judged judged{spike.span.began,
                open && spike.span.kind != EvidenceKind::rare ? now : spike.span.ended,
                {},
                spike.span.kind == EvidenceKind::rare,
                open};
  const auto evidence = [&verdict](model::EvidenceKey key) { return amount(verdict.evidence, key); };
  judged.verdict = {spike.operation,
                    verdict.cause,
                    verdict.proof,
                    verdict.only_within,
                    std::max(0.0, spike.excess_seconds) + evidence(model::EvidenceKey::standstill_waited_seconds),
                    evidence(model::EvidenceKey::load_to_baseline),
                    evidence(model::EvidenceKey::flushes_to_baseline)};
  const bool decided = !has_drive_ || verdict.host_side;
  if (open) {
    // Ask for logs once while the spike lasts and once after its end, not all the time.
    wants_logs_ = wants_logs_ || (!decided && !readings_.judge(spike.span.began, spike.span.began).complete);
  } else {
    const bool read = decided || readings_.judge(spike.span.began, spike.span.ended).complete;
    judged.complete = read || !drive_up_ || seconds_between(spike.span.ended, now) > kWaitForLogsSeconds;
    wants_logs_ = wants_logs_ || !judged.complete;
    if (judged.complete && !read) {
      verdict.missing.emplace_back("no log page was read after the spike");
    }
  }
  judged.spike = &spike;
  judged.described = describe(spike, judged.ended, std::move(verdict));
  judged.harmful = model::is_harmful(judged.described);
  return judged;
}

/// Gives all spikes of an incident its cause. A sender's own backlog is no part of one.
void DeviceSpikes::unify(std::vector<Judged>& spikes) const {
  std::vector<Judged*> parts;
  for (Judged& spike : spikes) {
    if (!spike.outliers && spike.harmful) {
      parts.push_back(&spike);
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Judged* a, const Judged* b) { return a->began < b->began; });
  for (std::size_t first = 0; first < parts.size();) {
    SteadyTime end = parts[first]->ended;
    std::size_t last = first;
    std::vector<SpikeVerdict> verdicts;
    bool goes_on = false;
    for (; last < parts.size() && parts[last]->began <= end + model::kIncidentGap; ++last) {
      end = std::max(end, parts[last]->ended);
      verdicts.push_back(parts[last]->verdict);
      goes_on = goes_on || parts[last]->open;
    }
    const model::SpikeCause cause = cause_of_incident(verdicts);
    for (; first < last; ++first) {
      Judged& part = *parts[first];
      // Until nothing more can follow, so that all have the same cause in the end.
      const bool over = !goes_on && now_ > end + model::kIncidentGap;
      part.complete = part.complete && (over || seconds_between(part.ended, now_) > kWaitForLogsSeconds);
      part.incident_goes_on = goes_on;
      if (part.spike != nullptr && part.described.cause != cause) {
        part.described.cause = cause;
        part.spike->tenants.describe(part.described);
      }
      if (cause != model::SpikeCause::unknown) {
        part.described.missing.clear();
      }
    }
  }
}

std::vector<model::LatencySpike> DeviceSpikes::finish(SteadyTime now) {
  wants_logs_ = false;
  going_on_.clear();
  unjudged_.clear();
  std::vector<Judged> spikes = std::move(closed_);
  closed_.clear();
  for (Waiting& spike : waiting_) {
    spikes.push_back(judge_alone(spike, false, now));
  }
  for (Channel& channel : channels_) {
    if (channel.open) {
      spikes.push_back(judge_alone(*channel.open, true, now));
    }
  }
  unify(spikes);
  for (std::size_t operation = 0; operation < channels_.size(); ++operation) {
    figures_[operation].active.reset();
    figures_[operation].baseline = channels_[operation].detector.baseline();
    figures_[operation].pending_excess_seconds = 0;
  }
  std::vector<model::LatencySpike> finished;
  std::deque<Waiting> still;
  std::size_t left = waiting_.size();
  for (Judged& spike : spikes) {
    model::SpikeFigures& figures = figures_[spike.verdict.operation];
    if (spike.open) {
      figures.active = spike.described.cause;
      figures.pending_excess_seconds += spike.described.excess_seconds;
      // Rare outliers may be over: that none has followed is known only some time later.
      auto& list = spike.outliers && seconds_between(spike.ended, now) > kOutlierSeconds ? unjudged_ : going_on_;
      list.push_back(std::move(spike.described));
    } else if (spike.spike != nullptr && (spike.complete || left > kMaxWaiting)) {
      --left;
      close(spike);
      finished.push_back(std::move(spike.described));
      spike.spike = nullptr;
    } else if (spike.spike != nullptr) {
      --left;
      figures.pending_excess_seconds += spike.described.excess_seconds;
      still.push_back(std::move(*spike.spike));
      unjudged_.push_back(std::move(spike.described));
    }
    if (!spike.open && spike.spike == nullptr && spike.harmful && !spike.outliers &&
        (spike.incident_goes_on || now <= spike.ended + model::kIncidentGap) && closed_.size() < kMaxWaiting) {
      closed_.push_back(std::move(spike));
    }
  }
  waiting_ = std::move(still);
  return finished;
}

model::LatencySpike DeviceSpikes::describe(const Waiting& spike, SteadyTime ended, CauseVerdict verdict) const {
  model::LatencySpike done;
  done.device = device_;
  done.operation = spike.operation;
  done.begin = spike.begin;
  done.duration = ended - spike.span.began;
  done.peak_seconds = spike.span.peak;
  done.baseline_seconds = spike.span.baseline;
  done.excess_seconds = std::max(0.0, spike.excess_seconds);
  done.ios = spike.span.ios;
  done.cause = verdict.cause;
  done.evidence = std::move(verdict.evidence);
  done.missing = std::move(verdict.missing);
  spike.tenants.describe(done);
  if (spike.span.kind == EvidenceKind::rare) {
    done.evidence[model::EvidenceKey::outliers] = static_cast<double>(spike.span.ios);
  }
  if (spike.span.accepted) {
    done.evidence[model::EvidenceKey::accepted_as_baseline] = 1;
  }
  return done;
}

void DeviceSpikes::close(const Judged& spike) {
  const model::LatencySpike& done = spike.described;
  model::SpikeFigures& figures = figures_[done.operation];
  ++figures.spikes[index(done.cause)];
  figures.seconds[index(done.cause)] += std::chrono::duration<double>(done.duration).count();
  figures.excess_seconds[index(done.cause)] += done.excess_seconds;
}

}  // namespace ssdpulse::spikes

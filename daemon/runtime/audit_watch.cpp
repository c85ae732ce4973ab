// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/audit_watch.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "daemon/advice/audit.h"
#include "daemon/advice/device_evidence.h"
#include "daemon/advice/history_evidence.h"
#include "daemon/base/log.h"
#include "daemon/config/accepted_file.h"
#include "daemon/host/settings_reader.h"
#include "daemon/host/settings_record.h"

namespace ssdpulse::runtime {
namespace {

/// Empty if the file cannot be used: err on the side of alerting. A problem with it is logged once, until it changes.
std::vector<model::Acceptance> acceptances(std::string& logged) {
  auto loaded = config::load_accepted_if_present(config::kAcceptedFile);
  std::string problem = loaded ? "" : config::to_string(loaded.error());
  if (!problem.empty() && problem != logged) {
    log::warning("no findings count as accepted: {}", problem);
  }
  logged = std::move(problem);
  return loaded ? std::move(*loaded) : std::vector<model::Acceptance>{};
}

std::vector<std::string> names_of(const model::Inventory& inventory) {
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    names.push_back(device.name);
  }
  return names;
}

/// What is kept from one check to the next.
struct AuditState {
  std::map<std::string, advice::DeviceEvidence> evidence;
  advice::EvidenceRefresh age{AuditWatch::kHistoryInterval};
  std::string problem;  // with the file of acceptances, as it was logged
};

/// How many have ended since the daemon's start.
std::uint64_t spikes_in(const model::Snapshot& snapshot) {
  std::uint64_t spikes = 0;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    for (const model::SpikeFigures& figures : device.spikes) {
      spikes = std::accumulate(figures.spikes.begin(), figures.spikes.end(), spikes);
    }
  }
  return spikes;
}

/// If the history cannot be read, the old evidence stays: the history reports the failure itself.
void read_evidence(history::Reader* history, const model::Inventory& inventory, std::uint64_t spikes,
                   AuditState& known) {
  const auto now = AuditWatch::Clock::now();
  if (history == nullptr || !known.age.is_due(now, spikes)) {
    return;
  }
  known.evidence = advice::read_history_evidence(*history, names_of(inventory), std::chrono::system_clock::now())
                       .value_or(std::move(known.evidence));
  known.age.was_read(now, spikes);
}

}  // namespace

AuditWatch::AuditWatch(const serve::CurrentSnapshot& current, Check check, Clock::duration min_interval)
    : state_(std::make_shared<State>()), thread_([state = state_, &current, check = std::move(check), min_interval] {
        ::pthread_setname_np(::pthread_self(), "audit");
        work(*state, current, check, min_interval);
      }) {}

AuditWatch::~AuditWatch() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->wake.notify_all();
  const bool ended = state_->wake.wait_for(lock, kShutdownTimeout, [this] { return state_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    log::warning("the audit waits for a file system that does not answer; stopping without it");
    thread_.detach();
  }
}

void AuditWatch::observe(std::shared_ptr<const model::Inventory> inventory) {
  const std::lock_guard lock(state_->mutex);
  const bool first = state_->inventory == nullptr;
  state_->inventory = std::move(inventory);
  if (first) {
    state_->wake.notify_all();
  }
}

void AuditWatch::recheck() {
  const std::lock_guard lock(state_->mutex);
  state_->again = true;
  state_->wake.notify_all();
}

std::shared_ptr<const AuditWatch::Outcome> AuditWatch::outcome() const {
  const std::lock_guard lock(state_->mutex);
  return state_->outcome;
}

model::SourceStatus AuditWatch::status(Clock::time_point now) const {
  const std::lock_guard lock(state_->mutex);
  const bool stuck = state_->checking_since && now - *state_->checking_since >= kStuckAfter;
  return {"audit", !stuck, stuck ? "blocked on an unresponsive file system; showing the previous findings" : "", {}};
}

void AuditWatch::work(State& state, const serve::CurrentSnapshot& current, const Check& check,
                      Clock::duration min_interval) {
  std::unique_lock lock(state.mutex);
  state.wake.wait(lock, [&] { return state.stop || state.inventory != nullptr; });
  auto next_asked = Clock::now();
  for (bool first = true, asked = false; !state.stop;) {
    state.again = false;
    const auto inventory = state.inventory;
    const auto snapshot = current.get();  // under the lock: once stop is set, `current` is not used any more
    state.checking_since = Clock::now();
    lock.unlock();
    auto outcome = std::make_shared<const Outcome>(check(*inventory, snapshot));
    lock.lock();
    state.checking_since.reset();
    state.outcome = std::move(outcome);
    const auto now = Clock::now();
    const auto due = now + (first ? kFirstRecheckDelay : std::chrono::seconds(kInterval));
    next_asked = asked ? now + min_interval : next_asked;
    state.wake.wait_until(lock, std::min(due, next_asked), [&] { return state.stop; });
    asked = state.wake.wait_until(lock, due, [&] { return state.stop || state.again; });
    first = first && asked;  // the second check is still due
  }
  state.ended = true;
  state.wake.notify_all();
}

AuditWatch::Check AuditWatch::by_the_rules(std::shared_ptr<history::Reader> history) {
  return [history = std::move(history), known = AuditState{}](
             const model::Inventory& inventory, const std::shared_ptr<const model::Snapshot>& snapshot) mutable {
    advice::Facts facts;
    facts.settings = host::read({}, inventory);
    if (snapshot) {
      if (snapshot->host.signals) {
        host::add_rooms(snapshot->host.signals->rooms, facts.settings);
      }
      facts.measured = advice::measure(*snapshot);
    }
    read_evidence(history.get(), inventory, snapshot ? spikes_in(*snapshot) : 0, known);
    facts.evidence = known.evidence;
    Outcome outcome{{}, host::recorded("fstrim.timer", facts.settings.fstrim)};
    const advice::Accepted result = advice::accept(advice::judge(facts), acceptances(known.problem), advice::today());
    std::copy_if(result.standing.begin(), result.standing.end(), std::back_inserter(outcome.findings),
                 advice::is_actionable);
    return outcome;
  };
}

}  // namespace ssdpulse::runtime

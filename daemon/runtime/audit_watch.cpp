// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/audit_watch.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "daemon/audit/audit.h"
#include "daemon/audit/gathering/read_pasts.h"
#include "daemon/config/accepted_file.h"
#include "daemon/sources/settings/settings.h"
#include "daemon/util/log.h"
#include "exporters/prometheus/metrics_page.h"

namespace ssdpulse::runtime {
namespace {

/// None where the file cannot be used: better one alert too many than a danger that nobody hears of.
std::vector<audit::Acceptance> acceptances() {
  std::vector<audit::Acceptance> list;
  if (::access(config::kAcceptedFile, F_OK) != 0) {
    return list;
  }
  const auto loaded = config::load_accepted(config::kAcceptedFile);
  if (!loaded) {
    log::warning("nothing counts as accepted: {}", config::to_string(loaded.error()));
    return list;
  }
  for (const config::AcceptedEntry& one : *loaded) {
    list.push_back({one.id, one.device, one.reason, one.expires});
  }
  return list;
}

std::vector<std::string> names_of(const model::Inventory& inventory) {
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    names.push_back(device.name);
  }
  return names;
}

}  // namespace

AuditWatch::AuditWatch(const web::CurrentSnapshot& current, std::shared_ptr<history::Reader> history)
    : state_(std::make_shared<State>()),
      thread_([state = state_, &current, kept = std::move(history)] { work(*state, current, kept.get()); }) {}

AuditWatch::~AuditWatch() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->wake.notify_all();
  const bool ended = state_->wake.wait_for(lock, kPatience, [this] { return state_->ended; });
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

std::shared_ptr<const AuditWatch::Findings> AuditWatch::findings() const {
  const std::lock_guard lock(state_->mutex);
  return state_->findings;
}

void AuditWatch::work(State& state, const web::CurrentSnapshot& current, history::Reader* history) {
  Pasts pasts;
  std::optional<std::chrono::steady_clock::time_point> read_at;
  std::unique_lock lock(state.mutex);
  state.wake.wait(lock, [&] { return state.stop || state.inventory != nullptr; });
  while (!state.stop) {
    const auto inventory = state.inventory;
    const auto snapshot = current.get();  // under the lock: once stop is set, nobody looks at it any more
    lock.unlock();
    const auto now = std::chrono::steady_clock::now();
    if (history != nullptr && (!read_at || now - *read_at >= kPastInterval)) {
      // Where it cannot be read the evidence stays what it was: the history says so itself.
      pasts = gathering::read_pasts(*history, names_of(*inventory), std::chrono::system_clock::now())
                  .value_or(std::move(pasts));
      read_at = now;
    }
    auto found = look(*inventory, snapshot, pasts);
    lock.lock();
    state.findings = std::move(found);
    state.wake.wait_for(lock, kInterval, [&] { return state.stop; });
  }
  state.ended = true;
  state.wake.notify_all();
}

std::shared_ptr<const AuditWatch::Findings> AuditWatch::look(const model::Inventory& inventory,
                                                             const std::shared_ptr<const model::Snapshot>& snapshot,
                                                             const Pasts& pasts) {
  audit::Facts facts;
  facts.pasts = pasts;
  facts.settings = settings::read({}, inventory);
  if (snapshot) {
    // A page of its own, whose bytes are gone afterwards.
    exposition::MetricsPage page;
    facts.measured = audit::Measurements::parse(page.get(snapshot, "text/plain", "")->bytes);
  }
  auto kept = std::make_shared<Findings>();
  audit::Accepted result = audit::accept(audit::judge(facts), acceptances(), audit::today());
  for (model::Finding& one : result.standing) {
    if (one.verdict == model::Verdict::danger || one.verdict == model::Verdict::advise) {
      kept->push_back(std::move(one));
    }
  }
  return kept;
}

}  // namespace ssdpulse::runtime

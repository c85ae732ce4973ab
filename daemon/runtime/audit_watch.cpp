// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/audit_watch.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "daemon/audit/audit.h"
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

}  // namespace

AuditWatch::AuditWatch(const web::CurrentSnapshot& current) : current_(current), thread_([this] { work(); }) {}

AuditWatch::~AuditWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void AuditWatch::observe(std::shared_ptr<const model::Inventory> inventory) {
  const std::lock_guard lock(mutex_);
  const bool first = inventory_ == nullptr;
  inventory_ = std::move(inventory);
  if (first) {
    wake_.notify_all();
  }
}

std::shared_ptr<const AuditWatch::Findings> AuditWatch::findings() const {
  const std::lock_guard lock(mutex_);
  return findings_;
}

void AuditWatch::work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || inventory_ != nullptr; });
  while (!stop_) {
    const auto inventory = inventory_;
    lock.unlock();
    auto found = look(*inventory);
    lock.lock();
    findings_ = std::move(found);
    wake_.wait_for(lock, kInterval, [this] { return stop_; });
  }
}

std::shared_ptr<const AuditWatch::Findings> AuditWatch::look(const model::Inventory& inventory) const {
  audit::Facts facts;
  facts.settings = settings::read({}, inventory);
  if (const auto snapshot = current_.get()) {
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

// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme_monitor.h"

#include <algorithm>
#include <utility>

#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::runtime {
namespace {

using namespace std::chrono_literals;

/// Refused pages are tried again now and then: FDP can be switched on, firmware can learn.
constexpr auto kRefusalsLast = 24h;

/// A disk that answers later than this is not waited for: its past is not worth the present.
constexpr auto kPatienceWithHistory = 10s;
constexpr auto kPastOfInterest = std::chrono::days(7);

std::string key_of(const nvme::NvmeSubsystem& subsystem) { return subsystem.nqn + '\n' + subsystem.serial; }

}  // namespace

util::Result<std::unique_ptr<NvmeMonitor>> NvmeMonitor::start(std::chrono::nanoseconds poll_interval) {
  auto reader = nvme::ReaderClient::spawn();
  if (!reader) {
    return tl::make_unexpected(reader.error());
  }
  std::unique_ptr<NvmeMonitor> monitor(new NvmeMonitor);
  monitor->reader_ = std::move(*reader);
  monitor->interval_ = poll_interval;
  monitor->status_ = {"nvme", true, "", {}};
  monitor->refresh_drives();
  return monitor;
}

int NvmeMonitor::descriptor() const { return status_.up ? reader_->descriptor() : -1; }

std::optional<SteadyTime> NvmeMonitor::deadline() const {
  std::optional<SteadyTime> first;
  for (const auto& [key, drive] : drives_) {
    const auto deadline = drive.deadline();
    if (deadline && (!first || *deadline < *first)) {
      first = deadline;
    }
  }
  return first;
}

void NvmeMonitor::refresh_drives() {
  auto host = nvme::read_nvme_host();
  if (!host) {
    ++status_.errors["sysfs"];
    if (limiter_.admit("sysfs")) {
      spdlog::warn("NVMe drives: {}", host.error().message);
    }
    return;
  }
  for (const std::string& warning : host->warnings) {
    if (limiter_.admit(warning)) {
      spdlog::warn("NVMe drives: {}", warning);
    }
  }
  std::map<std::string, NvmeDrive> before = std::exchange(drives_, {});
  const SteadyTime now = std::chrono::steady_clock::now();
  const auto drives = static_cast<std::int64_t>(std::max<std::size_t>(1, host->subsystems.size()));
  std::int64_t place = 0;
  for (nvme::NvmeSubsystem& subsystem : host->subsystems) {
    const std::string key = key_of(subsystem);
    if (auto known = before.find(key); known != before.end()) {
      known->second.update(std::move(subsystem));
      drives_.insert(before.extract(known));
    } else {
      drives_.try_emplace(key, std::move(subsystem), refused_, now, interval_ * place / drives);
    }
    ++place;
  }
  // What is gone does not get its answer.
  for (auto entry = outstanding_.begin(); entry != outstanding_.end();) {
    entry = drives_.count(entry->second) == 0 ? outstanding_.erase(entry) : std::next(entry);
  }
}

void NvmeMonitor::send(NvmeDrive& drive, const std::string& key, const ReadBlockLayer& block) {
  const auto request = drive.next();
  if (!request) {
    return;
  }
  const auto id = reader_->send(*request);
  if (id) {
    outstanding_[*id] = key;
    drive.sent(std::chrono::steady_clock::now());
  } else {
    nvme::Response none;
    none.result = -id.error().error_number;
    drive.answer(none, block);
  }
}

void NvmeMonitor::receive(const ReadBlockLayer& block) {
  for (const nvme::Response& response : reader_->receive()) {
    const auto asked = outstanding_.extract(response.id);
    if (!asked.empty()) {
      drives_.at(asked.mapped()).answer(response, block);
    }
  }
  if (reader_->ended() && status_.up) {
    status_.up = false;
    status_.reason = "the reader of NVMe logs is gone; restart the daemon";
    spdlog::error("{}", status_.reason);
  }
}

void NvmeMonitor::advance(const ReadBlockLayer& block) {
  receive(block);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now - refusals_forgotten_at_ >= kRefusalsLast) {
    refusals_forgotten_at_ = now;
    refused_.forget();
  }
  if (!status_.up) {
    return;
  }
  for (auto& [key, drive] : drives_) {
    drive.advance(now, interval_, block);
    send(drive, key, block);
    recall(drive, key, now);
  }
  const auto minute = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
  if (const std::int64_t number = minute.time_since_epoch().count(); number != minute_) {
    minute_ = number;
    save(block);
  }
}

void NvmeMonitor::recall(NvmeDrive& drive, const std::string& key, SteadyTime now) {
  if (const auto wanted = drive.asks_for_history()) {
    if (!history_) {
      drive.remember(history::Recalled{});
      return;
    }
    const auto since = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now()) - kPastOfInterest;
    recalls_[key] = {history_->recall(*wanted, since), now};
  }
  const auto asked = recalls_.find(key);
  if (asked == recalls_.end()) {
    return;
  }
  if (asked->second.answer.wait_for(0s) == std::future_status::ready) {
    drive.remember(asked->second.answer.get());
  } else if (now - asked->second.asked_at > kPatienceWithHistory) {
    drive.remember(util::fail("the history does not answer"));
  } else {
    return;
  }
  recalls_.erase(asked);
}

void NvmeMonitor::save(const ReadBlockLayer& block) {
  if (!history_) {
    return;
  }
  history::Batch batch;
  for (auto& [key, drive] : drives_) {
    drive.add_minute(batch, block);
  }
  if (!batch.minutes.empty()) {
    history_->add(std::move(batch));
  }
}

void NvmeMonitor::poll_soon(const std::string& device) {
  for (auto& [key, drive] : drives_) {
    const auto& namespaces = drive.subsystem().namespaces;
    if (std::any_of(namespaces.begin(), namespaces.end(), [&](const auto& entry) { return entry.device == device; })) {
      drive.poll_soon();
    }
  }
}

void NvmeMonitor::describe(model::Snapshot& snapshot) const {
  const SteadyTime now = std::chrono::steady_clock::now();
  snapshot.sources.push_back(status_);
  if (history_) {
    const history::Status status = history_->status();
    snapshot.sources.push_back({"history",
                                status.up,
                                status.reason,
                                {{"failure", status.failures},
                                 {"dropped_row", status.rows_dropped},
                                 {"unreadable_row", status.rows_unreadable},
                                 {"file_set_aside", status.files_set_aside}}});
    snapshot.history = {status.rows_written, status.rows_deleted, status.bytes_on_disk};
  }
  for (const auto& [key, drive] : drives_) {
    model::NvmeDrive described = drive.describe(now);
    snapshot.sources.push_back({"nvme", status_.up && described.polling.up,
                                status_.up ? described.polling.reason : status_.reason, described.polling.failures,
                                described.identity->controller});
    snapshot.nvme_drives.push_back(std::move(described));
  }
  std::sort(snapshot.nvme_drives.begin(), snapshot.nvme_drives.end(),
            [](const auto& a, const auto& b) { return a.identity->controller < b.identity->controller; });
}

}  // namespace ssdpulse::runtime

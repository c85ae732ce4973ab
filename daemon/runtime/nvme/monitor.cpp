// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme/monitor.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::runtime {
namespace {

using namespace std::chrono_literals;

/// Refused pages are tried again now and then: FDP can be switched on, firmware can learn.
constexpr auto kRefusalsLast = 24h;

/// A disk that answers later than this is waited for, but not with what is known without it.
constexpr auto kPatienceWithHistory = 10s;
constexpr auto kPastOfInterest = std::chrono::days(7);

history::Minute minute_of(model::WallTime time) { return std::chrono::floor<std::chrono::minutes>(time); }
history::Minute this_minute() { return minute_of(std::chrono::system_clock::now()); }

std::string key_of(const nvme::NvmeSubsystem& subsystem) { return subsystem.nqn + '\n' + subsystem.serial; }

}  // namespace

util::Result<std::unique_ptr<NvmeMonitor>> NvmeMonitor::start(std::chrono::nanoseconds poll_interval,
                                                              const std::string& reader_socket) {
  auto reader = reader_socket.empty() ? nvme::ReaderClient::spawn() : nvme::ReaderClient::at(reader_socket);
  if (!reader) {
    return tl::make_unexpected(reader.error());
  }
  auto monitor = std::make_unique<NvmeMonitor>(std::move(*reader), poll_interval);
  monitor->reconnect(std::chrono::steady_clock::now());  // to one that is somewhere else, if it is there
  return monitor;
}

NvmeMonitor::NvmeMonitor(std::unique_ptr<nvme::ReaderClient> reader, std::chrono::nanoseconds poll_interval,
                         std::string sys_root, std::chrono::nanoseconds reconnect_pause)
    : reader_(std::move(reader)),
      interval_(poll_interval),
      reconnect_pause_(reconnect_pause),
      minute_(this_minute()),
      may_ask_(!reader_->ended()),
      status_{"nvme", may_ask_, "", {}, {}} {
  lessons_.sys_root = std::move(sys_root);
  refresh_drives();
}

int NvmeMonitor::descriptor() const { return may_ask_ ? reader_->descriptor() : -1; }

std::optional<SteadyTime> NvmeMonitor::deadline() const {
  std::optional<SteadyTime> first;
  if (!may_ask_) {
    return first;  // nothing is asked any more
  }
  for (const auto& [key, drive] : drives_) {
    const auto deadline = drive.deadline();
    if (deadline && (!first || *deadline < *first)) {
      first = deadline;
    }
  }
  return first;
}

void NvmeMonitor::refresh_drives() {
  auto host = nvme::read_nvme_host(lessons_.sys_root);
  if (!host) {
    ++status_.errors["sysfs"];
    if (limiter_.admit("sysfs")) {
      log::warning("NVMe drives: {}", host.error().message);
    }
    return;
  }
  for (const std::string& warning : host->warnings) {
    if (limiter_.admit(warning)) {
      log::warning("NVMe drives: {}", warning);
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
      drives_.try_emplace(key, std::move(subsystem), lessons_, now, interval_ * place / drives);
    }
    ++place;
  }
  // A drive that is gone gets neither its answers nor its history.
  std::erase_if(recalls_, [&](const auto& entry) { return drives_.count(entry.first) == 0; });
  for (auto entry = outstanding_.begin(); entry != outstanding_.end();) {
    entry = drives_.count(entry->second) == 0 ? outstanding_.erase(entry) : std::next(entry);
  }
}

void NvmeMonitor::send(NvmeDrive& drive, const std::string& key, BlockLayer& block) {
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
    drive.answer(none, std::chrono::steady_clock::now(), block);
  }
}

void NvmeMonitor::receive(BlockLayer& block) {
  for (const nvme::Response& response : reader_->receive()) {
    answered_ = answered_ || response.result != -ECONNRESET;  // which the client itself answers if there is no reader
    const auto asked = outstanding_.extract(response.id);
    if (!asked.empty()) {
      drives_.at(asked.mapped()).answer(response, std::chrono::steady_clock::now(), block);
    }
  }
  note_garbage();
  note_other_version();
  if (!reader_->ended()) {
    return;
  }
  status_.up = false;
  if (std::exchange(may_ask_, false)) {
    ++status_.errors["reader_gone"];
    status_.reason = reader_->can_reconnect() ? "the reader of NVMe logs is gone; waiting for it"
                                              : "the reader of NVMe logs is gone; restart the daemon";
    if (const auto suppressed = limiter_.admit("gone")) {
      log::error("{} suppressed={}", status_.reason, *suppressed);
    }
  }
  reconnect(std::chrono::steady_clock::now());
}

void NvmeMonitor::reconnect(SteadyTime now) {
  if (!reader_->can_reconnect() || (reconnected_at_ && now - *reconnected_at_ < reconnect_pause_)) {
    return;
  }
  reconnected_at_ = now;
  if (const auto connected = reader_->reconnect(); !connected) {
    status_.reason = connected.error().message;
    if (const auto suppressed = limiter_.admit("reconnect")) {
      log::warning("{}: drives are not read suppressed={}", status_.reason, *suppressed);
    }
    return;
  }
  may_ask_ = true;
  answered_ = false;
  status_.reason = "connected to the reader of NVMe logs, but nothing has answered yet";
  for (auto& [key, drive] : drives_) {
    drive.poll_soon();
  }
}

/// A connection alone says little: systemd takes it for a reader that cannot start, and one that serves another daemon
/// ends it at once. So an answer is waited for, or, where there is nothing to ask, whether it lasts.
void NvmeMonitor::note_that_it_serves(SteadyTime now) {
  const bool lasts = drives_.empty() && reconnected_at_ && now - *reconnected_at_ >= reconnect_pause_;
  if (!may_ask_ || status_.up || !(answered_ || lasts)) {
    return;
  }
  status_.up = true;
  status_.reason.clear();
  if (const auto suppressed = limiter_.admit("connected")) {
    log::info("connected to the reader of NVMe logs suppressed={}", *suppressed);
  }
}

void NvmeMonitor::note_garbage() {
  const std::uint64_t garbage = reader_->garbage();
  if (garbage != std::exchange(garbage_, garbage)) {
    status_.errors["garbage"] = garbage;
    if (limiter_.admit("garbage")) {
      log::warning("the reader of NVMe logs sent invalid answers messages={}", garbage);
    }
  }
}

/// It would read other pages than are meant. Its socket is kept, to see it end.
void NvmeMonitor::note_other_version() {
  if (!reader_->misunderstood() || !std::exchange(may_ask_, false)) {
    return;
  }
  status_.up = false;
  ++status_.errors["reader_version"];
  status_.reason = "the reader of NVMe logs is of another version: restart ssdpulse-nvme.service";
  if (const auto suppressed = limiter_.admit("version")) {
    log::error("{}; until then drives are not read suppressed={}", status_.reason, *suppressed);
  }
}

/// The answer was in a message that was dropped, or the kernel itself has lost the command.
void NvmeMonitor::give_up(NvmeDrive& drive, const std::string& key, BlockLayer& block) {
  for (auto entry = outstanding_.begin(); entry != outstanding_.end(); ++entry) {
    if (entry->second == key) {
      reader_->give_up(entry->first);
      outstanding_.erase(entry);
      break;
    }
  }
  nvme::Response none;
  none.result = -ETIMEDOUT;
  drive.answer(none, std::chrono::steady_clock::now(), block);
}

void NvmeMonitor::advance(BlockLayer& block, model::WallTime wall) {
  receive(block);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now - refusals_forgotten_at_ >= kRefusalsLast) {
    refusals_forgotten_at_ = now;
    lessons_.refused.forget();
  }
  note_that_it_serves(now);
  if (const auto minute = minute_of(wall); minute != minute_) {
    save(block);
    minute_ = minute;
  }
  if (!may_ask_) {
    return;
  }
  bool replaced = false;
  for (auto& [key, drive] : drives_) {
    if (drive.given_up(now)) {
      give_up(drive, key, block);
    }
    drive.advance(now, interval_, block);
    send(drive, key, block);
    recall(drive, key, now);
    replaced = replaced || drive.replaced();
  }
  if (replaced) {
    refresh_drives();
  }
}

void NvmeMonitor::recall(NvmeDrive& drive, const std::string& key, SteadyTime now) {
  if (const auto wanted = drive.asks_for_history(now)) {
    if (!history_) {
      drive.remember(history::Recalled{}, now);
      return;
    }
    recalls_[key] = {history_->recall(*wanted, this_minute() - kPastOfInterest), now};
  }
  const auto asked = recalls_.find(key);
  if (asked == recalls_.end()) {
    return;
  }
  if (asked->second.answer.wait_for(0s) == std::future_status::ready) {
    drive.remember(asked->second.answer.get(), now);
    recalls_.erase(asked);
  } else if (now - asked->second.asked_at > kPatienceWithHistory) {
    drive.begin_without_past("the history does not answer yet");
  }
}

void NvmeMonitor::save(BlockLayer& block) {
  if (!history_) {
    return;
  }
  const SteadyTime now = std::chrono::steady_clock::now();
  history::Batch batch;
  for (auto& [key, drive] : drives_) {
    drive.end_minute(minute_, batch, now, block);
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

// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme/drive_monitor.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "daemon/nvme_pages/kept_pages.h"

namespace ssdpulse::nvme {
namespace {

using log::field;
using namespace std::chrono_literals;

/// Refused pages are tried again now and then: FDP can be switched on, new firmware can support more.
constexpr auto kRefusalsLast = 24h;

std::string key_of(const NvmeSubsystem& subsystem) { return subsystem.nqn.raw() + '\n' + subsystem.serial.raw(); }

/// Makes subsystems of the same name and serial number different: adds the address to the name, and the number where
/// the addresses are the same, too. Returns a line for each.
std::vector<log::Line> keep_apart(std::vector<NvmeSubsystem>& subsystems) {
  std::map<std::string, int> of_key;
  for (const NvmeSubsystem& subsystem : subsystems) {
    ++of_key[key_of(subsystem)];
  }
  std::vector<log::Line> lines;
  std::set<std::string> keys;
  for (NvmeSubsystem& subsystem : subsystems) {
    if (of_key.at(key_of(subsystem)) > 1) {
      lines.push_back(log::line(log::Level::warning,
                                "NVMe drives: nvme{} has the subsystem and serial number of another drive, {}: what "
                                "is known of it is kept by its address, {}",
                                subsystem.controller, log::quoted("serial", util::for_log(subsystem.serial)),
                                subsystem.address.empty() ? "its name" : subsystem.address));
      subsystem.nqn = subsystem.nqn.raw() + " | at " + subsystem.address;
    }
    if (!keys.insert(key_of(subsystem)).second) {
      subsystem.nqn = subsystem.nqn.raw() + " | name nvme" + std::to_string(subsystem.controller);
      keys.insert(key_of(subsystem));
    }
  }
  return lines;
}

}  // namespace

util::Result<std::unique_ptr<DriveMonitor>> DriveMonitor::start(std::chrono::nanoseconds poll_interval,
                                                                const std::string& reader_socket) {
  auto reader = reader_socket.empty() ? ReaderClient::spawn() : ReaderClient::at(reader_socket);
  if (!reader) {
    return tl::make_unexpected(reader.error());
  }
  auto monitor = std::make_unique<DriveMonitor>(std::move(*reader), poll_interval);
  monitor->reconnect(std::chrono::steady_clock::now());  // to a reader that is a separate service, if it is there
  return monitor;
}

DriveMonitor::DriveMonitor(std::unique_ptr<ReaderClient> reader, std::chrono::nanoseconds poll_interval,
                           std::string sys_root, std::chrono::nanoseconds reconnect_pause)
    : reader_(std::move(reader)),
      interval_(poll_interval),
      reconnect_pause_(reconnect_pause),
      may_ask_(!reader_->ended()),
      status_{.name = "nvme", .up = may_ask_, .reason = "", .errors = {}} {
  lessons_.sys_root = std::move(sys_root);
  refresh_drives();
}

int DriveMonitor::descriptor() const { return may_ask_ ? reader_->descriptor() : -1; }

std::optional<SteadyTime> DriveMonitor::deadline() const {
  std::optional<SteadyTime> first;
  for (const auto& [key, drive] : drives_) {
    const auto deadline = may_ask_ ? drive.deadline() : std::nullopt;
    first = deadline ? std::min(*deadline, first.value_or(*deadline)) : first;
  }
  return first;
}

void DriveMonitor::refresh_drives() {
  auto host = read_nvme_host(lessons_.sys_root);
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
  for (const log::Line& clash : keep_apart(host->subsystems)) {
    if (limiter_.admit(clash.text)) {
      log::write(clash);
    }
  }
  std::map<std::string, PolledDrive> before = std::exchange(drives_, {});
  const SteadyTime now = std::chrono::steady_clock::now();
  const auto drives = static_cast<std::int64_t>(std::max<std::size_t>(1, host->subsystems.size()));
  std::int64_t number = 0;
  for (NvmeSubsystem& subsystem : host->subsystems) {
    const std::string key = key_of(subsystem);
    if (auto known = before.find(key); known != before.end()) {
      known->second.update(std::move(subsystem));
      drives_.insert(before.extract(known));
    } else {
      drives_.try_emplace(key, std::move(subsystem), lessons_, now, interval_ * number / drives);
    }
    ++number;
  }
  // Drives that are gone do not get their answers.
  for (auto entry = outstanding_.begin(); entry != outstanding_.end();) {
    entry = drives_.count(entry->second) == 0 ? outstanding_.erase(entry) : std::next(entry);
  }
}

void DriveMonitor::send(PolledDrive& drive, const std::string& key, BlockLayer& block) {
  const auto request = drive.next();
  if (!request) {
    return;
  }
  const auto id = reader_->send(*request);
  if (id) {
    outstanding_[*id] = key;
    drive.sent(std::chrono::steady_clock::now());
  } else {
    Response none;
    none.result = -id.error().error_number;
    drive.answer(none, std::chrono::steady_clock::now(), block);
  }
}

void DriveMonitor::receive(BlockLayer& block) {
  for (const Response& response : reader_->receive()) {
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
      log::error("{}", status_.reason, field("suppressed", *suppressed));
    }
  }
  reconnect(std::chrono::steady_clock::now());
}

void DriveMonitor::reconnect(SteadyTime now) {
  if (!reader_->can_reconnect() || (reconnected_at_ && now - *reconnected_at_ < reconnect_pause_)) {
    return;
  }
  reconnected_at_ = now;
  if (const auto connected = reader_->reconnect(); !connected) {
    status_.reason = connected.error().message;
    if (const auto suppressed = limiter_.admit("reconnect")) {
      log::warning("{}: drives are not read", status_.reason, field("suppressed", *suppressed));
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

/// A connection alone proves little: systemd accepts it for a reader that cannot start, and a reader that serves
/// another daemon closes it at once. So this waits for an answer or, if there is nothing to ask, for the connection to
/// last.
void DriveMonitor::note_that_it_serves(SteadyTime now) {
  const bool lasts = drives_.empty() && reconnected_at_ && now - *reconnected_at_ >= reconnect_pause_;
  if (!may_ask_ || status_.up || !(answered_ || lasts)) {
    return;
  }
  status_.up = true;
  status_.reason.clear();
  if (const auto suppressed = limiter_.admit("connected")) {
    log::info("connected to the reader of NVMe logs", field("suppressed", *suppressed));
  }
}

void DriveMonitor::note_garbage() {
  const std::uint64_t garbage = reader_->garbage();
  if (garbage != std::exchange(garbage_, garbage)) {
    status_.errors["garbage"] = garbage;
    if (limiter_.admit("garbage")) {
      log::warning("the reader of NVMe logs sent invalid answers", field("messages", garbage));
    }
  }
}

/// Such a reader would read other pages than those meant. Its socket is kept, to notice when it ends.
void DriveMonitor::note_other_version() {
  if (!reader_->misunderstood() || !std::exchange(may_ask_, false)) {
    return;
  }
  status_.up = false;
  ++status_.errors["reader_version"];
  status_.reason = "the reader of NVMe logs is a different version: restart ssdpulse-nvme.service";
  if (const auto suppressed = limiter_.admit("version")) {
    log::error("{}; until then drives are not read", status_.reason, field("suppressed", *suppressed));
  }
}

/// The answer was in a message that was dropped, or the kernel itself lost the command.
void DriveMonitor::abandon(PolledDrive& drive, const std::string& key, BlockLayer& block) {
  for (auto entry = outstanding_.begin(); entry != outstanding_.end(); ++entry) {
    if (entry->second == key) {
      reader_->abandon(entry->first);
      outstanding_.erase(entry);
      break;
    }
  }
  Response none;
  none.result = -ETIMEDOUT;
  drive.answer(none, std::chrono::steady_clock::now(), block);
}

void DriveMonitor::advance(BlockLayer& block) {
  receive(block);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now - refusals_forgotten_at_ >= kRefusalsLast) {
    refusals_forgotten_at_ = now;
    lessons_.refused.forget();
  }
  note_that_it_serves(now);
  if (!may_ask_) {
    return;
  }
  bool replaced = false;
  for (auto& [key, drive] : drives_) {
    if (drive.timed_out(now)) {
      abandon(drive, key, block);
    }
    drive.advance(now, interval_, block);
    send(drive, key, block);
    replaced = replaced || drive.replaced();
  }
  if (replaced) {
    refresh_drives();
  }
}

void DriveMonitor::poll_soon(const std::string& controller) {
  for (auto& [key, drive] : drives_) {
    if (drive.name() == controller) {
      drive.poll_soon();
    }
  }
}

void DriveMonitor::read_counters_again(const std::string& key) {
  if (const auto found = drives_.find(key); found != drives_.end()) {
    found->second.read_counters_again();
  }
}

std::vector<model::DriveTick> DriveMonitor::sample(SteadyTime now) {
  std::vector<model::DriveTick> ticks;
  for (auto& [key, drive] : drives_) {
    ticks.push_back(drive.sample(now));
    ticks.back().key = key;
  }
  std::sort(ticks.begin(), ticks.end(),
            [](const auto& a, const auto& b) { return a.drive->identity->controller < b.drive->identity->controller; });
  return ticks;
}

namespace {

constexpr auto kPollTimeout = 5s;

struct AskedDrive {
  DrivePoller poller;
  std::optional<DriveReading> reading = {};
  std::string failure = "did not answer within 5 s";
};

/// Takes the drive's reading if it is complete, else sends the next request.
void ask(AskedDrive& drive, ReaderClient& reader, std::map<std::uint64_t, AskedDrive*>& outstanding) {
  if (auto reading = drive.poller.take()) {
    drive.failure = reading->reason;
    drive.reading = std::move(reading);
    return;
  }
  if (const auto request = drive.poller.next()) {
    if (const auto id = reader.send(*request)) {
      outstanding[*id] = &drive;
    } else {
      drive.failure = id.error().message;
    }
  }
}

void ask_all(std::vector<AskedDrive>& drives, ReaderClient& reader) {
  std::map<std::uint64_t, AskedDrive*> outstanding;
  for (AskedDrive& drive : drives) {
    if (drive.poller.subsystem().live()) {
      drive.poller.begin(DrivePoller::Extent::all);
      ask(drive, reader, outstanding);
    } else {
      drive.failure = "controller state " + drive.poller.subsystem().state;
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kPollTimeout;
  while (!outstanding.empty() && std::chrono::steady_clock::now() < deadline) {
    pollfd readable{reader.descriptor(), POLLIN, 0};
    poll(&readable, 1, 100);
    for (const Response& response : reader.receive()) {
      if (const auto asked = outstanding.extract(response.id); !asked.empty()) {
        asked.mapped()->poller.answer(response);
        ask(*asked.mapped(), reader, outstanding);
      }
    }
    if (reader.ended()) {
      return;
    }
  }
}

}  // namespace

util::Result<std::vector<DriveAnswer>> poll_once() {
  const auto host = read_nvme_host();
  if (!host) {
    return tl::make_unexpected(host.error());
  }
  std::vector<DriveAnswer> answers;
  if (host->subsystems.empty()) {
    return answers;
  }
  RefusedPages refused;
  std::vector<AskedDrive> drives;
  for (const NvmeSubsystem& subsystem : host->subsystems) {
    drives.push_back({.poller = DrivePoller(subsystem, refused)});
  }
  if (const auto reader = ReaderClient::spawn()) {
    ask_all(drives, **reader);
  } else {
    for (AskedDrive& drive : drives) {
      drive.failure = reader.error().message;
    }
  }
  for (AskedDrive& drive : drives) {
    if (drive.reading && !(drive.reading->identity && drive.failure.empty())) {
      drive.reading.reset();
    }
    answers.push_back({drive.poller.subsystem(), std::move(drive.reading), std::move(drive.failure)});
  }
  return answers;
}

}  // namespace ssdpulse::nvme

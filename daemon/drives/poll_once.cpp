// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/poll_once.h"

#include <poll.h>

#include <chrono>
#include <map>
#include <utility>

#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/sources/nvme/reader_client.h"

namespace ssdpulse::drives {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollTimeout = 5s;

struct Asked {
  explicit Asked(nvme::NvmeSubsystem subsystem, nvme::RefusedPages& refused) : poller(std::move(subsystem), refused) {}
  nvme::DrivePoller poller;
  std::optional<nvme::DriveReading> reading;
  std::string failure = "did not answer within 5 s";
};

/// Takes the drive's reading if it is complete, else sends the next request.
void ask(Asked& drive, nvme::ReaderClient& reader, std::map<std::uint64_t, Asked*>& outstanding) {
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

void ask_all(std::vector<Asked>& drives, nvme::ReaderClient& reader) {
  std::map<std::uint64_t, Asked*> outstanding;
  for (Asked& drive : drives) {
    if (drive.poller.subsystem().live()) {
      drive.poller.begin(nvme::DrivePoller::Extent::all);
      ask(drive, reader, outstanding);
    } else {
      drive.failure = "controller state " + drive.poller.subsystem().state;
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kPollTimeout;
  while (!outstanding.empty() && std::chrono::steady_clock::now() < deadline) {
    pollfd readable{reader.descriptor(), POLLIN, 0};
    poll(&readable, 1, 100);
    for (const nvme::Response& response : reader.receive()) {
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
  const auto host = nvme::read_nvme_host();
  if (!host) {
    return tl::make_unexpected(host.error());
  }
  std::vector<DriveAnswer> answers;
  if (host->subsystems.empty()) {
    return answers;
  }
  nvme::RefusedPages refused;
  std::vector<Asked> drives;
  for (const nvme::NvmeSubsystem& subsystem : host->subsystems) {
    drives.emplace_back(subsystem, refused);
  }
  if (const auto reader = nvme::ReaderClient::spawn()) {
    ask_all(drives, **reader);
  } else {
    for (Asked& drive : drives) {
      drive.failure = reader.error().message;
    }
  }
  for (Asked& drive : drives) {
    if (drive.reading && !(drive.reading->identity && drive.failure.empty())) {
      drive.reading.reset();
    }
    answers.push_back({drive.poller.subsystem(), std::move(drive.reading), std::move(drive.failure)});
  }
  return answers;
}

}  // namespace ssdpulse::drives

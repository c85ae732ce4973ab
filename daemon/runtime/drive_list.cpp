// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/drive_list.h"

#include <poll.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "daemon/runtime/table.h"
#include "daemon/sources/nvme/controllers.h"
#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/sources/nvme/reader_client.h"
#include "daemon/sources/nvme/source_choice.h"

namespace ssdpulse::runtime {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 5s;

struct Asked {
  explicit Asked(nvme::NvmeSubsystem subsystem, nvme::RefusedPages& refused) : poller(std::move(subsystem), refused) {}
  nvme::DrivePoller poller;
  std::optional<nvme::DriveReading> reading;
  std::string failure = "did not answer within 5 s";
};

/// Sends what the drive wants to know next. False when there is nothing more to wait for.
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
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
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

std::string pages_of(const nvme::DriveReading& reading) {
  std::string names;
  std::string_view last;
  for (const nvme::PageReading& entry : reading.pages) {
    if (entry.page->name != last) {
      names += (names.empty() ? "" : " ") + std::string(entry.page->name);
    }
    last = entry.page->name;
  }
  return names;
}

}  // namespace

Identities print_drives(std::ostream& out) {
  const auto host = nvme::read_nvme_host();
  if (!host) {
    out << "\nNVMe drives: " << host.error().message << '\n';
    return {};
  }
  if (host->subsystems.empty()) {
    return {};
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
  Identities identities;
  std::vector<std::vector<std::string>> rows{
      {"CONTROLLER", "NAMESPACES", "FIRMWARE", "LOG PAGES", "WRITE AMPLIFICATION", "WHY"}};
  for (const Asked& drive : drives) {
    const nvme::NvmeSubsystem& subsystem = drive.poller.subsystem();
    std::string namespaces;
    for (const model::NvmeNamespace& entry : subsystem.namespaces) {
      namespaces += (namespaces.empty() ? "" : " ") + entry.device;
    }
    std::vector<std::string> row{"nvme" + std::to_string(subsystem.controller), namespaces,
                                 printable(subsystem.firmware)};
    if (drive.reading && drive.reading->identity && drive.failure.empty()) {
      const nvme::SourceChoice choice = choose_source(*drive.reading);
      for (const model::NvmeNamespace& entry : subsystem.namespaces) {
        identities[entry.device] = drive.reading->identity;
      }
      row.insert(row.end(), {pages_of(*drive.reading), choice.source.empty() ? "unknown" : choice.source,
                             printable(choice.reason)});
    } else {
      row.insert(row.end(), {"-", "unknown", "cannot be read: " + printable(drive.failure)});
    }
    rows.push_back(std::move(row));
  }
  out << '\n';
  print_table(rows, out);
  return identities;
}

}  // namespace ssdpulse::runtime

// SPDX-License-Identifier: Apache-2.0
// ssdpulse_tick_recorder FILE [DEVICE...]: measures these devices (all if none are named) as the daemon does, and
// records each second until it is interrupted. With --each DIRECTORY, in a file for each device: DEVICE.ticks.gz.
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <thread>

#include "daemon/runtime/sampler.h"
#include "tests/ticks/tick_recording.h"

namespace {

volatile std::sig_atomic_t stop_asked = 0;  // NOLINT: what a signal handler may set

constexpr std::chrono::seconds kTick{1};
constexpr int kTicksBetweenInventories = 5;  // mounts and cgroups of an incident are new

using Files = std::map<std::string, std::unique_ptr<ssdpulse::ticks::Writer>>;  // by device; "": of all of them

/// Of one device alone.
ssdpulse::model::Tick part_of(const ssdpulse::model::Tick& tick, const std::string& device) {
  ssdpulse::model::Tick part = tick;
  const auto is_other = [&](const auto& one) { return one.block.device->name != device; };
  std::erase_if(part.devices, is_other);
  std::erase_if(part.discards, [&](const auto& one) { return !one.first.starts_with(device); });
  auto inventory = std::make_shared<ssdpulse::model::Inventory>(*tick.inventory);
  std::erase_if(inventory->devices, [&](const auto& one) { return one.name != device; });
  std::erase_if(inventory->memberships, [&](const auto& one) { return one.device != device; });
  std::erase_if(inventory->filesystems, [&](const auto& one) { return one.device != device; });
  std::erase_if(inventory->volumes, [&](const auto& one) { return one.device != device; });
  part.inventory = std::move(inventory);
  return part;
}

int record(Files files, std::vector<std::string> devices) {
  using namespace ssdpulse;
  host::DeviceFilter filter;
  if (!devices.empty()) {
    filter.include = std::move(devices);
  }
  block::BlockChoices choices;
  choices.flash_samples = false;
  auto sampler = runtime::Sampler::open({}, filter, choices);
  if (!sampler) {
    std::fprintf(stderr, "%s\n", sampler.error().message.c_str());
    return 1;
  }
  (*sampler)->name_tenants(tenants::TenantNamer({}, std::nullopt));
  auto next = std::chrono::steady_clock::now();
  for (int number = 0; stop_asked == 0; ++number) {
    if (number % kTicksBetweenInventories == 0 || (*sampler)->saw_unknown_disks()) {
      (*sampler)->refresh_inventory();
    }
    const model::Tick tick = (*sampler)->sample();
    for (const auto& [device, writer] : files) {
      writer->add(device.empty() ? tick : part_of(tick, device));
    }
    if (number == 0) {
      std::puts("recording");
      std::fflush(stdout);
    }
    next += kTick;
    std::this_thread::sleep_until(next);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool each = !words.empty() && words.front() == "--each";
  if (each) {
    words.erase(words.begin());
  }
  if (words.empty() || words.front().starts_with("-") || (each && words.size() < 2)) {
    std::fputs(
        "usage: ssdpulse_tick_recorder FILE [DEVICE...]\n       ssdpulse_tick_recorder --each DIRECTORY DEVICE...\n",
        stderr);
    return 2;
  }
  for (const int number : {SIGINT, SIGTERM}) {
    std::signal(number, [](int) { stop_asked = 1; });
  }
  try {
    const std::string where = words.front();
    words.erase(words.begin());
    Files files;
    if (each) {
      for (const std::string& device : words) {
        files[device] = std::make_unique<ssdpulse::ticks::Writer>(where + "/" + device + ".ticks.gz");
      }
    } else {
      files[""] = std::make_unique<ssdpulse::ticks::Writer>(where);
    }
    return record(std::move(files), std::move(words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

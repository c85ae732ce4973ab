// SPDX-License-Identifier: Apache-2.0
// ssdpulse_tick_recorder FILE [DEVICE...]: measures these devices (all if none are named) as the daemon does, and
// records each second until it is interrupted.
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>

#include "daemon/runtime/sampler.h"
#include "tests/ticks/tick_recording.h"

namespace {

volatile std::sig_atomic_t stop_asked = 0;  // NOLINT: what a signal handler may set

constexpr std::chrono::seconds kTick{1};
constexpr int kTicksBetweenInventories = 5;  // mounts and cgroups of an incident are new

int record(const char* file, std::vector<std::string> devices) {
  using namespace ssdpulse;
  inventory::DeviceFilter filter;
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
  (*sampler)->name_tenants(analysis::TenantNamer({}, std::nullopt));
  ticks::Writer writer(file);
  auto next = std::chrono::steady_clock::now();
  for (int number = 0; stop_asked == 0; ++number) {
    if (number % kTicksBetweenInventories == 0 || (*sampler)->saw_unknown_disks()) {
      (*sampler)->refresh_inventory();
    }
    writer.add((*sampler)->look());
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
  if (argc < 2 || argv[1][0] == '-') {
    std::fputs("usage: ssdpulse_tick_recorder FILE [DEVICE...]\n", stderr);
    return 2;
  }
  for (const int number : {SIGINT, SIGTERM}) {
    std::signal(number, [](int) { stop_asked = 1; });
  }
  try {
    return record(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

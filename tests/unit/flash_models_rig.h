// SPDX-License-Identifier: Apache-2.0
// Hosts for the flash models: drives, and a kernel that samples what is written to them, by the rule in words: one page
// of each group, with consecutive indexes for the followed pages of a range. Shares only PageSample with the models.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/flash/flash_events.h"
#include "daemon/flash/model_set.h"
#include "tests/unit/flash_loads.h"

namespace ssdpulse::test {

inline constexpr std::uint64_t kFlashPage = 4096;

inline flash::FlashDrive flash_drive(const std::string& device, std::uint64_t pages, const std::string& serial = "") {
  flash::FlashDrive drive;
  drive.key = serial.empty() ? "serial of " + device : serial;
  drive.namespaces = {{device, pages * kFlashPage}};
  drive.facts.size_bytes = pages * kFlashPage;
  return drive;
}

inline flash::ModelSettings flash_settings(const std::string& directory = "", std::uint32_t seed = 77) {
  flash::ModelSettings settings;
  settings.rate_bits = 3;
  settings.directory = directory;
  settings.make_seed = [seed] { return seed; };
  return settings;
}

/// Plays the kernel side: samples with the parameters in force, which change one tick after a request.
class SamplingKernel {
 public:
  /// For all namespaces of `drives`, in their order: each load writes its pages.
  flash::FlashInput tick(const std::vector<flash::FlashDrive>& drives, const flash::Sampling& wanted,
                         std::map<std::string, FlashLoad>& loads, std::uint64_t pages_each) {
    flash::FlashInput input;
    at += std::chrono::seconds(1);
    input.at = at;
    input.wall =
        model::WallTime(std::chrono::seconds(1'790'000'000) + std::chrono::duration_cast<std::chrono::seconds>(at));
    input.drives = drives;
    auto samples = std::make_shared<model::FlashSamples>();
    for (auto& [device, load] : loads) {
      if (const auto found = in_force_.find(device); found != in_force_.end()) {
        write(device, found->second, load, pages_each, *samples);
      }
    }
    input.samples = samples;
    input.sampling = std::make_shared<flash::Sampling>(in_force_);
    if (in_force_ != wanted) {
      for (const auto& [device, parameters] : wanted) {
        if (in_force_.count(device) == 0 || !(in_force_[device] == parameters)) {
          totals_[device] = {device, ++numbers_, {}, {}};
        }
      }
      in_force_ = wanted;
    }
    return input;
  }
  /// As if the daemon had been restarted: nothing is sampled until it is requested again.
  void restart() { in_force_.clear(); }

  std::chrono::nanoseconds at{0};
  double loses = 0;

 private:
  void write(const std::string& device, const model::SamplingParameters& parameters, FlashLoad& load,
             std::uint64_t pages, model::FlashSamples& out) {
    const std::uint64_t drive_pages = std::uint64_t{parameters.followed} << parameters.rate_bits;
    const flash::PageSample sample(drive_pages, parameters.rate_bits, parameters.seed);
    model::DeviceFlashSamples& totals = totals_[device];
    const auto index = static_cast<std::uint16_t>(out.devices.size());
    for (std::uint64_t written = 0; written < pages;) {
      const FlashOperation operation = load();
      const auto range = sample.followed({parameters.first_page + operation.first, operation.count});
      const auto kind = operation.discard ? model::FlashEventKind::discard : model::FlashEventKind::write;
      if (!operation.discard) {
        written += operation.count;
        totals.written[operation.hint] += operation.count;
      }
      if (range.count > 0 && dice_.share() < loses) {
        ++totals.lost[static_cast<std::size_t>(kind)];
      } else if (range.count > 0) {
        out.events.push_back({static_cast<std::uint32_t>(range.first), static_cast<std::uint32_t>(range.count), index,
                              kind, operation.hint});
      }
    }
    out.devices.push_back(totals);
  }

  flash::Sampling in_force_;
  std::map<std::string, model::DeviceFlashSamples> totals_;
  std::uint64_t numbers_ = 0;
  FlashDice dice_{8};
};

inline constexpr std::uint64_t kPages = std::uint64_t{1} << 19;  // 2 GiB; one page of 8 is followed

/// One host, its models and its kernel.
struct Host {
  explicit Host(flash::ModelSettings settings, std::vector<flash::FlashDrive> all = {flash_drive("sda", kPages)})
      : drives(std::move(all)), models(std::make_unique<flash::ModelSet>(std::move(settings))) {
    begin();
  }
  /// Runs until the sampling that the models want is in force.
  void begin() {
    tick();
    tick();
  }
  void play(double drive_writes, std::uint64_t pages_a_tick = 8192) {
    for (double left = drive_writes * kPages; left > 0; left -= static_cast<double>(pages_a_tick)) {
      tick(pages_a_tick);
    }
  }
  void tick(std::uint64_t pages = 0) {
    last = kernel.tick(drives, *models->sampling(), loads, pages);
    models->observe(last);
  }
  /// Runs until all drives have been evaluated again.
  void settle() {
    for (int i = 0; i < 35; ++i) {
      tick();
    }
  }
  const model::FlashEstimate& drive(std::size_t index = 0) const { return models->figures()->drives.at(index); }

  std::vector<flash::FlashDrive> drives;
  std::map<std::string, FlashLoad> loads;
  SamplingKernel kernel;
  std::unique_ptr<flash::ModelSet> models;
  flash::FlashInput last;
};

inline std::optional<model::Estimate> likely(const model::FlashEstimate& drive) {
  return drive.likely[static_cast<std::size_t>(model::FlashWindow::drive_write)];
}

}  // namespace ssdpulse::test

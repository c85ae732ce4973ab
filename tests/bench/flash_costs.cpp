// SPDX-License-Identifier: Apache-2.0
// What does the flash model cost for each event, and at 100,000 writes of 4 KiB a second? CPU time of this thread.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "daemon/analysis/flash_model/model_budget.h"
#include "daemon/flash/model_set.h"
#include "tests/unit/flash_loads.h"

namespace {

using namespace ssdpulse;
using namespace ssdpulse::analysis;

constexpr double kIops = 100'000;
constexpr int kTicks = 30;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void one_drive(std::uint64_t bytes) {
  constexpr std::uint64_t kPageBytes = 4096;
  const FlashModelSettings asked{"bench", bytes, kPageBytes,
                                 0,       1,     default_what_ifs(usual_overprovisioning(bytes).likely)};
  const FlashModelSettings settings = settings_under({ModelScale::all, PageSample::kUsualPages, 9, 1, 0}, asked);
  FlashModel model(settings);
  test::FlashDice dice(1);
  double best = 1;
  std::vector<FlashEvent> events(1000);
  for (int tick = 0; tick < kTicks; ++tick) {
    for (FlashEvent& event : events) {
      event = {static_cast<std::uint32_t>(dice.below(model.sample().pages())), 1, 0, FlashEventKind::write, 0};
    }
    const double began = cpu_seconds();
    model.observe({std::chrono::seconds(tick), events, {events.size() << settings.rate_bits}, 0, 0});
    best = std::min(best, (cpu_seconds() - began) / static_cast<double>(events.size()));
  }
  std::printf("%.2f TB, one page of %u, %zu what-ifs, %.1f MB: %.2f us an event, %.4f %% of a core\n",
              static_cast<double>(bytes) / 1e12, 1U << settings.rate_bits, settings.what_ifs.size(),
              static_cast<double>(FlashModel::memory_bytes(settings)) / 1048576, best * 1e6,
              best * kIops / static_cast<double>(std::uint64_t{1} << settings.rate_bits) * 100);
}

void one_policy(model::CollectionPolicy policy) {
  constexpr std::uint32_t kPages = 65'536;
  constexpr std::uint32_t kWrites = 20'000;
  MiniatureDrive drive({kPages, 64, 0.12, policy, 1, 64}, true);
  test::FlashDice dice(2);
  double best = 1;
  for (int run = 0; run < kTicks; ++run) {
    const double began = cpu_seconds();
    for (std::uint32_t i = 0; i < kWrites; ++i) {
      drive.advance(0, 64);
      drive.write(static_cast<std::uint32_t>(dice.below(kPages)), 0);
    }
    best = run < kTicks / 2 ? 1 : std::min(best, (cpu_seconds() - began) / kWrites);  // steady by then
  }
  const auto name = model::kCollectionPolicyNames[static_cast<std::size_t>(policy)];
  std::printf("%.*s: %.0f ns a write and copy\n", static_cast<int>(name.size()), name.data(), best * 1e9);
}

/// All that the models' thread does, looks at the models among it: so many drives share 100,000 writes a second.
void one_host(std::size_t count) {
  flash::ModelSettings settings;
  settings.make_seed = [] { return 7U; };
  flash::ModelSet models(settings);
  flash::FlashInput input;
  for (std::size_t i = 0; i < count; ++i) {
    flash::FlashDrive drive;
    drive.key = drive.controller = "nvme" + std::to_string(i);
    drive.facts.size_bytes = 1'920'000'000'000;
    drive.namespaces = {{drive.controller + "n1", drive.facts.size_bytes}};
    input.drives.push_back(drive);
  }
  models.observe(input);
  auto samples = std::make_shared<model::FlashSamples>();
  for (const auto& [device, parameters] : *models.sampling()) {
    samples->devices.push_back({device, 1, {}, {}});
  }
  input.sampling = models.sampling();
  test::FlashDice dice(3);
  constexpr int kSeconds = 120;
  double used = 0;
  for (int second = 1; second <= kSeconds; ++second) {
    auto now = std::make_shared<model::FlashSamples>(*samples);
    for (std::uint16_t i = 0; i < now->devices.size(); ++i) {
      const model::SamplingParameters& parameters = models.sampling()->at(now->devices[i].device);
      const auto pages = static_cast<std::uint64_t>(kIops / static_cast<double>(count));
      samples->devices[i].written[0] = now->devices[i].written[0] += pages;
      for (std::uint64_t event = pages >> parameters.rate_bits; event > 0; --event) {
        now->events.push_back(
            {static_cast<std::uint32_t>(dice.below(parameters.followed)), 1, i, FlashEventKind::write, 0});
      }
    }
    input.samples = now;
    input.at = std::chrono::seconds(second);
    const double began = cpu_seconds();
    models.observe(input);
    used += cpu_seconds() - began;
  }
  const auto figures = models.figures();
  std::printf("%zu drives of 1.92 TB, %s: %.1f MB, %.2f MB a drive; 100,000 writes a second: %.3f %% of a core\n",
              count, figures->scale.c_str(), static_cast<double>(figures->memory_bytes) / 1e6,
              static_cast<double>(figures->memory_bytes) / 1e6 / static_cast<double>(count), used / kSeconds * 100);
}

}  // namespace

int main() {
  for (const std::uint64_t gib : {26U, 960U, 4096U, 30'720U}) {
    one_drive(gib << 30);
  }
  for (const std::size_t drives : {1U, 8U, 24U, 64U}) {
    one_host(drives);
  }
  for (std::size_t policy = 0; policy < model::kCollectionPolicies; ++policy) {
    one_policy(static_cast<model::CollectionPolicy>(policy));
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// ssdpulse_history_reach DRIVES DAYS [MIB [EACH [DIRECTORY]]]: how far does a history reach, and how large is it?
// Writes DAYS of minutes for DRIVES busy drives (600,000 I/Os a minute each, log-normal latencies) as fast as it can.
// With EACH 60, one row stands for an hour: that shows the space the hours take in a sixtieth of the time, and nothing
// about minutes.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>

#include "daemon/history/load_codec.h"
#include "daemon/history/store.h"

namespace {

using namespace ssdpulse;
using model::Latency;
using model::Minute;

constexpr std::int64_t kBegin = 29'000'040;

/// `ios` I/Os around a median, as on a drive under load.
model::SparseHistogram log_normal(std::mt19937_64& random, std::uint64_t ios, double median_seconds, double sigma) {
  constexpr std::uint64_t kDrawn = 20'000;
  std::lognormal_distribution<double> seconds(std::log(median_seconds), sigma);
  model::LatencyBuckets words(LATENCY_OVER_WORD + 1);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < std::min(ios, kDrawn); ++i) {
    const auto ns = static_cast<std::int64_t>(seconds(random) * 1e9);
    words[latency_word(ns)] += std::max<std::uint64_t>(ios / kDrawn, 1);
    sum += static_cast<std::uint64_t>(ns);
  }
  return {model::sparse(words), sum * std::max<std::uint64_t>(ios / kDrawn, 1)};
}

model::DeviceInterval busy_minute(std::mt19937_64& random) {
  model::DeviceInterval load;
  load.measured_ms = 60'000;
  const auto put = [&](Latency which, std::uint64_t ios, double median, double sigma) {
    load.latency(which) = log_normal(random, ios, median, sigma);
  };
  put(Latency::read_total, 400'000, 150e-6, 0.6);
  put(Latency::read_device_none, 390'000, 130e-6, 0.6);
  put(Latency::read_device_flush, 10'000, 300e-6, 0.8);
  put(Latency::read_queue, 400'000, 4e-6, 0.7);
  put(Latency::write_total, 200'000, 40e-6, 0.8);
  put(Latency::write_device_none, 195'000, 30e-6, 0.8);
  put(Latency::write_device_flush, 5'000, 90e-6, 0.9);
  put(Latency::write_queue, 200'000, 4e-6, 0.7);
  put(Latency::flush, 6'000, 900e-6, 0.5);
  put(Latency::commit, 6'000, 1e-3, 0.5);
  for (const auto operation : {model::Operation::read, model::Operation::write}) {
    load.operations[index(operation)] = {300'000, 300'000ULL * 16'384, random() % 1'000'000'000, 0, 0};
  }
  return load;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: ssdpulse_history_reach DRIVES DAYS [MIB [EACH [DIRECTORY]]]\n";
    return 2;
  }
  const std::int64_t drives = std::atoll(argv[1]);
  const std::int64_t days = std::atoll(argv[2]);
  history::StoreLimits limits;
  limits.bytes = static_cast<std::uint64_t>(argc > 3 ? std::atoll(argv[3]) : 512) << 20U;
  const std::int64_t each = argc > 4 ? std::atoll(argv[4]) : 1;
  const std::filesystem::path directory = argc > 5 ? argv[5] : "/dev/shm";
  const std::string path = directory / ("ssdpulse-reach-" + std::to_string(::getpid()) + ".db");
  std::mt19937_64 random(1);
  std::vector<model::DeviceInterval> loads(each > 1 ? 4 : 64);
  std::size_t bytes = 0;
  std::size_t histograms = 0;
  for (auto& load : loads) {
    for (std::int64_t minute = 0; minute < each; ++minute) {
      model::add(load, busy_minute(random));
    }
    bytes += history::encode(load).size();
    for (std::size_t i = 0; i < model::kLatencies; ++i) {
      histograms += load.latency(static_cast<Latency>(i)).empty() ? 0 : 1;
    }
  }
  std::cout << each << " busy minutes: " << bytes / loads.size() << " bytes, " << bytes / histograms
            << " a histogram\n";
  std::atomic<bool> stop = false;
  std::optional<history::FileIdentity> checked;
  auto store = history::Store::open(path, limits, checked, stop);
  model::PastReach reach;
  const std::int64_t end = days * 24 * 60;
  for (std::int64_t minute = 0; store && minute < end; minute += each) {
    model::Batch batch;
    for (std::int64_t drive = 0; drive < drives; ++drive) {
      const std::string name = "nvme" + std::to_string(drive) + "n1";
      batch.device_minutes.push_back({{"wwid " + name, name, "model", name},
                                      Minute(std::chrono::minutes(kBegin + minute)),
                                      loads[random() % loads.size()]});
    }
    const auto written =
        store->write(batch, {Minute(std::chrono::minutes(kBegin + minute + each)), std::chrono::minutes(each)});
    if (!written) {
      std::cerr << written.error().message << '\n';
      return 1;
    }
    reach = written->reach;
  }
  const auto days_of = [&](const std::optional<Minute>& from) {
    return from ? static_cast<double>(kBegin + end - from->time_since_epoch().count()) / 60 / 24 : 0.0;
  };
  std::cout << drives << " drives, " << days << " days: " << (std::filesystem::file_size(path) >> 20U)
            << " MiB, minutes of " << days_of(reach.minutes) << " days, hours of " << days_of(reach.hours) << " days\n";
  std::filesystem::remove(path);
  std::filesystem::remove(path + "-journal");
  return 0;
}

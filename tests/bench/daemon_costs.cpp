// SPDX-License-Identifier: Apache-2.0
// What do a sampling tick and a scrape cost on hosts larger than this one? Prints JSON lines for scrape.sh.
// Runs the daemon's own code on made-up tables for a given number of CPUs and of devices, all of them active. Cells
// change between ticks, outside the timed part. Of one large host, it runs all that the daemon does in a second without
// asking the kernel (daemon_second.h), and exits with 1 if that exceeds a limit.
#include <linux/types.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/block/io_cells.h"
#include "exporters/coding/content_coding.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"
#include "tests/bench/daemon_second.h"
#include "tests/unit/prometheus_snapshots.h"

namespace {

using namespace ssdpulse;

using bench::cpu_milliseconds;

/// Median of several runs; `prepare` is not timed.
double median_ms(const std::function<void()>& prepare, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    prepare();
    const double began = cpu_milliseconds();
    work();
    times.push_back(cpu_milliseconds() - began);
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

/// A device's latencies as on a busy host: two humps, spread over about eighty of the buckets.
class Latencies {
 public:
  std::size_t word() {
    return latency_word(static_cast<__s64>(std::exp(chance_(random_) < 0.9 ? fast_(random_) : slow_(random_))));
  }

 private:
  std::mt19937_64 random_{1};
  std::uniform_real_distribution<> chance_;
  std::normal_distribution<> fast_{std::log(90e3), 0.5};
  std::normal_distribution<> slow_{std::log(2e6), 1.0};
};

class Tables {
 public:
  Tables(std::uint32_t devices, std::uint32_t cpus)
      : hot_(std::size_t{devices} * cpus * HOT_CLASSES), cold_(std::size_t{devices} * COLD_CLASSES) {
    for (std::uint32_t device = 0; device < devices; ++device) {
      for (std::uint32_t i = 0; i < CLASSES; ++i) {
        if (i < HOT_CLASSES) {
          readers_.emplace_back(hot_, std::size_t{device} * cpus * HOT_CLASSES + i, HOT_CLASSES, cpus);
        } else {
          readers_.emplace_back(cold_, std::size_t{device} * COLD_CLASSES + i - HOT_CLASSES, 1, 1);
        }
      }
    }
    operations_.resize(readers_.size());
  }

  void some_io() {
    const auto touch = [this](io_cell& cell) {
      for (int i = 0; i < 8; ++i) {
        cell.issues += 1;
        cell.completions += 1;
        cell.bytes += 4096;
        cell.device_sum_ns[0] += 90'000;
        cell.device[0][latencies_.word()] += 1;
        cell.total[latencies_.word()] += 1;
        cell.queue[latencies_.word()] += 1;
        cell.size[13] += 1;
      }
    };
    std::for_each(hot_.begin(), hot_.end(), touch);
    std::for_each(cold_.begin(), cold_.end(), touch);
  }

  void tick() {
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (const block::CellWords* words = readers_[i].read()) {
        block::decode_cell(*words, operations_[i]);
      }
    }
  }

 private:
  Latencies latencies_;
  std::vector<io_cell> hot_;
  std::vector<io_cell> cold_;
  std::vector<block::CellReader> readers_;
  std::vector<model::OperationIo> operations_;
};

/// I/Os during nothing, a discard, a flush, both.
constexpr std::array<int, model::kDurings> kSamples{20'000, 500, 2'000, 50};

/// A host with this many busy NVMe drives, every family in use.
model::Snapshot host(std::uint32_t devices) {
  Latencies latencies;
  const auto latency = [&](int samples) {
    model::LatencyHistogram histogram;
    histogram.words.resize(LATENCY_OVER_WORD + 1);
    for (int i = 0; i < samples; ++i) {
      histogram.words[latencies.word()] += 1;
    }
    histogram.sum_ns = 4'000'000'000;
    return histogram;
  };
  model::Snapshot snapshot = test::small_snapshot();
  const model::DeviceSnapshot one_device = snapshot.devices.at(0);
  const model::NvmeDrive one_drive = snapshot.nvme_drives.at(0);
  snapshot.devices.clear();
  snapshot.nvme_drives.clear();
  for (std::uint32_t number = 0; number < devices; ++number) {
    model::Device device = *one_device.device;
    device.name = "nvme" + std::to_string(number) + "n1";
    model::DeviceIo io = *one_device.io;
    // Reads and writes during everything; flushes and discards like those of a database with a journal.
    for (const auto operation :
         {model::Operation::read, model::Operation::write, model::Operation::flush, model::Operation::discard}) {
      model::OperationIo& of = io.operations[index(operation)];
      const bool hot = operation == model::Operation::read || operation == model::Operation::write;
      of.active = true;
      of.bytes = 123'456'789'012'345;
      for (std::size_t during = 0; during < (hot ? model::kDurings : 1); ++during) {
        of.device_latency[during] = latency(kSamples.at(during));
      }
      of.queue_latency = latency(kSamples[0]);
      of.total_latency = latency(kSamples[0]);
      of.size = test::size({{10, 5}, {13, 900'000}, {14, 5000}, {16, 12'345}, {18, 77}, {20, 3}}, 4'096'000'000);
    }
    model::NvmeDrive drive = one_drive;
    auto identity = *drive.identity;
    identity.controller = "nvme" + std::to_string(number);
    identity.namespaces = {{device.name, 1, 1}};
    drive.identity = std::make_shared<const model::NvmeIdentity>(identity);
    snapshot.nvme_drives.push_back(drive);
    model::DeviceSnapshot entry = one_device;
    entry.device = std::make_shared<const model::Device>(device);
    entry.io = std::make_shared<const model::DeviceIo>(io);
    snapshot.devices.push_back(entry);
  }
  return snapshot;
}

void scrape_of(std::uint32_t devices) {
  const model::Snapshot snapshot = host(devices);
  std::string text;
  std::string protobuf;
  std::string packed;
  std::string native;
  std::string packed_native;
  const auto nothing = [] {};
  const double collect_ms = median_ms(nothing, [&] { (void)exposition::collect(snapshot); });
  const double text_ms = median_ms(nothing, [&] { text = exposition::render_text(exposition::collect(snapshot)); });
  const double protobuf_ms =
      median_ms(nothing, [&] { protobuf = exposition::render_protobuf(exposition::collect(snapshot)); });
  const double gzip_ms = median_ms(nothing, [&] { packed = coding::gzip(protobuf).value_or(""); });
  const double native_ms = median_ms(nothing, [&] {
    native = exposition::render_protobuf(exposition::collect(snapshot), exposition::Buckets::native);
  });
  const double native_gzip_ms = median_ms(nothing, [&] { packed_native = coding::gzip(native).value_or(""); });
  const std::string packed_text = coding::gzip(text).value_or("");
  std::printf(
      "{\"what\": \"scrape\", \"devices\": %u, \"collect_ms\": %.3f, \"text_ms\": %.3f, \"text_bytes\": %zu, "
      "\"text_gzip_bytes\": %zu, "
      "\"protobuf_ms\": %.3f, \"protobuf_bytes\": %zu, \"gzip_ms\": %.3f, \"protobuf_gzip_bytes\": %zu, "
      "\"native_ms\": %.3f, \"native_bytes\": %zu, \"native_gzip_ms\": %.3f, \"native_gzip_bytes\": %zu}\n",
      devices, collect_ms, text_ms, text.size(), packed_text.size(), protobuf_ms, protobuf.size(), gzip_ms,
      packed.size(), native_ms, native.size(), native_gzip_ms, packed_native.size());
}

void tick_of(std::uint32_t devices, std::uint32_t cpus) {
  Tables tables(devices, cpus);
  const double busy_ms = median_ms([&] { tables.some_io(); }, [&] { tables.tick(); });
  for (int i = 0; i < 40; ++i) {
    tables.tick();  // cells settle
  }
  const double idle_ms = median_ms([] {}, [&] { tables.tick(); });
  std::printf("{\"what\": \"tick\", \"devices\": %u, \"cpus\": %u, \"busy_ms\": %.3f, \"idle_ms\": %.3f}\n", devices,
              cpus, busy_ms, idle_ms);
}

/// CPU time of a second on the large host, in milliseconds; see deploy/docs/overhead.md.
struct Limit {
  const char* what;
  double ms;
};
constexpr auto kLimits = std::to_array<Limit>({
    {"tick", 20},
    {"scrape: text", 100},
    {"scrape: text, gzip", 100},
    {"scrape: protobuf, gzip", 100},
    {"scrape: protobuf with only native histograms, gzip", 100},
});

/// From /proc/self/status. The tables are shared memory.
std::uint64_t own_memory_bytes() {
  std::ifstream status("/proc/self/status");
  const std::string key = "RssAnon:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) {
      return std::stoull(line.substr(key.size())) << 10;
    }
  }
  return 0;
}

/// The least of what three rounds of some seconds give, each by its median: other work can only add to it.
class LeastTimes {
 public:
  void add(const bench::Times& round) {
    for (const auto& [what, ms] : round.medians()) {
      const auto known =
          std::find_if(least_.begin(), least_.end(), [&, &name = what](const auto& one) { return one.first == name; });
      if (known == least_.end()) {
        least_.emplace_back(what, ms);
      } else {
        known->second = std::min(known->second, ms);
      }
    }
  }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& all() const { return least_; }

 private:
  std::vector<std::pair<std::string, double>> least_;
};

/// False if something exceeds its limit.
bool report(const char* activity, const LeastTimes& times, const bench::DaemonSecond& daemon) {
  bool within = true;
  for (const auto& [what, ms] : times.all()) {
    const auto* limit =
        std::find_if(kLimits.begin(), kLimits.end(), [&, &name = what](const Limit& one) { return one.what == name; });
    const auto bytes = daemon.bytes().find(what);
    std::printf("{\"what\": \"second\", \"activity\": \"%s\", \"step\": \"%s\", \"ms\": %.3f", activity, what.c_str(),
                ms);
    if (bytes != daemon.bytes().end()) {
      std::printf(", \"bytes\": %zu", bytes->second);
    }
    if (limit != kLimits.end()) {
      std::printf(", \"limit_ms\": %.0f", limit->ms);
      within = within && ms <= limit->ms;
    }
    std::printf("}\n");
  }
  return within;
}

/// Every I/O that was made up must be in the figures: a quick tick that loses some would be of no use.
void check_counts(const bench::MadeUpHost& host, const model::Snapshot& snapshot) {
  std::uint64_t completions = 0;
  std::uint64_t tenants = 0;
  const auto add = [&](const model::TotalsByOperation& totals) { tenants += totals[0].ios + totals[1].ios; };
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    completions += device.io->operation(model::Operation::read).completions;
    completions += device.io->operation(model::Operation::write).completions;
    for (const model::TenantIo& tenant : device.tenants->tenants) {
      add(tenant.totals);
    }
    add(device.tenants->other);
  }
  if (completions != host.written_ios() || tenants != host.written_ios()) {
    std::fprintf(stderr, "%lu I/Os were made up, %lu counted, %lu of tenants\n", host.written_ios(), completions,
                 tenants);
    std::exit(EXIT_FAILURE);
  }
}

bool second_of(std::uint32_t drives, std::uint32_t cpus) {
  constexpr int kRounds = 3;
  constexpr int kSeconds = 15;
  constexpr double kUsualShare = 0.2;
  bench::MadeUpHost host(drives, cpus);
  const std::uint64_t memory_before = own_memory_bytes();
  bench::DaemonSecond daemon(host);
  const block::MemoryPlan& plan = host.plan();
  std::printf(
      "{\"what\": \"host\", \"drives\": %u, \"cpus\": %u, \"table_bytes\": %lu, \"tagged_cells\": %u, "
      "\"commit_cells\": %u, "
      "\"unattributed_cells\": %u}\n",
      drives, cpus, plan.total_bytes(), plan.tagged_cells, plan.commit_cells, plan.unattributed_cells);
  bench::Times unused;
  for (int i = 0; i < 3; ++i) {  // what is only done at first
    host.all_busy();
    daemon.tick(unused);
  }
  daemon.remember();
  bool within = true;
  const auto run = [&](const char* activity, const auto& make_up) {
    LeastTimes least;
    for (int round = 0; round < kRounds; ++round) {
      bench::Times times;
      for (int second = 0; second < kSeconds; ++second) {
        make_up();
        host.leave_caches();
        daemon.tick(times);
        if (second % 5 == 0) {
          daemon.scrape(times);
        }
        daemon.view(times);
      }
      least.add(times);
    }
    within = report(activity, least, daemon) && within;
    std::fflush(stdout);
  };
  run("all busy", [&] { host.all_busy(); });
  run("a fifth busy", [&] { host.some_busy(kUsualShare); });
  // Twice, for attributed I/O may wait for the device's own counts.
  daemon.tick(unused);
  daemon.tick(unused);
  check_counts(host, daemon.snapshot());
  for (int i = 0; i < 40; ++i) {
    daemon.tick(unused);  // cells settle
  }
  run("idle", [] {});
  std::printf("{\"what\": \"memory\", \"own_bytes\": %lu}\n", own_memory_bytes() - memory_before);
  return within;
}

}  // namespace

int main(int argc, char** argv) {
  // As the daemon does it: see limit_malloc().
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  const bool large_alone = argc > 1 && std::string(argv[1]) == "--large";
  for (const std::uint32_t devices : {1U, 16U, 64U}) {
    if (!large_alone) {
      tick_of(devices, 64);
      scrape_of(devices);
      std::fflush(stdout);
    }
  }
  return second_of(24, 384) ? EXIT_SUCCESS : EXIT_FAILURE;
}

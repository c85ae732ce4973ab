// SPDX-License-Identifier: Apache-2.0
// What do a sampling tick and a scrape cost on hosts larger than this one? Prints JSON lines for scrape.sh.
// Runs the daemon's own code on made-up tables for a given number of CPUs and of devices, all of them active. Cells
// change between ticks, outside the timed part.
#include <linux/types.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/block/io_cells.h"
#include "exporters/coding/content_coding.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/metric_formats.h"
#include "tests/unit/prometheus_snapshots.h"

namespace {

using namespace ssdpulse;

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

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

}  // namespace

int main() {
  for (const std::uint32_t devices : {1U, 16U, 64U}) {
    tick_of(devices, 64);
    scrape_of(devices);
    std::fflush(stdout);
  }
  return EXIT_SUCCESS;
}

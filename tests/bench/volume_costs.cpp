// SPDX-License-Identifier: Apache-2.0
// What do volumes add to a sampling tick? Prints the CPU time of each step, idle and with I/O on every volume: medians
// and the most, as some steps have their turn every few seconds. Logical volumes of one disk, in tables and files that
// are made up: files of sysfs cost more than these, which are in a temporary directory.
#include <fmt/format.h>
#include <linux/types.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bpf/abi/volume_abi.h"
#include "daemon/block/volume_bios.h"
#include "daemon/history/recent_past.h"
#include "daemon/host/host_reader.h"
#include "daemon/runtime/all_stages.h"
#include "daemon/runtime/kernel_account.h"
#include "tests/bench/daemon_second.h"
#include "tests/fixtures/temporary_tree.h"

namespace {

using namespace ssdpulse;

constexpr std::uint32_t kDmMajor = 253;

class VolumeHost {
 public:
  explicit VolumeHost(std::uint32_t volumes) {
    model::Inventory inventory;
    const auto add = [&](const std::string& name, std::uint32_t major, std::uint32_t minor) {
      model::Device device;
      device.name = name;
      device.coverage = major == kDmMajor ? model::Coverage::stacked : model::Coverage::measured;
      device.has_requests = major != kDmMajor;
      device.iostats = true;
      device.size_bytes = 1 << 30;
      inventory.devices.push_back(std::move(device));
      inventory.volumes.push_back({name, major, minor, name, major != kDmMajor});
      diskstats_ += fmt::format("{:4} {:7} {} 9 0 800 10 9 0 800 10 0 20 20 0 0 0 0 0 0\n", major, minor, name);
    };
    for (std::uint32_t minor = 0; minor < volumes; ++minor) {
      const std::string name = fmt::format("dm-{}", minor);
      add(name, kDmMajor, minor);
      const std::string title = fmt::format("vg-lv{}", minor);
      inventory.layers.push_back({name, title, model::LayerKind::lvm, {"sda"}, minor + 1});
      inventory.memberships.push_back({name, "sda", "dm", title});
      tree_.file("sys/block/" + name + "/dm/suspended", "0\n");
    }
    add("sda", 8, 0);
    tree_.file("proc/diskstats", diskstats_);
    std::sort(inventory.layers.begin(), inventory.layers.end(),
              [](const model::Layer& a, const model::Layer& b) { return a.name < b.name; });
    plan_ = block::plan_volumes(block::volume_rows(inventory), 4);
    cells_.resize(std::size_t{plan_.rows} * volume_cells_of_row(plan_.stripes));
    devices_.resize(DEVICE_ROW_ENTRIES);
    reader_ = std::make_unique<block::VolumeReader>(cells_, devices_, plan_, true);
    reader_->update(inventory);
    accounts_.update(inventory);
    host_ = std::make_unique<host::HostReader>(host::HostRoots{tree_.path("sys"), tree_.path("proc"), "", true});
    inventory_ = std::make_shared<const model::Inventory>(std::move(inventory));
  }

  /// Ten reads or writes of each volume and of the disk.
  void io(std::uint32_t hot_class) {
    const std::size_t rows = inventory_->volumes.size();
    for (std::size_t row = 0; row < rows; ++row) {
      volume_cell& cell = cells_[row * volume_cells_of_row(plan_.stripes) + hot_class];
      cell.submitted += 10;
      cell.timed += 10;
      cell.bytes += 40960;
      cell.sum_ns += 1'000'000;
      for (std::size_t i = 0; i < 10; ++i) {
        cell.latency[100 + 3 * i] += 1;
      }
    }
  }

  void tick(bench::Times& times) {
    const double began = bench::cpu_milliseconds();
    model::Tick tick;
    tick.at = at_ += std::chrono::seconds(1);
    tick.wall = wall_ += std::chrono::seconds(1);
    tick.boot = model::boot_time(tick.at);
    tick.inventory = inventory_;
    tick.before = before_;
    times.measure("read the rows", [&] { tick.bios = reader_->read(); });
    times.measure("read the host", [&] {
      tick.host = std::make_shared<const model::HostSignals>(host_->read(
          *inventory_, {}, [](const std::string& path) { return path; }, accounts_.standing_still(tick.bios)));
    });
    times.measure("compare with the kernel", [&] {
      accounts_.compare(tick.bios, host_->disk_stats(), [&] { return reader_->read(); });
      tick.volume_drift = accounts_.drift();
    });
    for (const model::Volume& volume : inventory_->volumes) {
      tick.discards.emplace(volume.name, model::DiscardSubmitters());
    }
    auto snapshot = std::make_shared<model::Snapshot>();
    times.measure("describe", [&] {
      snapshot->bios = tick.bios;
      snapshot->volume_drift = tick.volume_drift;
      snapshot->memberships = inventory_->memberships;
      snapshot->layers = inventory_->layers;
      snapshot->volumes = inventory_->volumes;
    });
    for (const auto& stage : stages_) {
      times.measure("stage " + bench::name_of(*stage), [&] {
        if (const model::Findings findings = stage->observe(tick); findings.values) {
          findings.values(*snapshot);
        }
      });
    }
    before_ = std::move(snapshot);
    times.add("tick", bench::cpu_milliseconds() - began);
  }

 private:
  tests::TemporaryTree tree_;
  std::string diskstats_;
  block::VolumePlan plan_;
  std::vector<volume_cell> cells_;
  std::vector<__u64> devices_;
  std::unique_ptr<block::VolumeReader> reader_;
  std::unique_ptr<host::HostReader> host_;
  runtime::VolumeAccounts accounts_;
  std::vector<std::unique_ptr<model::Stage>> stages_ = runtime::all_stages();
  std::shared_ptr<const model::Inventory> inventory_;
  std::shared_ptr<const model::Snapshot> before_;
  model::SteadyTime at_ = std::chrono::steady_clock::now();
  model::WallTime wall_ = std::chrono::system_clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  constexpr int kBefore = 65;  // seconds, until figures of a minute are full
  constexpr int kSeconds = 25;
  constexpr double kLeastMs = 0.02;  // to be printed
  const auto volumes = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 500);
  VolumeHost host(volumes);
  for (const bool busy : {false, true}) {
    bench::Times unused, times;
    for (int second = 0; second < kBefore + kSeconds; ++second) {
      if (busy) {
        host.io(static_cast<std::uint32_t>(second % VOLUME_HOT_CLASSES));
      }
      host.tick(second < kBefore ? unused : times);
    }
    std::printf("%u volumes, %-27s median        most\n", volumes, busy ? "I/O on each:" : "idle:");
    const auto most = times.most();
    for (const auto& [what, ms] : times.medians()) {
      if (most.at(what) > kLeastMs) {
        std::printf("  %-38s %8.3f ms %8.3f ms\n", what.c_str(), ms, most.at(what));
      }
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Is a device whose I/O nobody sees told from one that is idle, and from one of which some I/O is lost?
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/block/accounting_drift.h"
#include "daemon/history/device_minutes.h"
#include "daemon/model/device_identity.h"
#include "tests/fixtures/sysfs_host.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;

/// What one window brings.
struct Window {
  std::uint64_t kernel = 0;  // I/Os by its count
  std::uint64_t ours = 0;    // that we see
  bool discards = false;
};

class Host {
 public:
  Host() {
    device_.name = "pmem0";
    io_.since = model::WallTime(1h);
    tick_.at = model::SteadyTime(1h);
    tick_.wall = model::WallTime(500'000h);
    tick_.devices.resize(1);
    tick_.devices[0].kernel_account = 1;
    observe({});
  }

  model::Device& device() { return device_; }
  void account(std::uint64_t number) { tick_.devices[0].kernel_account = number; }
  void kernel_starts_over() { kernel_ = {}; }
  void nothing_runs() { before_.own_cost.effort = model::Effort::nothing; }

  /// Returns the lines of the log.
  std::vector<std::string> observe(const Window& window) {
    model::AccountReading reading;
    reading.kernel_before = reading.kernel_after = add(window);
    io_.operations[1].issues += window.ours;
    io_.operations[1].completions += window.ours;
    auto device = std::make_shared<model::Device>(device_);
    auto io = std::make_shared<model::DeviceIo>(io_);
    tick_.devices[0].block = {device, io, {}, 0};
    reading.ours_before = reading.ours_after = tick_.devices[0].block;
    tick_.devices[0].account = reading;
    tick_.at += 4s;
    tick_.wall += 60s;
    before_.devices = {snapshot};
    if (!snapshot.device) {
      before_.devices.clear();
    }
    tick_.before = std::make_shared<model::Snapshot>(before_);
    model::Findings findings = drift_.observe(tick_);
    keys_.set_history_keys(tick_);
    rows = minutes_.observe(tick_).effects.rows.device_minutes.size();
    model::Snapshot now;
    now.devices.push_back({device, io, {}, {}, {}});
    findings.values(now);
    snapshot = now.devices[0];
    std::vector<std::string> lines;
    for (const log::Line& line : findings.effects.lines) {
      lines.push_back(line.text);
    }
    return lines;
  }

  model::DeviceSnapshot snapshot;
  std::size_t rows = 0;  // of the history

 private:
  model::DiskStats add(const Window& window) {
    if (window.discards) {
      kernel_.discards = kernel_.discards.value_or(0) + window.kernel;
    } else {
      kernel_.writes += window.kernel;
    }
    return kernel_;
  }

  model::Device device_;
  model::DeviceIo io_;
  model::DiskStats kernel_;
  model::Snapshot before_;
  model::Tick tick_;
  block::Drift drift_;
  model::HistoryKeys keys_;
  DeviceMinutes minutes_;
};

struct Case {
  const char* what;
  std::vector<Window> windows;
  bool unseen;
};

TEST(UnseenIo, is_what_the_kernel_counts_and_no_program_sees) {
  const std::vector<Case> cases{
      {"idle", {{}, {}, {}, {}}, false},
      {"10,000 writes at once", {{10'000}}, true},
      {"10,000 discards at once", {{10'000, 0, true}}, true},
      {"10,000 writes, then nothing", {{10'000}, {}, {}, {}, {}}, true},
      {"a few now and then", {{40}, {}, {40}, {}, {40}}, true},
      {"too few to be certain", {{30}, {30}, {30}}, false},
      {"one burst that may have been lost", {{999}}, false},
      {"1 % lost", {{10'000, 9900}, {10'000, 9900}, {10'000, 9900}}, false},
      {"nearly all lost", {{10'000, 1}, {10'000, 1}, {10'000, 1}}, false},
      {"lost in bursts of a window", {{90}, {90}, {10'000, 9990}, {90}, {90}}, false},
      {"seen again", {{10'000}, {10'000}, {5, 5}}, false},
      {"seen until it was opened in another way", {{10'000, 10'000}, {600}, {600}}, true},
  };
  for (const Case& one : cases) {
    Host host;
    std::size_t lines = 0;
    for (const Window& window : one.windows) {
      lines += host.observe(window).size();
    }
    EXPECT_EQ(host.snapshot.unseen.has_value(), one.unseen) << one.what;
    EXPECT_EQ(host.snapshot.io == nullptr, one.unseen) << one.what << ": zeros are not its counts";
    if (one.unseen) {
      EXPECT_EQ(lines, 1U) << one.what;
      EXPECT_TRUE(host.snapshot.unseen->has_requests);
      EXPECT_FALSE(host.snapshot.drift.ios[1]) << one.what;
    }
  }
}

TEST(UnseenIo, starts_over_where_counts_restart_and_never_while_no_program_runs) {
  Host another;
  another.observe({900});
  another.account(2);
  another.observe({900});
  EXPECT_FALSE(another.snapshot.unseen);
  Host backwards;
  backwards.observe({900});
  backwards.kernel_starts_over();
  backwards.observe({200});
  EXPECT_FALSE(backwards.snapshot.unseen);
  Host detached;
  detached.nothing_runs();
  detached.observe({100'000});
  EXPECT_FALSE(detached.snapshot.unseen);
}

TEST(UnseenIo, a_driver_without_requests_is_known_at_once) {
  Host host;
  host.device().has_requests = host.device().iostats = false;
  EXPECT_EQ(host.observe({}).at(0),
            "device=pmem0 is not measured: its driver takes I/O without requests, by which drives are measured");
  ASSERT_TRUE(host.snapshot.unseen);
  EXPECT_FALSE(host.snapshot.unseen->has_requests);
  EXPECT_FALSE(host.snapshot.unseen->kernel_ios) << "it may be idle";
  host.observe({5000});
  EXPECT_EQ(host.rows, 0U) << "the history would call it idle";
  EXPECT_EQ(host.snapshot.unseen->kernel_ios, 5000U);
}

TEST(UnseenIo, has_no_rows_in_the_history) {
  Host host;
  host.observe({});
  EXPECT_EQ(host.rows, 1U);
  host.observe({10'000});
  host.observe({10'000});
  host.observe({10'000});
  EXPECT_EQ(host.rows, 0U);
}

TEST(UnseenIo, disks_without_hardware_queues_have_no_requests) {
  const tests::SysfsHost host;
  host.disk("pci0/virtio1/block", "vda", "254:0", "mq/0/nr_tags = 64");
  host.disk("pci0/virtio2/block", "vdb", "254:16", "mq/");
  host.disk("ndbus0/region0/namespace0.0/block", "pmem0", "259:0");
  host.disk("virtual/block", "zd0", "230:0", "queue/iostats = 1");
  host.disk("virtual/nvme-subsystem/nvme-subsys3", "nvme3n1", "259:1",
            "device -> ../../nvme-subsys3\nqueue/iostats = 1");
  host.tree().add("sys/devices/virtual/nvme-subsystem/nvme-subsys3", "subsystem -> x/class/nvme-subsystem");
  const model::Inventory inventory = tests::inventory_of(host);
  for (const model::Device& device : inventory.devices) {
    EXPECT_EQ(device.has_requests, device.name != "pmem0" && device.name != "zd0") << device.name;
  }
}

}  // namespace
}  // namespace ssdpulse::history

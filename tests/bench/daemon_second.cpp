// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/daemon_second.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <typeinfo>

#include "daemon/runtime/all_stages.h"
#include "tests/unit/prometheus_snapshots.h"

namespace ssdpulse::bench {

std::string name_of(const model::Stage& stage) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(stage).name(), nullptr, nullptr, nullptr), std::free);
  const std::string full = name ? name.get() : typeid(stage).name();
  return full.substr(full.rfind(':') + 1);
}

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void Times::add(const std::string& what, double ms) {
  auto known = std::find_if(times_.begin(), times_.end(), [&](const auto& one) { return one.first == what; });
  if (known == times_.end()) {
    known = times_.insert(known, {what, {}});
  }
  known->second.push_back(ms);
}

std::vector<std::pair<std::string, double>> Times::medians() const {
  std::vector<std::pair<std::string, double>> medians;
  for (auto [what, times] : times_) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    medians.emplace_back(what, *middle);
  }
  return medians;
}

std::map<std::string, double> Times::most() const {
  std::map<std::string, double> most;
  for (const auto& [what, times] : times_) {
    most.emplace(what, *std::max_element(times.begin(), times.end()));
  }
  return most;
}

DaemonSecond::DaemonSecond(const MadeUpHost& host)
    : host_(host),
      source_(block::BlockSource::on(host.tables(), host.plan())),
      inventory_(std::make_shared<const model::Inventory>(host.inventory())),
      tenants_(std::make_shared<const model::Tenants>(host.tenants())),
      stages_(runtime::all_stages()),
      at_(std::chrono::steady_clock::now()),
      wall_(test::at(1'700'000'000'000)) {
  source_->update(*inventory_);
  const model::NvmeDrive like = test::small_drive();
  for (const model::Device& device : inventory_->devices) {
    model::NvmeIdentity identity = *like.identity;
    identity.controller = device.name.substr(0, device.name.rfind('n'));
    identity.serial = device.serial;
    identity.namespaces = {{device.name, 1, 1}};
    model::NvmeDrive drive = like;
    drive.identity = std::make_shared<const model::NvmeIdentity>(std::move(identity));
    drives_.push_back({std::make_shared<const model::NvmeDrive>(std::move(drive)),
                       device.name,
                       true,
                       true,
                       std::chrono::seconds(30),
                       {}});
  }
  std::sort(drives_.begin(), drives_.end(), [](const model::DriveTick& a, const model::DriveTick& b) {
    return a.drive->identity->controller < b.drive->identity->controller;
  });
  auto signals = std::make_shared<model::HostSignals>();
  signals->pressure = {100.5, 40.25};
  signals->dirty = {1 << 20, 200 << 20, 100 << 20};
  for (const auto& [id, tenant] : *tenants_) {
    signals->cgroups.push_back({tenant.cgroup, tenant.name, {3.5, 1}});
  }
  signals_ = std::move(signals);
}

model::Tick DaemonSecond::read(Times& times) {
  model::BlockSample block;
  times.measure("tick: read the tables", [&] { block = source_->sample(); });
  at_ += std::chrono::seconds(1);
  wall_ += std::chrono::seconds(1);
  model::Tick tick;
  tick.at = at_;
  tick.wall = wall_;
  tick.boot = model::boot_time(tick.at);
  times.measure("tick: join", [&] {
    for (model::DeviceSample& sample : block.devices) {
      model::DeviceTick entry;
      entry.block = std::move(sample);
      tick.devices.push_back(std::move(entry));
    }
    tick.inventory = inventory_;
    tick.cgroups = std::move(block.cgroups);
    tick.tenants = tenants_;
    tick.io_accounting = model::IoAccounting::below_root;
    tick.host = signals_;
    tick.losses = block.losses;
    tick.drives = drives_;
    tick.cpus = host_.plan().cpus;
    tick.before = snapshot_;
    join_drives(tick);
    keys_.set_history_keys(tick);
  });
  times.measure("tick: intervals", [&] { intervals_.set_intervals(tick); });
  return tick;
}

/// As Sampler::describe() does it.
std::shared_ptr<model::Snapshot> DaemonSecond::describe(const model::Tick& tick) const {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = number_;
  snapshot->taken_at = tick.wall;
  for (const model::DeviceTick& entry : tick.devices) {
    model::DeviceSnapshot device{entry.block.device, entry.block.io, {}, {}, {}};
    device.interval = entry.interval;
    snapshot->devices.push_back(std::move(device));
  }
  for (const model::DriveTick& seen : tick.drives) {
    snapshot->nvme_drives.push_back(*seen.drive);
  }
  snapshot->latency_mode = "full";
  snapshot->sources = {{"block", true, "", {}}};
  return snapshot;
}

void DaemonSecond::tick(Times& times) {
  ++number_;
  const double began = cpu_milliseconds();
  std::optional<model::Tick> read_now = read(times);
  const model::Tick& tick = *read_now;
  std::shared_ptr<model::Snapshot> snapshot;
  times.measure("tick: describe", [&] { snapshot = describe(tick); });
  model::Batch rows;
  for (const auto& stage : stages_) {
    times.measure("tick: stage " + name_of(*stage), [&] {
      model::Findings findings = stage->observe(tick);
      if (findings.values) {
        findings.values(*snapshot);
      }
      model::append(rows, std::move(findings.effects.rows));
    });
  }
  times.measure("tick: last 15 minutes", [&] {
    past_.observe(*snapshot, tick.at);
    ages_.observe(*snapshot);
    (void)spikes_.due(*snapshot, past_.ring());
  });
  times.measure("tick: drop the last snapshot", [&] {
    snapshot_ = std::move(snapshot);
    read_now.reset();
  });
  times.add("tick", cpu_milliseconds() - began);
}

void DaemonSecond::remember() {
  for (std::size_t i = 0; i < history::Ring::kFrames; ++i) {
    model::Snapshot next = *snapshot_;
    next.number = ++number_;
    next.taken_at = wall_ += std::chrono::seconds(1);
    at_ += std::chrono::seconds(1);
    past_.observe(next, at_);
  }
}

void DaemonSecond::scrape(Times& times) {
  struct Scrape {
    const char* what;
    const char* accept;
    const char* coding;
    bool native;
  };
  constexpr const char* kProtobuf =
      "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
  for (const auto& [what, accept, coding, native] :
       {Scrape{"scrape: text", "text/plain", "", false}, Scrape{"scrape: text, gzip", "text/plain", "gzip", false},
        Scrape{"scrape: protobuf, gzip", kProtobuf, "gzip", false},
        Scrape{"scrape: protobuf with only native histograms, gzip", kProtobuf, "gzip", true}}) {
    exposition::MetricsPage& page = pages_[what];
    times.measure(what, [&, &wanted = what, &type = accept, &encoding = coding, &alone = native] {
      bytes_[wanted] = page.get(snapshot_, type, encoding, alone)->bytes.size();
    });
  }
}

std::size_t DaemonSecond::ask(const std::string& path, const std::string& since) {
  const page::Question question{"/api/v1/" + path,
                                [&](std::string_view name) {
                                  return name == "since" ? since : name == "heat" ? "read" : "";
                                },
                                "gzip", ""};
  const auto answer = site_.api(snapshot_, question);
  if (answer->status != 200) {
    fmt::print(stderr, "{}: {} {}\n", path, answer->status, answer->bytes);
    std::exit(EXIT_FAILURE);
  }
  return answer->bytes.size();
}

/// What store.js asks for each second, and what it asks for less often.
void DaemonSecond::view(Times& times) {
  const std::string live = "devices/" + inventory_->devices[0].name + "/live";
  const auto measure = [&](const std::string& what, const std::string& path, const std::string& since) {
    times.measure(what, [&] { bytes_[what] = ask(path, since); });
  };
  const double began = cpu_milliseconds();
  measure("page: devices", "devices", "");
  measure("page: the newest second of a drive", live, std::to_string(seen_ == 0 ? snapshot_->number - 1 : seen_));
  times.add("page: each second", cpu_milliseconds() - began);
  measure("page: 15 minutes of a drive, at first", live, "0");
  measure("page: status, every 30 s", "status", "");
  measure("page: tenants of a drive", "devices/" + inventory_->devices[0].name + "/tenants", "");
  seen_ = snapshot_->number;
}

}  // namespace ssdpulse::bench

// SPDX-License-Identifier: Apache-2.0
// Sampler: joins inventory, block source and accounting into one immutable Snapshot per tick. Owned by one thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/tenants/tenant_namer.h"
#include "daemon/drives/block_layer.h"
#include "daemon/model/snapshot.h"
#include "daemon/runtime/kernel_account.h"
#include "daemon/sources/block/block_source.h"
#include "daemon/sources/cgroups/cgroup_paths.h"
#include "daemon/sources/host/host_reader.h"
#include "daemon/sources/host/room_watch.h"
#include "daemon/sources/inventory/inventory.h"
#include "daemon/stages/tick.h"
#include "daemon/util/log.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/result.h"

namespace ssdpulse::runtime {

class Sampler final : public drives::BlockLayer {
 public:
  /// Looks at the host and starts counting: needs the capabilities to load BPF programs; later calls need none.
  static util::Result<std::unique_ptr<Sampler>> open(const inventory::InventoryRoots& roots,
                                                     const inventory::DeviceFilter& filter,
                                                     const block::BlockChoices& choices);

  /// Disks or mounts changed, or may have.
  void refresh_inventory();
  void set_filter(const inventory::DeviceFilter& filter);

  /// The current state of the block layer, the kernel's account and the inventory; the drives and the settings of the
  /// analyses are left to the caller.
  stages::Tick sample();

  /// The Snapshot of a tick, to be completed by other sources and by the findings of the analyses.
  std::shared_ptr<model::Snapshot> describe(const stages::Tick& tick, std::uint64_t missed_ticks);

  /// Without it, tenants are not named.
  void name_tenants(analysis::TenantNamer namer) { namer_ = std::move(namer); }

  /// How disks are sampled for the flash models, by device.
  void set_sampling(std::map<std::string, model::SamplingParameters> parameters) {
    source_->set_sampling(std::move(parameters));
  }
  /// How the drives prefer to be written, by device.
  void set_write_preferences(std::map<std::string, model::WritePreference> preferences) {
    source_->set_write_preferences(std::move(preferences));
  }

  /// How much the programs in the kernel do; see BlockSource::set_effort().
  void set_effort(model::Effort effort);

  std::shared_ptr<const model::DeviceIo> device(const std::string& name) override;
  [[nodiscard]] std::optional<std::uint64_t> largest_request_bytes(const std::string& name) const override;
  [[nodiscard]] std::uint64_t skipped_runs() const override;

  /// At the last sample there was I/O on disks that the inventory did not know: it is out of date.
  [[nodiscard]] bool saw_unknown_disks() const { return saw_unknown_disks_; }

  [[nodiscard]] std::size_t measured_devices() const { return source_->measured_devices(); }
  [[nodiscard]] const model::Inventory& inventory() const { return *inventory_; }

 private:
  Sampler() = default;
  void adopt(model::Inventory inventory);
  void report_left_out();
  void read_settings(stages::Tick& tick) const;
  [[nodiscard]] std::vector<model::DiskSettings> volumes_above(const std::string& disk) const;
  void consult_kernel(stages::DeviceTick& entry, bool compare);
  model::CgroupPaths read_cgroups(stages::Tick& tick);
  void read_host(stages::Tick& tick, const model::CgroupPaths& cgroups,
                 const std::map<std::string, util::OutsideText>& frozen);

  inventory::InventoryRoots roots_;
  inventory::DeviceFilter filter_;
  bool completion_only_ = false;
  model::Effort effort_ = model::Effort::everything;
  unsigned cpus_ = 1;  // online at the start
  std::shared_ptr<const model::Inventory> inventory_ = std::make_shared<const model::Inventory>();
  std::unique_ptr<block::BlockSource> source_;
  std::map<std::string, KernelAccount> kernel_accounts_;  // by device
  std::uint64_t accounts_opened_ = 0;
  std::optional<cgroups::Hierarchy> hierarchy_;
  cgroups::CgroupPaths cgroup_paths_{std::nullopt};
  std::optional<analysis::TenantNamer> namer_;
  host::HostReader host_{{}};
  host::RoomWatch rooms_;
  model::IoAccounting io_accounting_ = model::IoAccounting::unknown;
  model::SourceStatus inventory_status_;
  double process_start_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t pending_ios_ = 0;
  bool saw_unknown_disks_ = false;
  std::size_t left_out_ = 0;  // as the log last reported
  log::Limiter limiter_{std::chrono::minutes(1)};
};

}  // namespace ssdpulse::runtime

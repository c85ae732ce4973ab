// SPDX-License-Identifier: Apache-2.0
// Sampler: joins the inventory, the block source and the kernel's accounting into one Tick a second. Owned by one
// thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"
#include "daemon/block/block_source.h"
#include "daemon/host/host_reader.h"
#include "daemon/host/inventory.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/stage.h"
#include "daemon/nvme/drive_io.h"
#include "daemon/runtime/kernel_account.h"
#include "daemon/tenants/cgroup_paths.h"
#include "daemon/tenants/tenant_names.h"

namespace ssdpulse::runtime {

class Sampler final : public nvme::BlockLayer {
 public:
  /// Reads the inventory and starts counting: needs the capabilities to load BPF programs; later calls need none.
  static util::Result<std::unique_ptr<Sampler>> open(const host::InventoryRoots& roots,
                                                     const host::DeviceFilter& filter,
                                                     const block::BlockChoices& choices);

  /// Disks or mounts changed, or may have.
  void refresh_inventory();
  void set_filter(const host::DeviceFilter& filter);

  /// The current state of the block layer, the kernel's account and the inventory; the drives and the settings of the
  /// analyses are left to the caller.
  model::Tick sample();

  /// The Snapshot of a tick, to be completed by other sources and by the findings of the analyses.
  std::shared_ptr<model::Snapshot> describe(const model::Tick& tick, std::uint64_t missed_ticks);

  /// Without it, tenants are not named.
  void name_tenants(tenants::TenantNamer namer) { namer_ = std::move(namer); }

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
  void read_settings(model::Tick& tick) const;
  [[nodiscard]] std::vector<model::DiskSettings> volumes_above(const std::string& disk) const;
  void consult_kernel(model::DeviceTick& entry, bool compare);
  model::CgroupPaths read_cgroups(model::Tick& tick);
  void read_host(model::Tick& tick, const model::CgroupPaths& cgroups,
                 const std::map<std::string, util::OutsideText>& frozen);

  host::InventoryRoots roots_;
  host::DeviceFilter filter_;
  bool completion_only_ = false;
  model::Effort effort_ = model::Effort::everything;
  unsigned cpus_ = 1;  // online at the start
  std::shared_ptr<const model::Inventory> inventory_ = std::make_shared<const model::Inventory>();
  std::unique_ptr<block::BlockSource> source_;
  std::map<std::string, KernelAccount> kernel_accounts_;  // by device
  VolumeAccounts volume_accounts_;
  std::uint64_t accounts_opened_ = 0;
  std::optional<tenants::Hierarchy> hierarchy_;
  tenants::CgroupPaths cgroup_paths_{std::nullopt};
  std::optional<tenants::TenantNamer> namer_;
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

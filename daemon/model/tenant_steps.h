// SPDX-License-Identifier: Apache-2.0
// TenantSteps: what each tenant did on one device between two readings.
//
// The kernel side counts by cgroup, and cgroups appear and disappear: each step is the difference from the previous
// reading, and what a cgroup did before it disappeared is in no later step. The steps add up to all that was ever
// counted: what a cgroup did after the last reading of it goes to its tenant or, if several ended at once, to `other`.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/tenant_io.h"

namespace ssdpulse::model {

struct TenantDone {
  TotalsByOperation totals{};
  std::uint64_t commits = 0;

  [[nodiscard]] bool nothing() const { return totals == TotalsByOperation{} && commits == 0; }
  [[nodiscard]] std::uint64_t bytes() const;
  TenantDone& operator+=(const TenantDone& more);
  TenantDone& operator-=(const TenantDone& less);
};

struct TenantStep {
  struct Tenant {
    model::Tenant who;
    TenantDone done;
    bool stays = false;    // has a cgroup that is not gone
    bool in_step = false;  // false only while a step is made
  };
  std::map<std::string, Tenant> tenants;  // by name: all that have a cgroup here, and those whose last one is gone
  TenantDone other;                       // by cgroups without a name or a slot
};

class TenantSteps {
 public:
  /// The first step is everything counted so far. `gone_cgroups`: cgroups whose directory no longer exists, sorted;
  /// their counts stay with them for a few more readings. Valid until the next call.
  const TenantStep& observe(const DeviceAttribution& now, const Tenants& tenants,
                            const std::vector<CgroupId>& gone_cgroups = {});

 private:
  struct CgroupState {
    Tenant who;  // without a name: not known yet
    TenantDone done;
  };
  TenantStep::Tenant& tenant_of(const Tenant& who);
  void add_gone(const std::vector<CgroupState>& gone, const DeviceAttribution& now);

  std::map<CgroupId, CgroupState> cgroups_;
  TenantStep step_;  // the tenants of the step before stay, since most of them are in the next one, too
  TenantDone departed_;
  TenantDone other_;
};

}  // namespace ssdpulse::model

// SPDX-License-Identifier: Apache-2.0
// TenantSteps: what did each tenant do on one device between two looks?
//
// The kernel side counts by cgroup, and its cgroups come and go: each step is the difference to the look before, and
// what a cgroup had done before it went is in no later step. The steps added up are all that was ever counted: what
// went with a cgroup between the last look at it and its end is its tenant's, or, if several went at once, `other`.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/tenants.h"

namespace ssdpulse::analysis {

struct TenantDone {
  model::TotalsByOperation totals{};
  std::uint64_t commits = 0;

  [[nodiscard]] bool nothing() const { return totals == model::TotalsByOperation{} && commits == 0; }
  [[nodiscard]] std::uint64_t bytes() const;
  TenantDone& operator+=(const TenantDone& more);
  TenantDone& operator-=(const TenantDone& less);
};

struct TenantStep {
  struct Tenant {
    model::Tenant who;
    TenantDone done;
    bool stays = false;  // has a cgroup that is not gone
  };
  std::map<std::string, Tenant> tenants;  // by name: all that have a cgroup here, and those whose last one went
  TenantDone other;                       // by cgroups without a name or a slot
};

class TenantSteps {
 public:
  /// The first step is all that was counted so far. `is_gone`: cgroups whose directory is no more, sorted; what they
  /// counted is with them for some looks yet.
  TenantStep observe(const model::DeviceAttribution& now, const model::Tenants& tenants,
                     const std::vector<model::CgroupId>& is_gone = {});

 private:
  struct Known {
    model::Tenant who;  // without a name: not known yet
    TenantDone done;
  };
  std::map<model::CgroupId, Known> known_;
  TenantDone departed_;
  TenantDone other_;
};

}  // namespace ssdpulse::analysis

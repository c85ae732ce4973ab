// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/refused_pages.h"

namespace ssdpulse::nvme {
namespace {

auto key_of(const model::NvmeIdentity& identity, const LogPage& page) {
  return std::tuple(identity.vendor_id, identity.model, identity.firmware, page.name);
}

}  // namespace

void RefusedPages::add(const model::NvmeIdentity& identity, const LogPage& page) {
  of_kind_.insert(key_of(identity, page));
}

void RefusedPages::add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group) {
  of_group_.emplace(identity.subsystem_nqn, identity.serial, endurance_group, page.name);
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page) const {
  return of_kind_.count(key_of(identity, page)) != 0;
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page,
                            std::uint16_t endurance_group) const {
  return of_group_.count({identity.subsystem_nqn, identity.serial, endurance_group, page.name}) != 0;
}

}  // namespace ssdpulse::nvme

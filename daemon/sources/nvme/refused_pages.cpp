// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/refused_pages.h"

#include <utility>

namespace ssdpulse::nvme {
namespace {

/// A drive that lies could claim to be of another kind at each identification.
constexpr std::size_t kMaxUnderstoodPages = 4096;

constexpr const char* kRefused = "refused";

auto key_of(const model::NvmeIdentity& identity, const LogPage& page) {
  return std::tuple(identity.vendor_id, identity.model, identity.firmware, page.name);
}

auto key_of(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group) {
  return std::tuple(identity.subsystem_nqn, identity.serial, identity.firmware, endurance_group, page.name);
}

}  // namespace

void RefusedPages::add_missing(const model::NvmeIdentity& identity, const LogPage& page) {
  if (understood_.count(key_of(identity, page)) == 0) {
    missing_.insert(key_of(identity, page));
  } else {
    add(identity, page);
  }
}

void RefusedPages::add(const model::NvmeIdentity& identity, const LogPage& page, std::uint16_t endurance_group) {
  of_group_.emplace(key_of(identity, page, endurance_group), kRefused);
}

void RefusedPages::add_other(const model::NvmeIdentity& identity, const LogPage& page, std::string what) {
  of_group_.emplace(key_of(identity, page, kWholeDrive), std::move(what));
}

void RefusedPages::understood(const model::NvmeIdentity& identity, const LogPage& page) {
  if (understood_.size() < kMaxUnderstoodPages) {
    understood_.insert(key_of(identity, page));
  }
  missing_.erase(key_of(identity, page));  // reported by a faulty drive that was asked first
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page) const {
  return missing_.count(key_of(identity, page)) != 0 || contains(identity, page, kWholeDrive);
}

bool RefusedPages::contains(const model::NvmeIdentity& identity, const LogPage& page,
                            std::uint16_t endurance_group) const {
  return of_group_.count(key_of(identity, page, endurance_group)) != 0;
}

std::string RefusedPages::reason(const model::NvmeIdentity& identity, const LogPage& page) const {
  const auto known = of_group_.find(key_of(identity, page, kWholeDrive));
  return known == of_group_.end() ? kRefused : known->second;
}

void RefusedPages::forget() {
  missing_.clear();
  of_group_.clear();
}

}  // namespace ssdpulse::nvme

// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_events.h"

#include <algorithm>

namespace ssdpulse::flash {

unsigned PageSample::rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages) {
  unsigned bits = 0;
  while (bits < kMaxRateBits && drive_pages >> bits >= wanted_pages + wanted_pages / 2) {
    ++bits;
  }
  return bits;
}

namespace {

double lost_share(std::uint64_t lost, std::uint64_t seen) {
  return lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(lost + seen);
}

}  // namespace

void EventLosses::add(const Events& seen, std::uint64_t drive_pages) {
  volume_ += drive_pages;
  const std::uint64_t passed = std::min<std::uint64_t>(volume_ / part_pages_, parts_.size());
  volume_ %= part_pages_;
  for (std::uint64_t part = 0; part < passed; ++part) {
    newest_ = (newest_ + 1) % parts_.size();
    parts_[newest_] = {};
  }
  // Counted where it ends: what came at once stays, even if the host wrote more than the drive holds meanwhile.
  Events& part = parts_[newest_];
  part.writes += seen.writes;
  part.lost_writes += seen.lost_writes;
  part.discards += seen.discards;
  part.lost_discards += seen.lost_discards;
}

EventLosses::Rates EventLosses::rates() const {
  Events all;
  for (const Events& part : parts_) {
    all.writes += part.writes;
    all.lost_writes += part.lost_writes;
    all.discards += part.discards;
    all.lost_discards += part.lost_discards;
  }
  return {lost_share(all.lost_writes, all.writes), lost_share(all.lost_discards, all.discards)};
}

void EventLosses::save(BinaryWriter& out) const {
  out(volume_);
  out(std::uint64_t{newest_});
  for (const Events& part : parts_) {
    out(part.writes);
    out(part.lost_writes);
    out(part.discards);
    out(part.lost_discards);
  }
}

bool EventLosses::restore(BinaryReader& in) {
  std::uint64_t newest = 0;
  in(volume_);
  in(newest);
  for (Events& part : parts_) {
    in(part.writes);
    in(part.lost_writes);
    in(part.discards);
    in(part.lost_discards);
  }
  newest_ = newest % parts_.size();
  return in.good() && newest < parts_.size() && volume_ < part_pages_;
}

}  // namespace ssdpulse::flash

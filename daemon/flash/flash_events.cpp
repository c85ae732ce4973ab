// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_events.h"

#include <algorithm>

namespace ssdpulse::flash {

namespace {

double lost_share(std::uint64_t lost, std::uint64_t seen) {
  return lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(lost + seen);
}

}  // namespace

unsigned PageSample::rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages) {
  unsigned bits = 0;
  while (bits < kMaxRateBits && drive_pages >> bits >= wanted_pages + wanted_pages / 2) {
    ++bits;
  }
  return bits;
}

EventLosses::Events& EventLosses::Events::operator+=(const Events& other) {
  writes += other.writes;
  lost_writes += other.lost_writes;
  discards += other.discards;
  lost_discards += other.lost_discards;
  return *this;
}

void EventLosses::add(const Events& seen, std::uint64_t drive_pages) {
  volume_ += drive_pages;
  const std::uint64_t passed = std::min<std::uint64_t>(volume_ / part_pages_, parts_.size());
  volume_ %= part_pages_;
  for (std::uint64_t part = 0; part < passed; ++part) {
    newest_ = (newest_ + 1) % parts_.size();
    parts_[newest_] = {};
  }
  // Counted where it ends: what came at once stays, even if the host wrote more than the drive holds meanwhile.
  parts_[newest_] += seen;
}

EventLosses::Rates EventLosses::rates() const {
  Events all;
  for (const Events& part : parts_) {
    all += part;
  }
  return {lost_share(all.lost_writes, all.writes), lost_share(all.lost_discards, all.discards)};
}

void EventLosses::save(BinaryWriter& out) const {
  out(volume_, std::uint64_t{newest_});
  for (const Events& part : parts_) {
    out(part.writes, part.lost_writes, part.discards, part.lost_discards);
  }
}

bool EventLosses::restore(BinaryReader& in) {
  std::uint64_t newest = 0;
  in(volume_, newest);
  for (Events& part : parts_) {
    in(part.writes, part.lost_writes, part.discards, part.lost_discards);
  }
  newest_ = newest % parts_.size();
  return in.good() && newest < parts_.size() && volume_ < part_pages_;
}

}  // namespace ssdpulse::flash

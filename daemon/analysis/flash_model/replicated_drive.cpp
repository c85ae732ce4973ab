// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/replicated_drive.h"

#include <algorithm>
#include <cmath>

#include "daemon/analysis/flash_model/page_sample.h"

namespace ssdpulse::analysis {
namespace {

constexpr std::uint32_t kTurn = 0x51ED270BU;  // any key that samples do not have
constexpr std::uint32_t kFirstHalf = 1;
constexpr std::uint32_t kFirstQuarter = 3;

constexpr double kStudent = 3.2;          // 97.5 % of Student's t, three degrees of freedom: four quarters
constexpr double kUnextrapolated = 0.75;  // of what was extrapolated may be wrong; with 0.5, zipf 1.2 was out by 0.2 %
constexpr double kMinDoubt = 0.015;       // files as large as a block: 1.25 % off, without any scatter

MiniatureShape part_of(MiniatureShape shape, std::uint32_t parts) {
  shape.pages /= parts;
  shape.block_pages /= parts;
  shape.scale *= parts;
  return shape;
}

std::vector<MiniatureShape> shapes(const MiniatureShape& whole, ReplicatedDrive::Replicates replicates) {
  std::vector<MiniatureShape> result{whole};
  if (replicates != ReplicatedDrive::Replicates::none) {
    result.insert(result.end(), 2, part_of(whole, 2));
  }
  if (replicates == ReplicatedDrive::Replicates::quarters) {
    result.insert(result.end(), 4, part_of(whole, 4));
  }
  return result;
}

double ratio_of(const MiniatureDrive::Counts& from, const MiniatureDrive::Counts& to) {
  const auto host = static_cast<double>(to.host - from.host);
  return host > 0 ? 1 + static_cast<double>(to.relocated - from.relocated) / host : 1;
}

}  // namespace

ReplicatedDrive::ReplicatedDrive(const MiniatureShape& whole, Replicates replicates, bool mapped)
    : replicates_(replicates) {
  for (const MiniatureShape& shape : shapes(whole, replicates)) {
    copies_.emplace_back(shape, mapped);
  }
}

std::uint32_t ReplicatedDrive::quarter_of(std::uint32_t page) { return (page + keyed_hash(page >> 2, kTurn)) & 3; }

template <typename Do>
void ReplicatedDrive::in_each(std::uint32_t page, Do act) {
  act(copies_[0], page);
  if (replicates_ == Replicates::none) {
    return;
  }
  const std::uint32_t quarter = quarter_of(page);
  act(copies_[kFirstHalf + (quarter & 1)], (page >> 2) << 1 | quarter >> 1);
  if (replicates_ == Replicates::quarters) {
    act(copies_[kFirstQuarter + quarter], page >> 2);
  }
}

void ReplicatedDrive::write(std::uint32_t page, std::uint32_t stream) {
  in_each(page, [stream](MiniatureDrive& drive, std::uint32_t own) { drive.write(own, stream); });
}

void ReplicatedDrive::discard(std::uint32_t page) {
  in_each(page, [](MiniatureDrive& drive, std::uint32_t own) { drive.discard(own); });
}

void ReplicatedDrive::advance(std::uint32_t stream, std::uint64_t drive_pages) {
  for (MiniatureDrive& copy : copies_) {
    copy.advance(stream, drive_pages);
  }
}

ReplicatedDrive::Counts ReplicatedDrive::counts() const {
  Counts result;
  std::transform(copies_.begin(), copies_.end(), result.begin(),
                 [](const MiniatureDrive& copy) { return copy.counts(); });
  return result;
}

std::size_t ReplicatedDrive::memory_bytes(const MiniatureShape& whole, Replicates replicates) {
  std::size_t result = 0;
  for (const MiniatureShape& shape : shapes(whole, replicates)) {
    result += MiniatureDrive::memory_bytes(shape);
  }
  return result;
}

void ReplicatedDrive::save(BinaryWriter& out) const {
  for (const MiniatureDrive& copy : copies_) {
    copy.save(out);
  }
}

bool ReplicatedDrive::restore(BinaryReader& in) {
  return std::all_of(copies_.begin(), copies_.end(), [&in](MiniatureDrive& copy) { return copy.restore(in); });
}

double scatter_of(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to) {
  std::array<double, 4> ratios{};
  double mean = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    ratios[i] = ratio_of(from[kFirstQuarter + i], to[kFirstQuarter + i]);
    mean += ratios[i] / 4;
  }
  double squares = 0;
  for (const double ratio : ratios) {
    squares += (ratio - mean) * (ratio - mean);
  }
  return std::sqrt(squares / 3) / 2 / mean;
}

std::optional<Estimate> estimate(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to,
                                 ReplicatedDrive::Replicates replicates, double scatter) {
  if (to[0].host == from[0].host) {
    return std::nullopt;
  }
  const double whole = ratio_of(from[0], to[0]);
  if (replicates == ReplicatedDrive::Replicates::none) {
    return Estimate{whole, whole, whole};
  }
  const double first = ratio_of(from[kFirstHalf], to[kFirstHalf]);
  const double second = ratio_of(from[kFirstHalf + 1], to[kFirstHalf + 1]);
  const double ratio = std::max(1.0, 2 * whole - (first + second) / 2);
  const double seen = replicates == ReplicatedDrive::Replicates::quarters
                          ? scatter_of(from, to)
                          : std::max(scatter, std::abs(first - second) / 2 / whole);
  const double doubt = ratio * (kStudent * seen + kMinDoubt) + kUnextrapolated * std::abs(ratio - whole);
  return Estimate{ratio, std::max(1.0, ratio - doubt), ratio + doubt};
}

}  // namespace ssdpulse::analysis

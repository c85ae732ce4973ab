// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::array kRanks{"best", "better", "good", "degraded"};  // NVM Command Set, relative performance

const char* rank_text(double rank) { return kRanks[static_cast<std::size_t>(std::clamp(rank, 0.0, 3.0))]; }

std::optional<double> rank_of(const Facts& facts, const DiskSettings& disk, std::uint32_t block_bytes) {
  const auto& ranks = facts.measured.device(disk.device.name).block_size_ranks;
  const auto found = ranks.find(block_bytes);
  return found == ranks.end() ? std::nullopt : std::optional(found->second);
}

Finding block_size(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("it is not an NVMe drive");
  }
  const std::uint32_t now = disk.device.logical_block_bytes;
  const auto rank = rank_of(facts, disk, now);
  if (!rank) {
    return unknown("how fast its block size is", facts.measured.answered
                                                     ? "it was not read yet, or it is formatted with metadata"
                                                     : "no daemon answers");
  }
  const std::uint32_t other = now == 512 ? 4096 : 512;  // the only two that file systems can rely on
  const auto rank_of_other = rank_of(facts, disk, other);
  if (!rank_of_other || *rank_of_other >= *rank) {
    return ok(fmt::format("the drive ranks no block size higher than its own, {} bytes", now));
  }
  Finding bad = info(fmt::format("formatted with blocks of {} bytes, which the drive ranks as {}, and {} bytes as {}",
                                 now, rank_text(*rank), other, rank_text(*rank_of_other)),
                     "the drive says so itself, and a format erases everything on it, on some drives all namespaces");
  // No command: nothing here sees everything that may be on it (an inactive volume, a mount elsewhere, swap).
  bad.change = fmt::format("format the next drive of this model with blocks of {} bytes, before it is used", other);
  bad.undo = "format it again, while it is empty";
  bad.risk = "systems that boot from it must know such blocks";
  return weigh(facts, std::move(bad),
               {{"ranks_above", *rank - *rank_of_other, 1},
                {"excess_seconds_per_day",
                 excess_per_day(facts, disk.device.name, {SpikeCause::queue, SpikeCause::saturation}), kExcessLimit}});
}

}  // namespace

const Rule kN1{.id = "N1",
               .title = "Block size that an NVMe drive is formatted with",
               .limit = "the drive ranks another size higher, and queueing or saturation causes 60 s of waiting a day",
               .source = "NVM Express NVM Command Set, LBA format, relative performance",
               .by_history = true,
               .of_disk = block_size};

}  // namespace ssdpulse::audit

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kReadAheadUsed = 0.75;    // of the read-ahead: from this mean size on, reads are read-ahead
constexpr double kRandom = 0.8;            // share of the bytes read that is not sequential
constexpr double kReadBytesPerDay = 10e9;  // fewer do not matter
constexpr std::uint64_t kSmall = 16;       // KiB: what databases ask for

Finding read_ahead(const Facts& facts, const DiskSettings& disk) {
  const auto kilobytes = disk.files.number("queue/read_ahead_kb");
  if (!kilobytes) {
    return unknown("read-ahead", "queue/read_ahead_kb is not readable");
  }
  if (*kilobytes <= kSmall) {
    return ok(fmt::format("read-ahead is {} KiB", *kilobytes));
  }
  if (is_unseen(facts, disk)) {
    return not_applicable("none of its I/O is measured");
  }
  const MeasuredOperation& reads = facts.measured.device(disk.device.name).operation(Operation::read);
  const auto sequential = ratio(reads.sequential_bytes, reads.bytes);
  const auto fullness = ratio(mean(reads.size_bytes), static_cast<double>(*kilobytes) * 1024);
  if (facts.measured.answered && (fullness.value_or(0) < kReadAheadUsed || sequential.value_or(0) > 1 - kRandom)) {
    return ok(fmt::format("read-ahead is {} KiB, and the reads do not look like it", *kilobytes));
  }
  Finding bad = info(fmt::format("read-ahead is {} KiB", *kilobytes),
                     "with random reads it reads more than was asked for, and evicts better data from the cache");
  change_file(bad, disk, "queue/read_ahead_kb", std::to_string(kSmall));
  bad.risk = "scans and backups become slower";
  return weigh(facts, std::move(bad),
               {{"mean_read_to_read_ahead_ratio", fullness, kReadAheadUsed},
                {"random_share_of_reads", sequential ? std::optional(1 - *sequential) : std::nullopt, kRandom},
                {"read_bytes_per_day", facts.measured.per_day(reads.bytes), kReadBytesPerDay}});
}

}  // namespace

const Rule kQ5{.id = "Q5",
               .title = "Read-ahead under random reads",
               .limit = "reads are as large as the read-ahead, 80 % of them random, 10 GB a day",
               .source = "MongoDB production notes, Readahead (there in sectors of 512 bytes)",
               .of_disk = read_ahead};

}  // namespace ssdpulse::audit

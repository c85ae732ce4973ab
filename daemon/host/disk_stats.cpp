// SPDX-License-Identifier: Apache-2.0
// A read from offset 0 makes sysfs render the attribute again, so one file can stay open.
#include "daemon/host/disk_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "daemon/base/sysfs.h"

namespace ssdpulse::host {

util::Result<model::DiskStats> parse_disk_stats(std::string_view text) {
  constexpr std::size_t kBasicFields = 11;
  constexpr std::size_t kFieldsWithDiscards = 15;
  constexpr std::size_t kFieldsWithFlushes = 17;
  std::array<std::uint64_t, kFieldsWithFlushes> fields{};
  std::size_t count = 0;
  for (text = sysfs::trim(text); !text.empty() && count < fields.size(); ++count) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const auto number = sysfs::parse_number(text.substr(0, end));
    if (!number) {
      return util::fail("not a number in disk statistics: " + std::string(text.substr(0, end)));
    }
    fields[count] = *number;
    text = sysfs::trim(text.substr(end));
  }
  if (count < kBasicFields) {
    return util::fail("disk statistics have only " + std::to_string(count) + " fields");
  }
  model::DiskStats stats;
  stats.reads = fields[0];
  stats.read_sectors = fields[2];
  stats.writes = fields[4];
  stats.written_sectors = fields[6];
  stats.in_flight = fields[8];
  stats.busy_ms = fields[9];
  if (count >= kFieldsWithDiscards) {
    stats.discards = fields[11];
    stats.discarded_sectors = fields[13];
  }
  if (count >= kFieldsWithFlushes) {
    stats.flushes = fields[15];
  }
  return stats;
}

/// "   8       0 sda 1 2 ..." (Documentation/admin-guide/iostats.rst)
AllDiskStats parse_all_disk_stats(std::string_view text) {
  AllDiskStats all;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string_view name;
    for (int word = 0; word < 3; ++word) {
      line = sysfs::trim(line);
      name = line.substr(0, line.find(' '));
      line.remove_prefix(name.size());
    }
    if (const auto stats = parse_disk_stats(line)) {
      all.emplace(name, *stats);
    }
  }
  return all;
}

util::Result<model::KernelInFlight> parse_in_flight(std::string_view text) {
  text = sysfs::trim(text);
  const std::size_t end = std::min(text.find(' '), text.size());
  const auto reads = sysfs::parse_number(text.substr(0, end));
  const auto writes = sysfs::parse_number(sysfs::trim(text.substr(end)));
  if (!reads || !writes) {
    return util::fail("not two numbers in flight: " + std::string(text));
  }
  return model::KernelInFlight{static_cast<std::int64_t>(*reads), static_cast<std::int64_t>(*writes)};
}

util::Result<model::DiskStats> read_disk_stats(const InventoryRoots& roots, const std::string& disk_name) {
  return DiskStatsFile::open(roots, disk_name).and_then([](const DiskStatsFile& file) { return file.read(); });
}

DiskStatsFile::DiskStatsFile(Attribute stat, Attribute in_flight)
    : stat_(std::move(stat)), in_flight_(std::move(in_flight)) {}

util::Result<DiskStatsFile::Attribute> DiskStatsFile::open_attribute(const std::string& path) {
  util::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return util::fail_errno("cannot open " + path);
  }
  return Attribute{std::move(fd), path};
}

util::Result<DiskStatsFile> DiskStatsFile::open(const InventoryRoots& roots, const std::string& disk_name) {
  const auto directory = sysfs::disk_directory(roots.sys, disk_name);
  if (!directory) {
    return util::fail("no disk " + disk_name + " in " + roots.sys, ENOENT);
  }
  auto stat = open_attribute(*directory + "/stat");
  auto in_flight = open_attribute(*directory + "/inflight");
  if (!stat || !in_flight) {
    return tl::make_unexpected(stat ? in_flight.error() : stat.error());
  }
  return DiskStatsFile(std::move(*stat), std::move(*in_flight));
}

util::Result<std::string> DiskStatsFile::read_attribute(const Attribute& attribute) {
  std::array<char, 1024> text{};  // 17 numbers of at most 20 digits
  ssize_t length = 0;
  do {
    length = ::pread(attribute.fd.get(), text.data(), text.size(), 0);
  } while (length < 0 && errno == EINTR);
  if (length < 0) {
    return util::fail_errno("cannot read " + attribute.path);
  }
  return std::string(text.data(), static_cast<std::size_t>(length));
}

util::Result<model::DiskStats> DiskStatsFile::read() const {
  return read_attribute(stat_).and_then([](const std::string& text) { return parse_disk_stats(text); });
}

util::Result<model::KernelInFlight> DiskStatsFile::read_in_flight() const {
  return read_attribute(in_flight_).and_then([](const std::string& text) { return parse_in_flight(text); });
}

}  // namespace ssdpulse::host

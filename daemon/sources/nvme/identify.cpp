// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/identify.h"

#include <algorithm>
#include <map>

#include "daemon/util/outside_text.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint32_t kAttributeEnduranceGroups = 1U << 4U;
constexpr std::uint32_t kAttributeUuidList = 1U << 9U;
constexpr std::uint8_t kOptimalPerformance = 3U << 4U;  // one bit until NVMe 2.0
constexpr std::uint64_t kHostMemoryUnit = 4096;
constexpr std::size_t kUuidEntryBytes = 32;
constexpr std::size_t kMaxEnduranceGroups = 2047;

std::uint16_t little16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] | bytes[at + 1] << 8U);
}

std::uint32_t little32(Bytes bytes, std::size_t at) {
  return little16(bytes, at) | static_cast<std::uint32_t>(little16(bytes, at + 2)) << 16U;
}

std::uint64_t little64(Bytes bytes, std::size_t at) {
  return little32(bytes, at) | static_cast<std::uint64_t>(little32(bytes, at + 4)) << 32U;
}

util::OutsideText text(Bytes bytes, std::size_t at, std::size_t length) {
  return util::without_padding({reinterpret_cast<const char*>(bytes.data()) + at, length});
}

util::Result<void> check_size(Bytes bytes, const std::string& what) {
  if (bytes.size() == kIdentifyBytes) {
    return {};
  }
  return util::fail(what + " has " + std::to_string(bytes.size()) + " bytes instead of 4096");
}

/// One LBA format: metadata, shift of the block size, and rank.
struct LbaFormat {
  std::uint16_t metadata_bytes;
  std::uint8_t shift;
  std::uint8_t rank;
};

LbaFormat format_at(Bytes bytes, std::size_t index) {
  constexpr std::size_t kFormats = 128;
  const std::size_t at = kFormats + 4 * index;
  return {little16(bytes, at), bytes[at + 2], static_cast<std::uint8_t>(bytes[at + 3] & 3U)};
}

std::map<std::uint32_t, std::uint8_t> block_sizes(Bytes bytes) {
  constexpr std::size_t kMaxFormats = 64;
  constexpr std::uint8_t kSmallest = 9;
  constexpr std::uint8_t kLargest = 16;
  const std::size_t count = std::min<std::size_t>(bytes[25] + std::size_t{1}, kMaxFormats);
  const std::size_t in_use = (bytes[26] & 0xfU) | (count > 16 ? (bytes[26] >> 5U & 3U) << 4U : 0U);
  std::map<std::uint32_t, std::uint8_t> sizes;
  if (in_use >= count || format_at(bytes, in_use).metadata_bytes != 0) {
    return sizes;
  }
  for (std::size_t index = 0; index < count; ++index) {
    const LbaFormat format = format_at(bytes, index);
    if (format.metadata_bytes == 0 && format.shift >= kSmallest && format.shift <= kLargest) {
      const auto [known, is_new] = sizes.try_emplace(1U << format.shift, format.rank);
      known->second = index == in_use ? format.rank : known->second;
    }
  }
  return sizes;
}

}  // namespace

util::Result<model::NvmeIdentity> parse_identify_controller(Bytes bytes) {
  if (auto size = check_size(bytes, "Identify Controller"); !size) {
    return tl::make_unexpected(size.error());
  }
  model::NvmeIdentity identity;
  identity.vendor_id = little16(bytes, 0);
  identity.subsystem_vendor_id = little16(bytes, 2);
  identity.serial = text(bytes, 4, 20);
  identity.model = text(bytes, 24, 40);
  identity.firmware = text(bytes, 64, 8);
  identity.version = little32(bytes, 80);
  identity.controller_attributes = little32(bytes, 96);
  identity.admin_commands = little16(bytes, 256);
  identity.endurance_group_max = little16(bytes, 340);
  identity.host_memory_preferred_bytes = little32(bytes, 272) * kHostMemoryUnit;
  identity.host_memory_minimum_bytes = little32(bytes, 276) * kHostMemoryUnit;
  std::copy_n(bytes.begin() + 3072, identity.vendor_specific.size(), identity.vendor_specific.begin());
  // A vendor identifier of 0 is not an error: the kernel's own target has it.
  if (identity.vendor_id == 0xffff || (identity.serial.empty() && identity.model.empty())) {
    return util::fail("Identify Controller names no drive");
  }
  return identity;
}

util::Result<void> parse_identify_namespace(Bytes bytes, model::NvmeNamespace& name_space) {
  if (auto size = check_size(bytes, "Identify Namespace"); !size) {
    return size;
  }
  name_space.endurance_group = little16(bytes, 102);
  // NSFEAT.OPTPERF vouches for the preferred sizes; both count from 0.
  const bool reported = (bytes[24] & kOptimalPerformance) != 0;
  name_space.write_granularity_blocks = reported ? little16(bytes, 64) + 1U : 0;
  name_space.write_alignment_blocks = reported ? little16(bytes, 66) + 1U : 0;
  const std::uint64_t size = little64(bytes, 0);
  const std::uint64_t used = little64(bytes, 16);
  name_space.used_share =
      size > 0 && used <= size ? std::optional(static_cast<double>(used) / static_cast<double>(size)) : std::nullopt;
  name_space.block_sizes = block_sizes(bytes);
  return {};
}

util::Result<std::vector<Uuid>> parse_uuid_list(Bytes bytes) {
  if (auto size = check_size(bytes, "the UUID list"); !size) {
    return tl::make_unexpected(size.error());
  }
  std::vector<Uuid> uuids;
  // The first entry is reserved; the others are a header of 16 bytes and the UUID.
  for (std::size_t entry = kUuidEntryBytes; entry < kIdentifyBytes; entry += kUuidEntryBytes) {
    Uuid uuid{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(entry + 16), uuid.size(), uuid.begin());
    if (uuid == Uuid{}) {
      break;
    }
    uuids.push_back(uuid);
  }
  return uuids;
}

util::Result<std::vector<std::uint16_t>> parse_endurance_group_list(Bytes bytes) {
  if (auto size = check_size(bytes, "the endurance group list"); !size) {
    return tl::make_unexpected(size.error());
  }
  const std::size_t count = little16(bytes, 0);
  if (count > kMaxEnduranceGroups) {
    return util::fail("the endurance group list claims " + std::to_string(count) + " entries");
  }
  std::vector<std::uint16_t> groups;
  for (std::size_t entry = 1; entry <= count; ++entry) {
    const std::uint16_t group = little16(bytes, 2 * entry);
    if (group <= (groups.empty() ? 0 : groups.back())) {
      return util::fail("the endurance group list is not in ascending order");
    }
    groups.push_back(group);
  }
  return groups;
}

bool has_uuid_list(const model::NvmeIdentity& identity) {
  return (identity.controller_attributes & kAttributeUuidList) != 0;
}

bool has_endurance_group_list(const model::NvmeIdentity& identity) {
  return (identity.controller_attributes & kAttributeEnduranceGroups) != 0;
}

}  // namespace ssdpulse::nvme

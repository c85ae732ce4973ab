// SPDX-License-Identifier: Apache-2.0
// Which drives may have a page: vendors by PCI vendor identifier, families by how the model begins. The numbers of
// vendor pages collide, and a drive counts every page that it refuses as an error.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

inline constexpr std::uint16_t kToshiba = 0x1179;
inline constexpr std::uint16_t kMicron = 0x1344;
inline constexpr std::uint16_t kSamsung = 0x144d;
inline constexpr std::uint16_t kSandisk = 0x15b7;
inline constexpr std::uint16_t kWesternDigital = 0x1b96;
inline constexpr std::uint16_t kQemu = 0x1b36;
inline constexpr std::uint16_t kSeagate = 0x1bb1;
inline constexpr std::uint16_t kInspur = 0x1bd4;
inline constexpr std::uint16_t kHgst = 0x1c58;
inline constexpr std::uint16_t kMemblaze = 0x1c5f;
inline constexpr std::uint16_t kAmazon = 0x1d0f;
inline constexpr std::uint16_t kKioxia = 0x1e0f;
inline constexpr std::uint16_t kDapustor = 0x1e3b;
inline constexpr std::uint16_t kYmtc = 0x1e49;
inline constexpr std::uint16_t kSsstc = 0x1e95;
inline constexpr std::uint16_t kSolidigm = 0x025e;
inline constexpr std::uint16_t kIntel = 0x8086;
inline constexpr std::uint16_t kScaleflux = 0xcc53;

/// Controller attributes (CTRATT).
inline constexpr std::uint32_t kHasEnduranceGroups = 1U << 4;
inline constexpr std::uint32_t kHasDataPlacement = 1U << 19;

/// Drives of a vendor whose model begins like this; empty: all of them.
struct Family {
  std::uint16_t vendor;
  std::string_view model_begins;
};

bool is_of(const model::NvmeIdentity& identity, std::span<const Family> families);
bool lists(const model::NvmeIdentity& identity, const Uuid& uuid);

/// Byte of the Identify Controller data structure, in its vendor specific part (3072 to 4095).
std::uint8_t identify_byte(const model::NvmeIdentity& identity, std::size_t offset);

}  // namespace ssdpulse::nvme

// SPDX-License-Identifier: Apache-2.0
// What does the kernel side tell of the host's writes for the flash model?
// It follows some pages of a drive and sends an event for each completed write, discard or write of zeroes that holds
// one of them; every page that is written is counted besides, exactly. Values only; the block source fills them in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/write_details.h"

namespace ssdpulse::model {

/// Which pages of a device are followed; analysis::PageSample says why so. A drive's namespaces have the same
/// parameters but for `first_page`.
struct SamplingParameters {
  std::uint8_t page_bits = 12;   // a page has 2^page_bits bytes, 9 to 31
  std::uint8_t rate_bits = 0;    // one of 2^rate_bits pages is followed, 0 to 31
  std::uint32_t seed = 0;        // secret
  std::uint32_t followed = 0;    // pages of the whole drive, all its namespaces; not 0
  std::uint64_t first_page = 0;  // of the drive's pages, where the device begins
  bool operator==(const SamplingParameters&) const = default;
};

enum class FlashEventKind : std::uint8_t {
  write,
  discard,
  zeroes,       // the drive may deallocate what it is to zero, and nearly all do: taken for a discard
  zeroes_kept,  // it is asked not to, but still stores no data
};
inline constexpr std::size_t kFlashEventKinds = 4;
inline constexpr std::array<std::string_view, kFlashEventKinds> kFlashEventKindNames{"write", "discard", "zeroes",
                                                                                     "zeroes_kept"};

struct FlashEvent {
  std::uint32_t first = 0;   // index among the followed pages of the drive, all its namespaces
  std::uint32_t count = 0;   // of consecutive followed pages
  std::uint16_t device = 0;  // index in FlashSamples::devices
  FlashEventKind kind = FlashEventKind::write;
  std::uint8_t hint = 0;  // WriteHint; of a discard 0
  bool operator==(const FlashEvent&) const = default;
};

using PagesByHint = std::array<std::uint64_t, kWriteHints>;

/// Totals since the device is sampled with these parameters. What is still to be read counts at the next look.
struct DeviceFlashSamples {
  std::string device;
  std::uint64_t sampling = 0;  // number of these parameters, never used again; totals restart
  PagesByHint written{};       // pages, those of events that were lost, too; read after the events
  std::array<std::uint64_t, kFlashEventKinds> lost{};  // events for which the buffer had no room
};

/// Since the last look.
struct FlashSamples {
  std::vector<FlashEvent> events;           // in the order in which they were sent, of all devices
  std::vector<DeviceFlashSamples> devices;  // sampled ones, sorted by name
};

}  // namespace ssdpulse::model

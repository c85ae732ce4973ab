// SPDX-License-Identifier: Apache-2.0
// FlashSamples: what the kernel side reports about the host's writes for the flash model.
// That side follows some pages of a drive and sends an event for each completed write, discard or write of zeroes that
// contains one of them. It also counts every written page, exactly. Values only; the block source fills them in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/write_details.h"
#include "daemon/util/complete.h"

namespace ssdpulse::model {

/// Which pages of a device are followed; analysis::PageSample explains the choice. A drive's namespaces have the same
/// parameters except for `first_page`.
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
  zeroes,       // the drive may deallocate what it is to zero, and nearly all do: treated as a discard
  zeroes_kept,  // it is asked not to deallocate, but still stores no data
};
inline constexpr std::size_t kFlashEventKinds = util::count_of<FlashEventKind>();

struct FlashEvent {
  std::uint32_t first = 0;   // index among the followed pages of the drive, all its namespaces
  std::uint32_t count = 0;   // of consecutive followed pages
  std::uint16_t device = 0;  // index in FlashSamples::devices
  FlashEventKind kind = FlashEventKind::write;
  std::uint8_t hint = 0;  // WriteHint; 0 for a discard
  bool operator==(const FlashEvent&) const = default;
};

using PagesByHint = std::array<std::uint64_t, kWriteHints>;

/// Totals since sampling of the device with these parameters began. What has not been read yet counts in the next
/// reading.
struct DeviceFlashSamples {
  std::string device;
  std::uint64_t sampling = 0;                          // number of this set of parameters, never reused; totals restart
  PagesByHint written{};                               // pages, including those of lost events; read after the events
  std::array<std::uint64_t, kFlashEventKinds> lost{};  // events for which the buffer had no room
};

/// Since the last reading.
struct FlashSamples {
  std::vector<FlashEvent> events;           // in the order in which they were sent, of all devices
  std::vector<DeviceFlashSamples> devices;  // sampled ones, sorted by name
};

}  // namespace ssdpulse::model

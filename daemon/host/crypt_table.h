// SPDX-License-Identifier: Apache-2.0
// crypt_flags(): the flags of a dm-crypt volume. Only its table shows them. Only root may read the table, and it may
// contain the volume's key: only the names of flags that are known here are taken from it, and the rest is wiped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "daemon/model/host_settings.h"

namespace ssdpulse::host {

/// Passes the struct dm_ioctl in the buffer to the kernel; the answer is in the buffer. False: refused.
using AskDeviceMapper = std::function<bool(std::span<char> buffer)>;

/// The flags of the dm device with this number. Nothing if refused, if it is not a dm-crypt volume or has several
/// targets, or if `buffer` is too small for the answer. The buffer is all zeroes afterwards, whatever the answer was.
std::optional<std::set<std::string>> crypt_flags(std::uint32_t major, std::uint32_t minor, std::span<char> buffer,
                                                 const AskDeviceMapper& ask);

/// Fills DiskSettings::crypt_flags of all arrays of this host that are cryptsetup volumes. For a command that root
/// runs: nobody else gets an answer, and a daemon should never hold a key.
void add_crypt_flags(model::HostSettings& settings);

}  // namespace ssdpulse::host

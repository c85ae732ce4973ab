// SPDX-License-Identifier: Apache-2.0
// Which flags does a volume of dm-crypt have? Only its table says so, which only root may ask for, and which may hold
// the volume's key: nothing but names of flags that are known here is taken out of it, and the rest is wiped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// Asks the kernel what a struct dm_ioctl in the buffer asks for; the answer is in the buffer. False: refused.
using AskDeviceMapper = std::function<bool(std::span<char> buffer)>;

/// Of the dm device with this number. Nothing where it is refused, is no volume of dm-crypt, has more than one target,
/// or `buffer` is too small for the answer. The buffer is all zeroes afterwards, whatever the answer was.
std::optional<std::set<std::string>> crypt_flags(std::uint32_t major, std::uint32_t minor, std::span<char> buffer,
                                                 const AskDeviceMapper& ask);

/// Fills DiskSettings::crypt_flags of all arrays of this host that are volumes of cryptsetup. For a command that root
/// runs: nobody else gets an answer, and a daemon had better never hold a key.
void add_crypt_flags(model::HostSettings& settings);

}  // namespace ssdpulse::settings

// SPDX-License-Identifier: Apache-2.0
// too_few_open_files(): the limit of open files, judged before anything is opened. With too few, the first call to fail
// is one of hundreds, and libbpf reports some of them as a fault of the program or of the kernel.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>

namespace ssdpulse::util {

/// Maps, programs, their links, sockets and files of a daemon on a small host, and a few clients.
inline constexpr rlim_t kMinOpenFiles = 64;

/// What is wrong with a limit (RLIMIT_NOFILE, after it was raised as far as possible); nothing: it is enough.
inline std::optional<std::string> too_few_open_files(rlim_t limit) {
  if (limit >= kMinOpenFiles) {
    return std::nullopt;
  }
  return "Too many open files: only " + std::to_string(limit) + " are allowed (RLIMIT_NOFILE), at least " +
         std::to_string(kMinOpenFiles) + " are needed; raise LimitNOFILE= of the service, or `ulimit -n` of the shell";
}

}  // namespace ssdpulse::util

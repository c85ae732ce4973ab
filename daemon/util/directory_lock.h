// SPDX-License-Identifier: Apache-2.0
// Which daemon keeps its files in a directory. The lock is on a file that only its owner can open: whoever may just
// read the directory could lock that itself, and keep the daemon out of it.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::util {

/// Holds the lock until it is closed; the kernel releases it when a process ends. Invalid, with errno, if it cannot be
/// had: EWOULDBLOCK if another process has it. On a file system without locks, whoever comes has it.
inline UniqueFd lock_directory(const std::string& directory) {
  UniqueFd file(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    file = UniqueFd();
    errno = EWOULDBLOCK;
  }
  return file;
}

/// Whether another process has the lock, as far as this one may know.
inline bool is_locked(const std::string& directory) {
  const UniqueFd file(::open((directory + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.valid() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace ssdpulse::util

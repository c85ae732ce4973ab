// SPDX-License-Identifier: Apache-2.0
// UniqueFd: a file descriptor with one owner, which closes it exactly once; and what is done with files and the limit
// of open ones.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "daemon/base/result.h"

namespace ssdpulse::util {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

/// The whole content; a file longer than `limit` is an error (EFBIG), never a silently shortened text. For sysfs and
/// procfs, where sizes from stat(2) mean nothing and a file may vanish at any time.
Result<std::string> read_file(const std::string& path, std::size_t limit);

/// Puts the names in a directory on the disk: without this, a crash of the host could take back a rename.
Result<void> sync_names(const std::string& directory);

/// Holds the lock of a daemon that keeps its files in this directory until it is closed; the kernel releases it when a
/// process ends. Invalid, with errno, if it cannot be had: EWOULDBLOCK if another process has it. On a file system
/// without locks, every process gets it. The lock is on a file that only its owner can open: otherwise, whoever may
/// read the directory could lock that, and keep the daemon out of it.
inline UniqueFd lock_directory(const std::string& directory) {
  UniqueFd file(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    file = UniqueFd();
    errno = EWOULDBLOCK;
  }
  return file;
}

/// Whether another process has the lock; false if this one may not open the file.
inline bool is_locked(const std::string& directory) {
  const UniqueFd file(::open((directory + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.valid() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Maps, programs, their links, sockets and files of a daemon on a small host, and a few clients.
inline constexpr rlim_t kMinOpenFiles = 64;

/// What is wrong with a limit (RLIMIT_NOFILE, after it was raised as far as possible); nothing: it is enough. To be
/// checked before anything is opened: with too few, the first call to fail is one of hundreds, and libbpf reports some
/// of them as a fault of the program or of the kernel.
inline std::optional<std::string> too_few_open_files(rlim_t limit) {
  if (limit >= kMinOpenFiles) {
    return std::nullopt;
  }
  return "Too many open files: only " + std::to_string(limit) + " are allowed (RLIMIT_NOFILE), at least " +
         std::to_string(kMinOpenFiles) + " are needed; raise LimitNOFILE= of the service, or `ulimit -n` of the shell";
}

}  // namespace ssdpulse::util

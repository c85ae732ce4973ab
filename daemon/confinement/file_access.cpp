// SPDX-License-Identifier: Apache-2.0
// Makes the system calls itself: the C library has no wrappers, and headers of older kernels lack some of the rights.
#include "daemon/confinement/file_access.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::confinement {
namespace {

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;  // since Linux 6.2
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kOfDirectoriesAlone = ~(kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate);

/// The status of the file as it is known without asking a server: a mount whose server is gone would block forever.
std::optional<struct statx> status_of(const util::UniqueFd& place) {
  struct statx status {};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (!place.valid() || ::statx(place.get(), "", kFlags, STATX_TYPE | STATX_INO, &status) != 0) {
    return std::nullopt;
  }
  return status;
}

class Ruleset {
 public:
  /// Handles all rights to read and write that this kernel knows.
  static util::Result<Ruleset> make(long version) {
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = kRead | kWrite | (version >= 3 ? kTruncate : 0);
    util::UniqueFd fd(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!fd.valid()) {
      return util::fail_errno("cannot restrict files");
    }
    return Ruleset(std::move(fd), handled.handled_access_fs);
  }

  /// A path that does not exist is not allowed, which is no error.
  util::Result<void> allow(const util::UniqueFd& path, std::uint64_t access) {
    const auto status = status_of(path);
    if (!status) {
      return {};
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access = access & handled_ & (S_ISDIR(status->stx_mode) ? ~std::uint64_t{0} : ~kOfDirectoriesAlone);
    rule.parent_fd = path.get();
    if (::syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      return util::fail_errno("cannot allow files");
    }
    return {};
  }

  util::Result<void> enforce() {
    if (::syscall(SYS_landlock_restrict_self, fd_.get(), 0) != 0) {
      return util::fail_errno("cannot restrict files");
    }
    return {};
  }

 private:
  Ruleset(util::UniqueFd fd, std::uint64_t handled) : fd_(std::move(fd)), handled_(handled) {}

  util::UniqueFd fd_;
  std::uint64_t handled_;
};

util::UniqueFd open_path(const std::string& path, int more = 0) {
  return util::UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC | more));
}

bool is_same(const util::UniqueFd& a, const util::UniqueFd& b) {
  const auto one = status_of(a);
  const auto other = status_of(b);
  return one && other && one->stx_dev_major == other->stx_dev_major && one->stx_dev_minor == other->stx_dev_minor &&
         one->stx_ino == other->stx_ino;
}

/// False for a device, to which a link in the root may lead.
bool is_file_or_directory(const util::UniqueFd& place) {
  const auto status = status_of(place);
  return status && (S_ISREG(status->stx_mode) || S_ISDIR(status->stx_mode));
}

/// Rules can only allow, not forbid: so they name everything in the root except /dev.
util::Result<void> allow_reading_all_but_devices(Ruleset& rules) {
  const std::unique_ptr<DIR, int (*)(DIR*)> root(::opendir("/"), ::closedir);
  if (!root) {
    return util::fail_errno("cannot read /");
  }
  const util::UniqueFd devices = open_path("/dev", O_DIRECTORY);
  while (const dirent* entry = ::readdir(root.get())) {
    const std::string name = entry->d_name;
    const util::UniqueFd place = name == "." || name == ".." ? util::UniqueFd() : open_path("/" + name, 0);
    if (is_file_or_directory(place) && !is_same(place, devices)) {
      if (auto allowed = rules.allow(place, kRead); !allowed) {
        return allowed;
      }
    }
  }
  return {};
}

}  // namespace

util::Result<FileAccess> restrict_file_access(const std::string& writable) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, std::uint32_t{LANDLOCK_CREATE_RULESET_VERSION});
  if (version < 0) {
    return errno == ENOSYS || errno == EOPNOTSUPP ? util::Result<FileAccess>(FileAccess::unrestricted)
                                                  : util::fail_errno("cannot restrict files");
  }
  auto rules = Ruleset::make(version);
  util::Result<void> done = rules ? allow_reading_all_but_devices(*rules) : tl::make_unexpected(rules.error());
  const auto also = [&](const std::string& path, std::uint64_t access) {
    if (done) {
      done = rules->allow(open_path(path), access);
    }
  };
  also("/dev/null", kRead | kWrite | kTruncate);
  also("/dev/urandom", kRead);
  if (!writable.empty()) {
    also(writable, kRead | kWrite | kTruncate);
  }
  if (done) {
    done = rules->enforce();
  }
  return done ? util::Result<FileAccess>(FileAccess::restricted) : tl::make_unexpected(done.error());
}

}  // namespace ssdpulse::confinement

// SPDX-License-Identifier: Apache-2.0
#include "daemon/tenants/tenant_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/base/file_descriptor.h"

namespace ssdpulse::tenants {
namespace {

constexpr mode_t kOwnerOnly = 0600;

util::Result<util::HashKey> read_key(const util::UniqueFd& file, const std::string& path) {
  util::HashKey key{};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != static_cast<off_t>(key.size()) ||
      ::read(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
    return util::fail(path + " is not a key of 32 bytes; remove it, and a new one is made");
  }
  return key;
}

/// Whole or not at all: it has a temporary name until it is on the disk.
util::Result<util::HashKey> make_key(const std::string& directory, const std::string& path) {
  auto key = util::random_hash_key();
  if (!key) {
    return key;
  }
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const util::UniqueFd file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  if (!file.valid() || ::write(file.get(), key->data(), key->size()) != static_cast<ssize_t>(key->size()) ||
      ::fsync(file.get()) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    return util::fail_errno("cannot write " + path);
  }
  return util::sync_names(directory).map([&] { return *key; });
}

}  // namespace

util::Result<util::HashKey> persistent_key(const std::string& directory) {
  const std::string path = directory + "/" + kKeyFileName;
  const util::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.valid()) {
    return read_key(file, path);
  }
  return errno == ENOENT ? make_key(directory, path) : util::fail_errno("cannot read " + path);
}

}  // namespace ssdpulse::tenants

// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/file_descriptor.h"

#include <algorithm>

namespace ssdpulse::util {

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return fail_errno("cannot open " + path);
  }
  constexpr std::size_t kFirstPiece = 4096;  // a sysfs attribute is at most one page
  std::string text;
  std::size_t length = 0;
  while (length <= limit) {  // a procfs file may arrive in pieces
    if (length == text.size()) {
      text.resize(std::min(limit + 1, std::max(kFirstPiece, 2 * length)));
    }
    const ssize_t got = ::read(fd.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail_errno("cannot read " + path);
    }
    if (got == 0) {
      break;
    }
    length += static_cast<std::size_t>(got);
  }
  if (length > limit) {
    return fail(path + " is longer than " + std::to_string(limit) + " bytes", EFBIG);
  }
  text.resize(length);
  return text;
}

Result<void> sync_names(const std::string& directory) {
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool synced = opened.valid() && (::fsync(opened.get()) == 0 || errno == EINVAL);  // not all file systems can
  return synced ? Result<void>{} : fail_errno("cannot sync " + directory);
}

}  // namespace ssdpulse::util

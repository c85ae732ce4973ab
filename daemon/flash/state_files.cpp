// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/state_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "daemon/analysis/flash_model/binary_state.h"
#include "daemon/util/read_file.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::flash {
namespace {

constexpr mode_t kMode = 0600;  // which pages are followed is secret
constexpr std::string_view kBegin = "flash-";
constexpr std::string_view kEnd = ".state";
constexpr std::string_view kAside = ".state.new";

util::Result<void> write_all(const std::string& path, std::string_view bytes) {
  const util::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file.valid()) {
    return util::fail_errno(path);
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return util::fail_errno(path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  // If the name reached the disk before the bytes, a crash of the host would leave a damaged state.
  return ::fdatasync(file.get()) == 0 ? util::Result<void>{} : util::fail_errno(path);
}

}  // namespace

std::string StateFiles::path_of(const std::string& key) const {
  return fmt::format("{}/{}{:016x}{}", directory_, kBegin, analysis::checksum(key), kEnd);
}

util::Result<std::optional<std::string>> StateFiles::read(const std::string& key) const {
  if (!keeps()) {
    return std::nullopt;
  }
  auto bytes = util::read_file(path_of(key), kMaxBytes);
  if (bytes) {
    return std::optional(std::move(*bytes));
  }
  if (bytes.error().error_number == ENOENT) {
    return std::nullopt;
  }
  return tl::make_unexpected(bytes.error());
}

util::Result<void> StateFiles::write(const std::string& key, const std::string& bytes) const {
  if (!keeps()) {
    return {};
  }
  const std::string path = path_of(key);
  const std::string aside = path + ".new";
  std::error_code error;
  const bool known = std::filesystem::exists(path, error);
  if (auto written = write_all(aside, bytes); !written) {
    ::unlink(aside.c_str());
    return written;
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    return util::fail_errno(path);
  }
  if (!known) {
    tidy();
  }
  return {};
}

void StateFiles::tidy() const {
  namespace fs = std::filesystem;
  std::error_code error;
  struct State {
    fs::file_time_type written;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<State> states;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kBegin)) {
      continue;
    }
    std::error_code gone;
    if (name.ends_with(kAside)) {
      fs::remove(at->path(), gone);
    } else if (name.ends_with(kEnd)) {
      const std::uint64_t bytes = at->file_size(gone);
      states.push_back({at->last_write_time(gone), gone ? 0 : bytes, at->path()});
    }
  }
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.written > b.written; });
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    bytes += states[i].bytes;
    if (i >= kMaxFiles || bytes > most_bytes_) {
      fs::remove(states[i].path, error);
    }
  }
}

}  // namespace ssdpulse::flash

// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/sysfs.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <system_error>
#include <tuple>

#include "daemon/base/file_descriptor.h"

namespace ssdpulse::sysfs {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMaxTextBytes = 256;
constexpr std::string_view kBlanks = " \t\n\v\f\r";

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Removes `prefix` and the decimal digits after it from the front of `text`; false if they are not there.
bool skip_numbered(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  const std::size_t end = std::min(text.find_first_not_of("0123456789", prefix.size()), text.size());
  const bool has_digits = end > prefix.size();
  text.remove_prefix(end);
  return has_digits;
}

}  // namespace

std::string_view trim(std::string_view text) {
  // NUL too: fixed-size fields of drives are padded with it.
  const auto is_padding = [](char c) { return c == '\0' || kBlanks.find(c) != std::string_view::npos; };
  while (!text.empty() && is_padding(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_padding(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::optional<std::string> read_raw(const std::string& path) {
  auto text = util::read_file(path, kPageBytes);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

std::string read_text(const std::string& path) {
  const auto raw = read_raw(path);
  return raw ? std::string(trim(trim(*raw).substr(0, kMaxTextBytes))) : std::string();
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_device_number(std::string_view text) {
  constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::uint32_t>::max();
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto major = parse_number(text.substr(0, colon));
  const auto minor = parse_number(text.substr(std::min(colon + 1, text.size())));
  if (!major || !minor) {
    return std::nullopt;
  }
  return std::pair(static_cast<std::uint32_t>(std::min(*major, kMaxNumber)),
                   static_cast<std::uint32_t>(std::min(*minor, kMaxNumber)));
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto raw = read_raw(path);
  return raw ? parse_number(trim(*raw)) : std::nullopt;
}

util::Result<std::vector<std::string>> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) {
    return util::fail_errno("cannot list " + path);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_in(const std::string& directory) {
  return list_directory(directory).value_or(std::vector<std::string>{});
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string chosen_in(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view label) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(label)) {
      return line.substr(label.size());
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::optional<std::string> disk_directory(const std::string& sys_root, const std::string& disk_name) {
  const std::string name = to_sysfs_name(disk_name);
  if (std::string usual = sys_root + "/block/" + name; is_directory(usual)) {
    return usual;
  }
  if (!head_of_hidden_path(name)) {
    return std::nullopt;
  }
  const std::string controllers = sys_root + "/class/nvme";
  for (const std::string& controller : names_in(controllers)) {
    if (std::string hidden = controllers + "/" + controller + "/" + name; is_directory(hidden)) {
      return hidden;
    }
  }
  return std::nullopt;
}

std::optional<std::string> head_of_hidden_path(const std::string& disk_name) {
  std::string_view after_subsystem = disk_name;
  const bool has_subsystem = skip_numbered(after_subsystem, "nvme");
  std::string_view name_space = after_subsystem;
  const bool has_controller = skip_numbered(name_space, "c");
  std::string_view rest = name_space;
  if (!has_subsystem || !has_controller || !skip_numbered(rest, "n") || !rest.empty()) {
    return std::nullopt;
  }
  return disk_name.substr(0, disk_name.size() - after_subsystem.size()) + std::string(name_space);
}

std::string nvme_controller_of(const std::string& disk_directory) {
  const std::string parent = disk_directory + "/device";
  if (base_name(link_target(parent + "/subsystem")) == "nvme") {
    return std::string(base_name(link_target(parent)));
  }
  using Rank = std::tuple<bool, std::size_t, std::string>;  // numbers compare as numbers: shorter names first
  std::optional<Rank> best;
  for (const std::string& name : names_in(parent)) {
    std::string_view rest = name;
    if (!skip_numbered(rest, "nvme") || !rest.empty()) {
      continue;
    }
    Rank rank{read_text(parent + "/" + name + "/state") != "live", name.size(), name};
    if (!best || rank < *best) {
      best = std::move(rank);
    }
  }
  return best ? std::get<2>(*best) : std::string();
}

std::string to_kernel_name(std::string sysfs_name) {
  std::replace(sysfs_name.begin(), sysfs_name.end(), '!', '/');
  return sysfs_name;
}

std::string to_sysfs_name(std::string kernel_name) {
  std::replace(kernel_name.begin(), kernel_name.end(), '/', '!');
  return kernel_name;
}

}  // namespace ssdpulse::sysfs

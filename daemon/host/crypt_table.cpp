// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/crypt_table.h"

#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <string.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "daemon/base/file_descriptor.h"

namespace ssdpulse::host {
namespace {

constexpr std::size_t kBufferBytes = 16384;  // a table of one target has less than 1 KiB

constexpr auto kFlags = std::to_array<std::string_view>({"allow_discards", "same_cpu_crypt", "submit_from_crypt_cpus",
                                                         "no_read_workqueue", "no_write_workqueue", "high_priority"});

/// "CIPHER KEY IV_OFFSET DEVICE OFFSET [COUNT FLAG...]"
std::set<std::string> known_flags(std::string_view table) {
  constexpr std::size_t kBeforeFlags = 6;
  std::set<std::string> flags;
  for (std::size_t field = 0; !table.empty(); ++field) {
    const std::size_t end = std::min(table.find(' '), table.size());
    const std::string_view word = table.substr(0, end);
    if (field >= kBeforeFlags && std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end()) {
      flags.emplace(word);
    }
    table.remove_prefix(std::min(end + 1, table.size()));
  }
  return flags;
}

std::optional<std::set<std::string>> flags_in(std::span<const char> answer) {
  dm_ioctl header{};
  dm_target_spec target{};
  std::memcpy(&header, answer.data(), sizeof header);
  const std::size_t start = header.data_start;
  if ((header.flags & DM_BUFFER_FULL_FLAG) != 0 || header.target_count != 1 || start < sizeof header ||
      start > answer.size() || answer.size() - start <= sizeof target) {
    return std::nullopt;
  }
  std::memcpy(&target, answer.data() + start, sizeof target);
  const std::string_view kind(target.target_type, ::strnlen(target.target_type, sizeof target.target_type));
  const auto table = answer.subspan(start + sizeof target);
  return kind == "crypt" ? std::optional(known_flags({table.data(), ::strnlen(table.data(), table.size())}))
                         : std::nullopt;
}

/// Encodes a device number as the kernel does in huge_encode_dev.
std::uint64_t number_of(std::uint32_t major, std::uint32_t minor) {
  return (minor & 0xffU) | (major << 8U) | (std::uint64_t{minor & ~0xffU} << 12U);
}

}  // namespace

std::optional<std::set<std::string>> crypt_flags(std::uint32_t major, std::uint32_t minor, std::span<char> buffer,
                                                 const AskDeviceMapper& ask) {
  std::fill(buffer.begin(), buffer.end(), 0);
  dm_ioctl question{};
  if (buffer.size() <= sizeof question) {
    return std::nullopt;
  }
  question.version[0] = DM_VERSION_MAJOR;
  question.data_size = static_cast<std::uint32_t>(buffer.size());
  question.data_start = sizeof question;
  // The kernel wipes its own copies, too.
  question.flags = DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG | DM_NOFLUSH_FLAG;
  question.dev = number_of(major, minor);
  std::memcpy(buffer.data(), &question, sizeof question);
  auto flags = ask(buffer) ? flags_in(buffer) : std::nullopt;
  ::explicit_bzero(buffer.data(), buffer.size());
  return flags;
}

void add_crypt_flags(model::HostSettings& settings) {
  const auto is_crypt = [](const model::DiskSettings& array) {
    return array.files.text("dm/uuid").starts_with("CRYPT-");
  };
  if (std::none_of(settings.arrays.begin(), settings.arrays.end(), is_crypt)) {
    return;  // opening it would load the device mapper into the kernel
  }
  const util::UniqueFd control(::open("/dev/mapper/control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) {
    return;
  }
  std::vector<char> buffer(kBufferBytes);
  const AskDeviceMapper ask = [&](std::span<char> question) {
    return ::ioctl(control.get(), DM_TABLE_STATUS, question.data()) == 0;
  };
  for (model::DiskSettings& array : settings.arrays) {
    if (is_crypt(array)) {
      array.crypt_flags = crypt_flags(array.device.major, array.device.minor, buffer, ask);
    }
  }
}

}  // namespace ssdpulse::host

// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/inventory/attachment.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/sources/sysfs.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::inventory {
namespace {

namespace sysfs = sources::sysfs;

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kMaxBytes = 256;

/// The number in "host3"; nothing if the name has another form.
std::optional<std::uint64_t> number_after(std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) ? sysfs::parse_number(name.substr(prefix.size())) : std::nullopt;
}

/// "0000:00:1f.2"; the domain may be longer.
bool is_pci_function(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon != std::string_view::npos && colon >= 4 && name.size() == colon + 8 && name[colon + 3] == ':' &&
         name[colon + 6] == '.' && name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// "2:0:1:0" -> "scsi-0:1:0": without the host. Of a target that has a name of its own, only the logical unit counts.
std::optional<std::string> scsi_address(std::string_view name, bool named_target) {
  const std::size_t colon = named_target ? name.rfind(':') : name.find(':');
  const bool is_address =
      std::count(name.begin(), name.end(), ':') == 3 && name.find_first_not_of("0123456789:") == std::string_view::npos;
  return is_address ? std::optional("scsi-" + std::string(name.substr(colon + 1))) : std::nullopt;
}

/// "1-4.2:1.0" -> "4.2:1.0": the ports from the root hub on, without the bus, and the interface.
std::optional<std::string> usb_port(std::string_view name) {
  const std::size_t dash = name.find('-');
  const bool is_port = dash != std::string_view::npos && dash > 0 &&
                       name.substr(0, dash).find_first_not_of(kDigits) == std::string_view::npos &&
                       name.find_first_not_of("0123456789.:", dash + 1) == std::string_view::npos;
  return is_port ? std::optional("usb-" + std::string(name.substr(dash + 1))) : std::nullopt;
}

/// An adapter may have several SCSI hosts: the first, the second, ... of those that it has.
std::string host_among(const std::string& parent, std::uint64_t host) {
  std::uint64_t lower = 0;
  for (const std::string& name : sysfs::list_directory(parent).value_or(std::vector<std::string>{})) {
    const auto number = number_after("host", name);
    lower += number && *number < host ? 1 : 0;
  }
  return lower == 0 ? std::string() : "host-" + std::to_string(lower);
}

/// What stands for a name whose number depends on the order of probing.
struct Numbered {
  std::string_view prefix;
  std::string_view word;
  std::string_view directory;  // <sys>/class/..., then the name; empty: nothing stands for it
  std::string_view attribute;
};
constexpr auto kNumbered = std::to_array<Numbered>({
    {"ata", "ata-", "ata_port/", "/port_no"},
    {"end_device-", "sas-", "sas_device/", "/sas_address"},
    {"rport-", "fc-", "fc_remote_ports/", "/port_name"},
    {"session", "iscsi-", "iscsi_session/", "/targetname"},
    {"expander-", "", "", ""},
    {"port-", "", "", ""},
    {"target", "", "", ""},
    {"virtio", "", "", ""},
    {"usb", "", "", ""},
    {"pci", "", "", ""},
    {"connection", "", "", ""},
    {"mmc", "", "", ""},
    {"link", "", "", ""},
    {"dev", "", "", ""},
    {"vport-", "", "", ""},
    {"nvme-subsys", "", "", ""},
});

bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) && kHexDigits.find(name[prefix.size()]) < 10;
}

/// `before`: the text of what comes before it.
std::string word_of(const std::string& sys_root, const std::string& parent, const std::string& name,
                    std::string_view before) {
  const auto has = [&](std::string_view word) { return before.find(word) != std::string_view::npos; };
  if (const auto address = scsi_address(name, has("sas-") || has("fc-") || has("iscsi-"))) {
    return *address;
  }
  if (const auto host = number_after("host", name)) {
    return host_among(parent, *host);
  }
  if (number_after("nvme", name)) {
    const std::string address = sysfs::read_text(sys_root + "/class/nvme/" + name + "/address");
    return is_pci_function(address) ? std::string() : address;  // of a fabric
  }
  for (const Numbered& one : kNumbered) {
    if (is_numbered(name, one.prefix)) {
      const std::string value =
          one.directory.empty()
              ? std::string()
              : sysfs::read_text(sys_root + "/class/" + std::string(one.directory) + name + std::string(one.attribute));
      return value.empty() ? std::string() : std::string(one.word) + value;
    }
  }
  if (auto port = usb_port(name)) {
    return *port;
  }
  constexpr auto kFolders =
      std::to_array<std::string_view>({"devices", "virtual", "platform", "nvme", "mmc_host", "ctl", "sys"});
  return std::find(kFolders.begin(), kFolders.end(), name) == kFolders.end() ? name : std::string();
}

}  // namespace

util::OutsideText attachment_of(const std::string& sys_root, const std::string& directory) {
  const std::size_t last = directory.rfind('/');
  std::string target = sysfs::link_target(directory);
  if (target.empty() && last != std::string::npos) {
    target = sysfs::link_target(directory.substr(0, last));  // a hidden path lies below its controller
  } else {
    target.resize(target.size() - std::min(target.size(), sysfs::base_name(target).size() + 1));
  }
  std::string text;
  std::string parent = sys_root;
  std::string_view rest = target;
  while (!rest.empty() && text.size() < kMaxBytes) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name == ".." || name.empty()) {
      continue;
    }
    if (name == "block") {
      break;
    }
    if (is_pci_function(name)) {
      text = "pci-" + name;
    } else if (const std::string word = word_of(sys_root, parent, name, text); !word.empty()) {
      const bool alone = text.empty() || word.starts_with("iscsi-");  // whose hosts come and go with its sessions
      text = alone ? word : text + " " + word;
    }
    parent += "/" + name;
  }
  return util::without_padding(std::string_view(text).substr(0, kMaxBytes));
}

}  // namespace ssdpulse::inventory

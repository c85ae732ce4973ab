// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/virtual_machines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace ssdpulse::advice {
namespace {

/// QEMU takes most options as JSON or as key=value,key=value. Both become one flat table: file.aio=native and
/// {"file": {"aio": "native"}} are the same.
using Options = std::map<std::string, std::string, std::less<>>;

constexpr std::size_t kMaxNodes = 4096;
constexpr int kMaxDepth = 8;  // far beyond what anybody nests

std::vector<std::string_view> arguments(std::string_view line) {
  const bool by_nul = line.find('\0') != std::string_view::npos;
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    const char c = i < line.size() ? line[i] : by_nul ? '\0' : ' ';
    depth += c == '{' ? 1 : c == '}' && depth > 0 ? -1 : 0;
    const bool ends = i == line.size() || (by_nul ? c == '\0' : c == ' ' && depth == 0);
    if (ends && i > begin) {
      all.push_back(line.substr(begin, i - begin));
    }
    begin = ends ? i + 1 : begin;
  }
  return all;
}

/// A doubled comma is one in the value. What comes first needs no key: it is that of `implied`.
Options of_pairs(std::string_view text, const char* implied) {
  Options options;
  std::string pair;
  const auto end_pair = [&] {
    const std::size_t is = pair.find('=');
    if (is != std::string::npos) {
      options[pair.substr(0, is)] = pair.substr(is + 1);
    } else if (options.empty()) {
      options[implied] = pair;
    } else {
      options[pair] = "on";
    }
    pair.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool doubled = text[i] == ',' && i + 1 < text.size() && text[i + 1] == ',';
    if (text[i] == ',' && !doubled) {
      end_pair();
      continue;
    }
    pair += text[i];
    i += doubled ? 1 : 0;
  }
  end_pair();
  return options;
}

/// False: it is too deep.
bool flatten(const nlohmann::json& value, const std::string& key, int depth, Options& options) {
  bool whole = !value.is_object() || depth < kMaxDepth;
  if (value.is_object() && whole) {
    for (const auto& [name, below] : value.items()) {
      whole = flatten(below, key.empty() ? name : key + "." + name, depth + 1, options) && whole;
    }
  } else if (value.is_string()) {
    options[key] = value.get<std::string>();
  } else if (value.is_boolean()) {
    options[key] = value.get<bool>() ? "on" : "off";
  }
  return whole;
}

/// False: it is not the JSON that it begins as, or too deep.
bool read_options(std::string_view text, const char* implied, Options& options) {
  if (text.substr(0, 1) != "{") {
    options = of_pairs(text, implied);
    return true;
  }
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return flatten(json, "", 0, options) && json.is_object();
}

std::string value_of(const Options& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

/// Nothing for nbd://host, rbd:pool/image: whatever has a colon before any slash, as QEMU itself decides.
std::optional<std::string> path_on_host(const std::string& file) {
  const std::size_t colon = file.find(':');
  if (colon == std::string::npos || colon > file.find('/')) {
    return file;
  }
  const std::string protocol = file.substr(0, colon);
  return protocol == "file" || protocol == "host_device" ? std::optional(file.substr(colon + 1)) : std::nullopt;
}

bool ends_in(std::string_view key, std::string_view name) {
  return key == name || (key.ends_with(name) && key[key.size() - name.size() - 1] == '.');
}

/// The files of a node and of all that are defined within it.
void add_files(const Options& options, bool of_drive, QemuDisks& found) {
  for (const auto& [key, file] : options) {
    const bool named = of_drive && key == "file";  // else a reference to another node
    if (!named && !ends_in(key, "filename")) {
      continue;
    }
    const std::string prefix = named ? "" : key.substr(0, key.size() - std::string_view("filename").size());
    const std::string driver = value_of(options, prefix + "driver");
    const bool can_tell = driver == "file" || driver == "host_device" || (of_drive && (driver.empty() || named));
    if (named && file.starts_with("json:")) {
      Options inner;
      found.whole = read_options(std::string_view(file).substr(5), "", inner) && found.whole;
      add_files(inner, false, found);
      continue;
    }
    const auto path = can_tell ? path_on_host(file) : std::nullopt;
    if (!path) {
      continue;
    }
    if (found.disks.size() >= kMaxNodes) {
      found.whole = false;
      return;
    }
    std::string aio = value_of(options, prefix + "aio");
    for (const char* also : {"aio", "file.aio"}) {
      aio = aio.empty() && of_drive ? value_of(options, also) : aio;
    }
    found.disks.push_back({*path, aio.empty() || aio == "threads"});
  }
}

/// A node of -blockdev, and the nodes that it refers to by name.
struct Node {
  Options options;
  std::set<std::string> below;
};
using Nodes = std::map<std::string, Node>;

void refer(Nodes& nodes) {
  for (auto& [name, node] : nodes) {
    for (const auto& [key, value] : node.options) {
      if (!ends_in(key, "node-name") && !ends_in(key, "filename") && nodes.contains(value)) {
        node.below.insert(value);
      }
    }
  }
}

std::set<std::string> reached(const Nodes& nodes, std::vector<std::string> from) {
  std::set<std::string> all;
  while (!from.empty()) {
    const std::string name = std::move(from.back());
    from.pop_back();
    const auto node = nodes.find(name);
    if (node != nodes.end() && all.insert(name).second) {
      from.insert(from.end(), node->second.below.begin(), node->second.below.end());
    }
  }
  return all;
}

/// Collects what a command line says about disks.
class Line {
 public:
  QemuDisks read(std::string_view line) {
    const auto all = arguments(line);
    for (std::size_t i = 1; i < all.size(); ++i) {
      std::string_view name = all[i];
      if (name.front() != '-') {
        add_files({{"file", std::string(name)}}, true, result_);  // the first hard disk
        continue;
      }
      name.remove_prefix(name.starts_with("--") ? 2 : 1);
      // No list of options is complete: what looks like an option is never taken for a value.
      const bool has_value = i + 1 < all.size() && !is_option(all[i + 1]);
      if (has_value) {
        take(name, all[i + 1]);
      }
      i += has_value && takes_value(all[i]) ? 1 : 0;
    }
    add_nodes();
    return std::move(result_);
  }

 private:
  static bool is_option(std::string_view word) {
    const std::size_t dashes = std::min<std::size_t>(word.find_first_not_of('-'), 3);
    return (dashes == 1 || dashes == 2) && std::isalpha(static_cast<unsigned char>(word[dashes])) != 0;
  }

  static bool takes_value(std::string_view option) {
    constexpr auto kFlags = std::to_array<std::string_view>(
        {"enable-kvm", "nographic", "snapshot", "daemonize", "S", "s", "no-reboot", "no-shutdown", "nodefaults",
         "no-user-config", "no-acpi", "no-hpet", "full-screen", "usb", "only-migratable", "no-fd-bootchk", "win2k-hack",
         "preconfig"});
    if (option.front() != '-') {
      return false;
    }
    option.remove_prefix(option.starts_with("--") ? 2 : 1);
    return std::find(kFlags.begin(), kFlags.end(), option) == kFlags.end();
  }

  Options options_of(std::string_view value, const char* implied) {
    Options options;
    result_.whole = read_options(value, implied, options) && result_.whole;
    return options;
  }

  void take(std::string_view name, std::string_view value) {
    const bool disk =
        name == "hda" || name == "hdb" || name == "hdc" || name == "hdd" || name == "sd" || name == "mtdblock";
    if (disk) {
      add_files({{"file", std::string(value)}}, true, result_);
    } else if (name == "drive") {
      drive(options_of(value, "file"));
    } else if (name == "blockdev") {
      Options options = options_of(value, "driver");
      std::string node = value_of(options, "node-name");
      node = node.empty() ? "/" + std::to_string(nodes_.size()) : node;  // no name of a node has a slash
      if (nodes_.size() < kMaxNodes) {
        nodes_[node] = {std::move(options), {}};
      } else {
        result_.whole = false;
      }
    } else if (name == "device") {
      const Options options = options_of(value, "driver");
      if (value_of(options, "driver").ends_with("-cd") || value_of(options, "driver") == "floppy") {
        not_disks_.push_back(value_of(options, "drive"));
      }
    } else if (name == "machine" || name == "M") {
      const Options options = options_of(value, "type");
      not_disks_.push_back(value_of(options, "pflash0"));
      not_disks_.push_back(value_of(options, "pflash1"));
    } else if (name == "readconfig" || name == "set") {  // these change what other options say
      result_.whole = false;
    }
  }

  void drive(Options options) {
    const std::string interface = value_of(options, "if");
    if (value_of(options, "media") == "cdrom" || interface == "pflash" || interface == "floppy") {
      return;
    }
    drives_.emplace_back(value_of(options, "id"), std::move(options));
  }

  void add_nodes() {
    for (const auto& [id, options] : drives_) {
      if (id.empty() || std::find(not_disks_.begin(), not_disks_.end(), id) == not_disks_.end()) {
        add_files(options, true, result_);
      }
    }
    refer(nodes_);
    std::set<std::string> referred;
    for (const auto& [name, node] : nodes_) {
      referred.insert(node.below.begin(), node.below.end());
    }
    std::vector<std::string> tops;
    for (const auto& [name, node] : nodes_) {
      if (!referred.contains(name) && std::find(not_disks_.begin(), not_disks_.end(), name) == not_disks_.end()) {
        tops.push_back(name);
      }
    }
    for (const std::string& name : reached(nodes_, tops)) {
      add_files(nodes_[name].options, false, result_);
    }
  }

  QemuDisks result_;
  std::vector<std::pair<std::string, Options>> drives_;
  Nodes nodes_;
  std::vector<std::string> not_disks_;  // nodes and drives of firmware, CD-ROMs and floppies
};

}  // namespace

QemuDisks disks_of_qemu(std::string_view line) { return Line().read(line); }

}  // namespace ssdpulse::advice

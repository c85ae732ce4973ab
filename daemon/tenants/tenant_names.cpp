// SPDX-License-Identifier: Apache-2.0
#include "daemon/tenants/tenant_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "daemon/base/glob.h"

namespace ssdpulse::tenants {
namespace {

using model::TenantKind;
using Parts = std::vector<std::string_view>;

constexpr std::size_t kShownDigits = 12;  // as `docker ps` and others show
constexpr std::size_t kMaxPathBytes = 1024;

/// Of a systemd unit: \xNN becomes the byte; anything else stays.
std::string without_escapes(std::string_view name) {
  constexpr std::size_t kEscape = 4;  // \x2d
  std::string plain;
  while (!name.empty()) {
    unsigned char byte = 0;
    if (name.size() >= kEscape && name[0] == '\\' && name[1] == 'x' &&
        std::from_chars(name.data() + 2, name.data() + kEscape, byte, 16).ptr == name.data() + kEscape) {
      plain += static_cast<char>(byte);
      name.remove_prefix(kEscape);
    } else {
      plain += name[0];
      name.remove_prefix(1);
    }
  }
  return plain;
}

/// Removes the suffix, if the name has it and is longer; returns whether it did.
bool strip_suffix(std::string_view& name, std::string_view suffix) {
  const bool has_it = name.size() > suffix.size() && name.ends_with(suffix);
  name.remove_suffix(has_it ? suffix.size() : 0);
  return has_it;
}

bool strip_prefix(std::string_view& name, std::string_view prefix) {
  const bool has_it = name.size() > prefix.size() && name.starts_with(prefix);
  name.remove_prefix(has_it ? prefix.size() : 0);
  return has_it;
}

Parts parts_of(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) {
      parts.push_back(path.substr(0, end));
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The identity of a container, which its runtime chose at random.
bool is_identity(std::string_view text) {
  constexpr std::size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Container {
  std::string runtime;
  std::string_view identity;
};

/// docker-HEX.scope, libpod-conmon-HEX.scope, cri-containerd-HEX.scope; HEX alone.
std::optional<Container> container_of(std::string_view part) {
  strip_suffix(part, ".scope");
  if (is_identity(part)) {
    return Container{"container", part};
  }
  const std::size_t dash = part.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || dash > 32 || !is_identity(part.substr(dash + 1))) {
    return std::nullopt;
  }
  std::string_view runtime = part.substr(0, dash);
  if (runtime.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string_view::npos) {
    return std::nullopt;
  }
  strip_suffix(runtime, "-conmon");   // its monitor
  strip_suffix(runtime, "-payload");  // of podman in a unit of its own
  strip_prefix(runtime, "cri-");
  return Container{runtime == "libpod" ? "podman" : std::string(runtime), part.substr(dash + 1)};
}

/// UID of [kubelet-]kubepods[-burstable|-besteffort]-podUID.slice; its dashes are underscores there.
std::optional<std::string> pod_of_slice(std::string_view part) {
  constexpr std::string_view kPod = "-pod";
  strip_prefix(part, "kubelet-");
  if (!strip_suffix(part, ".slice") || !strip_prefix(part, "kubepods")) {
    return std::nullopt;
  }
  const std::size_t at = part.find(kPod);
  if (at == std::string_view::npos || at + kPod.size() == part.size()) {
    return std::nullopt;
  }
  std::string uid(part.substr(at + kPod.size()));
  std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

bool is_unit(std::string_view part) {
  constexpr auto kSuffixes = std::to_array<std::string_view>({".service", ".scope", ".mount", ".socket", ".swap"});
  return std::any_of(kSuffixes.begin(), kSuffixes.end(), [&](std::string_view suffix) {
    std::string_view name = part;
    return strip_suffix(name, suffix);
  });
}

/// What holds Slurm's jobs: slurm, slurm_NODE (cgroup v1), slurmstepd.scope, and NODE_slurmstepd.scope where several
/// slurmd share a host.
bool is_of_slurm(std::string_view part) {
  constexpr std::string_view kSteps = "_slurmstepd.scope";
  return part.starts_with("slurm") || (part.size() > kSteps.size() && strip_suffix(part, kSteps));
}

/// qemu-3-db1 and lxc-17-web, as libvirt registers them: with a run number that is not part of the guest's name.
std::optional<std::string> guest_of(std::string_view registered, std::string_view driver) {
  if (!strip_prefix(registered, driver) || !strip_prefix(registered, "-")) {
    return std::nullopt;
  }
  const std::size_t dash = registered.find('-');
  const bool numbered = dash != std::string_view::npos && is_number(registered.substr(0, dash));
  return std::string(numbered && dash + 1 < registered.size() ? registered.substr(dash + 1) : registered);
}

/// Goes down the path until it finds a tenant. What it found on the way, to use if there is nothing better: a pod, a
/// user, slices.
class Search {
 public:
  explicit Search(std::string_view path) : parts_(parts_of(path)) {}

  model::Tenant run() {
    if (parts_.empty()) {
      return {std::string(model::kRootTenant), TenantKind::root, "/"};
    }
    for (at_ = 0; at_ < parts_.size() && found_.name.empty(); ++at_) {
      const bool may_be_slurm = !unknown_ || at_ <= 1;  // whatever group an administrator has put it into
      match();
      holds_jobs_ = holds_jobs_ || (may_be_slurm && is_of_slurm(part()));
    }
    if (!found_.name.empty()) {
      return found_;
    }
    if (best_) {
      return *best_;
    }
    found(TenantKind::cgroup, path_to(parts_.size()), parts_.size());
    return found_;
  }

 private:
  [[nodiscard]] std::string_view part() const { return parts_[at_]; }
  [[nodiscard]] std::string_view above() const { return at_ == 0 ? "" : parts_[at_ - 1]; }

  void match() {
    if (container() || slice_with_container() || job()) {
      return;
    }
    if (unknown_) {
      return;  // whatever its name
    }
    if (slice() || guest() || system_container() || pod() || unit()) {
      return;
    }
    // Groups that a runtime or a manager creates to hold others.
    constexpr auto kKnown = std::to_array<std::string_view>(
        {"kubepods", "burstable", "besteffort", "docker", "lxc", "machine", "lxc.payload", "lxc.monitor", "kubelet"});
    unknown_ = std::find(kKnown.begin(), kKnown.end(), part()) == kKnown.end();
  }

  void found(TenantKind kind, const std::string& name, std::size_t parts) {
    found_ = {clean_tenant_name(name), kind, path_to(parts)};
  }
  void found(TenantKind kind, const std::string& name) { found(kind, user_ + name, at_ + 1); }
  void keep(TenantKind kind, const std::string& name) {
    best_ = model::Tenant{clean_tenant_name(name), kind, path_to(at_ + 1)};
  }

  bool container() {
    const auto one = container_of(part());
    if (!one) {
      return false;
    }
    const std::string digits(one->identity.substr(0, kShownDigits));
    const bool of_docker = above() == "docker" && one->runtime == "container";
    found(TenantKind::container,
          !pod_.empty() ? pod_ + "/" + digits : (of_docker ? "docker" : one->runtime) + "/" + digits);
    return true;
  }

  /// SLICE:RUNTIME:HEX: what a runtime without systemd makes of a path meant for systemd.
  bool slice_with_container() {
    const std::size_t last = part().rfind(':');
    if (last == std::string_view::npos || !is_identity(part().substr(last + 1))) {
      return false;
    }
    const std::string digits(part().substr(last + 1, kShownDigits));
    const auto pod = pod_of_slice(part().substr(0, part().find(':')));
    found(TenantKind::container, pod ? "pod/" + *pod + "/" + digits : "container/" + digits);
    return true;
  }

  bool slice() {
    std::string_view name = part();
    if (!strip_suffix(name, ".slice")) {
      return false;
    }
    if (const auto uid = pod_of_slice(part())) {
      pod_ = "pod/" + *uid;
      keep(TenantKind::pod, user_ + pod_);
    } else if (above() == "user.slice" && at_ == 1 && strip_prefix(name, "user-") && is_number(name)) {
      user_ = "user/" + std::string(name) + "/";
      keep(TenantKind::user, "user/" + std::string(name));
    } else if (user_.empty() && pod_.empty()) {
      keep(TenantKind::slice, std::string(part()));
    }
    return true;
  }

  bool job() {
    std::string_view name = part();
    if (!strip_prefix(name, "job_") || !is_number(name) || !holds_jobs_) {
      return false;
    }
    found(TenantKind::job, "job/" + std::string(name));
    return true;
  }

  bool guest() {
    std::string_view name = part();
    if (above() == "qemu.slice" && strip_suffix(name, ".scope")) {
      found(TenantKind::vm, "vm/" + std::string(name));
    } else if (strip_suffix(name, ".libvirt-qemu")) {
      found(TenantKind::vm, "vm/" + guest_of(name, "qemu").value_or(std::string(name)));
    } else if (strip_suffix(name, ".scope") && strip_prefix(name, "machine-")) {
      const std::string registered = without_escapes(name);
      if (const auto vm = guest_of(registered, "qemu")) {
        found(TenantKind::vm, "vm/" + *vm);
      } else if (const auto lxc = guest_of(registered, "lxc")) {
        found(TenantKind::container, "lxc/" + *lxc);
      } else {
        found(TenantKind::container, "machine/" + registered);
      }
    } else {
      return false;
    }
    return true;
  }

  bool system_container() {
    std::string_view name = part();
    const bool is_one = strip_prefix(name, "lxc.payload.") || strip_prefix(name, "lxc.monitor.") || above() == "lxc" ||
                        above() == "lxc.payload" || above() == "lxc.monitor";
    if (is_one) {
      found(TenantKind::container, "lxc/" + std::string(name));
    }
    return is_one;
  }

  bool pod() {
    std::string_view name = part();
    constexpr auto kQosClasses = std::to_array<std::string_view>({"kubepods", "burstable", "besteffort"});
    if (std::find(kQosClasses.begin(), kQosClasses.end(), above()) == kQosClasses.end() || !strip_prefix(name, "pod")) {
      return false;
    }
    pod_ = "pod/" + std::string(name);
    keep(TenantKind::pod, user_ + pod_);
    return true;
  }

  bool unit() {
    if (!is_unit(part())) {
      return false;
    }
    // A user's units belong to the user, Slurm's to its jobs; a Kubernetes container may lie in its runtime's unit.
    const bool holds_pods = at_ + 1 < parts_.size() && parts_[at_ + 1].find(':') != std::string_view::npos;
    if (user_.empty() && pod_.empty()) {
      const bool holds_others = is_of_slurm(part()) || holds_pods;
      holds_others ? keep(TenantKind::unit, std::string(part())) : found(TenantKind::unit, std::string(part()));
    }
    return true;
  }

  [[nodiscard]] std::string path_to(std::size_t parts) const {
    std::string path;
    for (std::size_t i = 0; i < parts && path.size() < kMaxPathBytes; ++i) {
      path += "/" + std::string(parts_[i]);
    }
    return path.substr(0, kMaxPathBytes);
  }

  Parts parts_;
  std::size_t at_ = 0;
  bool unknown_ = false;
  bool holds_jobs_ = false;
  std::string pod_;   // pod/UID
  std::string user_;  // user/UID/
  model::Tenant found_{};
  std::optional<model::Tenant> best_;
};

/// FNV-1a, 32 bits.
std::uint32_t checksum(std::string_view text) {
  std::uint32_t sum = 2166136261U;
  for (const char c : text) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return sum;
}

}  // namespace

model::Tenant tenant_of_cgroup(std::string_view path) { return Search(path).run(); }

std::string clean_tenant_name(std::string_view name) {
  const auto is_odd = [](char c) { return c == ',' || !util::is_plain_name({&c, 1}); };
  const bool odd = std::any_of(name.begin(), name.end(), is_odd);
  if (!odd && name.size() <= kMaxTenantNameBytes) {
    return std::string(name);
  }
  constexpr std::size_t kEnding = 9;
  std::string clean(name.substr(0, kMaxTenantNameBytes - kEnding));
  std::replace_if(clean.begin(), clean.end(), is_odd, '_');
  return clean + fmt::format("~{:08x}", checksum(name));
}

const model::Tenants& TenantNamer::tenants_of(const model::CgroupPaths& paths) {
  if (paths != paths_ || tenants_.empty()) {
    model::Tenants before = std::exchange(tenants_, {});
    tenants_.emplace(model::kNoCgroup, model::Tenant{"none", model::TenantKind::none, ""});
    for (const auto& [id, path] : paths) {
      const auto known = paths_.find(id);
      const bool same = known != paths_.end() && known->second == path;
      tenants_.insert_or_assign(id, same ? std::move(before.at(id)) : tenant_of(path));
    }
    paths_ = paths;
  }
  return tenants_;
}

model::Tenant TenantNamer::tenant_of(const util::OutsideText& path) const {
  const auto pattern = std::find_if(patterns_.begin(), patterns_.end(), [&](const TenantPattern& one) {
    return util::glob_matches(one.match, path.raw());
  });
  model::Tenant tenant = pattern == patterns_.end() ? tenant_of_cgroup(path.raw())
                                                    : model::Tenant{pattern->tenant, model::TenantKind::configured, ""};
  if (key_ && tenant.kind != model::TenantKind::root) {
    tenant.name = util::keyed_hash(*key_, tenant.name, kTenantHashDigits);
    tenant.cgroup.clear();
  }
  return tenant;
}

}  // namespace ssdpulse::tenants

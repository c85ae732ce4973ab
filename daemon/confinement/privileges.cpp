// SPDX-License-Identifier: Apache-2.0
#include "daemon/confinement/privileges.h"

#include <sys/capability.h>
#include <sys/prctl.h>

#include <memory>
#include <type_traits>

namespace ssdpulse::confinement {
namespace {

using Capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)>;

/// Copies those of `wanted` that `held` has, both as permitted and as effective.
bool copy_permitted(cap_t held, std::span<const int> wanted, cap_t kept) {
  for (const cap_value_t capability : wanted) {
    cap_flag_value_t permitted = CAP_CLEAR;
    if (cap_get_flag(held, capability, CAP_PERMITTED, &permitted) != 0 ||
        cap_set_flag(kept, CAP_PERMITTED, 1, &capability, permitted) != 0 ||
        cap_set_flag(kept, CAP_EFFECTIVE, 1, &capability, permitted) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

util::Result<void> keep_capabilities(std::span<const int> wanted) {
  for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; ++capability) {
    // Without CAP_SETPCAP the bounding set stays; no_new_privs below makes it meaningless.
    cap_drop_bound(capability);
  }
  cap_reset_ambient();
  const Capabilities held(cap_get_proc(), cap_free);
  const Capabilities kept(cap_init(), cap_free);
  if (!held || !kept || !copy_permitted(held.get(), wanted, kept.get())) {
    return util::fail_errno("cannot read capabilities");
  }
  if (cap_set_proc(kept.get()) != 0) {
    return util::fail_errno("cannot drop capabilities");
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return util::fail_errno("cannot set no_new_privs");
  }
  return {};
}

}  // namespace ssdpulse::confinement

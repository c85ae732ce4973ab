// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/privileges.h"

#include <sys/capability.h>
#include <sys/prctl.h>

#include <memory>
#include <type_traits>

namespace ssdpulse::runtime {

util::Result<void> drop_all_capabilities() {
  for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; ++capability) {
    // Without CAP_SETPCAP the bounding set stays; no_new_privs below makes it meaningless.
    cap_drop_bound(capability);
  }
  cap_reset_ambient();
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> none(cap_init(), cap_free);
  if (!none || cap_set_proc(none.get()) != 0) {
    return util::fail_errno("cannot give up capabilities");
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return util::fail_errno("cannot set no_new_privs");
  }
  return {};
}

}  // namespace ssdpulse::runtime

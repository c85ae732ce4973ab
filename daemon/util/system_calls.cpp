// SPDX-License-Identifier: Apache-2.0
#include "daemon/util/system_calls.h"

#include <seccomp.h>

#include <cerrno>
#include <memory>
#include <type_traits>

namespace ssdpulse::util {
namespace {

using Filter = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, void (*)(scmp_filter_ctx)>;

int add(scmp_filter_ctx filter, std::uint32_t action, const SystemCall& call) {
  const int number = seccomp_syscall_resolve_name(call.name);
  if (number == __NR_SCMP_ERROR) {
    return 0;  // libseccomp is older than the call, or the call is another machine's
  }
  if (call.when == SystemCall::When::always) {
    return seccomp_rule_add(filter, action, number, 0);
  }
  const scmp_compare compare = call.when == SystemCall::When::argument_is ? SCMP_CMP_EQ : SCMP_CMP_NE;
  const scmp_arg_cmp condition{call.argument, compare, call.value, 0};
  return seccomp_rule_add_array(filter, action, number, 1, &condition);
}

Result<void> apply(std::uint32_t otherwise, std::uint32_t action, std::span<const SystemCall> calls) {
  const Filter filter(seccomp_init(otherwise), seccomp_release);
  if (!filter) {
    return fail("cannot make a filter of system calls");
  }
  // Also for calls in the manner of another architecture (32 bit, x32), and for threads that run already.
  int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
  if (error == 0) {
    error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  }
  for (const SystemCall& call : calls) {
    if (error == 0) {
      error = add(filter.get(), action, call);
    }
  }
  if (error == 0) {
    error = seccomp_load(filter.get());
  }
  return error == 0 ? Result<void>() : fail_errno("cannot filter system calls", -error);
}

}  // namespace

Result<void> refuse_system_calls(std::span<const SystemCall> refused) {
  return apply(SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(EPERM), refused);
}

Result<void> allow_only_system_calls(std::span<const SystemCall> allowed) {
  return apply(SCMP_ACT_ERRNO(EPERM), SCMP_ACT_ALLOW, allowed);
}

}  // namespace ssdpulse::util

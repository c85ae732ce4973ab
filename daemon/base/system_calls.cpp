// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/system_calls.h"

#include <seccomp.h>

#include <cerrno>
#include <memory>
#include <type_traits>

namespace ssdpulse::util {
namespace {

using Filter = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, void (*)(scmp_filter_ctx)>;

int add(scmp_filter_ctx filter, std::uint32_t action, const SystemCall& call) {
  const int known = seccomp_syscall_resolve_name(call.name);
  const int number = known == __NR_SCMP_ERROR ? call.number : known;
  if (call.when == SystemCall::When::always) {
    return seccomp_rule_add(filter, action, number, 0);
  }
  const auto add_if = [&](scmp_compare compare, std::uint64_t a, std::uint64_t b) {
    const scmp_arg_cmp condition{call.argument, compare, a, b};
    return seccomp_rule_add_array(filter, action, number, 1, &condition);
  };
  if (call.when == SystemCall::When::argument_is_not) {
    return add_if(SCMP_CMP_NE, call.value, 0);
  }
  if (call.when == SystemCall::When::argument_is) {
    return add_if(SCMP_CMP_MASKED_EQ, call.mask, call.value);
  }
  int error = 0;
  for (std::uint64_t left = call.value; left != 0 && error == 0; left &= left - 1) {
    const std::uint64_t lowest = left & (~left + 1);
    error = add_if(SCMP_CMP_MASKED_EQ, lowest, lowest);
  }
  return error;
}

Result<void> apply(std::uint32_t otherwise, std::uint32_t action, std::span<const SystemCall> calls) {
  const Filter filter(seccomp_init(otherwise), seccomp_release);
  if (!filter) {
    return fail("cannot create a filter of system calls");
  }
  // Also for calls made as on another architecture (32 bit, x32), and for threads that are already running.
  int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
  if (error == 0) {
    error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  }
  if (error == 0) {
    error = add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), {"clone3"});
  }
  for (const SystemCall& call : calls) {
    if (call.number < 0 && seccomp_syscall_resolve_name(call.name) == __NR_SCMP_ERROR) {
      return fail(std::string("cannot filter system calls: libseccomp does not know ") + call.name);
    }
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

// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings kernel_types(const Start& start) {
  if (!start.host.kernel_types) {
    return {finding(model::Verdict::unknown, "", "types of the kernel", "sysfs is not mounted here")};
  }
  if (*start.host.kernel_types) {
    return {};
  }
  auto one = finding(model::Verdict::danger, "", "the kernel has no type information: nothing can be measured",
                     "/sys/kernel/btf/vmlinux is missing", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y");
  one.risk = "about 5 MB of memory";
  return {one};
}

}  // namespace

const HostCheck kKernelTypes{"kernel-btf", "the kernel describes its types", kernel_types};

}  // namespace ssdpulse::doctor

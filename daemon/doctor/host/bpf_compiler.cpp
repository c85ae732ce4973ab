// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

/// If the setting cannot be read (a container has none), a daemon that fails because of it reports that itself.
Findings bpf_compiler(const Start& start) {
  if (start.host.bpf_jit_enable.value_or(1) != 0) {
    return {};
  }
  auto one = finding(model::Verdict::advise, "", "the kernel does not compile BPF programs",
                     "interpreted, they take several times as long, and newer kernels refuse them",
                     "sysctl -w net.core.bpf_jit_enable=1");
  one.persistent = "echo net.core.bpf_jit_enable=1 > /etc/sysctl.d/60-ssdpulse-jit.conf";
  one.undo = "sysctl -w net.core.bpf_jit_enable=0; rm -f /etc/sysctl.d/60-ssdpulse-jit.conf";
  one.risk = "programs of root become machine code in the kernel, as they do by default";
  one.source = "Documentation/admin-guide/sysctl/net.rst, bpf_jit_enable";
  return {one};
}

}  // namespace

const HostCheck kBpfCompiler{"bpf-jit", "the kernel compiles BPF programs", bpf_compiler};

}  // namespace ssdpulse::doctor

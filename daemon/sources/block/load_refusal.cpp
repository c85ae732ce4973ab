// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/load_refusal.h"

#include <cerrno>
#include <cstring>

namespace ssdpulse::block {
namespace {

constexpr const char* kLastWords = "the last words of libbpf and the verifier:\n";
constexpr int kNotSupported = 524;  // ENOTSUPP, which is internal to the kernel, and returned nevertheless

/// The kernel did not compile these programs, and its interpreter does not run them.
bool needs_the_compiler(const LoadRefusal& refusal) {
  return refusal.error_number == kNotSupported || refusal.messages.find("non-JITed") != std::string::npos;
}

}  // namespace

util::Error explain(const LoadRefusal& refusal) {
  if (refusal.confidential) {
    return {
        "the kernel is locked down (confidentiality) and refuses BPF programs that read kernel memory; "
        "boot with lockdown=integrity or none",
        refusal.error_number};
  }
  if (refusal.error_number == ENOMEM) {
    return {"not enough memory for the kernel's tables; allow the service more (MemoryMax), or measure fewer devices",
            ENOMEM};
  }
  if (refusal.error_number == EMFILE) {
    return {"too few files may be open (RLIMIT_NOFILE); raise LimitNOFILE= of the service, or `ulimit -n` of the shell",
            EMFILE};
  }
  if (refusal.error_number == ENFILE) {
    return {"too many files are open on this host; sysctl -w fs.file-max=..., or find who holds them", ENFILE};
  }
  if (needs_the_compiler(refusal) && refusal.compiles.value_or(false)) {
    std::string words = "the kernel does not support these BPF programs, or has no room to compile them ";
    words += "(net.core.bpf_jit_limit); ";
    words += kLastWords;
    return {words + refusal.messages, refusal.error_number};
  }
  if (needs_the_compiler(refusal)) {
    return {
        "the kernel does not compile BPF programs, and this one does not interpret them; "
        "sysctl -w net.core.bpf_jit_enable=1",
        refusal.error_number};
  }
  // The verifier refuses with EACCES, too, but then it has said why.
  if ((refusal.error_number == EPERM || refusal.error_number == EACCES) && !refusal.verifier_spoke) {
    return {
        "not permitted to load BPF programs; run as root, or with CAP_BPF and CAP_PERFMON (and CAP_SYS_RESOURCE "
        "before Linux 5.11)",
        refusal.error_number};
  }
  return {"the kernel refused the BPF programs: " + std::string(std::strerror(refusal.error_number)) +
              "; please report this with the kernel's version and " + kLastWords + refusal.messages,
          0};
}

}  // namespace ssdpulse::block

// SPDX-License-Identifier: Apache-2.0
// KernelBtf: what the running kernel's type information (BTF) reveals about the block layer. Read once, before the
// programs are loaded; the kernel's version is never checked.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::block {

/// Where discards can be seen being made, depending on the kernel; see bpf/discard.bpf.c.
enum class DiscardHook : std::uint8_t { chain_bio, issue, issue_with_flags, bio_queue, bio_queue_with_queue };

struct KernelBtf {
  bool issue_has_queue_argument = false;  // block_rq_issue(queue, request): 5.10 before its stable update
  std::array<std::uint8_t, 256> class_of_op{};
  bool counts_skipped_runs = false;        // those of a program inside itself on one CPU
  std::uint32_t rare_command_flags = 0;    // bits of request.cmd_flags that no ordinary read or write has
  std::uint32_t flush_sequence_flag = 0;   // bit of request.rq_flags
  std::uint32_t stamped_flag = 0;          // bit of request.rq_flags that vouches for start_time_ns; 0: none needed
  std::vector<DiscardHook> discard_hooks;  // best first
  std::uint32_t discard_op = 0;
  std::uint32_t preflush_flag = 0;   // bit of bio.bi_opf
  bool bios_keep_partition = false;  // even after they were remapped to their disk
  bool bios_have_hints = false;      // if not, a write without one may well have been given one
  bool hints_of_pages = false;       // page-cache writes lose their hint on the way: their file is checked
  bool bios_have_cgroup = false;     // CONFIG_BLK_CGROUP
  bool has_cast = false;             // a program may follow a number as a pointer
  model::HintReach hint_reach = model::HintReach::dropped;

  model::KernelFeatures features;  // each decision, for the log and ssdpulse_kernel_feature_info
};

/// Reads /sys/kernel/btf/vmlinux. Fails with a message that says what to do if there is none, or if the block
/// tracepoints are not those of any supported kernel.
util::Result<KernelBtf> read_kernel_btf();

}  // namespace ssdpulse::block

// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/program_stats.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <utility>

namespace ssdpulse::block {

void add_program_stats(const bpf_object* object, bool kernel_counts_skipped_runs,
                       std::vector<model::ProgramStats>& all) {
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(object, program)) != nullptr) {
    const int fd = bpf_program__fd(program);
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) != 0) {
      continue;
    }
    model::ProgramStats stats;
    stats.name = bpf_program__name(program);
    if (kernel_counts_skipped_runs) {
      stats.recursion_misses = info.recursion_misses;
    }
    // run_cnt only moves while kernel.bpf_stats_enabled is on.
    if (info.run_cnt > 0) {
      stats.runs = info.run_cnt;
      stats.run_ns = info.run_time_ns;
    }
    all.push_back(std::move(stats));
  }
}

}  // namespace ssdpulse::block

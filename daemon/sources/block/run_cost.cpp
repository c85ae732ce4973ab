// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/run_cost.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>

#include <algorithm>
#include <array>
#include <memory>

#include "run_cost.skel.h"

namespace ssdpulse::block {
namespace {

/// Series of runs, of which the median counts: other work of the host may disturb some of them.
constexpr std::size_t kRows = 7;
constexpr int kRunsOfRow = 10'000;

util::Result<double> time_of_run(const bpf_program* program) {
  std::array<std::uint32_t, kRows> rows{};
  std::array<char, 64> packet{};  // programs of this kind need one to run on
  for (std::uint32_t& row : rows) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = packet.data();
    options.data_size_in = static_cast<__u32>(packet.size());
    options.repeat = kRunsOfRow;
    if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) {
      return util::fail_errno("the kernel runs no program to measure it");
    }
    row = options.duration;
  }
  std::nth_element(rows.begin(), rows.begin() + kRows / 2, rows.end());
  return static_cast<double>(rows[kRows / 2]);
}

}  // namespace

util::Result<model::RunCost> measure_run_cost(bool completion_only) {
  const std::unique_ptr<run_cost, decltype(&run_cost::destroy)> skeleton(run_cost::open_and_load(), run_cost::destroy);
  if (!skeleton) {
    return util::fail_errno("cannot load programs to measure");
  }
  model::RunCost cost;
  const auto completion = time_of_run(skeleton->progs.completion_alike);
  if (!completion) {
    return tl::make_unexpected(completion.error());
  }
  cost.completion_ns = *completion;
  if (completion_only) {
    // This mode reads no slot, and fills two of the four histograms.
    constexpr double kShare = 0.5;
    cost.completion_ns *= kShare;
    return cost;
  }
  const auto issue = time_of_run(skeleton->progs.issue_alike);
  if (!issue) {
    return tl::make_unexpected(issue.error());
  }
  cost.issue_ns = *issue;
  return cost;
}

}  // namespace ssdpulse::block

// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/bpf_objects.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "run_cost.skel.h"

namespace ssdpulse::block {
namespace {

constexpr const char* kLastMessages = "the last words of libbpf and the verifier:\n";
constexpr int kNotSupported = 524;  // ENOTSUPP, which is internal to the kernel, and returned nevertheless

/// The kernel did not compile these programs, and its interpreter does not run them.
bool needs_the_compiler(const LoadRefusal& refusal) {
  return refusal.error_number == kNotSupported || refusal.messages.find("non-JITed") != std::string::npos;
}

/// Series of runs, of which the median counts: other work of the host may disturb some of them.
constexpr std::size_t kSeries = 7;
constexpr int kRunsOfSeries = 10'000;

util::Result<double> time_of_run(const bpf_program* program) {
  std::array<std::uint32_t, kSeries> series{};
  std::array<char, 64> packet{};  // programs of this kind need one to run on
  for (std::uint32_t& duration : series) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = packet.data();
    options.data_size_in = static_cast<__u32>(packet.size());
    options.repeat = kRunsOfSeries;
    if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) != 0) {
      return util::fail_errno("the kernel runs no program to measure it");
    }
    duration = options.duration;
  }
  std::nth_element(series.begin(), series.begin() + kSeries / 2, series.end());
  return static_cast<double>(series[kSeries / 2]);
}

}  // namespace

template <typename Event>
void EventRing<Event>::Deleter::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

template <typename Event>
util::Result<EventRing<Event>> EventRing<Event>::open(int map_fd, std::size_t limit) {
  EventRing result;
  result.batch_->limit = limit;
  result.ring_.reset(ring_buffer__new(map_fd, take, result.batch_.get(), nullptr));
  if (!result.ring_) {
    return util::fail_errno("cannot map a ring buffer of the kernel");
  }
  return result;
}

/// Returns a negative value when no more events are wanted now. This one counts as taken either way.
template <typename Event>
int EventRing<Event>::take(void* batch, void* data, std::size_t bytes) {
  auto& [limit, events] = *static_cast<Batch*>(batch);
  if (bytes == sizeof(Event)) {
    std::memcpy(&events.emplace_back(), data, sizeof(Event));
  }
  return events.size() < limit ? 0 : -EAGAIN;
}

template <typename Event>
const std::vector<Event>& EventRing<Event>::fetch() {
  batch_->events.clear();
  if (ring_) {
    ring_buffer__consume(ring_.get());
  }
  return batch_->events;
}

template class EventRing<sample_event>;
template class EventRing<freeze_event>;

util::Result<TableMappings::Mapping> TableMappings::map_bytes(const bpf_map* table, bool writable) {
  const std::size_t bytes = std::size_t{bpf_map__max_entries(table)} * bpf_map__value_size(table);
  void* address = mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, bpf_map__fd(table), 0);
  if (address == MAP_FAILED) {
    return util::fail_errno(std::string("cannot map the kernel table ") + bpf_map__name(table));
  }
  return mappings_.emplace_back(Mapping{address, bytes});
}

TableMappings::~TableMappings() {
  for (const Mapping& mapping : mappings_) {
    munmap(mapping.address, mapping.bytes);
  }
}

std::vector<model::ProgramStats> program_stats(const bpf_object* object, bool kernel_counts_skipped_runs) {
  std::vector<model::ProgramStats> all;
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(object, program)) != nullptr) {
    const int fd = bpf_program__fd(program);
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) != 0) {
      continue;
    }
    model::ProgramStats& stats = all.emplace_back();
    stats.name = bpf_program__name(program);
    if (kernel_counts_skipped_runs) {
      stats.recursion_misses = info.recursion_misses;
    }
    // run_cnt only moves while kernel.bpf_stats_enabled is on.
    if (info.run_cnt > 0) {
      stats.runs = info.run_cnt;
      stats.run_ns = info.run_time_ns;
    }
  }
  return all;
}

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
    return {std::string("the kernel does not support these BPF programs, or has no room to compile them "
                        "(net.core.bpf_jit_limit); ") +
                kLastMessages + refusal.messages,
            refusal.error_number};
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
              "; please report this with the kernel's version and " + kLastMessages + refusal.messages,
          0};
}

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

// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/block_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "block_io.skel.h"
#include "daemon/block/write_cells.h"

// Before Linux 6.2, libbpf looks for bpf_rdonly_cast, which is optional, among the modules' types. The kernel lists
// those only for CAP_SYS_ADMIN, and libbpf aborts the load on "not permitted". For us that means that no module has it.
// So libbpf's own function, which it calls like any other program would, is replaced by this one.
extern "C" int bpf_btf_get_next_id(__u32 start_id, __u32* next_id) {
  bpf_attr attributes{};
  attributes.start_id = start_id;
  if (syscall(SYS_bpf, BPF_BTF_GET_NEXT_ID, &attributes, sizeof attributes) != 0) {
    errno = errno == EPERM ? ENOENT : errno;
    return -errno;
  }
  *next_id = attributes.next_id;
  return 0;
}

namespace ssdpulse::block {
namespace {

/// The end of libbpf's own messages during the current load. They include the verifier's log, with its reason last.
thread_local std::string libbpf_messages;
thread_local bool verifier_spoke = false;

int collect_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) {
    return 0;
  }
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) {
    return length;
  }
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  vsnprintf(text.data(), text.size(), format, arguments);
  text.pop_back();
  verifier_spoke = verifier_spoke || text.find("BEGIN PROG LOAD LOG") != std::string::npos;
  constexpr std::size_t kMaxBytes = 4096;
  libbpf_messages += text;
  libbpf_messages.erase(0, libbpf_messages.size() - std::min(libbpf_messages.size(), kMaxBytes));
  return length;
}

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

util::Error explain_refusal(int error_number) {
  const bool confidential =
      first_line_of("/sys/kernel/security/lockdown").find("[confidentiality]") != std::string::npos;
  const std::string jit = first_line_of("/proc/sys/net/core/bpf_jit_enable");
  return explain({error_number, confidential, verifier_spoke, libbpf_messages,
                  jit.empty() ? std::nullopt : std::optional(jit != "0")});
}

void set_entries(bpf_map* map, std::uint64_t entries) {
  bpf_map__set_max_entries(map, static_cast<__u32>(std::max<std::uint64_t>(entries, 1)));
}

void configure_attribution(block_io& skeleton, const MemoryPlan& plan, const CommonFunctions& common) {
  const bool on = plan.attribution_sets > 0;
  skeleton.rodata->cfg_attribution = on;
  skeleton.rodata->cfg_end_iomap_dio = common.end_iomap_dio;
  skeleton.rodata->cfg_end_blkdev_async = common.end_blkdev_async;
  skeleton.rodata->cfg_ki_io_uring = common.ki_io_uring;
  skeleton.rodata->cfg_ki_libaio = common.ki_libaio;
  if (on) {
    skeleton.rodata->cfg_attribution_sets = plan.attribution_sets;
    skeleton.rodata->cfg_announced = plan.announcements;
    skeleton.rodata->cfg_other_mask = plan.unattributed_cells - 1;
  }
  set_entries(skeleton.maps.attributions, std::uint64_t{plan.cpus} * plan.attribution_sets);
  set_entries(skeleton.maps.announced_cgroups, std::uint64_t{plan.cpus} * plan.announcements);
  set_entries(skeleton.maps.announcement_states, on ? plan.cpus : 0);
  set_entries(skeleton.maps.unattributed_cells, std::uint64_t{plan.devices} * plan.unattributed_cells);
}

void configure(block_io& skeleton, const KernelBtf& btf, const MemoryPlan& plan, bool completion_only) {
  skeleton.rodata->cfg_cpus = plan.cpus;
  skeleton.rodata->cfg_request.rare_flags = btf.rare_command_flags;
  skeleton.rodata->cfg_request.examined = btf.flush_sequence_flag | btf.stamped_flag;
  skeleton.rodata->cfg_request.when_ordinary = btf.stamped_flag;
  skeleton.rodata->cfg_flush_sequence_flag = btf.flush_sequence_flag;
  skeleton.rodata->cfg_stamped_flag = btf.stamped_flag;
  skeleton.rodata->cfg_hints_of_pages = btf.hints_of_pages;
  skeleton.rodata->cfg_has_cast = btf.has_cast;
  skeleton.rodata->cfg_tagged_mask = plan.tagged_cells - 1;
  skeleton.rodata->cfg_commit_mask = plan.commit_cells - 1;
  std::copy(btf.class_of_op.begin(), btf.class_of_op.end(), skeleton.rodata->cfg_class_of_op);

  set_entries(skeleton.maps.known_disks, KNOWN_DISKS);
  set_entries(skeleton.maps.issue_slots, plan.slots);
  set_entries(skeleton.maps.hot_cells, std::uint64_t{plan.devices} * plan.cpus);
  set_entries(skeleton.maps.cold_cells, std::uint64_t{plan.devices} * COLD_CLASSES);
  set_entries(skeleton.maps.write_cells, std::uint64_t{plan.devices} * plan.cpus);
  set_entries(skeleton.maps.tagged_cells, std::uint64_t{plan.devices} * plan.tagged_cells);
  set_entries(skeleton.maps.commit_cells, std::uint64_t{plan.devices} * plan.commit_cells);
  set_entries(skeleton.maps.end_functions, END_FUNCTION_SETS);
  set_entries(skeleton.maps.streams, plan.devices);
  set_entries(skeleton.maps.rare_events, plan.devices);
  set_entries(skeleton.maps.host_states, 1);
  set_entries(skeleton.maps.samples, plan.sample_bytes);

  bpf_program__set_autoload(skeleton.progs.on_issue, !completion_only && !btf.issue_has_queue_argument);
  bpf_program__set_autoload(skeleton.progs.on_issue_with_queue, !completion_only && btf.issue_has_queue_argument);
  bpf_program__set_autoload(skeleton.progs.on_complete, !completion_only);
  bpf_program__set_autoload(skeleton.progs.on_complete_only, completion_only);
}

}  // namespace

void Tables::forget_requests(const Allocation& allocation) const {
  // A request there may have disturbed the other paths of a drive that stays.
  device_state& drive = writable_states[geometry(allocation.device).drive];
  for (issue_slot& slot : issue_slots.subspan(allocation.slot_base, allocation.slots)) {
    if (slot.cold == CLASS_DISCARD) {
      __atomic_fetch_add(&drive.discards_ended, 1, __ATOMIC_RELAXED);
      __atomic_fetch_sub(&drive.others_in_flight, 1, __ATOMIC_RELAXED);
    } else if (slot.cold == CLASS_FLUSH) {
      __atomic_fetch_add(&drive.flushes_ended, 1, __ATOMIC_RELAXED);
      __atomic_fetch_sub(&drive.others_in_flight, 1, __ATOMIC_RELAXED);
    }
    if (slot.held != 0) {
      slot = {};
    }
  }
  device_state& state = writable_states[allocation.device];
  state.discards_ended = state.discards_started;
  state.flushes_ended = state.flushes_started;
  state.others_in_flight = 0;
  // The next disk would otherwise take these for its own, with the time in between.
  state.discard_last_end_ns = state.flush_last_end_ns = 0;
  state.full_since = state.full_paused_ns = 0;
  stop_sampling(state.sampling);
}

util::Result<std::unique_ptr<BlockPrograms>> BlockPrograms::load(const KernelBtf& btf, const MemoryPlan& plan,
                                                                 const CommonFunctions& common, bool completion_only) {
  libbpf_messages.clear();
  verifier_spoke = false;
  libbpf_set_print(collect_message);
  libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
  std::unique_ptr<BlockPrograms> programs(new BlockPrograms);
  programs->skeleton_.reset(block_io::open());
  if (!programs->skeleton_) {
    return tl::make_unexpected(explain_refusal(errno));
  }
  configure(*programs->skeleton_, btf, plan, completion_only);
  configure_attribution(*programs->skeleton_, plan, common);
  programs->kernel_counts_skipped_runs_ = btf.counts_skipped_runs;
  if (const int error = block_io::load(programs->skeleton_.get()); error != 0) {
    return tl::make_unexpected(explain_refusal(-error));
  }
  if (auto mapped = programs->map_tables(); !mapped) {
    return tl::make_unexpected(mapped.error());
  }
  auto ring = EventRing<sample_event>::open(bpf_map__fd(programs->skeleton_->maps.samples),
                                            plan.sample_bytes / kSampleEventBytes);
  if (!ring) {
    return tl::make_unexpected(ring.error());
  }
  programs->samples_ = std::move(*ring);
  return programs;
}

std::unique_ptr<BlockPrograms> BlockPrograms::none(const Tables& tables) {
  std::unique_ptr<BlockPrograms> programs(new BlockPrograms);
  programs->tables_ = tables;
  return programs;
}

util::Result<void> BlockPrograms::map_tables() {
  util::Result<void> outcome;
  const auto map = [&](const bpf_map* table, auto& entries) {
    if (auto mapped = mappings_.map(table, entries); !mapped) {
      outcome = std::move(mapped);
    }
  };
  map(skeleton_->maps.hot_cells, tables_.hot_cells);
  map(skeleton_->maps.cold_cells, tables_.cold_cells);
  map(skeleton_->maps.write_cells, tables_.write_cells);
  map(skeleton_->maps.tagged_cells, tables_.tagged_cells);
  map(skeleton_->maps.commit_cells, tables_.commit_cells);
  map(skeleton_->maps.end_functions, tables_.end_functions);
  map(skeleton_->maps.issue_slots, tables_.issue_slots);
  map(skeleton_->maps.attributions, tables_.attributions);
  map(skeleton_->maps.unattributed_cells, tables_.unattributed_cells);
  map(skeleton_->maps.announced_cgroups, tables_.announced_cgroups);
  map(skeleton_->maps.announcement_states, tables_.announcement_states);
  map(skeleton_->maps.rare_events, tables_.rare_events);
  map(skeleton_->maps.host_states, tables_.host_states);
  map(skeleton_->maps.known_disks, tables_.known_disks);
  tables_.device_states = tables_.writable_states = skeleton_->bss->device_states;
  tables_.queue_entries = skeleton_->bss->queue_entries;
  return outcome;
}

util::Result<void> BlockPrograms::attach() {
  // Completion first: what ends before the issue program is there belongs to no device yet, and is ignored.
  const std::pair<bpf_program*, bpf_link**> in_order[] = {
      {skeleton_->progs.on_complete, &skeleton_->links.on_complete},
      {skeleton_->progs.on_complete_only, &skeleton_->links.on_complete_only},
      {skeleton_->progs.on_issue, &skeleton_->links.on_issue},
      {skeleton_->progs.on_issue_with_queue, &skeleton_->links.on_issue_with_queue},
  };
  for (const auto& [program, link] : in_order) {
    if (!bpf_program__autoload(program)) {
      continue;
    }
    *link = bpf_program__attach(program);
    if (*link == nullptr) {
      return tl::make_unexpected(explain_refusal(errno));
    }
  }
  return {};
}

void BlockPrograms::detach() {
  if (skeleton_) {
    block_io::detach(skeleton_.get());
  }
}

std::vector<model::ProgramStats> BlockPrograms::program_stats() const {
  return skeleton_ ? block::program_stats(skeleton_->obj, kernel_counts_skipped_runs_)
                   : std::vector<model::ProgramStats>();
}

BlockPrograms::~BlockPrograms() { detach(); }

}  // namespace ssdpulse::block

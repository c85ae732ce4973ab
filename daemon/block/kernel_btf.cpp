// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/kernel_btf.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "bpf/abi/block_abi.h"

namespace ssdpulse::block {
namespace {

using model::KernelDecision;
using model::KernelFeature;

struct BtfDeleter {
  void operator()(btf* types) const { btf__free(types); }
};
using Btf = std::unique_ptr<btf, BtfDeleter>;

const btf_type* find(const Btf& types, const char* name, __u32 kind) {
  const int id = btf__find_by_name_kind(types.get(), name, kind);
  return id < 0 ? nullptr : btf__type_by_id(types.get(), static_cast<__u32>(id));
}

/// Number of arguments of the function type that `type` refers to; -1 if there is none.
int arguments_of(const Btf& types, const btf_type* type) {
  const btf_type* prototype = type == nullptr ? nullptr : btf__type_by_id(types.get(), type->type);
  return prototype != nullptr && btf_is_func_proto(prototype) ? static_cast<int>(btf_vlen(prototype)) : -1;
}

int function_arguments(const Btf& types, const char* function) {
  return arguments_of(types, find(types, function, BTF_KIND_FUNC));
}

/// Without the void * that btf_trace_ prototypes begin with; -1 if there is no such tracepoint.
int tracepoint_arguments(const Btf& types, const char* tracepoint) {
  const btf_type* pointer = find(types, tracepoint, BTF_KIND_TYPEDEF);
  if (pointer != nullptr) {
    pointer = btf__type_by_id(types.get(), pointer->type);
  }
  return pointer != nullptr && btf_is_ptr(pointer) ? std::max(arguments_of(types, pointer) - 1, -1) : -1;
}

/// The type of a struct's field, with modifiers skipped; anonymous unions and structs are searched too.
const btf_type* member(const Btf& types, const btf_type* type, std::string_view field) {
  if (type == nullptr) {
    return nullptr;
  }
  const btf_member* members = btf_members(type);
  for (int i = 0; i < btf_vlen(type); ++i) {
    const std::string_view name = btf__name_by_offset(types.get(), members[i].name_off);
    const int id = btf__resolve_type(types.get(), members[i].type);
    const btf_type* member_type = id < 0 ? nullptr : btf__type_by_id(types.get(), static_cast<__u32>(id));
    if (name == field) {
      return member_type;
    }
    if (name.empty() && member_type != nullptr && btf_is_composite(member_type)) {
      if (const btf_type* inner = member(types, member_type, field); inner != nullptr) {
        return inner;
      }
    }
  }
  return nullptr;
}

/// Value of an enumerator of any enum: the enums of request flags are anonymous on some kernels.
std::optional<std::uint32_t> enumerator(const Btf& types, std::string_view wanted) {
  for (__u32 id = 1; id < btf__type_cnt(types.get()); ++id) {
    const btf_type* type = btf__type_by_id(types.get(), id);
    if (!btf_is_enum(type)) {
      continue;
    }
    const struct btf_enum* values = btf_enum(type);
    for (int i = 0; i < btf_vlen(type); ++i) {
      if (wanted == btf__name_by_offset(types.get(), values[i].name_off)) {
        return static_cast<std::uint32_t>(values[i].val);
      }
    }
  }
  return std::nullopt;
}

std::uint8_t class_of(std::string_view op_name) {
  constexpr std::pair<std::string_view, std::uint8_t> kExact[] = {
      {"REQ_OP_READ", CLASS_READ},
      {"REQ_OP_WRITE", CLASS_WRITE},
      {"REQ_OP_ZONE_APPEND", CLASS_WRITE},
      {"REQ_OP_FLUSH", CLASS_FLUSH},
      {"REQ_OP_DISCARD", CLASS_DISCARD},
      {"REQ_OP_WRITE_ZEROES", CLASS_WRITE_ZEROES},
      {"REQ_OP_WRITE_SAME", CLASS_WRITE_ZEROES},  // until 5.17; one block of data for the whole range
      {"REQ_OP_SECURE_ERASE", CLASS_SECURE_ERASE},
  };
  const auto* const known =
      std::find_if(std::begin(kExact), std::end(kExact), [&](const auto& entry) { return entry.first == op_name; });
  return known != std::end(kExact)             ? known->second
         : op_name.starts_with("REQ_OP_ZONE_") ? std::uint8_t{CLASS_ZONE}
                                               : std::uint8_t{CLASS_PASSTHROUGH};
}

/// enum req_op, called req_opf before 6.1 (ff07a02e9e8e "treewide: Rename enum req_opf into enum req_op").
bool read_operations(const Btf& types, KernelBtf& result) {
  const btf_type* type = find(types, "req_op", BTF_KIND_ENUM);
  result.features[KernelFeature::request_operations] =
      type != nullptr ? KernelDecision::req_op : KernelDecision::req_opf;
  if (type == nullptr) {
    type = find(types, "req_opf", BTF_KIND_ENUM);
  }
  if (type == nullptr) {
    return false;
  }
  result.class_of_op.fill(CLASS_PASSTHROUGH);
  const struct btf_enum* values = btf_enum(type);
  for (int i = 0; i < btf_vlen(type); ++i) {
    const std::string_view name = btf__name_by_offset(types.get(), values[i].name_off);
    if (values[i].val >= 0 && values[i].val < 256 && name != "REQ_OP_LAST") {
      result.class_of_op[static_cast<std::size_t>(values[i].val)] = class_of(name);
      if (name == "REQ_OP_DISCARD") {
        result.discard_op = static_cast<std::uint32_t>(values[i].val);
      }
    }
  }
  // Reads and writes have the first two numbers on every kernel; an ordinary one has no other operation's bits, and
  // need not become durable before it ends.
  const auto fua = enumerator(types, "__REQ_FUA"), preflush = enumerator(types, "__REQ_PREFLUSH");
  result.rare_command_flags = 0xfeU | (fua ? 1U << *fua : 0);
  result.preflush_flag = preflush ? 1U << *preflush : 0;
  return fua && preflush && result.class_of_op[0] == CLASS_READ && result.class_of_op[1] == CLASS_WRITE;
}

void read_request_flags(const Btf& types, KernelBtf& result) {
  // Bit numbers became an enum in 6.11 (5f89154e8e9e "block: Use enum to define RQF_x bit indexes"); the macro before
  // it was 1 << 4 since 3.x (include/linux/blkdev.h, later blk-mq.h).
  constexpr std::uint32_t kFlushSequenceMacroBit = 4;
  const auto flush_sequence = enumerator(types, "__RQF_FLUSH_SEQ");
  const std::uint32_t bit = flush_sequence.value_or(kFlushSequenceMacroBit);
  result.flush_sequence_flag = 1U << bit;
  result.features[KernelFeature::flush_sequence_flag] =
      flush_sequence ? KernelDecision::enum_bit : KernelDecision::macro_bit;

  // Since 6.13, start_time_ns is left stale for requests that diskstats do not account; before, it was 0 for those. On
  // kernels that have the enum but still clear the time, the flag works as well.
  const auto stamped = enumerator(types, "__RQF_IO_STAT");
  result.stamped_flag = stamped ? 1U << *stamped : 0;
  result.features[KernelFeature::start_time] = stamped ? KernelDecision::io_stat_flag : KernelDecision::zero_if_unknown;
}

void read_discard_hooks(const Btf& types, KernelBtf& result) {
  constexpr int kArgumentsWithFlags = 6;
  if (function_arguments(types, "blk_alloc_discard_bio") >= 0) {
    if (function_arguments(types, "bio_chain_and_submit") == 2) {
      result.discard_hooks.push_back(DiscardHook::chain_bio);
    }
  } else if (const int arguments = function_arguments(types, "__blkdev_issue_discard"); arguments >= 5) {
    result.discard_hooks.push_back(arguments == kArgumentsWithFlags ? DiscardHook::issue_with_flags
                                                                    : DiscardHook::issue);
  }
  result.discard_hooks.push_back(tracepoint_arguments(types, "btf_trace_block_bio_queue") == 2
                                     ? DiscardHook::bio_queue_with_queue
                                     : DiscardHook::bio_queue);
  // since 5.12 (309dca309fc3 "block: store a block_device pointer in struct bio")
  result.bios_keep_partition = member(types, find(types, "bio", BTF_KIND_STRUCT), "bi_bdev") != nullptr;
}

/// Bios carried no hint from 5.17 to 6.8 (c75e707fe1aa "block: remove the per-bio/request write hint"). When they got
/// it back (449813515d3e), ext4 did not fill it in; that came with the streams of 6.16.
void read_write_hints(const Btf& types, KernelBtf& result) {
  const btf_type* bio = find(types, "bio", BTF_KIND_STRUCT);
  const btf_type* hint = member(types, bio, "bi_write_hint");
  const bool streams = member(types, bio, "bi_write_stream") != nullptr;
  const bool ext4_fills_it_in = streams || (hint != nullptr && !btf_is_any_enum(hint));
  result.has_cast = find(types, "bpf_rdonly_cast", BTF_KIND_FUNC) != nullptr;
  result.bios_have_hints = hint != nullptr;
  result.hints_of_pages = !ext4_fills_it_in;
  result.hint_reach = hint == nullptr    ? model::HintReach::dropped
                      : ext4_fills_it_in ? model::HintReach::block_layer
                                         : model::HintReach::file_system_drops_buffered;
  result.features[KernelFeature::write_hint] = hint == nullptr    ? KernelDecision::page
                                               : ext4_fills_it_in ? KernelDecision::bio
                                                                  : KernelDecision::bio_or_page;
  result.features[KernelFeature::write_stream] = streams ? KernelDecision::bio : KernelDecision::absent;
}

}  // namespace

util::Result<KernelBtf> read_kernel_btf() {
  libbpf_set_print(nullptr);  // what it would print is in our own message
  const Btf types(btf__load_vmlinux_btf());
  if (!types) {
    return util::fail(
        "this kernel has no type information (BTF) at /sys/kernel/btf/vmlinux; use a kernel built with "
        "CONFIG_DEBUG_INFO_BTF=y, as Debian's, Ubuntu's and Red Hat's are");
  }
  KernelBtf result;
  const int issue = tracepoint_arguments(types, "btf_trace_block_rq_issue");
  const int complete = tracepoint_arguments(types, "btf_trace_block_rq_complete");
  if (issue < 1 || issue > 2 || complete != 3 || !read_operations(types, result)) {
    return util::fail("this kernel's block tracepoints are unknown to ssdpulse (block_rq_issue takes " +
                      std::to_string(issue) + " arguments, block_rq_complete " + std::to_string(complete) +
                      "); Linux 5.10 to 7.x is supported");
  }
  result.issue_has_queue_argument = issue == 2;
  result.features[KernelFeature::issue_tracepoint] =
      result.issue_has_queue_argument ? KernelDecision::queue_and_request : KernelDecision::request;
  read_request_flags(types, result);
  read_discard_hooks(types, result);
  read_write_hints(types, result);
  result.bios_have_cgroup = member(types, find(types, "bio", BTF_KIND_STRUCT), "bi_blkg") != nullptr;

  // Tracepoint programs are guarded, and their skipped runs counted, since 6.1 (05b24ff9b2cf "bpf: Prevent bpf program
  // recursion for raw tracepoint probes"), which gave the counter this name; the field in bpf_prog_info is older.
  result.counts_skipped_runs = find(types, "bpf_prog_inc_misses_counter", BTF_KIND_FUNC) != nullptr;
  result.features[KernelFeature::skipped_runs] =
      result.counts_skipped_runs ? KernelDecision::counted : KernelDecision::not_reported;

  const btf_type* request = find(types, "request", BTF_KIND_STRUCT);
  const btf_type* disk = find(types, "gendisk", BTF_KIND_STRUCT);
  result.features[KernelFeature::disk_of_request] =
      member(types, request, "rq_disk") != nullptr ? KernelDecision::request : KernelDecision::queue;
  result.features[KernelFeature::disk_identity] =
      member(types, disk, "diskseq") != nullptr ? KernelDecision::diskseq : KernelDecision::device_number;
  const btf_type* tags = member(types, find(types, "blk_mq_tags", BTF_KIND_STRUCT), "bitmap_tags");
  result.features[KernelFeature::tag_waiters] = tags == nullptr    ? KernelDecision::absent
                                                : btf_is_ptr(tags) ? KernelDecision::pointer
                                                                   : KernelDecision::embedded;
  return result;
}

}  // namespace ssdpulse::block

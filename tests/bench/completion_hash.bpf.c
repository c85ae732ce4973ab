// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What does the cheapest way to measure a device's latencies cost? Completion only, the kernel's own start time, and
 * powers of two in a per-CPU hash, by device and flags. It knows no losses, requeues, parts, flush parents or errors.
 */
// The types come first.
// clang-format off
#include "kernel/types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on
#include "kernel/request.bpf.h"

/* include/uapi/linux/bpf.h: BPF_MAP_TYPE_PERCPU_HASH, BPF_NOEXIST. */
#define PERCPU_HASH 5
#define ADD_ONLY 1
#define BUCKETS 27
struct histogram_key {
  __u32 device, flags;
};
struct histogram {
  __u32 bucket[BUCKETS];
};
struct {
  __uint(type, PERCPU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct histogram_key);
  __type(value, struct histogram);
} histograms SEC(".maps");

struct request___started {
  __u64 io_start_time_ns;
} __attribute__((preserve_access_index));

static __always_inline __u32 log2_of(__u64 value) {
  __u32 result = 0;

#pragma unroll
  for (__u32 step = 32; step; step >>= 1)
    if (value >> step) {
      value >>= step;
      result += step;
    }
  return result;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(completion_hash, struct request* rq, int error, unsigned int nr_bytes) {
  struct gendisk* disk = request_disk(rq, rq->q);
  struct histogram_key key = {.flags = rq->cmd_flags};
  struct histogram *found, none = {};
  __u64 started = ((struct request___started*)rq)->io_start_time_ns;
  __u32 bucket;

  if (!disk || !started) return 0;
  key.device = disk_number(disk);
  found = bpf_map_lookup_elem(&histograms, &key);
  if (!found) {
    bpf_map_update_elem(&histograms, &key, &none, ADD_ONLY);
    found = bpf_map_lookup_elem(&histograms, &key);
    if (!found) return 0;
  }
  bucket = log2_of((bpf_ktime_get_ns() - started) / 1000);
  found->bucket[bucket < BUCKETS ? bucket : BUCKETS - 1] += 1;
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How much earlier is the kernel's io_start_time_ns than the moment when the driver got the request? See start_time.py.
 */
// The types come first.
// clang-format off
#include "kernel/types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on
#include "kernel/request.bpf.h"

#define HASH 1 /* include/uapi/linux/bpf.h: BPF_MAP_TYPE_HASH */

struct request___started {
  __u64 io_start_time_ns;
} __attribute__((preserve_access_index));

struct {
  __uint(type, HASH);
  __uint(max_entries, 65536);
  __type(key, __u32);
  __type(value, __u64);
} issues SEC(".maps"); /* [request], our own time stamp */

struct differences {
  __u64 ios, without, early_sum_ns, early_most_ns, device_sum_ns;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct differences);
} told SEC(".maps");

SEC("tp_btf/block_rq_issue")
int BPF_PROG(start_time_issue, struct request* rq) {
  __u32 key = low_bits(rq);
  __u64 now = bpf_ktime_get_ns();

  bpf_map_update_elem(&issues, &key, &now, 0);
  return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(start_time_complete, struct request* rq, int error, unsigned int nr_bytes) {
  __u64 started = ((struct request___started*)rq)->io_start_time_ns, now = bpf_ktime_get_ns();
  __u32 key = low_bits(rq), zero = 0;
  __u64* issued = bpf_map_lookup_elem(&issues, &key);
  struct differences* sums = bpf_map_lookup_elem(&told, &zero);
  __u64 early;

  if (!issued || !sums) return 0;
  __sync_fetch_and_add(&sums->ios, 1);
  __sync_fetch_and_add(&sums->device_sum_ns, now - *issued);
  if (!started) __sync_fetch_and_add(&sums->without, 1);
  if (!started || started >= *issued) return 0;
  early = *issued - started;
  __sync_fetch_and_add(&sums->early_sum_ns, early);
  if (early > sums->early_most_ns) sums->early_most_ns = early;
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

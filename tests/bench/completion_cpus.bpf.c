// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How many requests complete on the CPU that issued them? overhead.py refuses a load that is not what it claims to be.
 */
// The types come first.
// clang-format off
#include "kernel/types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on
#include "kernel/request.bpf.h"

#define HASH 1 /* include/uapi/linux/bpf.h: BPF_MAP_TYPE_HASH */

struct {
  __uint(type, HASH);
  __uint(max_entries, 65536);
  __type(key, __u32);
  __type(value, __u32);
} issuers SEC(".maps"); /* [request], the CPU */

struct completions {
  __u64 total, local;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct completions);
} completion_cpus SEC(".maps");

SEC("tp_btf/block_rq_issue")
int BPF_PROG(cpus_issue, struct request* rq) {
  __u32 key = low_bits(rq), cpu = bpf_get_smp_processor_id();

  bpf_map_update_elem(&issuers, &key, &cpu, 0);
  return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(cpus_complete, struct request* rq, int error, unsigned int nr_bytes) {
  __u32 key = low_bits(rq), zero = 0;
  __u32* issuer = bpf_map_lookup_elem(&issuers, &key);
  struct completions* counts = bpf_map_lookup_elem(&completion_cpus, &zero);

  if (!issuer || !counts) return 0;
  __sync_fetch_and_add(&counts->total, 1);
  if (*issuer == bpf_get_smp_processor_id()) __sync_fetch_and_add(&counts->local, 1);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

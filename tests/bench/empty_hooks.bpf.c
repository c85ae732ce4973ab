// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What do the two hooks cost by themselves, before any program does any work? The floor that overhead.py compares with.
 */
// The types come first.
// clang-format off
#include "kernel/types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on

SEC("tp_btf/block_rq_issue")
int BPF_PROG(empty_issue, struct request* rq) { return 0; }

SEC("tp_btf/block_rq_complete")
int BPF_PROG(empty_complete, struct request* rq, int error, unsigned int nr_bytes) { return 0; }

char LICENSE[] SEC("license") = "Dual BSD/GPL";

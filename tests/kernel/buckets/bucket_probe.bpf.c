// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What does the bucket index come to when the kernel itself computes it? The product's header in a test program. */
/* The types come first. */
/* clang-format off */
#include "bpf/kernel/types.bpf.h"
#include <bpf/bpf_helpers.h>
#include "bpf/abi/latency_buckets.h"
/* clang-format on */

__s64 value;
__u32 word;

SEC("syscall")
int probe(void* context) {
  word = latency_word(value);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

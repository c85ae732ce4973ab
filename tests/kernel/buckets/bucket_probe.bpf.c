// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What does the bucket index give when the kernel itself runs it? The product's header in a program of the tests. */
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency_buckets.h"
#include "bpf/kernel/types.bpf.h"

__s64 value;
__u32 word;

SEC("syscall")
int probe(void* context) {
  word = latency_word(value);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

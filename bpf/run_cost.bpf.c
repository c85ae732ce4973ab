// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What does a run of the block programs cost on this host?
 *
 * The block programs cannot be run without a request. These two do the same kind and amount of work on tables of their
 * own: the same clock and CPU number, as many cache lines, the same bucket arithmetic. The kernel runs them in a loop
 * and reports the time of one run. That includes what differs from host to host: the processor, how expensive its clock
 * is, whether programs are compiled or interpreted. Never attached to anything.
 */
#include "kernel/verifier.bpf.h"
#include "abi/latency_buckets.h"

#define LINES 4096

struct line {
	__u64 word[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LINES);
	__type(key, __u32);
	__type(value, struct line);
} lines SEC(".maps");

/* Different lines in each run, and not ones that a processor can predict. */
static __always_inline __u32 next_index(__u32 index)
{
	return index * 2654435761U + 12345;
}

static __always_inline struct line *next_line(__u32 *index)
{
	__u32 key;
	struct line *line;

	*index = next_index(*index);
	key = *index >> 20 & (LINES - 1);
	line = bpf_map_lookup_elem(&lines, &key);
	/* The next line depends on what is in this one. */
	if (line)
		*index += (__u32)line->word[0] & 1;
	return line;
}

/* Like an issue: a queue, a device, what waits for the I/O, a slot and a cell. */
SEC("socket")
int issue_alike(void *context)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 index = (__u32)now + bpf_get_smp_processor_id(), number;

#pragma unroll
	for (number = 0; number < 5; number++) {
		struct line *line = next_line(&index);

		if (!line)
			return 0;
		if (number >= 3)
			line->word[number] = now;
	}
	return 0;
}

/* Like a completion: a queue, a device, a slot and a cell, four histograms, their sums, and the attribution. */
SEC("socket")
int completion_alike(void *context)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 index = (__u32)now + bpf_get_smp_processor_id(), number;

#pragma unroll
	for (number = 0; number < 11; number++) {
		struct line *line = next_line(&index);
		__u32 word = 1;

		if (!line)
			return 0;
		if (number % 4 == 0)
			word = latency_word((__s64)(index >> 8));
		if (number == 1)
			word = size_word(index);
		if (number >= 4) {
			line->word[1] += word;
			line->word[2] += 1;
		}
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

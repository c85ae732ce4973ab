/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is added to a device's cells when a request is issued, and when it ends.
 *
 * `shared` is a compile-time constant: words of a per-CPU cell have one writer and are plainly added to, cold cells
 * are shared by all CPUs and need atomic adds.
 */
#pragma once

#include "queue_full.bpf.h"
#include "sequential.bpf.h"
#include "write_details.bpf.h"

#define ADD(shared, word, amount)                                                                                      \
	do {                                                                                                           \
		if (shared)                                                                                            \
			__sync_fetch_and_add(&(word), amount);                                                         \
		else                                                                                                   \
			(word) += (amount);                                                                            \
	} while (0)

static __always_inline __u32 bounded_latency_word(__s64 latency_ns)
{
	__u32 word = latency_word(latency_ns);

	ONE_COPY(word);
	return word < LATENCY_WORDS ? word : LATENCY_OVER_WORD;
}

static __always_inline __u32 bounded_size_word(__u32 bytes)
{
	__u32 word = size_word(bytes);

	ONE_COPY(word);
	return word < SIZE_WORDS ? word : SIZE_WORDS - 1;
}

static __always_inline struct io_cell *hot_cell(__u32 device, __u32 cpu, __u32 class)
{
	__u32 key = (device * cfg_cpus + cpu) * HOT_CLASSES + class;

	return bpf_map_lookup_elem(&hot_cells, &key);
}

static __always_inline struct io_cell *cold_cell(__u32 device, __u32 class)
{
	__u32 key = device * COLD_CLASSES + class - HOT_CLASSES;

	return bpf_map_lookup_elem(&cold_cells, &key);
}

/* Everything about a first issue, once its cell is found. */
static __always_inline void record_issue(bool shared, struct io_cell *cell, struct device_state *state,
					 struct request *rq, __u32 device, __u32 class, __u64 now)
{
	__u64 start = request_start_ns(rq, class == CLASS_FLUSH);
	__u32 bytes = rq->__data_len;

	ADD(shared, cell->issues, 1);
	ADD(shared, cell->size_sum_bytes, bytes);
	ADD(shared, cell->size[bounded_size_word(bytes)], 1);
	if (start) {
		__s64 waited = (__s64)(now - start);

		if (waited > 0)
			ADD(shared, cell->queue_sum_ns, (__u64)waited);
		else
			count_event(state, class, EVENT_CLOCK);
		ADD(shared, cell->queue[bounded_latency_word(waited)], 1);
	}
	if (!shared && is_sequential(device, class, rq->__sector, bytes))
		cell->sequential_bytes += bytes;
}

/* The total, from the kernel's own start time. */
static __always_inline void record_total(bool shared, struct io_cell *cell, struct device_state *state,
					 struct request *rq, __u32 class, __u64 now)
{
	__u64 start = request_start_ns(rq, class == CLASS_FLUSH);
	__s64 total = (__s64)(now - start);

	if (!start) {
		if (class != CLASS_PASSTHROUGH)
			count_event(state, class, EVENT_UNSTAMPED);
		return;
	}
	if (total > 0)
		ADD(shared, cell->total_sum_ns, (__u64)total);
	else
		count_event(state, class, EVENT_CLOCK);
	ADD(shared, cell->total[bounded_latency_word(total)], 1);
}

/* Before the same is added to the hot cell: a reader that reads that first never sees more writes than hinted ones. */
static __always_inline void record_hinted(__u32 device, __u32 hint, __s64 device_ns, __u32 word)
{
	struct tagged_cell *tagged = tagged_cell_of(device);

	if (!tagged)
		return;
	BOUND(hint, HINTS - 1);
	if (device_ns > 0)
		__sync_fetch_and_add(&tagged->latency_sum_ns[hint], (__u64)device_ns);
	__sync_fetch_and_add(&tagged->latency[hint][word], 1);
}

/* Everything about a final completion whose issue we saw. */
static __always_inline void record_completion(bool shared, struct io_cell *cell, struct device_state *state,
					      struct request *rq, __u32 device, __u32 class, __u32 hint, __u32 during,
					      __u64 issued, __u64 now)
{
	__s64 device_ns = (__s64)(now - issued);
	__u32 word = bounded_latency_word(device_ns);
	__u64 full_ns = queue_full_ns(rq, state, now);

	BOUND(during, DURINGS - 1);
	if (!shared && hint)
		record_hinted(device, hint, device_ns, word);
	ADD(shared, cell->completions, 1);
	if (device_ns > 0)
		ADD(shared, cell->device_sum_ns[during], (__u64)device_ns);
	else
		count_event(state, class, EVENT_CLOCK);
	ADD(shared, cell->device[during][word], 1);
	record_total(shared, cell, state, rq, class, now);
	if (full_ns)
		ADD(shared, cell->queue_full_ns, full_ns);
}

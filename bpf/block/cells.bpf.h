/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is added to a device's cells when a request ends.
 *
 * `shared` is a compile-time constant: see ADD.
 */
#pragma once

#include "device_lookup.bpf.h"
#include "queue_full.bpf.h"
#include "sequential.bpf.h"
#include "write_details.bpf.h"

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

static __always_inline struct io_cell *cell_of(const struct io *io, __u32 cpu)
{
	return io->class < HOT_CLASSES ? hot_cell(io->device, cpu, io->class) : cold_cell(io->device, io->class);
}

/* Size and position on the disk, of the whole request. */
static __always_inline void record_size(bool shared, struct io_cell *cell, const struct io *io)
{
	__u32 bytes = io->rq->__data_len;

	ADD(shared, cell->size_sum_bytes, bytes);
	ADD(shared, cell->size[bounded_size_word(bytes)], 1);
	if ((!shared || io->class < HOT_CLASSES) && is_sequential(io->device, io->class, io->rq->__sector, bytes))
		ADD(shared, cell->sequential_bytes, bytes);
}

/* How long it waited, from the kernel's own start time until its first issue. */
static __always_inline void record_queue_time(bool shared, struct io_cell *cell, const struct io *io, __u64 issued)
{
	__u64 start = request_start_ns(io->rq, io->class == CLASS_FLUSH);
	__s64 waited = (__s64)(issued - start);

	if (!start)
		return;
	if (waited > 0)
		ADD(shared, cell->queue_sum_ns, (__u64)waited);
	else
		count_event(io->state, io->class, EVENT_CLOCK);
	ADD(shared, cell->queue[bounded_latency_word(waited)], 1);
}

/* The total time, from the kernel's own start time. */
static __always_inline void record_total(bool shared, struct io_cell *cell, const struct io *io)
{
	__u64 start = request_start_ns(io->rq, io->class == CLASS_FLUSH);
	__s64 total = (__s64)(io->now - start);

	if (!start) {
		if (io->class != CLASS_PASSTHROUGH)
			count_event(io->state, io->class, EVENT_UNSTAMPED);
		return;
	}
	if (total > 0)
		ADD(shared, cell->total_sum_ns, (__u64)total);
	else
		count_event(io->state, io->class, EVENT_CLOCK);
	ADD(shared, cell->total[bounded_latency_word(total)], 1);
}

/* Call it before adding to the hot cell: a reader that reads that one first never misses a hinted write here. */
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

/* The times of a final completion whose issue we saw. */
static __always_inline void record_completion(bool shared, struct io_cell *cell, const struct io *io, __u32 hint,
					      __u32 during, __u64 issued)
{
	__u64 full_ns = forgotten_wide(queue_full_ns(io->rq, io->state, io->now), io->now);
	__s64 device_ns = (__s64)(io->now - issued);
	__u32 word = bounded_latency_word(device_ns);

	BOUND(during, DURINGS - 1);
	if (!shared && hint)
		record_hinted(io->device, hint, device_ns, word);
	ADD(shared, cell->completions, 1);
	if (device_ns > 0)
		ADD(shared, cell->device_sum_ns[during], (__u64)device_ns);
	else
		count_event(io->state, io->class, EVENT_CLOCK);
	ADD(shared, cell->device[during][word], 1);
	record_total(shared, cell, io);
	if (full_ns)
		ADD(shared, cell->queue_full_ns, full_ns);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is added to a device's cells when a request ends.
 *
 * add_*() are for ordinary reads and writes, whose cells have one writer; record_*() for all others, and atomic: they
 * add to cells that all CPUs share, or run in the issue program, which a completion may interrupt.
 */
#pragma once

#include "device_lookup.bpf.h"
#include "queue_full.bpf.h"
#include "sequential.bpf.h"
#include "write_details.bpf.h"

/* Of any latency. Not inlined: the verifier follows what comes after it only once. */
static __noinline int any_latency_word(__s64 latency_ns)
{
	return latency_word(latency_ns);
}

static __always_inline __u32 bounded_latency_word(__s64 latency_ns)
{
	__u32 word = as_unknown(any_latency_word(latency_ns), latency_ns);

	ONE_COPY(word);
	return word < LATENCY_WORDS ? word : LATENCY_OVER_WORD;
}

static __always_inline __u32 bounded_size_word(__u32 bytes)
{
	__u32 word = size_word(bytes);

	ONE_COPY(word);
	return word < SIZE_WORDS ? word : SIZE_WORDS - 1;
}

/* The reads and writes of a device on this CPU. */
static __always_inline struct hot_cells *hot_cells_of(__u32 device, __u32 cpu)
{
	__u32 key = device * cfg_cpus + cpu;

	return bpf_map_lookup_elem(&hot_cells, &key);
}

static __always_inline struct io_cell *cold_cell(__u32 device, __u32 class)
{
	__u32 key = device * COLD_CLASSES + class - HOT_CLASSES;

	return bpf_map_lookup_elem(&cold_cells, &key);
}

static __always_inline struct io_cell *cell_of(const struct io *io, __u32 cpu)
{
	__u32 class = io->class;
	struct hot_cells *hot;

	if (class >= HOT_CLASSES)
		return cold_cell(io->device, class);
	hot = hot_cells_of(io->device, cpu);
	if (!hot)
		return NULL;
	BOUND(class, HOT_CLASSES - 1);
	ONE_COPY(hot);
	return &hot->of[class];
}

/* A latency above 0 and below 2^32 ns. */
static __always_inline void add_latency(__u64 *sum_ns, __u32 *histogram, __u64 latency_ns)
{
	__u32 word = short_latency_word(latency_ns);

	*sum_ns += latency_ns;
	ONE_COPY(word);
	if (word < LATENCY_WORDS)
		histogram[word] += 1;
}

/* Size and position on the disk. */
static __always_inline void add_size(struct io_cell *cell, __u32 device, __u32 class, __u64 sector, __u32 bytes)
{
	struct stream_ends *ends = bpf_map_lookup_elem(&streams, &device);

	cell->size_sum_bytes += bytes;
	cell->size[bounded_size_word(bytes)] += 1;
	if (ends && is_sequential(ends, class, sector, bytes))
		cell->sequential_bytes += bytes;
}

/* Size and position on the disk, of the whole request. */
static __always_inline void record_size(struct io_cell *cell, const struct io *io)
{
	__u32 bytes = io->rq->__data_len, device = io->device;
	struct stream_ends *ends;

	__sync_fetch_and_add(&cell->size_sum_bytes, bytes);
	__sync_fetch_and_add(&cell->size[bounded_size_word(bytes)], 1);
	if (io->class >= HOT_CLASSES)
		return;
	ends = bpf_map_lookup_elem(&streams, &device);
	if (ends && is_sequential(ends, io->class, io->rq->__sector, bytes))
		__sync_fetch_and_add(&cell->sequential_bytes, bytes);
}

static __always_inline void record_latency(const struct io *io, __u64 *sum_ns, __u32 *histogram, __s64 latency_ns)
{
	if (latency_ns > 0)
		__sync_fetch_and_add(sum_ns, (__u64)latency_ns);
	else
		count_event(io->device, io->class, EVENT_CLOCK);
	__sync_fetch_and_add(&histogram[bounded_latency_word(latency_ns)], 1);
}

/* How long it waited, from the kernel's own start time until its first issue. */
static __always_inline void record_queue_time(struct io_cell *cell, const struct io *io, __u64 issued)
{
	__u64 start = request_start_ns(io->rq, io->class == CLASS_FLUSH);

	if (start)
		record_latency(io, &cell->queue_sum_ns, cell->queue, (__s64)(issued - start));
}

/* The total time, from the kernel's own start time. */
static __always_inline void record_total(struct io_cell *cell, const struct io *io)
{
	__u64 start = request_start_ns(io->rq, io->class == CLASS_FLUSH);

	if (start)
		record_latency(io, &cell->total_sum_ns, cell->total, (__s64)(io->now - start));
	else if (io->class != CLASS_PASSTHROUGH)
		count_event(io->device, io->class, EVENT_UNSTAMPED);
}

/*
 * Device time of a write with a hint. Call it before adding to the hot cell: a reader that reads that one first never
 * misses a hinted write here. Not inlined, because most writes have none.
 */
static __noinline int record_hinted(__u32 device, __u32 hint, __s64 device_ns)
{
	struct tagged_cell *tagged = tagged_cell_of(device);

	if (!tagged)
		return 0;
	BOUND(hint, HINTS - 1);
	if (device_ns > 0)
		__sync_fetch_and_add(&tagged->latency_sum_ns[hint], (__u64)device_ns);
	__sync_fetch_and_add(&tagged->latency[hint][bounded_latency_word(device_ns)], 1);
	return 0;
}

/* The times of a final completion whose issue we saw. Not inlined, like any_latency_word(). */
static __noinline int record_completion(const struct io *io, struct io_cell *cell, __u32 during, __u64 issued)
{
	__u64 full_ns;

	if (!io || !cell)
		return 0;
	full_ns = queue_full_ns(io->rq, io->state, io->now);

	BOUND(during, DURINGS - 1);
	__sync_fetch_and_add(&cell->completions, 1);
	record_latency(io, &cell->device_sum_ns[during], cell->device[during], (__s64)(io->now - issued));
	record_total(cell, io);
	if (full_ns)
		__sync_fetch_and_add(&cell->queue_full_ns, full_ns);
	return 0;
}

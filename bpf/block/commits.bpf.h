/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commits: what callers of fsync wait for, and for how long.
 *
 * A commit is a flush sequence, from the allocation of its parent to its end, or a write that the drive itself makes
 * durable (FUA). It counts once, at the end, whatever stages it went through and whether or not we saw them. The bio
 * still has the flags that it was submitted with; the request has lost those that the sequence took care of, and a
 * queue without a write cache has removed them from both.
 */
#pragma once

#include "../kernel/bio.bpf.h"
#include "cells.bpf.h"

/* CPUs share commit cells: cell = CPU number & mask. */
const volatile __u32 cfg_commit_mask = 0;

static __always_inline bool is_commit(struct request *rq, __u32 class)
{
	const __u32 fua = REQUEST_FLAG(__REQ_FUA);

	/* Request-based device mapper runs the sequence itself: below it, a flush is not a stage of any. */
	if (class != CLASS_WRITE)
		return class == CLASS_FLUSH && !(rq->rq_flags & cfg_flush_sequence_flag);
	/* A parent has no data left, or was never started because a stage failed. */
	if (rq->__data_len && rq->state != MQ_RQ_IDLE && !(rq->cmd_flags & fua))
		return false;
	/* A stage is not a commit. On failover the bio is gone: it is submitted again, and ends elsewhere. */
	if (rq->rq_flags & cfg_flush_sequence_flag || !rq->bio)
		return false;
	return rq->bio->bi_opf & (fua | REQUEST_FLAG(__REQ_PREFLUSH));
}

static __always_inline struct commit_cell *commit_cell_of(__u32 device)
{
	__u32 key = device * (cfg_commit_mask + 1) + (bpf_get_smp_processor_id() & cfg_commit_mask);

	return bpf_map_lookup_elem(&commit_cells, &key);
}

/* Call at the final completion. */
static __noinline int record_commit(const struct io *io)
{
	struct commit_cell *cell;
	bool is_parent;
	__u64 start;
	__s64 total;

	if (!io)
		return 0;
	if (io->class == CLASS_FLUSH)
		count_event(io->device, io->class, EVENT_LONE_FLUSH);
	cell = commit_cell_of(io->device);
	if (!cell)
		return 0;
	/* Others have a total of their own, and whatever is wrong with their times is counted there. */
	is_parent = io->class == CLASS_WRITE && !io->rq->__data_len;
	start = request_start_ns(io->rq, io->class == CLASS_FLUSH);
	if (!start) {
		if (is_parent)
			count_event(io->device, io->class, EVENT_UNSTAMPED);
		return 0;
	}
	total = (__s64)(io->now - start);
	if (total > 0)
		__sync_fetch_and_add(&cell->sum_ns, (__u64)total);
	else if (is_parent)
		count_event(io->device, io->class, EVENT_CLOCK);
	__sync_fetch_and_add(&cell->latency[bounded_latency_word(total)], 1);
	__sync_fetch_and_add(&cell->commits, 1);
	return 0;
}

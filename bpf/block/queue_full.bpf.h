/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For how long was the device at its full queue depth, with somebody waiting for a tag?
 *
 * Looked at when a request ends, where the block layer is about to read the same words itself; the state is written
 * only while the queue is full.
 */
#pragma once

#include "maps.bpf.h"

/*
 * Time since somebody first waited for a tag. One CPU at a time keeps it, so that no interval counts twice; another
 * takes over when that one has nothing to complete any more. A moment without a waiter, while the one just woken
 * submits, does not end it: only QUEUE_FULL_UPDATE_NS without one do. Returns the nanoseconds to add.
 */
static __always_inline __u64 queue_full_ns(struct request *rq, struct device_state *state, __u64 now)
{
	bool exhausted = tags_exhausted(rq);
	__u64 held = state->full_since, since;
	__u32 self;

	if (!exhausted && !held)
		return 0;
	self = bpf_get_smp_processor_id() & QUEUE_FULL_CPU_MASK;
	now &= ~(__u64)QUEUE_FULL_CPU_MASK;
	since = held & ~(__u64)QUEUE_FULL_CPU_MASK;
	if (!held) {
		state->full_since = now | self;
		return 0;
	}
	if (now < since + QUEUE_FULL_UPDATE_NS)
		return 0;
	if (!exhausted) {
		/* When it ended is not known, only that it was still going on shortly after `since`. */
		state->full_since = 0;
		return QUEUE_FULL_UPDATE_NS;
	}
	if ((held & QUEUE_FULL_CPU_MASK) != self && now < since + QUEUE_FULL_TAKEOVER_NS)
		return 0;
	state->full_since = now | self;
	return now - since;
}

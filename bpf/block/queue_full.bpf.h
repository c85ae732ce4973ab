/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For how long the device was at its full queue depth, with a request waiting for a tag.
 *
 * Checked when a request ends, when the block layer is about to read the same words itself; the state is written only
 * while the queue is full.
 */
#pragma once

#include "maps.bpf.h"

#define READ_ONCE_U64(word) (*(volatile __u64 *)&(word))

/*
 * Time since a request first waited for a tag. One CPU at a time keeps it, so that no interval counts twice; another
 * takes over when that one has nothing left to complete. When a waiter was woken and is just taking its tag, there is a
 * moment without waiters: that is a pause, and it ends the interval only if further completions see no request wait
 * either. Returns the nanoseconds to add.
 */
static __noinline long queue_full_slowly(struct device_state *state, __u32 exhausted, __u64 now)
{
	__u64 held, since, paused;
	__u32 self;

	if (!state)
		return 0;
	held = READ_ONCE_U64(state->full_since);
	self = bpf_get_smp_processor_id() & QUEUE_FULL_CPU_MASK;
	now &= ~(__u64)QUEUE_FULL_CPU_MASK;
	since = held & ~(__u64)QUEUE_FULL_CPU_MASK;
	paused = READ_ONCE_U64(state->full_paused_ns);
	if (!held) {
		/* Or another CPU has just ended the interval. */
		if (exhausted) {
			state->full_paused_ns = 0;
			state->full_since = now | self;
		}
		return 0;
	}
	if (now < since + QUEUE_FULL_UPDATE_NS)
		return 0;
	if (!exhausted) {
		if (!paused) {
			state->full_paused_ns = now;
			return 0;
		}
		if (now < paused + QUEUE_FULL_UPDATE_NS)
			return 0;
		state->full_since = 0;
		return paused > since ? paused - since : 0;
	}
	if ((held & QUEUE_FULL_CPU_MASK) != self && now < since + QUEUE_FULL_TAKEOVER_NS)
		return 0;
	state->full_paused_ns = 0;
	state->full_since = now | self;
	/* After a long silence it is unknown whether the pause was only a pause. */
	if (paused && now > paused + QUEUE_FULL_TAKEOVER_NS)
		return paused > since ? paused - since : 0;
	return now - since;
}

/* To be called at each end whose issue was seen. */
static __always_inline __u64 queue_full_ns(struct request *rq, struct device_state *state, __u64 now)
{
	bool exhausted = tags_exhausted(rq);

	if (!exhausted && !READ_ONCE_U64(state->full_since))
		return 0;
	return queue_full_slowly(state, exhausted, now);
}

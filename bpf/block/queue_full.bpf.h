/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For how long the device was at its full queue depth, with a request waiting for a tag.
 *
 * Checked when a request ends, when the block layer is about to read the same words itself; the state is written only
 * while the queue is full.
 */
#pragma once

#include "maps.bpf.h"

#ifndef READ_ONCE_U64
#define READ_ONCE_U64(word) (*(volatile __u64 *)&(word))
#endif

static __always_inline bool is_queue_full_due(__u64 since, __u64 paused, __u32 exhausted, __u64 now)
{
	/* What happened before the last interval ended begins no other. */
	if (!since)
		return exhausted && now > paused;
	if (now < since + QUEUE_FULL_UPDATE_NS)
		return false;
	return exhausted || paused <= since || now >= paused + QUEUE_FULL_UPDATE_NS;
}

/*
 * Time since a request first waited for a tag. When a waiter was woken and is just taking its tag, there is a moment
 * without waiters: that is a pause, and it ends the interval only if further completions see no request wait either.
 * Returns the nanoseconds to add.
 *
 * Any CPU may add it, but none adds what another one has added. Each counts itself in the low bits of the word with the
 * time; one that is alone there adds and moves the time on, others leave that to the next completion. (Linux 5.10 has
 * no atomic instruction that returns a value. Being one word, this is right in any memory order.)
 */
static __noinline long queue_full_slowly(struct device_state *state, __u32 exhausted, __u64 now)
{
	__u64 held, since, paused, next, full_ns = 0;

	if (!state)
		return 0;
	now &= ~(__u64)QUEUE_FULL_CPUS_MASK;
	since = READ_ONCE_U64(state->full_since) & ~(__u64)QUEUE_FULL_CPUS_MASK;
	if (!is_queue_full_due(since, READ_ONCE_U64(state->full_paused_ns), exhausted, now))
		return 0;
	__sync_fetch_and_add(&state->full_since, 1);
	held = READ_ONCE_U64(state->full_since);
	next = since = held & ~(__u64)QUEUE_FULL_CPUS_MASK;
	paused = READ_ONCE_U64(state->full_paused_ns);
	if ((held & QUEUE_FULL_CPUS_MASK) == 1 && is_queue_full_due(since, paused, exhausted, now)) {
		if (!exhausted && paused <= since) {
			state->full_paused_ns = now;
		} else {
			/* After a long silence it is unknown whether the pause was only a pause. */
			bool ended = paused > since && (!exhausted || now > paused + QUEUE_FULL_SILENCE_NS);

			if (since)
				full_ns = (ended ? paused : now) - since;
			next = exhausted ? now : 0;
		}
	}
	__sync_fetch_and_add(&state->full_since, next - since - 1);
	return full_ns;
}

/* To be called at each end whose issue was seen. */
static __always_inline __u64 queue_full_ns(struct request *rq, struct device_state *state, __u64 now)
{
	bool exhausted = tags_exhausted(rq);

	if (!exhausted && !READ_ONCE_U64(state->full_since))
		return 0;
	return queue_full_slowly(state, exhausted, now);
}

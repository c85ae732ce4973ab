/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Was a discard or a flush in flight on the same drive during this read or write?
 *
 * Decided per I/O from three words each that only discards and flushes write: intervals are closed and reach from
 * issue to final completion, so they intersect iff the other one is in flight at our end, or ended after our issue.
 */
#pragma once

#include "maps.bpf.h"

/* Call at the issue. */
static __always_inline void interference_started(struct device_state *drive, __u32 class)
{
	if (class == CLASS_DISCARD)
		__sync_fetch_and_add(&drive->discards_started, 1);
	else if (class == CLASS_FLUSH)
		__sync_fetch_and_add(&drive->flushes_started, 1);
}

/* Call at the end, or when it is found out that the end was missed. */
static __always_inline void interference_ended(struct device_state *drive, __u32 class, __u64 now)
{
	/* The end before the count: who sees the count sees the end. */
	if (class == CLASS_DISCARD) {
		drive->discard_last_end_ns = now;
		__sync_fetch_and_add(&drive->discards_ended, 1);
	} else if (class == CLASS_FLUSH) {
		drive->flush_last_end_ns = now;
		__sync_fetch_and_add(&drive->flushes_ended, 1);
	}
}

/* Which other kinds of I/O had an interval that touches [issued, now]. */
static __always_inline __u32 interference(const struct device_state *drive, __u64 issued)
{
	/* Ended is read before started: a difference was then truly in flight. */
	__u64 discards_ended = drive->discards_ended;
	__u64 flushes_ended = drive->flushes_ended;
	bool discard = drive->discards_started != discards_ended || drive->discard_last_end_ns >= issued;
	bool flush = drive->flushes_started != flushes_ended || drive->flush_last_end_ns >= issued;

	return discard | flush << 1;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Determines whether a discard or a flush was in flight on the same drive during a read or write.
 *
 * Decided per I/O from words that only discards and flushes write: intervals are closed and reach from issue to final
 * completion, so they intersect iff the other one is in flight at our end, or ended after our issue.
 */
#pragma once

#include "maps.bpf.h"

/* Call at the issue. */
static __always_inline void interference_started(struct device_state *drive, __u32 class, __u64 now)
{
	if (class == CLASS_DISCARD) {
		drive->discard_last_start_ns = now;
		__sync_fetch_and_add(&drive->discards_started, 1);
	} else if (class == CLASS_FLUSH) {
		drive->flush_last_start_ns = now;
		__sync_fetch_and_add(&drive->flushes_started, 1);
	} else {
		return;
	}
	__sync_fetch_and_add(&drive->others_in_flight, 1);
}

/* Call at the end, or when it turns out that the end was missed. */
static __always_inline void interference_ended(struct device_state *drive, __u32 class, __u64 now)
{
	/* The end is stored before the counts: a reader that sees a count sees the end. */
	if (class == CLASS_DISCARD) {
		drive->discard_last_end_ns = now;
		__sync_fetch_and_add(&drive->discards_ended, 1);
	} else if (class == CLASS_FLUSH) {
		drive->flush_last_end_ns = now;
		__sync_fetch_and_add(&drive->flushes_ended, 1);
	} else {
		return;
	}
	__sync_fetch_and_add(&drive->others_in_flight, -1);
}

/* `ended` is read before `started`: any difference was truly in flight. Volatile, or clang may choose the order. */
static __always_inline bool in_flight(const __u64 *started, const __u64 *ended, const __u64 *last_start_ns, __u64 now)
{
	__u64 ends = *(const volatile __u64 *)ended;

	return (__s64)(*(const volatile __u64 *)started - ends) > 0 && now < *last_start_ns + INTERFERENCE_STALE_NS;
}

/* Which of them are in flight, as in DURINGS. Not inlined: called only while one of them has no end. */
static __noinline int interference_in_flight(const struct device_state *drive, __u64 now)
{
	if (!drive)
		return 0;
	return in_flight(&drive->discards_started, &drive->discards_ended, &drive->discard_last_start_ns, now) |
	       in_flight(&drive->flushes_started, &drive->flushes_ended, &drive->flush_last_start_ns, now) << 1;
}

/* Which other kinds of I/O had an interval that touches [issued, now]. */
static __always_inline __u32 interference(const struct device_state *drive, __u64 issued, __u64 now)
{
	/* Before the last ends: see interference_ended(). */
	__u64 others = *(const volatile __u64 *)&drive->others_in_flight;
	__u32 during = 0;

	if (others)
		during = interference_in_flight(drive, now);
	if (drive->discard_last_end_ns >= issued)
		during |= 1;
	if (drive->flush_last_end_ns >= issued)
		during |= 2;
	return during;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Determines whether an I/O starts where an earlier one of the same operation ended.
 *
 * A table of recent ends serves any number of interleaved streams, because each stream finds its own entry. It errs
 * only by forgetting: about one I/O in STREAM_ENDS for each additional stream.
 */
#pragma once

#include "events.bpf.h"

/*
 * The ends in 64 KiB of the disk share a cache line, the next 64 KiB have one elsewhere: streams in step that collide
 * do not keep colliding. The position in the line is scattered as well, or large I/Os would use few positions.
 */
static __always_inline __u32 stream_end_index(__u64 sector)
{
	__u32 scattered = (__u32)(sector >> 7) * 2654435761U;

	return scattered >> 21 ^ ((__u32)(sector >> 3) & 15);
}

static __always_inline bool is_sequential(struct stream_ends *ends, __u32 class, __u64 sector, __u32 bytes)
{
	__u64 end_sector = sector + (bytes >> 9);
	__u32 start = stream_end_index(sector), end = stream_end_index(end_sector);
	/* Reads and writes are streams of their own, and 0 is free. */
	__u32 salt = 1 + (class << 31);
	bool found;

	BOUND(start, STREAM_ENDS - 1);
	BOUND(end, STREAM_ENDS - 1);
	found = ends->end[start] == (__u32)sector + salt;
	ends->end[end] = (__u32)end_sector + salt;
	return found;
}

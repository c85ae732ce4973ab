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
 * do not keep colliding. The position in the line is rotated as well, or large I/Os would use few of its places.
 */
static __always_inline __u32 stream_end_index(__u64 sector)
{
	__u32 spread = (__u32)(sector >> 7) * 2654435761U;

	return spread >> 25 << 4 | (((__u32)(sector >> 3) + (spread >> 16)) & 15);
}

static __always_inline bool is_sequential(__u32 device, __u32 class, __u64 sector, __u32 bytes)
{
	struct stream_ends *ends = bpf_map_lookup_elem(&streams, &device);
	__u32 start = stream_end_index(sector);
	__u64 end_sector = sector + (bytes >> 9);
	__u32 end = stream_end_index(end_sector);
	__u32 salt = 1 + (class << 31);
	bool found;

	if (!ends)
		return false;
	BOUND(start, STREAM_ENDS - 1);
	BOUND(end, STREAM_ENDS - 1);
	found = ends->end[start] == (__u32)sector + salt;
	ends->end[end] = (__u32)end_sector + salt;
	return found;
}

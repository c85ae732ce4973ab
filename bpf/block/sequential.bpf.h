/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does this I/O begin where an earlier one of the same operation ended?
 *
 * A table of recent ends serves any number of interleaved streams, because each stream finds its own entry. It is only
 * ever wrong by forgetting: about one I/O in STREAM_ENDS for each stream that runs beside.
 */
#pragma once

#include "events.bpf.h"

static __always_inline bool is_sequential(__u32 device, __u32 class, __u64 sector, __u32 bytes)
{
	struct stream_ends *ends = bpf_map_lookup_elem(&streams, &device);
	/* Neighbours share a line; every 8 MiB (the whole table) start somewhere else, so that streams in step do not
	 * collide. */
	__u32 start = (__u32)(sector >> 3) + ((__u32)(sector >> 14) * 2654435761U >> 16);
	__u64 end_sector = sector + (bytes >> 9);
	__u32 end = (__u32)(end_sector >> 3) + ((__u32)(end_sector >> 14) * 2654435761U >> 16);
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

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the block programs report to the flash model: the writes, discards and zeroes that hold a followed page.
 *
 * Part of block_abi.h, whose rules apply here too. Events go through one ring buffer and carry no time: the model's
 * clock is the volume written. Pages written are counted in the write cells.
 */
#pragma once

#include "page_sampling.h"

#define SAMPLE_WRITE 0
#define SAMPLE_DISCARD 1
#define SAMPLE_ZEROES 2
#define SAMPLE_ZEROES_KEPT 3 /* the drive is asked to keep the space (REQ_NOUNMAP) */
#define SAMPLE_KINDS 4	     /* a power of two, so that an index is bounded without a branch */

struct sample_event {
	__u32 first; /* index among the followed pages of the drive */
	__u32 count;
	__u32 sampling; /* as in page_sampling */
	__u16 pad;
	__u8 kind;
	__u8 hint; /* as in the write cells; 0 for anything but a write */
};

/*
 * How a device is sampled; in the cache line of device_geometry. While `groups` is not 0, user space changes nothing
 * else here; it writes `groups` last.
 */
struct page_sampling {
	__u64 first_page; /* the drive's page at which the device (a namespace of it) begins */
	__u32 groups;	  /* followed pages of the drive; 0: not sampled */
	__u32 seed;
	__u32 sampling; /* number of this set of parameters, carried by its events */
	__u8 page_bits;
	__u8 rate_bits;
	__u16 pad;
};

/* Ranges of one discard that are examined: what NVMe and virtio allow in a command (NVME_DSM_MAX_RANGES in
 * include/linux/nvme.h, MAX_DISCARD_SEGMENTS in drivers/block/virtio_blk.c). */
#define SAMPLE_RANGES 256

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(sizeof(struct sample_event) == 16, "");
static_assert(sizeof(struct page_sampling) == 24, "");

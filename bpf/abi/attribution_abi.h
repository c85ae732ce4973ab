/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the block programs count by cgroup and by path into the kernel.
 *
 * Part of block_abi.h, whose rules apply here too. Each CPU has its own table of small cells, looked up by what they
 * count: cgroup, device, operation and path. So memory use follows the combinations that occur, not the product of all
 * possible ones; no cell is written by two CPUs; and a new cgroup needs nothing that CPUs would have to share. The
 * completion program takes free cells of its own CPU; only user space gives cells back.
 *
 * A cgroup is identified by its css.serial_nr, which is never reused, whereas css ids are, dozens of times a second.
 * Its name is announced before its first cell on a CPU is taken, because a cgroup may be gone before anybody looks.
 */
#pragma once

#include "latency_buckets.h" /* for the types' names in user space */

/* Operations that are attributed; commits are only counted. */
#define ATTRIBUTED_READ 0 /* as CLASS_READ and CLASS_WRITE */
#define ATTRIBUTED_WRITE 1
#define ATTRIBUTED_DISCARD 2
#define ATTRIBUTED_COMMIT 3
#define ATTRIBUTED_OPERATIONS 4

/* How an I/O was submitted; PATH_RAW is added to it for I/O to the block device itself. */
#define PATH_OTHER 0
#define PATH_IO_URING 1
#define PATH_SQPOLL 2
#define PATH_LIBAIO 3
#define PATH_SYNC 4
#define PATH_DIRECT 5 /* by an engine that this kernel does not reveal */
#define PATH_BUFFERED_READ 6
#define PATH_WRITEBACK 7
#define PATH_JOURNAL 8
#define PATH_METADATA 9
#define PATH_SWAP 10
#define PATH_LOOP 11
#define PATH_STACKED 12
#define PATH_RAW 16
#define PATH_UNKNOWN 31 /* not determined yet: in a slot, never in a key */
#define PATH_CODES 32

/* Whether the I/O bypassed the page cache: PATH_IO_URING to PATH_DIRECT, raw or not. */
static inline __attribute__((always_inline)) int is_direct(__u32 path)
{
	return (path & (PATH_RAW - 1)) - PATH_IO_URING <= PATH_DIRECT - PATH_IO_URING;
}

/*
 * What the function that ends a bio (or a buffer, or a kiocb) reveals about its path: bits 3 to 7 of the lowest byte of
 * an entry in end_functions.
 */
#define END_UNKNOWN 0
#define END_IOMAP_DIO 1	   /* bi_private is a struct iomap_dio */
#define END_BLKDEV_DIO 2   /* bi_private is a struct blkdev_dio */
#define END_BLKDEV_ASYNC 3 /* the bio is inside a struct blkdev_dio */
#define END_BLKDEV_SIMPLE 4
#define END_DIO 5    /* bi_private is a struct dio */
#define END_WAIT 6   /* a task waits for it: the page must be checked */
#define END_CHAIN 7  /* a piece that was split off: bi_private is the bio that waits for it */
#define END_PAGES 8  /* of the page cache */
#define END_BUFFER 9 /* bi_private is a struct buffer_head with an end function of its own; until 7.x */
#define END_JOURNAL 10
#define END_METADATA 11
#define END_SWAP 12
#define END_STACKED 13
#define END_KI_IO_URING 14
#define END_KI_IO_URING_POLLED 15
#define END_KI_LIBAIO 16
#define END_KI_LOOP 17

/* One cgroup, device, operation and path on one CPU. */
struct attributed {
	__u64 key; /* see attribution_key, or one of the two below */
	__u64 ios; /* final completions, including strays */
	__u64 bytes;
	__u64 device_ns;
};
/* Keys of a free cell, whose counts are 0, and of one that user space is about to give back: nothing is added to that
 * one any more, and no program takes it. */
#define ATTRIBUTION_FREE 0
#define ATTRIBUTION_LEAVING 1

/* A set of neighbouring cells is searched; a key's cell is in one of its two sets. */
#define ATTRIBUTED_IN_SET 4
struct attribution_set {
	struct attributed cell[ATTRIBUTED_IN_SET];
};

#define ATTRIBUTION_SERIAL_SHIFT 20
#define ATTRIBUTION_DEVICE_SHIFT 10
#define ATTRIBUTION_DEVICE_MASK 0x3ff
#define ATTRIBUTION_TAKEN 0x80 /* so that no key equals either of the two above */
#define ATTRIBUTION_OPERATION_SHIFT 5

/* Serial 0: no cgroup. */
static inline __attribute__((always_inline)) __u64 attribution_key(__u64 serial, __u32 device, __u32 operation,
								   __u32 path)
{
	return serial << ATTRIBUTION_SERIAL_SHIFT | (__u64)device << ATTRIBUTION_DEVICE_SHIFT | ATTRIBUTION_TAKEN |
	       operation << ATTRIBUTION_OPERATION_SHIFT | path;
}

static inline __attribute__((always_inline)) __u32 attribution_first_set(__u64 key, __u32 sets)
{
	return (__u32)((key * 0x9e3779b97f4a7c15ULL >> 32) * sets >> 32);
}

static inline __attribute__((always_inline)) __u32 attribution_second_set(__u64 key, __u32 sets)
{
	return (__u32)(((key ^ key >> 23) * 0xc2b2ae3d27d4eb4fULL >> 32) * sets >> 32);
}

/* One device on some CPUs (cfg_other_mask), atomic adds: I/Os that found no cell. */
struct unattributed {
	__u64 events; /* added to last */
	__u64 pad[7];
	struct {
		__u64 ios;
		__u64 bytes;
		__u64 device_ns;
	} of[ATTRIBUTED_OPERATIONS][PATH_CODES];
};

/* A cgroup that has just been given its first cell on a CPU, as it was then. */
#define CGROUP_NAME_LEN 256 /* NAME_MAX + 1 */
struct announced_cgroup {
	__u64 serial;
	__u64 cgroup; /* kernfs_node.id: the inode of its directory */
	__u64 parent; /* that of its parent; 0: it is the root */
	__u64 pad;
	char name[CGROUP_NAME_LEN]; /* of the directory; empty for the root */
};

/* One CPU: its ring of announcements, and the serials announced recently. */
#define CGROUPS_KNOWN 128
struct announcements {
	__u64 written; /* announcements so far */
	__u64 taken;   /* cells taken so far */
	__u64 kernel_pad[6];
	__u64 read; /* by user space, which alone writes it */
	__u64 reader_pad[7];
	__u64 known[CGROUPS_KNOWN]; /* serials; user space clears one that it forgets, and may clear another with it */
};

static inline __attribute__((always_inline)) __u32 cgroup_known_at(__u64 serial)
{
	return (__u32)(serial * 0x9e3779b97f4a7c15ULL >> 57);
}

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(sizeof(struct attributed) == 32, "two share a cache line");
static_assert(sizeof(struct attribution_set) == 128, "a set is two cache lines");
static_assert(sizeof(struct unattributed) % 64 == 0, "a cell starts on a cache line");
static_assert(sizeof(struct announced_cgroup) == 288, "");
static_assert(sizeof(struct announcements) % 64 == 0, "");
static_assert(CGROUPS_KNOWN == 1 << (64 - 57), "the hash is the place");

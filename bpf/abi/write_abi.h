/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the block programs count only for writes: hint, stream, class, alignment.
 *
 * Part of block_abi.h, whose rules apply here too. Write cells are per CPU and need only plain adds; tagged cells,
 * which only writes with a hint or a stream touch, and commit cells may be shared by several CPUs and need atomic adds.
 */
#pragma once

#include "latency_buckets.h"

/* 1 ... 5 are the kernel's own: none, short, medium, long, extreme (enum rw_hint). */
#define HINT_DEFAULT 0 /* carries nothing: not set, or, where bios carry no hints, unknown */
#define HINT_NOT_SET 6 /* the page's file was checked, and has none */
#define HINTS 8	       /* a power of two, like WRITE_CLASSES, so that an index is bounded without a branch */

#define WRITE_JOURNAL 0
#define WRITE_METADATA 1
#define WRITE_WRITEBACK 2
#define WRITE_DIRECT 3
#define WRITE_SWAP 4
#define WRITE_OTHER 5
#define WRITE_UNKNOWN 6 /* intermediate: the page must be checked */
#define WRITE_CLASSES 8

/* One device on one CPU. */
struct write_cell {
	__u64 class_bytes[WRITE_CLASSES];
	__u64 hint_bytes[HINTS];
	__u64 misaligned_bytes;
	__u64 small_bytes;
	__u64 stream_bytes; /* in any stream; readers look at the tagged cells only when this has grown */
	__u64 pad;
	__u32 hint_ios[HINTS];
	__u64 hint_pages[HINTS]; /* of the drive, while the device is sampled (sample_abi.h) */
};

/* One device on some CPUs (cfg_tagged_mask): device time of hinted writes, bytes of streams. */
#define WRITE_STREAMS 256
struct tagged_cell {
	__u64 stream_bytes[WRITE_STREAMS];
	__u64 latency_sum_ns[HINTS]; /* never for HINT_DEFAULT, which user space gets by subtracting */
	__u32 latency[HINTS][LATENCY_WORDS];
};

/* One device on some CPUs (cfg_commit_mask), written by the completion program: total latency of commits. */
struct commit_cell {
	__u64 commits; /* added to last, so a reader that sees it grow finds the rest */
	__u64 sum_ns;
	__u32 latency[LATENCY_WORDS];
	__u8 pad[32]; /* to a multiple of the cache line */
};

/*
 * Functions that end bios and reveal what made them: low half of the address << 8 | END_* << 3 | WRITE_* + 1, with 0
 * for either of the two that is not revealed. (The kernel's text and its modules lie within 2 GiB, and the low half is
 * all that a program may have of a pointer.) A set of neighbours is searched, so one load of a cache line answers.
 * Written by user space, each entry atomically; 0: free.
 */
#define END_WRITE_MASK 0x7
#define END_PATH_SHIFT 3 /* END_* in attribution_abi.h */
#define END_FUNCTION_WAYS 4
#define END_FUNCTION_SETS 128
struct end_function_set {
	__u64 entry[END_FUNCTION_WAYS];
};

static inline __attribute__((always_inline)) __u32 end_function_hash(__u32 address)
{
	return address * 2654435761U >> 25;
}

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(sizeof(struct write_cell) == 256, "four cache lines");
static_assert(sizeof(struct tagged_cell) % 64 == 0, "a cell starts on a cache line");
static_assert(sizeof(struct commit_cell) == 896, "fourteen cache lines");
static_assert(sizeof(struct end_function_set) == 32, "a set shares a cache line");
static_assert(END_FUNCTION_SETS == 1 << (32 - 25), "the hash is the set");

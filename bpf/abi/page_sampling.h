/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pages of a drive that a range touches or covers, and those of them that the flash model follows.
 *
 * In every aligned group of 2^rate_bits pages, the model follows the one page that a keyed hash picks. So the followed
 * pages of a range have consecutive indexes (their groups), and finding them costs two hashes, however long the range
 * is. Both sides include this header, so that the kernel side and the model sample the same pages.
 */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

/* Consecutive pages, or consecutive indexes of followed pages. */
struct page_range {
	__u64 first;
	__u64 count;
};

/* What a write programs: every page that it touches. No drive has 2^63 bytes. */
static inline __attribute__((always_inline)) struct page_range touched_pages(__u64 offset, __u64 bytes, __u32 page_bits)
{
	struct page_range range;

	range.first = offset >> page_bits;
	range.count = bytes ? ((offset + bytes - 1) >> page_bits) - range.first + 1 : 0;
	return range;
}

/* What a discard frees: every page that it covers. */
static inline __attribute__((always_inline)) struct page_range covered_pages(__u64 offset, __u64 bytes, __u32 page_bits)
{
	struct page_range range;
	__u64 end = (offset + bytes) >> page_bits;

	range.first = (offset + (1ULL << page_bits) - 1) >> page_bits;
	range.count = end > range.first ? end - range.first : 0;
	return range;
}

/* The finalizer of MurmurHash3, keyed. */
static inline __attribute__((always_inline)) __u32 keyed_hash(__u64 value, __u32 key)
{
	__u32 mixed = (__u32)value ^ (__u32)(value >> 32) * 0x9E3779B1U ^ key;

	mixed = (mixed ^ mixed >> 16) * 0x85EBCA6BU;
	mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35U;
	return mixed ^ mixed >> 16;
}

/* The followed page of a group; rate_bits is below 32. */
static inline __attribute__((always_inline)) __u64 followed_page(__u64 group, __u32 rate_bits, __u32 seed)
{
	return (group << rate_bits) + (keyed_hash(group, seed) & ((1U << rate_bits) - 1));
}

/* Indexes of the followed pages in a range of a drive's pages; pages beyond its last group have none. */
static inline __attribute__((always_inline)) struct page_range followed_pages(struct page_range pages, __u64 groups,
									      __u32 rate_bits, __u32 seed)
{
	__u64 end = pages.first + pages.count, group = pages.first >> rate_bits, beyond;
	struct page_range none = {0, 0}, followed;

	if (!pages.count || group >= groups)
		return none;
	if (end > groups << rate_bits)
		end = groups << rate_bits;
	/* The group after the last followed one; not below the first, so that nothing wraps. */
	beyond = (end - 1) >> rate_bits;
	beyond += followed_page(beyond, rate_bits, seed) < end;
	group += followed_page(group, rate_bits, seed) < pages.first;
	if (group >= beyond)
		return none;
	followed.first = group;
	followed.count = beyond - group;
	return followed;
}

/*
 * Whether a range may hold a followed page, at the cost of one hash: 0 means certainly not. A range that reaches into a
 * second group is left to followed_pages(), as is a group beyond the last one.
 */
static inline __attribute__((always_inline)) int may_hold_followed(struct page_range pages, __u32 rate_bits, __u32 seed)
{
	__u64 mask = (1ULL << rate_bits) - 1, begin = pages.first & mask;
	__u64 followed = keyed_hash(pages.first >> rate_bits, seed) & mask;

	return (followed - begin < pages.count) | (begin + pages.count > mask + 1);
}

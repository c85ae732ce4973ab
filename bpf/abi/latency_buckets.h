/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The histogram bucket of a latency.
 *
 * The buckets are Prometheus native buckets of schema 3, counted in the kernel and never re-bucketed: native index i
 * holds (2^((i-1)/8), 2^(i/8)] seconds. Integer nanoseconds are compared with floor(10^9 * 2^(i/8)), which decides
 * exactly, because no integer lies between the floor and the real bound. A quantile read from these buckets is off by
 * at most 4.4 %.
 *
 * A histogram is LATENCY_WORDS counters:
 *   word 0                    zero: a difference of two clock readings that was not positive
 *   word 1                    under: 1 ns to 953 ns, below the first native bucket
 *   word 2 .. 209             native index LATENCY_FIRST_NATIVE_INDEX (-159) .. LATENCY_LAST_NATIVE_INDEX (48)
 *   word LATENCY_OVER_WORD    over: more than 64 s
 *
 * Both sides include this header; BPF programs bring their own __u64 and the like (bpf/kernel/types.bpf.h).
 */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "latency_bucket_tables.h"

#define LATENCY_ZERO_WORD 0
#define LATENCY_UNDER_WORD 1
#define LATENCY_FIRST_NATIVE_WORD 2
#define LATENCY_OVER_WORD (LATENCY_FIRST_NATIVE_WORD + LATENCY_LAST_NATIVE_INDEX - LATENCY_FIRST_NATIVE_INDEX + 1)
/* One word of padding keeps arrays of histograms 8-byte aligned. */
#define LATENCY_WORDS (LATENCY_OVER_WORD + 2)

/* Sizes use schema 0: word 0 counts zero bytes, word 1 + i holds (2^(i-1), 2^i] bytes, i = 0 .. 32. */
#define SIZE_WORDS 34

/* A mask that the verifier needs to see, and that clang would leave out where it knows better. */
#ifdef __bpf__
#define VISIBLE_MASK(value, mask) asm volatile("%0 &= %1" : "+r"(value) : "i"(mask))
#else
#define VISIBLE_MASK(value, mask) ((value) &= (mask))
#endif

/*
 * 1 << shift if value > bound, else 0; both below 2^63. BPF has neither an instruction to count leading zeros nor a
 * conditional move, and no processor can predict a branch on a latency.
 */
static inline __attribute__((always_inline)) __u64 bit_if_above(__u64 value, __u64 bound, __u32 shift)
{
	return (bound - value) >> 63 << shift;
}

/* floor(log2(value)) for 0 < value < 2^32. */
static inline __attribute__((always_inline)) __u32 floor_log2(__u64 value)
{
	__u64 shift, result;

	result = bit_if_above(value, 0xffff, 4);
	value >>= result;
	shift = bit_if_above(value, 0xff, 3);
	value >>= shift;
	result |= shift;
	shift = bit_if_above(value, 0xf, 2);
	value >>= shift;
	result |= shift;
	shift = bit_if_above(value, 0x3, 1);
	value >>= shift;
	result |= shift;
	return (__u32)(result | value >> 1);
}

/* The table entry of a latency's step, 2^bits ns long, in a piece. */
static inline __attribute__((always_inline)) __u32 latency_step(__u64 latency_ns, __u32 piece, __u32 bits)
{
	__u64 offset = latency_ns >> (bits - 2); /* in the table, in bytes */

	VISIBLE_MASK(offset, (LATENCY_STEPS - 1) * sizeof(__u32));
	return *(const __u32 *)((const char *)&latency_steps[piece * LATENCY_STEPS] + offset);
}

/*
 * Word of a latency above 0 and below 2^32 ns. Six octaves a piece: most latencies of one kind on one drive fall into
 * one of them, so these branches are predicted, which a search of the buckets would not be.
 */
static inline __attribute__((always_inline)) __u32 short_latency_word(__u64 latency_ns)
{
	__u32 sum = (__u32)latency_ns;

	if (latency_ns < 1U << 14)
		sum += latency_step(latency_ns, 0, 4);
	else if (latency_ns < 1U << 20)
		sum += latency_step(latency_ns, 1, 10);
	else if (latency_ns < 1U << 26)
		sum += latency_step(latency_ns, 2, 16);
	else
		sum += latency_step(latency_ns, 3, 22);
	return sum >> LATENCY_WORD_SHIFT;
}

/* Word of a latency in nanoseconds; anything not positive is the zero word. */
static inline __attribute__((always_inline)) __u32 latency_word(__s64 latency_ns)
{
	__u64 value = (__u64)latency_ns, step;
	__u32 word;

	if (latency_ns <= 0)
		return LATENCY_ZERO_WORD;
	if (value >> 32 == 0)
		return short_latency_word(value);
	if (value >> (LATENCY_LONG_STEP_BITS + 8))
		return LATENCY_OVER_WORD;
	step = value >> LATENCY_LONG_STEP_BITS;
	VISIBLE_MASK(step, 255);
	word = latency_long_steps[step];
	return word + (value > latency_upper_bound_ns[word]);
}

/* Word of a size in bytes. */
static inline __attribute__((always_inline)) __u32 size_word(__u32 bytes)
{
	__u32 step = (bytes - 513) >> 9;

	/* From 513 bytes to 1 MiB: whatever lies between two multiples of 512 has the word of the upper one. */
	if (step < SIZE_STEPS)
		return size_steps[step];
	if (bytes == 0)
		return 0;
	/* ceil(log2): a power of two belongs to its own bucket. */
	return 1 + (bytes == 1 ? 0 : floor_log2(bytes - 1) + 1);
}

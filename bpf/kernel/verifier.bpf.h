/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Instructions that the verifier must see and the compiler would leave out.
 *
 * They are written out by hand. The unit tests compile the programs for their own machine, which has no verifier.
 */
#pragma once

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

#ifdef __bpf__

/* Keeps clang from dropping a bound that the verifier needs to see. */
#define BOUND(value, mask) asm volatile("%0 &= %1" : "+r"(value) : "i"(mask))

/* Keeps clang from using a different copy of the value than the one whose bound the verifier sees checked. */
#define ONE_COPY(value) asm volatile("" : "+r"(value))

/* The same value, of which the verifier knows nothing any more: of all paths that led here, it follows only one. */
static __always_inline __u32 as_unknown(__u32 value, __u64 unknown)
{
	__u64 wide = value;

	asm volatile("%0 ^= %1\n%0 ^= %1" : "+&r"(wide) : "r"(unknown));
	return (__u32)wide;
}

/* The low half of a pointer as a number: privileged programs may copy it, but not calculate with the pointer itself. */
static __always_inline __u32 low_bits(const void *pointer)
{
	__u32 bits;

	asm volatile("%0 = %1" : "=w"(bits) : "w"((__u32)(unsigned long)pointer));
	return bits;
}

/* The whole of a pointer as a number: the verifier takes anything that was negated for a number. */
static __always_inline __u64 address_of(const void *pointer)
{
	__u64 address;

	asm volatile("%0 = %1\n%0 = -%0\n%0 = -%0" : "=r"(address) : "r"(pointer));
	return address;
}

#else

#define BOUND(value, mask) ((value) &= (mask))
#define ONE_COPY(value) ((void)(value))
#define as_unknown(value, unknown) (value)
#define low_bits(pointer) ((__u32)(unsigned long)(pointer))
#define address_of(pointer) ((__u64)(unsigned long)(pointer))

#endif

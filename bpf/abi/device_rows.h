/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A table of the block devices (disks and partitions) that have a row in other tables, written by user space.
 *
 * Open addressing, DEVICE_ROW_PROBES steps. An entry is one word, so it changes atomically: the kernel's device number
 * (dev_t), with the row + 1 above it; 0: free.
 */
#pragma once

#define DEVICE_ROW_ENTRIES 8192
#define DEVICE_ROW_PROBES 8
#define DEVICE_ROW_SHIFT 32

static inline __attribute__((always_inline)) __u32 device_row_hash(__u32 device)
{
	return (device * 0x9e3779b1U) >> 19;
}

#ifdef __bpf__
/* Row of the device + 1, or 0. `table`: an array map of DEVICE_ROW_ENTRIES entries. */
static inline __attribute__((always_inline)) __u32 device_row(void *table, __u32 device)
{
	__u32 hash = device_row_hash(device), probe;

#pragma unroll
	for (probe = 0; probe < DEVICE_ROW_PROBES; probe++) {
		__u32 index = (hash + probe) & (DEVICE_ROW_ENTRIES - 1);
		__u64 *entry = bpf_map_lookup_elem(table, &index);
		__u64 known = entry ? *(volatile __u64 *)entry : 0;

		if (!known)
			break;
		if ((__u32)known == device)
			return known >> DEVICE_ROW_SHIFT;
	}
	return 0;
}
#endif

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(1U << (32 - 19) == DEVICE_ROW_ENTRIES, "the hash has as many bits as the table");

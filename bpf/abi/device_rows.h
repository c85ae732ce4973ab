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

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(1U << (32 - 19) == DEVICE_ROW_ENTRIES, "the hash has as many bits as the table");

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the row of a block device in a table of abi/device_rows.h.
 */
#pragma once

#include "../kernel/verifier.bpf.h"
#include "../abi/device_rows.h"

/* Row of the device + 1, or 0. `table`: an array map of DEVICE_ROW_ENTRIES entries. */
static __always_inline __u32 device_row(void *table, __u32 device)
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

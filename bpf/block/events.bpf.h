/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts rare events of requests: an error, a loss, a stage of something larger.
 *
 * One counter for each operation class of a device, shared by all CPUs: rare enough for an atomic add.
 */
#pragma once

#include "maps.bpf.h"

/*
 * `shared` is a compile-time constant. Words of a per-CPU cell have one writer and need only plain adds; cold cells are
 * shared by all CPUs and need atomic adds, as do adds of the issue program that a completion may interrupt.
 */
#define ADD(shared, word, amount)                                                                                      \
	do {                                                                                                           \
		if (shared)                                                                                            \
			__sync_fetch_and_add(&(word), amount);                                                         \
		else                                                                                                   \
			(word) += (amount);                                                                            \
	} while (0)

static __always_inline void count_events(__u32 device, __u32 class, __u32 event, __u64 number)
{
	struct device_events *events = bpf_map_lookup_elem(&rare_events, &device);

	BOUND(class, CLASSES - 1);
	if (events)
		__sync_fetch_and_add(&events->of[class].count[event], number);
}

static __always_inline void count_event(__u32 device, __u32 class, __u32 event)
{
	count_events(device, class, event, 1);
}

/* Errors come as blk_status_t; until Linux 5.17, as the errno that the status was translated to. */
static __always_inline __u32 status_of(int error)
{
	switch (error) {
	case -95: /* EOPNOTSUPP */
		return 1;
	case -110: /* ETIMEDOUT */
		return 2;
	case -28: /* ENOSPC */
		return 3;
	case -67: /* ENOLINK */
		return 4;
	case -121: /* EREMOTEIO */
		return 5;
	case -52: /* EBADE */
		return 6;
	case -61: /* ENODATA */
		return 7;
	case -84: /* EILSEQ */
		return 8;
	case -12: /* ENOMEM */
		return 9;
	case -11: /* EAGAIN */
		return 12;
	case -19: /* ENODEV */
		return 16;
	}
	if (error < 0)
		return 10; /* EIO and everything that old kernels fold into it */
	return error < STATUSES ? (__u32)error : STATUSES - 1;
}

static __always_inline void count_error(__u32 device, __u32 class, __u32 status)
{
	struct device_events *events = bpf_map_lookup_elem(&rare_events, &device);

	BOUND(class, CLASSES - 1);
	BOUND(status, STATUSES - 1);
	if (events)
		__sync_fetch_and_add(&events->of[class].errors[status], 1);
}

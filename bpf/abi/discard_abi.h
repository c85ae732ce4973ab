/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps of the discard programs: which volume has which row, and what is counted there.
 *
 * One cell for each kind of submitter of each volume (disk or partition) that has a row. Words are changed by atomic
 * adds, or by plain stores of the latest value; user space reads the cells through the mapping and never writes them.
 */
#pragma once

#include "device_rows.h"

/* Who submits, by FITRIM where the kernel shows it, and by process name; user space distinguishes kernel threads by
 * what is mounted. */
#define SUBMITTER_FSTRIM 0
#define SUBMITTER_KERNEL 1
#define SUBMITTER_BLKDISCARD 2
#define SUBMITTER_MKFS 3
#define SUBMITTER_OTHER 4
#define SUBMITTERS 5

#define SUBMITTER_NAME_LEN 16 /* TASK_COMM_LEN of every kernel */

/* After this silence, the next submission is a first one; user space's gap between bursts is never shorter. */
#define DISCARD_SILENCE_NS 1000000000ULL

struct discard_cell {
	__u64 ranges;
	__u64 bytes;
	__u64 first_ns; /* the first submission since a silence */
	__u64 last_ns;
	char name[SUBMITTER_NAME_LEN]; /* of the last submitter */
	__u64 pad[2];
};

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(sizeof(struct discard_cell) == 64, "submitters share no cache line");

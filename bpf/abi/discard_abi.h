/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does the discard program leave in its map?
 *
 * One cell for each disk that has a place (known_disk.discard_place) and each kind of submitter. Words are atomic adds
 * or plain stores of what comes last; user space reads through the mapping and never writes.
 */
#pragma once

/* Who submits, by its name; threads of the kernel are told apart in user space, by what is mounted. */
#define SUBMITTER_FSTRIM 0
#define SUBMITTER_KERNEL 1
#define SUBMITTER_BLKDISCARD 2
#define SUBMITTER_MKFS 3
#define SUBMITTER_OTHER 4
#define SUBMITTERS 5

#define SUBMITTER_NAME_LEN 16 /* TASK_COMM_LEN of every kernel */

/* Silence after which the next submission is a first one: what user space takes for a burst's gap is never shorter. */
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

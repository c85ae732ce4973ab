/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the freeze programs send, in order: each change of a super block's state.
 */
#pragma once

#define FREEZE_NAME_LEN 16 /* TASK_COMM_LEN of every kernel */

struct freeze_event {
	__u32 device;		    /* the kernel's dev_t of the super block, as in mountinfo */
	__u32 frozen;		    /* 1: it is, after what the task did */
	__u32 by_thaw;		    /* 1: the task wanted to thaw it */
	char name[FREEZE_NAME_LEN]; /* of the task */
};

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(sizeof(struct freeze_event) == 28, "the same on both sides");

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where is a request remembered between its issue and its end?
 *
 * In a table indexed by device, hardware queue and tag: one store at the issue, one comparison at the end. The address
 * of the request tells whether the slot is still its own.
 */
#pragma once

#include "events.bpf.h"
#include "interference.bpf.h"

static __always_inline struct issue_slot *slot_of(struct request *rq, const struct queue_entry *queue)
{
	__u32 key = rq->mq_hctx->queue_num * queue->slot_stride + request_tag(rq);

	key = queue->slot_base + (key & queue->slot_mask);
	return bpf_map_lookup_elem(&issue_slots, &key);
}

/* Whose interference counts: mostly the device itself. */
static __always_inline struct device_state *drive_of(struct device_state *state, __u32 device)
{
	__u32 drive = state->geometry.drive;

	return drive == device ? state : device_state_of(drive);
}

/* The end of what the slot holds was never seen. */
static __always_inline void was_missed(struct issue_slot *slot, struct device_state *state, struct device_state *drive,
				       __u32 flags, __u64 now)
{
	__u32 held_class = slot->issued >> SLOT_CLASS_SHIFT;

	count_event(state, held_class, flags & SLOTS_EXACT ? EVENT_COMPLETION_MISSED : EVENT_SLOT_COLLISION);
	interference_ended(drive, held_class, now);
}

/*
 * The slot is taken: the same request issued again (true), or one whose completion was never seen. A request structure
 * serves one tag for ever, so the same address may be a later I/O: then it was allocated after the earlier issue.
 */
static __always_inline bool is_reissue(struct issue_slot *slot, struct request *rq, struct device_state *state,
				       struct device_state *drive, __u32 flags, __u64 now)
{
	__u32 held_class = slot->issued >> SLOT_CLASS_SHIFT;

	/* An unstamped request (start 0) is taken for issued again: a loss there shows as a requeue. */
	if (slot->request == (__u64)rq &&
	    request_start_ns(rq, held_class == CLASS_FLUSH) <= slot_time(slot->issued, now))
		return true;
	was_missed(slot, state, drive, flags, now);
	return false;
}

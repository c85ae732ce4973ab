/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remembers a request between its issue and its end.
 *
 * Uses a table indexed by device, hardware queue and tag. A read or a write is stored there blindly, and taken for the
 * one that ends if its address, its class and its time agree: a slot filled before the request was allocated is not its
 * own. Anything else in the slot has ended unseen, because a tag serves one request at a time.
 */
#pragma once

#include "device_lookup.bpf.h"
#include "events.bpf.h"
#include "interference.bpf.h"

static __always_inline struct issue_slot *slot_of(struct request *rq, const struct queue_entry *queue)
{
	__u32 key = rq->mq_hctx->queue_num * queue->slot_stride + request_tag(rq);

	key = queue->slot_base + (key & queue->slot_mask);
	return bpf_map_lookup_elem(&issue_slots, &key);
}

/* The device whose interference state is used: mostly the device itself. */
static __always_inline struct device_state *drive_of(struct device_state *state, __u32 device)
{
	__u32 drive = state->geometry.drive;

	return drive == device ? state : device_state_of(drive);
}

static __always_inline void store_issue(struct issue_slot *slot, struct request *rq, __u32 class, __u32 path, __u64 now)
{
	slot->issued = slot_issued(class, path, now);
	slot->request = low_bits(rq);
}

/* Whether the last issue in the slot was of this request, provided that the slot holds its class. A request without a
 * timestamp is assumed to match. */
static __always_inline bool last_issue_is_of(const struct issue_slot *slot, struct request *rq, __u32 class, __u64 now)
{
	__u64 issued = slot->issued;

	return slot->request == low_bits(rq) && issued >> SLOT_CLASS_SHIFT == class &&
	       request_start_ns(rq, class == CLASS_FLUSH) <= slot_time(issued, now);
}

static __always_inline bool holds_class(const struct issue_slot *slot, __u32 class)
{
	if (class == CLASS_READ)
		return slot->issues[CLASS_READ];
	if (class == CLASS_WRITE)
		return slot->issues[CLASS_WRITE];
	return slot->cold == class;
}

/* Whether the slot holds this very request. */
static __always_inline bool holds(const struct issue_slot *slot, struct request *rq, __u32 class, __u64 now)
{
	return holds_class(slot, class) && last_issue_is_of(slot, rq, class, now);
}

/* Whether issues of this class are left out now. Flushes and discards never are: others are measured against them. */
static __always_inline bool leaves_out(const struct device_state *state, __u32 class)
{
	return class < HOT_CLASSES && state->geometry.flags & DEVICE_UNTIMED;
}

#define UNSTAMPED_FOR_NS 30000000000ULL /* a request that the kernel did not stamp is assumed to be younger */

/* Whether the issue of this request, which no slot holds, may have been left out: its allocation came earlier. */
static __always_inline bool was_left_out(struct request *rq, const struct device_state *state, __u32 class, __u64 now)
{
	__u64 start = request_start_ns(rq, false);

	if (class >= HOT_CLASSES)
		return false;
	if (state->geometry.flags & DEVICE_UNTIMED)
		return true;
	return (start ? start : now - UNSTAMPED_FOR_NS) <= *(const volatile __u64 *)&state->timed_since_ns;
}

/* The ends of all requests that the slot holds were missed, except that of `io` if `own`. */
static __always_inline void write_off_slot(struct issue_slot *slot, const struct io *io, struct device_state *drive,
					   bool own)
{
	__u32 class = io->class, device = io->device;
	struct device_state *state = io->state;
	__u64 now = io->now;
	__u32 event = state->geometry.flags & SLOTS_EXACT ? EVENT_COMPLETION_MISSED : EVENT_SLOT_COLLISION;
	__u32 reads = slot->issues[CLASS_READ], writes = slot->issues[CLASS_WRITE], cold = slot->cold;

	/* The slot may have been cleared since it was found to hold this request. */
	if (own && class == CLASS_READ)
		reads -= reads > 0;
	else if (own && class == CLASS_WRITE)
		writes -= writes > 0;
	else if (own)
		cold = 0;
	/* The verifier need not follow each path that leads here any further. */
	event = as_unknown(event, now);
	reads = as_unknown(reads, now);
	writes = as_unknown(writes, now);
	cold = as_unknown(cold, now);
	BOUND(event, 7);
	if (reads)
		count_events(device, CLASS_READ, event, reads);
	if (writes)
		count_events(device, CLASS_WRITE, event, writes);
	if (cold) {
		count_event(device, cold, event);
		interference_ended(drive, cold, now);
	}
	slot->held = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything that is not the issue or the end of an ordinary read or write: other operations, parts, requests that the
 * driver gave back, stages of flushes, errors, slots that hold something else, devices that are retiring.
 *
 * One program of each kind does all of this. Nothing here is inlined into the ordinary ones, and all adds are atomic.
 */
#pragma once

#include "attribution.bpf.h"
#include "cells.bpf.h"
#include "commits.bpf.h"
#include "samples.bpf.h"
#include "slots.bpf.h"

/* What is counted once for a request, while all of its bios are there; returns its hint. */
static __noinline int record_request(struct request *rq, struct device_state *state, __u32 device, __u64 issued)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq)};
	__u32 cpu = bpf_get_smp_processor_id(), hint = HINT_DEFAULT;
	struct io_cell *cell;

	if (io.class == CLASS_WRITE)
		hint = record_write(rq, state, device, cpu, true);
	cell = cell_of(&io, cpu);
	if (!cell)
		return hint;
	record_size(cell, &io);
	record_queue_time(cell, &io, issued);
	return as_unknown(hint, rq->__sector);
}

/*
 * For a request that will not be whole at its end: a first part of it has ended, which takes bios away, or the driver
 * gave it back and gets it again, which replaces the time of its first issue. Returns whether the caller must count it
 * now; the slot then remembers that, and the hint.
 */
static __noinline int claim_early_count(struct request *rq, struct issue_slot *slot, struct device_state *state,
					__u32 device, __u64 now)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq), .now = now};
	struct device_state *drive;

	if (!slot || !state || !holds(slot, rq, io.class, now))
		return 0;
	drive = drive_of(state, device);
	if (!drive)
		return 0;
	/* Other requests in the slot have ended unseen, and what was counted early belonged to one of them. */
	if (!holds_only(slot->held, io.class)) {
		write_off_slot(slot, &io, drive, true);
		slot->held = held_by(io.class);
	}
	return !slot->early;
}

/*
 * An issue that is not ordinary: of a cold class, whose previous request may disturb others until it is known to have
 * ended; of a request that the driver has had before; where tags share slots; while reads and writes are left out; on a
 * device that is retiring, where only requests that are held still count; the first of a queue.
 */
static __noinline int issue_rare(struct request *rq)
{
	struct gendisk *disk = request_disk(rq, rq->q);
	struct device_state *drive;
	struct issue_slot *slot;
	struct io_cell *cell;
	struct io io;
	bool again;

	if (!disk || !find_device(&io, rq, disk, true))
		return 0;
	slot = slot_of(rq, io.queue);
	drive = drive_of(io.state, io.device);
	cell = cell_of(&io, bpf_get_smp_processor_id());
	if (!slot || !drive || !cell)
		return 0;
	io.now = bpf_ktime_get_ns();
	again = was_issued(rq) && holds(slot, rq, io.class, io.now);
	if (!again && (io.state->geometry.flags & DEVICE_RETIRING || leaves_out(io.state, io.class)))
		return 0;
	if (!again) {
		write_off_slot(slot, &io, drive, false);
		slot->held = held_by(io.class);
		interference_started(drive, io.class, io.now);
		__sync_fetch_and_add(&cell->issues, 1);
	} else {
		__sync_fetch_and_add(&cell->reissues, 1);
		/* With the time of the first issue. */
		if (claim_early_count(rq, slot, io.state, io.device, io.now))
			slot->early =
				SLOT_EARLY | record_request(rq, io.state, io.device, slot_time(slot->issued, io.now));
	}
	store_issue(slot, rq, io.class, PATH_UNKNOWN, io.now);
	return 0;
}

/* The request that started a flush sequence, at its end: its data, if any, was a stage of its own. */
static __always_inline bool is_flush_parent(struct request *rq, __u32 class)
{
	return class < HOT_CLASSES && rq->__data_len == 0 && rq->bio;
}

/* Ended without reaching the driver: a flush parent, or a request refused on its way. */
static __always_inline bool was_never_issued(struct request *rq, __u32 class)
{
	return (class < HOT_CLASSES && rq->__data_len == 0) || rq->state == MQ_RQ_IDLE;
}

static __always_inline bool is_flush_data_stage(struct request *rq, __u32 class)
{
	return class == CLASS_WRITE && rq->rq_flags & cfg_flush_sequence_flag;
}

/* The parent of a flush sequence ends with the error that was already counted for its stage. */
static __always_inline bool is_error_of_its_own(struct request *rq, __u32 class)
{
	return rq->__data_len > 0 || class >= HOT_CLASSES;
}

/* nvme_failover_req takes the bios away and ends the request with success and nothing done. */
static __always_inline bool is_failover(struct request *rq, __u32 class, int error)
{
	return !error && rq->__data_len == 0 && !rq->bio && class != CLASS_FLUSH && class < CLASS_ZONE;
}

/* What the completion programs have in common. Returns whether the request ends as a whole. */
static __always_inline bool count_error_and_commit(const struct io *io, int error, __u32 nr_bytes)
{
	/* A copy: what the verifier learns about its class here would make it follow all later code again. */
	struct io copy = *io;

	copy.class = as_unknown(io->class, io->now);
	error = (int)as_unknown((__u32)error, io->now);
	if (error && is_error_of_its_own(io->rq, copy.class))
		count_error(io->device, copy.class, as_unknown(status_of(error), io->now));
	if (!is_final_completion(io->rq, nr_bytes))
		return false;
	if (is_commit(io->rq, copy.class)) {
		attribute_commit(&copy);
		record_commit(&copy);
	}
	return true;
}

/* What became of a request, in the low bits of a number: one of EVENT_*, or one of these. */
#define OUTCOME_MEASURED 0x20
#define OUTCOME_UNTIMED 0x21 /* its issue was left out */
#define OUTCOME_PART 0x22    /* it has not ended yet */
#define OUTCOME_MASK 0x3f
/* Added to it: whether the request counts as an I/O of its cgroup; whether the rest of what is counted once is to be
 * counted now; else, whether it was counted early, and the hint. */
#define OUTCOME_IS_IO 0x40
#define OUTCOME_COUNTS 0x80
#define OUTCOME_HINT_SHIFT 8

/*
 * The outcome of a request that ends as a whole. A parent of a flush sequence, and a request that was refused on its
 * way, never had a slot; any other is taken out of its slot. What else is there has ended unseen, unless tags share it.
 * Not inlined, like what else here returns a number: the verifier does not distinguish the ways through it any more.
 */
static __noinline int take_slot(struct request *rq, struct issue_slot *slot, struct device_state *state, __u32 device,
				__u64 now)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq), .now = now};
	struct device_state *drive;
	__u32 early = 0, outcome = OUTCOME_MEASURED;

	if (!slot || !state)
		return EVENT_STRAY;
	drive = drive_of(state, device);
	if (!drive)
		return EVENT_STRAY;
	if (is_flush_parent(rq, io.class) || (rq->state == MQ_RQ_IDLE && !was_issued(rq)))
		return EVENT_UNISSUED;
	if (slot->held == held_by(io.class) && last_issue_is_of(slot, rq, io.class, now)) {
		slot->held = 0;
	} else {
		bool own = slot->held && holds(slot, rq, io.class, now);

		if (own && holds_only(slot->held, io.class))
			early = slot->early;
		/* Where tags share a slot, what is there may still be in flight. */
		if (slot->held && (own || state->geometry.flags & SLOTS_EXACT))
			write_off_slot(slot, &io, drive, own);
		if (!own && was_never_issued(rq, io.class))
			return EVENT_UNISSUED;
		if (!own && !was_left_out(rq, state, io.class, now))
			return OUTCOME_IS_IO | EVENT_STRAY;
		outcome = own ? OUTCOME_MEASURED : OUTCOME_UNTIMED;
	}
	if (is_flush_data_stage(rq, io.class))
		count_event(device, io.class, EVENT_FLUSH_DATA_STAGE);
	if (outcome == OUTCOME_UNTIMED)
		return OUTCOME_IS_IO | OUTCOME_UNTIMED;
	interference_ended(drive, io.class, now);
	return OUTCOME_IS_IO | OUTCOME_MEASURED |
	       (early ? (early & (HINTS - 1)) << OUTCOME_HINT_SHIFT : OUTCOME_COUNTS);
}

/* What is counted for any end, before the cell. */
static __noinline int count_end(const struct io *io, struct io_cell *cell, __u32 outcome, __u32 nr_bytes,
				__u64 device_ns)
{
	__u32 event = outcome & OUTCOME_MASK;

	if (!io || !cell)
		return 0;

	attribute_rarely(io, outcome / OUTCOME_IS_IO & 1, nr_bytes, device_ns);
	__sync_fetch_and_add(&cell->bytes, nr_bytes);
	if (event < EVENTS)
		count_event(io->device, io->class, event);
	return 0;
}

/* An end that is not ordinary. */
static __noinline int complete_rare(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq, rq->q);
	struct device_state *drive;
	struct issue_slot *slot;
	struct io_cell *cell;
	__u32 outcome, hint, during;
	__u64 issued, measured_ns;
	__s64 device_ns;
	struct io io;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	if (!find_device(&io, rq, disk, false))
		return 0;
	slot = slot_of(rq, io.queue);
	if (!slot)
		return 0;
	io.now = bpf_ktime_get_ns();
	issued = slot_time(slot->issued, io.now);
	sample(&io, error, nr_bytes);
	if (count_error_and_commit(&io, error, nr_bytes)) {
		outcome = take_slot(rq, slot, io.state, io.device, io.now);
		if ((outcome & OUTCOME_MASK) == OUTCOME_MEASURED && is_failover(rq, io.class, error))
			outcome = EVENT_FAILOVER;
	} else {
		outcome = OUTCOME_PART;
		if (claim_early_count(rq, slot, io.state, io.device, io.now))
			outcome |= OUTCOME_COUNTS;
	}
	outcome = as_unknown(outcome, io.now);
	hint = outcome >> OUTCOME_HINT_SHIFT & (HINTS - 1);
	if (outcome & OUTCOME_COUNTS)
		hint = record_request(rq, io.state, io.device, issued);
	if ((outcome & OUTCOME_MASK) == OUTCOME_PART && outcome & OUTCOME_COUNTS)
		slot->early = SLOT_EARLY | hint;
	/* Not earlier: the verifier would follow the above for each kind of cell. */
	cell = cell_of(&io, bpf_get_smp_processor_id());
	if (!cell)
		return 0;
	device_ns = (__s64)(io.now - issued);
	measured_ns = (outcome & OUTCOME_MASK) == OUTCOME_MEASURED && device_ns > 0 ? (__u64)device_ns : 0;
	count_end(&io, cell, outcome, nr_bytes, measured_ns);
	if ((outcome & OUTCOME_MASK) == OUTCOME_UNTIMED) {
		__sync_fetch_and_add(&cell->untimed, 1);
		record_size(cell, &io);
		record_total(cell, &io);
	}
	if ((outcome & OUTCOME_MASK) != OUTCOME_MEASURED)
		return 0;
	if (hint)
		record_hinted(io.device, hint, device_ns);
	drive = drive_of(io.state, io.device);
	during = drive && io.class < HOT_CLASSES ? interference(drive, issued, io.now) : 0;
	record_completion(&io, cell, as_unknown(during, io.now), issued);
	return 0;
}

/* An end that is not ordinary, in the cheaper mode. The size is what the last completion ended. */
static __noinline int complete_only_rare(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq, rq->q);
	struct io_cell *cell;
	struct io io;
	__u32 outcome;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	if (!find_device(&io, rq, disk, true))
		return 0;
	io.now = bpf_ktime_get_ns();
	cell = cell_of(&io, bpf_get_smp_processor_id());
	if (!cell)
		return 0;
	sample(&io, error, nr_bytes);
	outcome = OUTCOME_IS_IO | OUTCOME_MEASURED;
	if (!count_error_and_commit(&io, error, nr_bytes))
		outcome = OUTCOME_PART;
	/* A failover differs from a flush parent only in that it was issued, which is not seen here. */
	else if (was_never_issued(rq, io.class) || is_failover(rq, io.class, error))
		outcome = EVENT_UNISSUED;
	outcome = as_unknown(outcome, io.now);
	count_end(&io, cell, outcome, nr_bytes, 0);
	if ((outcome & OUTCOME_MASK) != OUTCOME_MEASURED)
		return 0;
	if (is_flush_data_stage(rq, io.class))
		count_event(io.device, io.class, EVENT_FLUSH_DATA_STAGE);
	__sync_fetch_and_add(&cell->completions, 1);
	record_size(cell, &io);
	record_total(cell, &io);
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * How long each block request waited, how long the device took, and what else happened to it.
 *
 * Two programs: issue (the driver gets the request) and complete (some or all of it is done). Between them the request
 * is remembered in a slot found by device, hardware queue and tag: no hash map, no allocation, nothing that can fill
 * up. The issue only notes the time and the path; whatever else is counted about an I/O is read at its end, when the
 * kernel is about to read the same memory. The third program is the cheaper mode: completion alone, with the kernel's
 * own start time.
 *
 * Nothing here needs CAP_SYS_ADMIN, decides what is exported, or ever resets a counter.
 */
#include "block/device_lookup.bpf.h"
#include "block/slots.bpf.h"
#include "block/cells.bpf.h"
#include "block/commits.bpf.h"
#include "block/attribution.bpf.h"
#include "block/samples.bpf.h"

/*
 * For a request that loses bios before its end: a first part of it has ended, or the driver gave it back and gets it
 * again. What is counted once for the whole request is counted now; the slot remembers that, and the hint. Not inlined,
 * like everything rare. Uses atomic adds: the issue program calls it, too, and a completion may interrupt that.
 */
static __noinline int record_early(struct request *rq, struct issue_slot *slot, struct device_state *state,
				   __u32 device, __u64 now)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq), .now = now};
	struct write_origin origin = {};
	struct device_state *drive;
	struct io_cell *cell;
	__u64 issued;
	__u32 cpu;

	if (!slot || !state || !holds(slot, rq, io.class, now))
		return 0;
	drive = drive_of(state, device);
	if (!drive)
		return 0;
	/* Other requests in the slot have ended unseen, and what was counted early belonged to one of them. */
	if (!holds_only(slot->held, io.class)) {
		free_slot(slot, state, drive, true, io.class, now);
		slot->held = held_by(io.class);
	}
	if (slot->early)
		return 0;
	cpu = bpf_get_smp_processor_id();
	cell = cell_of(&io, cpu);
	if (!cell)
		return 0;
	issued = slot_time(slot->issued, now);
	record_size(true, cell, &io);
	record_queue_time(true, cell, &io, issued);
	if (io.class == CLASS_WRITE)
		record_write(true, rq, device, &state->geometry, cpu, &origin);
	slot->early = SLOT_EARLY | origin.hint;
	if (origin.cell && ((struct bio___write *)rq->bio)->bi_next)
		record_merged(true, rq, &origin);
	return 0;
}

/*
 * An issue that must look into its slot: of a cold class, whose previous request may disturb others until it is known
 * to have ended; of a request that the driver has had before; where tags share slots; on a device that is retiring,
 * where only requests that are held still count.
 */
static __noinline int issue_slow_path(struct request *rq, struct issue_slot *slot, struct device_state *state,
				      __u32 device, __u64 now)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq), .now = now};
	struct device_state *drive;
	struct io_cell *cell;
	bool again;

	if (!slot || !state)
		return 0;
	drive = drive_of(state, device);
	cell = cell_of(&io, bpf_get_smp_processor_id());
	if (!drive || !cell)
		return 0;
	again = was_issued(rq) && holds(slot, rq, io.class, now);
	if (!again && (state->geometry.flags & DEVICE_RETIRING || leaves_out(state, io.class)))
		return 0;
	if (!again) {
		free_slot(slot, state, drive, false, io.class, now);
		slot->held = held_by(io.class);
		interference_started(drive, io.class, now);
	}
	if (io.class >= HOT_CLASSES && again)
		__sync_fetch_and_add(&cell->reissues, 1);
	else if (io.class >= HOT_CLASSES)
		__sync_fetch_and_add(&cell->issues, 1);
	else if (again)
		cell->reissues += 1;
	else
		cell->issues += 1;
	/* With the time of the first issue. Placed near the end, because the verifier follows the code after it very
	 * often. */
	if (again)
		record_early(rq, slot, state, device, now);
	store_issue(slot, rq, io.class, PATH_UNKNOWN, now);
	return 0;
}

static __always_inline int issue(struct request *rq)
{
	struct gendisk *disk = request_disk(rq);
	struct issue_slot *slot;
	struct io_cell *cell;
	__u32 path = PATH_UNKNOWN;
	struct io io;
	bool slow;

	if (!disk || !find_device(&io, rq, disk, true))
		return 0;
	/* A request that was issued earlier may be issued again: its end needs the time of its last issue. */
	if (leaves_out(io.state, io.class) && !was_issued(rq))
		return 0;
	slot = slot_of(&io);
	if (!slot)
		return 0;
	slow = io.class >= HOT_CLASSES || was_issued(rq) ||
	       (io.state->geometry.flags & (SLOTS_EXACT | DEVICE_RETIRING | DEVICE_UNTIMED)) != SLOTS_EXACT;
	/* Before the clock is read: this must not count as device time. */
	if (!slow)
		path = path_at_issue(&io);
	path = forgotten(path, rq->__sector);
	io.now = bpf_ktime_get_ns();
	if (slow)
		return issue_slow_path(rq, slot, io.state, io.device, io.now);
	cell = hot_cell(io.device, bpf_get_smp_processor_id(), io.class);
	if (!cell)
		return 0;
	store_issue(slot, rq, io.class, path, io.now);
	BOUND(io.class, HOT_CLASSES - 1);
	slot->issues[io.class] += 1;
	cell->issues += 1;
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

/* To be called after the bytes were attributed. */
static __always_inline void count_bytes(const struct io *io, struct io_cell *cell, __u32 nr_bytes)
{
	if (io->class < HOT_CLASSES)
		cell->bytes += nr_bytes;
	else
		__sync_fetch_and_add(&cell->bytes, nr_bytes);
}

/* What the completion programs have in common. Returns whether the request has ended as a whole. */
static __always_inline bool take_end(const struct io *io, int error, __u32 nr_bytes)
{
	/* A copy: what the verifier learns about its class here would make it follow all later code again. */
	struct io copy = *io;

	copy.class = forgotten(io->class, io->now);
	error = (int)forgotten((__u32)error, io->now);
	if (error && is_error_of_its_own(io->rq, copy.class))
		count_error(io->state, copy.class, forgotten(status_of(error), io->now));
	if (!is_final_completion(io->rq, nr_bytes))
		return false;
	if (is_commit(io->rq, copy.class)) {
		attribute_commit(&copy);
		record_commit(&copy);
	}
	return true;
}

/*
 * The slot holds something other than this request, or more. Returns SLOT_EARLY and the hint if the request was counted
 * early, 0 if it was not, or SLOT_FOREIGN if its issue was not seen.
 */
#define SLOT_FOREIGN 0x100
static __noinline int take_slot_slow_path(struct request *rq, struct issue_slot *slot, struct device_state *state,
					  __u32 device, __u64 now)
{
	__u32 class = class_of(rq), early;
	struct device_state *drive;
	bool own;

	if (!slot || !state || !slot->held)
		return SLOT_FOREIGN;
	drive = drive_of(state, device);
	if (!drive)
		return SLOT_FOREIGN;
	early = holds_only(slot->held, class) ? slot->early : 0;
	own = holds(slot, rq, class, now);
	/* Where tags share a slot, what is there may still be in flight. */
	if (own || state->geometry.flags & SLOTS_EXACT)
		free_slot(slot, state, drive, own, class, now);
	return forgotten(own ? early : SLOT_FOREIGN, now);
}

/* The end of a read or a write whose issue was left out: what completion alone can see of it. */
static __noinline int complete_untimed(struct request *rq, struct device_state *state, __u32 device, __u32 nr_bytes,
				       __u64 now)
{
	struct io io = {.rq = rq, .state = state, .device = device, .class = class_of(rq), .now = now};
	__u32 cpu = bpf_get_smp_processor_id();
	struct io_cell *cell;

	if (!state || io.class >= HOT_CLASSES)
		return 0;
	cell = hot_cell(device, cpu, io.class);
	if (!cell)
		return 0;
	if (is_flush_data_stage(rq, io.class))
		count_event(state, io.class, EVENT_FLUSH_DATA_STAGE);
	attribute(&io, cpu, PATH_UNKNOWN, nr_bytes, 0);
	cell->bytes += nr_bytes;
	cell->untimed += 1;
	record_size(false, cell, &io);
	record_total(false, cell, &io);
	return 0;
}

static __always_inline int complete(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	struct write_origin origin = {};
	struct device_state *drive;
	struct issue_slot *slot;
	struct io_cell *cell;
	__u32 early = 0, path, cpu;
	__u64 issued;
	struct io io;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	if (!find_device(&io, rq, disk, false))
		return 0;
	slot = slot_of(&io);
	drive = drive_of(io.state, io.device);
	if (!slot || !drive)
		return 0;
	io.now = bpf_ktime_get_ns();
	cpu = bpf_get_smp_processor_id();
	cell = cell_of(&io, cpu);
	if (!cell)
		return 0;
	sample(&io, cpu, error, nr_bytes);
	if (!take_end(&io, error, nr_bytes)) {
		record_early(rq, slot, io.state, io.device, io.now);
		attribute_rarely(&io, 0, nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		return 0;
	}
	if (is_flush_parent(rq, io.class) || (rq->state == MQ_RQ_IDLE && !was_issued(rq))) {
		attribute_rarely(&io, 0, nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		count_event(io.state, io.class, EVENT_UNISSUED);
		return 0;
	}
	path = slot_path(slot->issued);
	issued = slot_time(slot->issued, io.now);
	if (slot->held == held_by(io.class) && last_issue_is_of(slot, rq, io.class, io.now))
		slot->held = 0;
	else
		early = take_slot_slow_path(rq, slot, io.state, io.device, io.now);
	/* Lets the verifier follow the rest only once, whichever path led here; the same below. */
	early = forgotten(early, io.now);
	/* If counted early, the bio seen at the issue is gone with an earlier part: all ones, without a branch. */
	path |= -(__u64)early >> 59;
	if (early & SLOT_FOREIGN) {
		if (!was_never_issued(rq, io.class) && was_left_out(rq, io.state, io.class, io.now)) {
			complete_untimed(rq, io.state, io.device, nr_bytes, io.now);
			return 0;
		}
		attribute_rarely(&io, !was_never_issued(rq, io.class), nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		count_event(io.state, io.class, was_never_issued(rq, io.class) ? EVENT_UNISSUED : EVENT_STRAY);
		return 0;
	}
	if (is_flush_data_stage(rq, io.class))
		count_event(io.state, io.class, EVENT_FLUSH_DATA_STAGE);
	if (is_failover(rq, io.class, error)) {
		if (io.class >= HOT_CLASSES)
			interference_ended(drive, io.class, io.now);
		attribute_rarely(&io, 0, nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		count_event(io.state, io.class, EVENT_FAILOVER);
		return 0;
	}
	if (io.class >= HOT_CLASSES) {
		interference_ended(drive, io.class, io.now);
		attribute_rarely(&io, 1, nr_bytes, (__s64)(io.now - issued));
		__sync_fetch_and_add(&cell->bytes, nr_bytes);
		if (!early) {
			record_size(true, cell, &io);
			record_queue_time(true, cell, &io, issued);
		}
		record_completion(true, cell, &io, 0, 0, issued);
		return 0;
	}
	origin.hint = early & (HINTS - 1);
	if (!early) {
		if (io.class == CLASS_WRITE)
			record_write(false, rq, io.device, &io.state->geometry, cpu, &origin);
		origin.bio_class = forgotten(origin.bio_class, io.now);
		origin.hint = forgotten(origin.hint, io.now);
		record_size(false, cell, &io);
		record_queue_time(false, cell, &io, issued);
	}
	attribute(&io, cpu, path, nr_bytes, (__s64)(io.now - issued));
	cell->bytes += nr_bytes;
	record_completion(false, cell, &io, origin.hint, interference(drive, issued, io.now), issued);
	if (origin.cell && ((struct bio___write *)rq->bio)->bi_next)
		record_merged(false, rq, &origin);
	return 0;
}

/* The cheaper mode: whatever completion alone can see. The size is what the last completion ended. */
static __always_inline int complete_only(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	struct io_cell *cell;
	struct io io;
	__u32 cpu;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	if (!find_device(&io, rq, disk, true))
		return 0;
	io.now = bpf_ktime_get_ns();
	cpu = bpf_get_smp_processor_id();
	if (io.state->sampling.groups)
		sample_apart(rq, io.state, io.device, error, nr_bytes);
	cell = cell_of(&io, cpu);
	if (!cell)
		return 0;
	if (!take_end(&io, error, nr_bytes)) {
		attribute_rarely(&io, 0, nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		return 0;
	}
	/* A failover differs from a flush parent only in that it was issued, which is not seen here. */
	if (was_never_issued(rq, io.class) || is_failover(rq, io.class, error)) {
		attribute_rarely(&io, 0, nr_bytes, 0);
		count_bytes(&io, cell, nr_bytes);
		count_event(io.state, io.class, EVENT_UNISSUED);
		return 0;
	}
	if (is_flush_data_stage(rq, io.class))
		count_event(io.state, io.class, EVENT_FLUSH_DATA_STAGE);
	if (io.class < HOT_CLASSES) {
		attribute(&io, cpu, path_at_end(&io), nr_bytes, 0);
		cell->bytes += nr_bytes;
		cell->completions += 1;
		record_size(false, cell, &io);
		record_total(false, cell, &io);
	} else {
		attribute_rarely(&io, 1, nr_bytes, 0);
		__sync_fetch_and_add(&cell->bytes, nr_bytes);
		__sync_fetch_and_add(&cell->completions, 1);
		record_size(true, cell, &io);
		record_total(true, cell, &io);
	}
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	return issue(rq);
}

/* Linux 5.10 before its stable update that dropped the queue argument (a54895fa057c "block: remove the request_queue
 * argument from request based tracepoints"). */
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue_with_queue, struct request_queue *queue, struct request *rq)
{
	return issue(rq);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	return complete(rq, error, nr_bytes);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete_only, struct request *rq, int error, unsigned int nr_bytes)
{
	return complete_only(rq, error, nr_bytes);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

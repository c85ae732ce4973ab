// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * How long did each block request wait, how long did the device take, and what else happened to it?
 *
 * Two programs: issue (the driver gets the request) and complete (some or all of it is done). Between them the request
 * is remembered in a slot found by device, hardware queue and tag: no hash map, no allocation, nothing that can fill
 * up. The third program is the cheaper mode: completion alone, with the kernel's own start time.
 *
 * Nothing here needs CAP_SYS_ADMIN, decides what is exported, or ever resets a counter.
 */
#include "block/device_lookup.bpf.h"
#include "block/slots.bpf.h"
#include "block/cells.bpf.h"
#include "block/commits.bpf.h"

static __always_inline int issue(struct request *rq)
{
	struct gendisk *disk = request_disk(rq);
	struct queue_entry *queue = queue_of(rq);
	const struct device_geometry *geometry;
	struct device_state *state, *drive;
	struct issue_slot *slot;
	struct io_cell *cell;
	__u32 device, class, cpu;
	bool again = false;
	struct write_origin origin = {};
	__u64 now;

	if (!disk)
		return 0;
	device = device_of(queue, disk, true);
	if (!device--)
		return 0;
	class = cfg_class_of_op[rq->cmd_flags & OPERATION_MASK];
	state = device_state_of(device);
	if (!state)
		return 0;
	geometry = &state->geometry;
	slot = slot_of(rq, queue);
	drive = drive_of(state, device);
	if (!slot || !drive)
		return 0;
	now = bpf_ktime_get_ns();

	if (geometry->flags & DEVICE_RETIRING && slot->request != (__u64)rq)
		return 0;
	if (slot->request)
		again = is_reissue(slot, rq, state, drive, geometry->flags, now);
	if (!again)
		interference_started(drive, class, now);
	cpu = bpf_get_smp_processor_id();
	if (again)
		origin.hint = slot->issued >> SLOT_HINT_SHIFT & SLOT_HINT_MASK;
	else if (class == CLASS_WRITE)
		record_write(rq, device, geometry, cpu, &origin);
	slot->request = (__u64)rq;
	slot->issued = (now << (64 - SLOT_HINT_SHIFT) >> (64 - SLOT_HINT_SHIFT)) |
		       (__u64)origin.hint << SLOT_HINT_SHIFT | (__u64) class << SLOT_CLASS_SHIFT;

	if (class < HOT_CLASSES) {
		cell = hot_cell(device, cpu, class);
		if (!cell)
			return 0;
		if (again)
			cell->reissues += 1;
		else
			record_issue(false, cell, state, rq, device, class, now);
	} else {
		cell = cold_cell(device, class);
		if (!cell)
			return 0;
		if (again)
			__sync_fetch_and_add(&cell->reissues, 1);
		else
			record_issue(true, cell, state, rq, device, class, now);
	}
	if (origin.cell && ((struct bio___write *)rq->bio)->bi_next)
		record_merged(rq, &origin);
	return 0;
}

/* Ended without reaching the driver: the parent of a flush sequence, or a request refused on its way. */
static __always_inline bool was_never_issued(struct request *rq, __u32 class)
{
	return (class < HOT_CLASSES && rq->__data_len == 0) || rq->state == MQ_RQ_IDLE;
}

static __always_inline bool is_flush_data_stage(struct request *rq, __u32 class)
{
	return class == CLASS_WRITE && rq->rq_flags & cfg_flush_sequence_flag;
}

/* The parent of a flush sequence ends with the error that its stage was already counted with. */
static __always_inline bool is_error_of_its_own(struct request *rq, __u32 class)
{
	return rq->__data_len > 0 || class >= HOT_CLASSES;
}

/* nvme_failover_req takes the bios away and ends the request with success and nothing done. */
static __always_inline bool is_failover(struct request *rq, __u32 class, int error)
{
	return !error && rq->__data_len == 0 && !rq->bio && class != CLASS_FLUSH && class < CLASS_ZONE;
}

static __always_inline int complete(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	struct queue_entry *queue = queue_of(rq);
	struct device_state *state, *drive;
	struct issue_slot *slot;
	struct io_cell *cell;
	__u32 device, class, hint;
	__u64 now, issued;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	device = device_of(queue, disk, false);
	if (!device--)
		return 0;
	class = cfg_class_of_op[rq->cmd_flags & OPERATION_MASK];
	state = device_state_of(device);
	if (!state)
		return 0;
	slot = slot_of(rq, queue);
	drive = drive_of(state, device);
	if (!slot || !drive)
		return 0;
	now = bpf_ktime_get_ns();
	if (error && is_error_of_its_own(rq, class))
		count_error(state, class, error);
	cell = class < HOT_CLASSES ? hot_cell(device, bpf_get_smp_processor_id(), class) : cold_cell(device, class);
	if (!cell)
		return 0;
	if (class < HOT_CLASSES)
		cell->bytes += nr_bytes;
	else
		__sync_fetch_and_add(&cell->bytes, nr_bytes);
	if (!is_final_completion(rq, nr_bytes))
		return 0;
	if (is_commit(rq, class))
		record_commit(rq, state, device, class, now);
	if (slot->request != (__u64)rq) {
		count_event(state, class, was_never_issued(rq, class) ? EVENT_UNISSUED : EVENT_STRAY);
		return 0;
	}
	slot->request = 0;
	/* The same request, but an earlier I/O's: neither the end of that one nor the issue of this one was seen. */
	if (slot->issued >> SLOT_CLASS_SHIFT != class) {
		was_missed(slot, state, drive, state->geometry.flags, now);
		count_event(state, class, EVENT_STRAY);
		return 0;
	}
	issued = slot_time(slot->issued, now);
	hint = slot->issued >> SLOT_HINT_SHIFT & SLOT_HINT_MASK;
	if (class >= HOT_CLASSES)
		interference_ended(drive, class, now);
	if (is_flush_data_stage(rq, class))
		count_event(state, class, EVENT_FLUSH_DATA_STAGE);
	if (is_failover(rq, class, error)) {
		count_event(state, class, EVENT_FAILOVER);
		return 0;
	}
	if (class < HOT_CLASSES) {
		record_completion(false, cell, state, rq, device, class, hint, interference(drive, issued, now), issued,
				  now);
	} else {
		record_completion(true, cell, state, rq, device, class, 0, 0, issued, now);
	}
	return 0;
}

/* The cheaper mode: whatever completion alone can see. The size is what the last completion ended. */
static __always_inline void record_only_completion(bool shared, struct io_cell *cell, struct device_state *state,
						   struct request *rq, __u32 device, __u32 class, __u64 now)
{
	__u32 bytes = rq->__data_len;

	ADD(shared, cell->completions, 1);
	ADD(shared, cell->size_sum_bytes, bytes);
	ADD(shared, cell->size[bounded_size_word(bytes)], 1);
	if (!shared && is_sequential(device, class, rq->__sector, bytes))
		cell->sequential_bytes += bytes;
	record_total(shared, cell, state, rq, class, now);
}

static __always_inline int complete_only(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	struct queue_entry *queue = queue_of(rq);
	struct device_state *state;
	struct io_cell *cell;
	__u32 device, class;
	__u64 now;

	if (!disk) {
		count_host(HOST_DISKLESS_REQUESTS);
		return 0;
	}
	device = device_of(queue, disk, true);
	if (!device--)
		return 0;
	class = cfg_class_of_op[rq->cmd_flags & OPERATION_MASK];
	now = bpf_ktime_get_ns();
	state = device_state_of(device);
	cell = class < HOT_CLASSES ? hot_cell(device, bpf_get_smp_processor_id(), class) : cold_cell(device, class);
	if (!state || !cell)
		return 0;
	if (error && is_error_of_its_own(rq, class))
		count_error(state, class, error);
	if (class < HOT_CLASSES)
		cell->bytes += nr_bytes;
	else
		__sync_fetch_and_add(&cell->bytes, nr_bytes);
	if (!is_final_completion(rq, nr_bytes))
		return 0;
	if (is_commit(rq, class))
		record_commit(rq, state, device, class, now);
	/* A failover is told from a flush parent only by whether it was issued, which nobody saw here. */
	if (was_never_issued(rq, class) || is_failover(rq, class, error)) {
		count_event(state, class, EVENT_UNISSUED);
		return 0;
	}
	if (is_flush_data_stage(rq, class))
		count_event(state, class, EVENT_FLUSH_DATA_STAGE);
	if (class < HOT_CLASSES)
		record_only_completion(false, cell, state, rq, device, class, now);
	else
		record_only_completion(true, cell, state, rq, device, class, now);
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

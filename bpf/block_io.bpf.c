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
 * This file has what happens to an ordinary read or write; block/rare.bpf.h has the rest. An ordinary function that
 * returns false has counted nothing.
 *
 * Nothing here needs CAP_SYS_ADMIN, decides what is exported, or ever resets a counter.
 */
#include "block/rare.bpf.h"

static __always_inline bool issue_ordinary(struct request *rq)
{
	struct gendisk *disk = request_disk(rq);
	__u64 queue_id = (__u32)rq->q->id;
	struct queue_entry *queue;
	__u32 operation = rq->cmd_flags & OPERATION_MASK, path, flags, row;
	struct device_state *state;
	struct issue_slot *slot;
	struct hot_cells *hot;
	__u64 device, now;

	if (!disk || queue_id >= QUEUE_IDS || operation >= HOT_CLASSES || was_issued(rq))
		return false;
	ONE_COPY(queue_id);
	queue = &queue_entries[queue_id];
	ONE_COPY(queue);
	device = known_device(queue, disk);
	if (device >= MAX_DEVICES)
		return false;
	ONE_COPY(device);
	state = &device_states[device];
	ONE_COPY(state);
	flags = state->geometry.flags;
	if ((flags & (SLOTS_EXACT | DEVICE_RETIRING | DEVICE_UNTIMED)) != SLOTS_EXACT)
		return flags & DEVICE_UNTIMED; /* then there is nothing to be done */
	slot = slot_of(rq, queue);
	row = queue->cells + bpf_get_smp_processor_id();
	hot = bpf_map_lookup_elem(&hot_cells, &row);
	if (!slot || !hot)
		return false;
	/* Before the clock is read: this must not count as device time. */
	path = path_at_issue(rq, state, operation);
	now = bpf_ktime_get_ns();
	store_issue(slot, rq, operation, path, now);
	slot->issues[operation] += 1;
	hot->of[operation].issues += 1;
	return true;
}

/* One test for all that can be rare about a request at its end: an error, a part of it, a flush or a stage of one, a
 * request that was refused on its way, or one that the kernel did not stamp. */
static __always_inline bool is_ordinary(struct request *rq, int error, __u32 nr_bytes)
{
	__u32 bytes = rq->__data_len;

	return !error && bytes && nr_bytes >= bytes && !(rq->cmd_flags & cfg_request.rare_flags) &&
	       (rq->rq_flags & cfg_request.examined) == cfg_request.when_ordinary && rq->state != MQ_RQ_IDLE &&
	       rq->bio && rq->start_time_ns;
}

/* What the end alone shows of an ordinary read or write. Not inlined: the cheaper mode, and reads and writes whose issue
 * was left out. */
static __noinline int add_end_alone(struct request *rq, __u32 device, __u32 cpu, __u32 path, __u32 total_ns)
{
	__u32 operation = rq->cmd_flags & CLASS_WRITE, bytes = rq->__data_len;
	struct device_state *state = device_state_of(device);
	struct hot_cells *hot = hot_cells_of(device, cpu);
	struct io_cell *cell;

	if (!state || !hot)
		return 0;
	if (operation == CLASS_WRITE && state->sampling.groups)
		sample_write(rq, state, device, bytes);
	if (attributes(state))
		attribute(rq, device, cpu, operation, path, bytes, 0);
	cell = &hot->of[operation];
	cell->bytes += bytes;
	add_size(cell, device, operation, rq->__sector, bytes);
	add_latency(&cell->total_sum_ns, cell->total, total_ns);
	return 0;
}

static __always_inline bool complete_ordinary(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	__u64 queue_id = (__u32)rq->q->id;
	struct queue_entry *queue;
	__u32 operation, path, cpu, hint = 0, during, drive_index, row;
	__u64 device, now, issued, total_ns, full_ns;
	struct device_state *state;
	struct issue_slot *slot;
	struct hot_cells *hot;
	struct io_cell *cell;
	__s64 device_ns;

	if (!disk || queue_id >= QUEUE_IDS || !is_ordinary(rq, error, nr_bytes))
		return false;
	ONE_COPY(queue_id);
	queue = &queue_entries[queue_id];
	ONE_COPY(queue);
	device = known_device(queue, disk);
	if (device >= MAX_DEVICES)
		return false;
	ONE_COPY(device);
	state = &device_states[device];
	ONE_COPY(state);
	drive_index = state->geometry.drive;
	slot = slot_of(rq, queue);
	cpu = bpf_get_smp_processor_id();
	row = queue->cells + cpu;
	hot = bpf_map_lookup_elem(&hot_cells, &row);
	if (!slot || !hot || drive_index >= MAX_DEVICES)
		return false;
	now = bpf_ktime_get_ns();

	operation = rq->cmd_flags & CLASS_WRITE;
	cell = &hot->of[operation];
	ONE_COPY(cell);
	issued = slot->issued;
	device_ns = ns_since(issued, now);
	total_ns = now - rq->start_time_ns;
	if (total_ns >> 32)
		return false;
	if (slot->held != held_by(operation) || slot->request != low_bits(rq) ||
	    issued >> SLOT_CLASS_SHIFT != operation || device_ns <= 0 || (__s64)(total_ns - device_ns) <= 0) {
		if (slot->held || !(state->geometry.flags & DEVICE_UNTIMED) || !total_ns)
			return false;
		add_end_alone(rq, device, cpu, PATH_UNKNOWN, total_ns);
		cell->untimed += 1;
		return true;
	}
	slot->held = 0;

	if (operation == CLASS_WRITE && state->sampling.groups)
		sample_write(rq, state, device, nr_bytes);
	path = slot_path(issued);
	if (operation == CLASS_WRITE)
		hint = add_write(rq, state, device, &row, cpu, path);
	add_size(cell, device, operation, rq->__sector, rq->__data_len);
	add_latency(&cell->queue_sum_ns, cell->queue, total_ns - device_ns);
	if (attributes(state))
		attribute(rq, device, cpu, operation, path, nr_bytes, device_ns);
	cell->bytes += nr_bytes;
	full_ns = queue_full_ns(rq, state, now);
	if (hint)
		record_hinted(device, hint, device_ns);
	during = interference(&device_states[drive_index], now - device_ns, now);
	BOUND(during, DURINGS - 1);
	cell->completions += 1;
	add_latency(&cell->device_sum_ns[during], cell->device[during], device_ns);
	add_latency(&cell->total_sum_ns, cell->total, total_ns);
	if (full_ns)
		cell->queue_full_ns += full_ns;
	return true;
}

/* The cheaper mode: whatever completion alone can see. */
static __always_inline bool complete_only_ordinary(struct request *rq, int error, __u32 nr_bytes)
{
	struct gendisk *disk = request_disk(rq);
	__u64 queue_id = (__u32)rq->q->id;
	struct queue_entry *queue;
	struct device_state *state;
	__u64 device, total_ns;
	struct hot_cells *hot;
	__u32 operation, cpu, path = PATH_UNKNOWN;

	if (!disk || queue_id >= QUEUE_IDS || !is_ordinary(rq, error, nr_bytes))
		return false;
	ONE_COPY(queue_id);
	queue = &queue_entries[queue_id];
	ONE_COPY(queue);
	device = known_device(queue, disk);
	if (device >= MAX_DEVICES)
		return false;
	ONE_COPY(device);
	state = &device_states[device];
	ONE_COPY(state);
	total_ns = bpf_ktime_get_ns() - rq->start_time_ns;
	cpu = bpf_get_smp_processor_id();
	hot = hot_cells_of(device, cpu);
	if (!hot || !total_ns || total_ns >> 32)
		return false;

	operation = rq->cmd_flags & CLASS_WRITE;
	if (attributes(state))
		path = path_of((struct bio___write *)rq->bio, operation);
	add_end_alone(rq, device, cpu, as_unknown(path, total_ns), total_ns);
	hot->of[operation].completions += 1;
	return true;
}

/* The verifier follows a function once for each set of arguments that it distinguishes. */
#define UNKNOWN(argument) as_unknown(argument, rq->__sector)

static __always_inline int issue(struct request *rq)
{
	return issue_ordinary(rq) ? 0 : issue_rare(rq);
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
	return complete_ordinary(rq, error, nr_bytes) ? 0 : complete_rare(rq, error, nr_bytes);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete_only, struct request *rq, int error, unsigned int nr_bytes)
{
	return complete_only_ordinary(rq, error, nr_bytes) ? 0 : complete_only_rare(rq, UNKNOWN(error), UNKNOWN(nr_bytes));
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

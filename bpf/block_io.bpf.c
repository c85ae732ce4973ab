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
 * This file has what happens to an ordinary read or write; block/rare.bpf.h has the rest. The functions *_ordinary()
 * return whether the event is dealt with; if not, they have done nothing.
 *
 * Nothing here needs CAP_SYS_ADMIN, decides what is exported, or ever resets a counter.
 */
#include "block/rare.bpf.h"

static __always_inline bool issue_ordinary(struct request *rq)
{
	__u32 operation = rq->cmd_flags & OPERATION_MASK, path, flags, row, found;
	struct issue_slot *slot;
	struct hot_cells *hot;
	struct target target;
	__u64 now;

	found = find_target(&target, rq);
	if (found != TARGET_FOUND)
		return found == TARGET_EXCLUDED;
	if (operation >= HOT_CLASSES || was_issued(rq))
		return false;
	flags = target.state->geometry.flags;
	if ((flags & (SLOTS_EXACT | DEVICE_RETIRING | DEVICE_UNTIMED)) != SLOTS_EXACT)
		return flags & DEVICE_UNTIMED; /* its issue is left out */
	slot = slot_of(rq, target.queue);
	row = target.device * cfg_cpus + bpf_get_smp_processor_id();
	hot = bpf_map_lookup_elem(&hot_cells, &row);
	if (!slot || !hot)
		return false;
	/* Before the clock is read: this must not count as device time. */
	path = path_at_issue(rq, target.state, operation);
	now = bpf_ktime_get_ns();
	store_issue(slot, rq, operation, path, now);
	slot->issues[operation] += 1;
	hot->of[operation].issues += 1;
	return true;
}

/* Of a request that is a read or a write: REQ_OP_READ is 0 and REQ_OP_WRITE 1, like their classes. */
static __always_inline __u32 hot_class_of(struct request *rq)
{
	return rq->cmd_flags & 1;
}

/* One test for all that can be rare about a request at its end: an error, a part of it, a flush or a stage of one, a
 * request that was refused on its way, or one that the kernel did not stamp. */
static __always_inline bool is_ordinary(struct request *rq, int error, __u32 nr_bytes)
{
	__u32 bytes = rq->__data_len;

	return !error && bytes && nr_bytes == bytes && !(rq->cmd_flags & cfg_request.rare_flags) &&
	       (rq->rq_flags & cfg_request.examined) == cfg_request.when_ordinary && rq->state != MQ_RQ_IDLE &&
	       rq->bio && rq->start_time_ns;
}

/* What the end alone shows of an ordinary read or write. */
static __always_inline void add_end(struct request *rq, const struct target *target, struct io_cell *cell,
				    __u32 operation, __u32 cpu, __u32 path, __u64 total_ns)
{
	__u32 bytes = rq->__data_len;

	if (operation == CLASS_WRITE && target->state->sampling.groups)
		sample_write(rq, target->state, target->device, bytes);
	if (is_attributed(target->state))
		attribute(rq, target->device, cpu, operation, path, bytes, 0);
	cell->bytes += bytes;
	add_size(cell, target->device, operation, rq->__sector, bytes);
	add_latency(&cell->total_sum_ns, cell->total, total_ns);
}

/* The end of an ordinary read or write whose issue was left out. Not inlined: no other end takes this way. */
static __noinline int complete_untimed(struct request *rq, __u32 device, __u32 cpu, __u64 total_ns)
{
	struct target target = {.state = device_state_of(device), .device = device};
	struct hot_cells *hot = hot_cells_of(device, cpu);
	__u32 operation = hot_class_of(rq);

	if (!target.state || !hot)
		return 0;
	add_end(rq, &target, &hot->of[operation], operation, cpu, PATH_UNKNOWN, total_ns);
	hot->of[operation].untimed += 1;
	return 0;
}

static __always_inline bool complete_ordinary(struct request *rq, int error, __u32 nr_bytes)
{
	__u32 operation, path, cpu, hint = 0, during, row, found;
	__u64 now, issued, total_ns, full_ns, drive_index;
	struct device_state *state, *drive;
	struct issue_slot *slot;
	struct hot_cells *hot;
	struct io_cell *cell;
	struct target target;
	__s64 device_ns;

	found = find_target(&target, rq);
	if (found != TARGET_FOUND)
		return found == TARGET_EXCLUDED;
	if (!is_ordinary(rq, error, nr_bytes))
		return false;
	state = target.state;
	drive_index = state->geometry.drive;
	if (drive_index >= MAX_DEVICES)
		return false;
	ONE_COPY(drive_index);
	drive = &device_states[drive_index];
	ONE_COPY(drive); /* now, because Linux 5.10 does not remember the bound of a number on the stack */
	slot = slot_of(rq, target.queue);
	cpu = bpf_get_smp_processor_id();
	row = target.device * cfg_cpus + cpu;
	hot = bpf_map_lookup_elem(&hot_cells, &row);
	if (!slot || !hot)
		return false;
	now = bpf_ktime_get_ns();

	operation = hot_class_of(rq);
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
		complete_untimed(rq, target.device, cpu, total_ns);
		return true;
	}
	slot->held = 0;

	if (operation == CLASS_WRITE && state->sampling.groups)
		sample_write(rq, state, target.device, nr_bytes);
	path = slot_path(issued);
	if (operation == CLASS_WRITE)
		hint = add_write(rq, state, target.device, &row, cpu, path);
	add_size(cell, target.device, operation, rq->__sector, rq->__data_len);
	add_latency(&cell->queue_sum_ns, cell->queue, total_ns - device_ns);
	if (is_attributed(state))
		attribute(rq, target.device, cpu, operation, path, nr_bytes, device_ns);
	cell->bytes += nr_bytes;
	full_ns = queue_full_ns(rq, state, now);
	if (hint)
		record_hinted(target.device, hint, device_ns);
	during = interference(drive, now - device_ns, now);
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
	__u32 operation, cpu, path = PATH_UNKNOWN, found, row;
	struct hot_cells *hot;
	struct io_cell *cell;
	struct target target;
	__u64 total_ns;

	found = find_target(&target, rq);
	if (found != TARGET_FOUND)
		return found == TARGET_EXCLUDED;
	if (!is_ordinary(rq, error, nr_bytes))
		return false;
	total_ns = bpf_ktime_get_ns() - rq->start_time_ns;
	cpu = bpf_get_smp_processor_id();
	row = target.device * cfg_cpus + cpu;
	hot = bpf_map_lookup_elem(&hot_cells, &row);
	if (!hot || !total_ns || total_ns >> 32)
		return false;
	operation = hot_class_of(rq);
	cell = &hot->of[operation];
	ONE_COPY(cell);
	if (is_attributed(target.state))
		path = path_of((struct bio___write *)rq->bio, operation);
	add_end(rq, &target, cell, operation, cpu, as_unknown(path, total_ns), total_ns);
	cell->completions += 1;
	return true;
}

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
	if (complete_only_ordinary(rq, error, nr_bytes))
		return 0;
	/* The verifier follows a function once for each set of arguments that it distinguishes. */
	return complete_only_rare(rq, as_unknown(error, rq->__sector), as_unknown(nr_bytes, rq->__sector));
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

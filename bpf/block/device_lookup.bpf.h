/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the device of a request, and whether it is measured at all.
 *
 * Hot: one array read by queue id, and a comparison with the disk's identity, because queue ids are reused as soon as
 * a disk is gone. Cold, once per queue: looks the disk's name up among those that user space has decided about.
 */
#pragma once

#include "maps.bpf.h"

/*
 * Called where an I/O is the first of its queue. Two CPUs may run it for the same queue at the same time; they write
 * the same values.
 */
static __noinline __u64 adopt_queue(struct gendisk *disk, struct queue_entry *queue, __u64 identity)
{
	__u64 name[DISK_NAME_WORDS] = {}, entry;
	__u32 hash, probe, index, device;
	struct device_state *state;

	if (bpf_probe_read_kernel_str(name, sizeof(name), disk->disk_name) < 0)
		return 0;
	hash = known_disk_hash(name);
	for (probe = 0; probe < KNOWN_DISK_PROBES; probe++) {
		struct known_disk *known;

		index = (hash + probe) & (KNOWN_DISKS - 1);
		known = bpf_map_lookup_elem(&known_disks, &index);
		if (!known)
			break;
		device = *(volatile __u32 *)&known->device;
		if (!device)
			break;
		if (known->name[0] != name[0] || known->name[1] != name[1] || known->name[2] != name[2] ||
		    known->name[3] != name[3])
			continue;
		if (known->identity && known->identity != identity)
			continue;
		/* User space closes an entry before it changes the name: if the device is the same before and after, so
		 * is the disk. */
		if (*(volatile __u32 *)&known->device != device)
			break;
		entry = (identity & QUEUE_ENTRY_IDENTITY_MASK) << QUEUE_ENTRY_DEVICE_BITS | (device & 0xffff);
		/* User space wrote the geometry before it named the device. */
		state = device_state_of(device - 1);
		if (state) {
			*(volatile __u32 *)&queue->slot_base = state->geometry.slot_base;
			*(volatile __u32 *)&queue->slot_mask = state->geometry.slot_mask;
			*(volatile __u32 *)&queue->slot_stride = state->geometry.slot_stride;
		}
		*(volatile __u64 *)&queue->disk = entry;
		return entry;
	}
	count_host(HOST_DEVICE_PENDING);
	return 0;
}

/* What is remembered about the request's queue; NULL if its id is beyond the table. */
static __always_inline struct queue_entry *queue_of(struct request *rq)
{
	__u64 queue_id = (__u32)rq->q->id;

	if (queue_id >= QUEUE_IDS)
		return NULL;
	ONE_COPY(queue_id);
	return &queue_entries[queue_id];
}

/* The measured device of a request, as an ordinary I/O finds it: only where its queue is known already. */
struct target {
	const struct queue_entry *queue;
	struct device_state *state;
	__u64 device;
};
#define TARGET_FOUND 0
#define TARGET_EXCLUDED 1 /* not measured */
#define TARGET_UNKNOWN 2  /* nothing is decided yet, or there is no room: see find_device() */

static __always_inline __u32 find_target(struct target *target, struct request *rq)
{
	struct request_queue *queue = rq->q;
	struct gendisk *disk;
	__u64 queue_id;

	ONE_COPY(queue);
	disk = request_disk(rq, queue);
	queue_id = (__u32)queue->id;
	if (!disk || queue_id >= QUEUE_IDS)
		return TARGET_UNKNOWN;
	ONE_COPY(queue_id);
	target->queue = &queue_entries[queue_id];
	ONE_COPY(target->queue);
	/* Of an empty entry or another disk's, high bits are left. */
	target->device = target->queue->disk - (disk_identity(disk) << QUEUE_ENTRY_DEVICE_BITS) - 1;
	if (target->device >= MAX_DEVICES)
		return target->device == DEVICE_EXCLUDED - 1 ? TARGET_EXCLUDED : TARGET_UNKNOWN;
	ONE_COPY(target->device);
	target->state = &device_states[target->device];
	ONE_COPY(target->state);
	return TARGET_FOUND;
}

/* What the programs for rare cases know about the request of their tracepoint. */
struct io {
	struct request *rq;
	struct queue_entry *queue;
	struct device_state *state;
	__u32 device;
	__u32 class;
	__u64 now;
};

static __always_inline __u32 class_of(struct request *rq)
{
	return cfg_class_of_op[rq->cmd_flags & OPERATION_MASK];
}

/* Index of the measured device + 1, or 0. */
static __always_inline __u32 device_of(struct queue_entry *queue, struct gendisk *disk, bool adopt)
{
	__u64 entry, identity;
	__u32 device;

	if (!queue) {
		if (adopt)
			count_host(HOST_QUEUE_ID_RANGE);
		return 0;
	}
	entry = queue->disk;
	identity = disk_identity(disk);
	if (entry >> QUEUE_ENTRY_DEVICE_BITS != (identity & QUEUE_ENTRY_IDENTITY_MASK) || !entry) {
		if (!adopt)
			return 0;
		entry = adopt_queue(disk, queue, identity);
	}
	device = entry & 0xffff;
	if (device < DEVICE_WITHOUT_ROW)
		return device;
	if (device == DEVICE_WITHOUT_ROW && adopt)
		count_host(HOST_DEVICE_TABLE_FULL);
	return 0;
}

/* Whether the request belongs to a measured device; `io` then holds everything but the time. */
static __always_inline bool find_device(struct io *io, struct request *rq, struct gendisk *disk, bool adopt)
{
	__u32 device;

	io->rq = rq;
	io->queue = queue_of(rq);
	device = device_of(io->queue, disk, adopt);
	if (!device--)
		return false;
	io->device = device;
	io->class = class_of(rq);
	io->state = device_state_of(device);
	return io->state;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps in which the block programs keep what they count.
 *
 * Every map is an mmapable array: the verifier inlines lookups, and user space reads and writes without a system call
 * and therefore without a capability. User space sets the sizes before the load, except for the queues; the arithmetic
 * is in daemon/block/kernel_memory.h.
 */
#pragma once

#include "../kernel/request.bpf.h"
#include "../abi/block_abi.h"

const volatile __u32 cfg_cpus = 1; /* possible ones, for which the tables are sized */
/* Operation class of each request op code, from the kernel's enum req_op (req_opf until 5.x). */
const volatile __u8 cfg_class_of_op[OPERATION_MASK + 1] = {};

#define ARRAY_MAP(map_name, value_type)                                                                                \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                      \
		__uint(map_flags, BPF_F_MMAPABLE);                                                                     \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} map_name SEC(".maps")

ARRAY_MAP(known_disks, struct known_disk);	   /* [hash of the name] */
ARRAY_MAP(issue_slots, struct issue_slot);	   /* [slot_base + ...] */
ARRAY_MAP(hot_cells, struct hot_cells);		   /* [device][CPU] */
ARRAY_MAP(cold_cells, struct io_cell);		   /* [device][flush ... passthrough] */
ARRAY_MAP(write_cells, struct write_cell);	   /* [device][CPU] */
ARRAY_MAP(tagged_cells, struct tagged_cell);	   /* [device][some CPUs] */
ARRAY_MAP(commit_cells, struct commit_cell);	   /* [device][CPU, or some CPUs] */
ARRAY_MAP(end_functions, struct end_function_set); /* [hash of the address] */
ARRAY_MAP(streams, struct stream_ends);		   /* [device] */
ARRAY_MAP(rare_events, struct device_events);	   /* [device] */
ARRAY_MAP(host_states, struct host_state);	   /* [0] */

/*
 * Every I/O waits for these two tables, one after the other. Both are of a fixed size, and an element is found by
 * arithmetic: a lookup would pass the key through memory.
 */
struct queue_entry queue_entries[QUEUE_IDS];	/* [queue id] */
struct device_state device_states[MAX_DEVICES]; /* [device] */

static __always_inline struct device_state *device_state_of(__u32 device)
{
	__u64 index = device;

	if (index >= MAX_DEVICES)
		return NULL;
	ONE_COPY(index);
	return &device_states[index];
}

static __always_inline void count_host(__u32 counter)
{
	__u32 zero = 0;
	struct host_state *host = bpf_map_lookup_elem(&host_states, &zero);

	if (host && counter < HOST_COUNTERS)
		__sync_fetch_and_add(&host->count[counter], 1);
}

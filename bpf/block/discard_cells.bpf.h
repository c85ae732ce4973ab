/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the cell of a submitted discard and adds to it.
 *
 * Not the hot path: discards are few and large, so calls of helpers are fine here.
 */
#pragma once

#include "../kernel/request.bpf.h"
#include "../abi/discard_abi.h"
#include "device_rows.bpf.h"

#define SECTOR_SHIFT 9
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h, since 2.6.35 */
#define FITRIM 0xc0185879     /* include/uapi/linux/fs.h */
#ifdef __TARGET_ARCH_x86
#define NR_IOCTL 16
#else
#define NR_IOCTL 29
#endif
#define BLKDEV_DISCARD_SECURE 1 /* include/linux/blkdev.h, until 5.19 */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DEVICE_ROW_ENTRIES);
	__type(key, __u32);
	__type(value, __u64);
} discard_volumes SEC(".maps"); /* [hash of the device number] */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct discard_cell);
} discard_cells SEC(".maps"); /* [row][submitter] */

/* Row of the volume + 1, or 0. */
static __noinline __u32 discard_row_of(__u32 device)
{
	return device_row(&discard_volumes, device);
}

struct submitter_name {
	__u64 words[SUBMITTER_NAME_LEN / 8];
};

/* Does the name begin with `text`, a literal of at most 15 characters? (`whole`: and end there?) */
static __always_inline bool name_is(const struct submitter_name *name, const char *text, __u32 length, bool whole)
{
	const char *have = (const char *)name->words;
	__u32 i;

#pragma unroll
	for (i = 0; i < length; i++) {
		if (have[i] != text[i])
			return false;
	}
	return !whole || !have[length];
}
#define NAME_IS(name, text) name_is(name, text, sizeof(text) - 1, true)
#define NAME_BEGINS(name, text) name_is(name, text, sizeof(text) - 1, false)

#define NO_IOCTL 0
#define UNKNOWN_IOCTL 0xffffffff /* before Linux 5.15 */

/* The ioctl that the task is in. */
static __always_inline __u32 ioctl_of_task(void)
{
	struct pt_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return UNKNOWN_IOCTL;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
#ifdef __TARGET_ARCH_x86
	return BPF_CORE_READ(regs, orig_ax) == NR_IOCTL ? (__u32)BPF_CORE_READ(regs, si) : NO_IOCTL;
#else
	return BPF_CORE_READ(regs, syscallno) == NR_IOCTL ? (__u32)BPF_CORE_READ(regs, regs[1]) : NO_IOCTL;
#endif
}

static __always_inline __u32 submitter_of(const struct submitter_name *name)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 ioctl;

	/* bpf_get_current_task_btf came with 5.11. */
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return SUBMITTER_KERNEL;
	/* A program chooses its name, and what it deletes may be discarded in its context: then it is in another call.
	 */
	ioctl = ioctl_of_task();
	if (ioctl == FITRIM || (ioctl == UNKNOWN_IOCTL && NAME_IS(name, "fstrim")))
		return SUBMITTER_FSTRIM;
	if (ioctl != NO_IOCTL && NAME_IS(name, "blkdiscard"))
		return SUBMITTER_BLKDISCARD;
	/* mkfs.ext4 is mke2fs, mkfs.xfs, mkfs.btrfs, ... */
	if (NAME_BEGINS(name, "mkfs") || NAME_IS(name, "mke2fs") || NAME_IS(name, "mkswap") || NAME_IS(name, "mkntfs"))
		return SUBMITTER_MKFS;
	return SUBMITTER_OTHER;
}

/* Discards of a partition without a row count for its disk: it may be newer than user space's last update. */
static __always_inline void count_discard(struct gendisk *disk, __u32 device, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns();
	struct submitter_name name;
	struct discard_cell *cell;
	__u32 row, key;

	row = discard_row_of(device);
	if (!row && disk)
		row = discard_row_of(disk_number(disk));
	if (!row)
		return;
	bpf_get_current_comm(&name, sizeof(name));
	key = (row - 1) * SUBMITTERS + submitter_of(&name);
	cell = bpf_map_lookup_elem(&discard_cells, &key);
	if (!cell)
		return;
	/* If two CPUs both find silence, both set the time of a first submission. Another CPU's time may be later. */
	if ((__s64)(now - cell->last_ns) > (__s64)DISCARD_SILENCE_NS)
		cell->first_ns = now;
	cell->last_ns = now;
	__builtin_memcpy(cell->name, &name, sizeof(name));
	__sync_fetch_and_add(&cell->ranges, 1);
	__sync_fetch_and_add(&cell->bytes, bytes);
}

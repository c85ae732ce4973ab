/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which cell does a submitted discard count in, and what is added there?
 *
 * Not the hot path: discards are few and large, helpers are fine here. known_disks is the map that user space fills
 * for the block programs, reused.
 */
#pragma once

#include "../kernel/request.bpf.h"
#include "../abi/block_abi.h"
#include "../abi/discard_abi.h"

#define SECTOR_SHIFT 9
#define PF_KTHREAD 0x00200000	/* include/linux/sched.h, since 2.6.35 */
#define BLKDEV_DISCARD_SECURE 1 /* include/linux/blkdev.h, until 5.19 */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KNOWN_DISKS);
	__type(key, __u32);
	__type(value, struct known_disk);
} known_disks SEC(".maps"); /* [hash of the name] */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct discard_cell);
} discard_cells SEC(".maps"); /* [place][submitter] */

/* Place of the disk + 1, or 0. */
static __noinline __u32 discard_place_of(struct gendisk *disk)
{
	__u64 name[DISK_NAME_WORDS] = {}, identity;
	__u32 hash, probe;

	if (bpf_probe_read_kernel_str(name, sizeof(name), disk->disk_name) < 0)
		return 0;
	identity = disk_identity(disk);
	hash = known_disk_hash(name);
	for (probe = 0; probe < KNOWN_DISK_PROBES; probe++) {
		__u32 index = (hash + probe) & (KNOWN_DISKS - 1), device, place;
		struct known_disk *known = bpf_map_lookup_elem(&known_disks, &index);

		if (!known)
			break;
		device = *(volatile __u32 *)&known->device;
		if (!device)
			break;
		if (known->name[0] != name[0] || known->name[1] != name[1] || known->name[2] != name[2] ||
		    known->name[3] != name[3] || (known->identity && known->identity != identity))
			continue;
		place = *(volatile __u32 *)&known->discard_place;
		/* As in adopt_queue: an entry is closed while it changes. */
		return *(volatile __u32 *)&known->device == device ? place : 0;
	}
	return 0;
}

struct submitter_name {
	__u64 words[SUBMITTER_NAME_LEN / 8];
};

/* Does the name begin with `text`, a literal of at most 8 characters? (`whole`: and ends there.) */
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

static __always_inline __u32 submitter_of(const struct submitter_name *name)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	/* bpf_get_current_task_btf came with 5.11. */
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return SUBMITTER_KERNEL;
	if (NAME_IS(name, "fstrim"))
		return SUBMITTER_FSTRIM;
	if (NAME_IS(name, "blkdiscard"))
		return SUBMITTER_BLKDISCARD;
	/* mkfs.ext4 is mke2fs, mkfs.xfs, mkfs.btrfs, ... */
	if (NAME_BEGINS(name, "mkfs") || NAME_IS(name, "mke2fs") || NAME_IS(name, "mkswap") || NAME_IS(name, "mkntfs"))
		return SUBMITTER_MKFS;
	return SUBMITTER_OTHER;
}

static __always_inline void count_discard(struct gendisk *disk, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns();
	struct submitter_name name;
	struct discard_cell *cell;
	__u32 place, key;

	if (!disk)
		return;
	place = discard_place_of(disk);
	if (!place)
		return;
	bpf_get_current_comm(&name, sizeof(name));
	key = (place - 1) * SUBMITTERS + submitter_of(&name);
	cell = bpf_map_lookup_elem(&discard_cells, &key);
	if (!cell)
		return;
	/* Two CPUs may both find silence: both then have the time of a first submission. Another's may be later. */
	if ((__s64)(now - cell->last_ns) > (__s64)DISCARD_SILENCE_NS)
		cell->first_ns = now;
	cell->last_ns = now;
	__builtin_memcpy(cell->name, &name, sizeof(name));
	__sync_fetch_and_add(&cell->ranges, 1);
	__sync_fetch_and_add(&cell->bytes, bytes);
}

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Which file systems are frozen, and by whom: fsfreeze, a guest agent's backup, a snapshot.
 *
 * Whoever writes to a frozen file system sleeps, and the kernel counts that nowhere: it is no I/O, and not in the
 * pressure. Every freeze and thaw passes through these two functions except the emergency thaw of SysRq. They have got
 * more arguments over the years; the first one has stayed. They are called a few times a day, so helpers are fine here.
 */
#include "kernel/verifier.bpf.h"
#include "abi/freeze_abi.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes: 128 changes a second */
} freezes SEC(".maps");

__u64 freezes_lost = 0; /* that found no room */

static __always_inline int send(struct super_block *sb, bool frozen)
{
	struct freeze_event event = { .device = sb->s_dev, .frozen = frozen };

	bpf_get_current_comm(event.name, sizeof(event.name));
	if (bpf_ringbuf_output(&freezes, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&freezes_lost, 1);
	return 0;
}

/* SB_UNFROZEN is 0 (include/linux/fs.h). The field has had two sizes: an int, and since Linux 6.6 an unsigned short. */
static __always_inline bool is_frozen(struct super_block *sb)
{
	return BPF_CORE_READ_BITFIELD(sb, s_writers.frozen) != 0;
}

/* It can take long, as it waits for all that is being written, and new writers wait for it from the beginning. */
SEC("fentry/freeze_super")
int BPF_PROG(on_freeze, struct super_block *sb)
{
	return send(sb, true);
}

/* It may have been refused. */
SEC("fexit/freeze_super")
int BPF_PROG(on_frozen, struct super_block *sb)
{
	return send(sb, is_frozen(sb));
}

/* It may have been refused, or somebody else may keep it frozen, too. */
SEC("fexit/thaw_super")
int BPF_PROG(on_thawed, struct super_block *sb)
{
	return send(sb, is_frozen(sb));
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

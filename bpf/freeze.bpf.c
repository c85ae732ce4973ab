// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Which file systems are frozen, and by whom: fsfreeze, a guest agent's backup, a snapshot.
 *
 * Whoever writes to a frozen file system sleeps, and the kernel counts that nowhere: it is no I/O, and not in the
 * pressure. Every freeze and thaw passes through these functions; thaws by the kernel itself and by SysRq bypass
 * thaw_super, which compilers expand in place. The functions have got more arguments over the years; the first one has
 * stayed. They are called a few times a day, so helpers are fine here.
 *
 * The programs are attached in this order: thaws first, so that no thaw is missed of a freeze that was seen.
 */
#include "kernel/verifier.bpf.h"
#include "abi/freeze_abi.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes: about a hundred changes a second */
} freezes SEC(".maps");

__u64 freezes_lost = 0; /* that found no room */

/*
 * The call may have been refused, or others may keep it frozen, too: only the state counts. A file system without
 * freeze_fs cannot be frozen by a user, but anybody may try to thaw one of his own, as often as he likes.
 */
static __always_inline int send_state(struct super_block *sb, bool by_thaw)
{
	struct freeze_event event = {.device = sb->s_dev, .by_thaw = by_thaw};

	if (!sb->s_op->freeze_fs)
		return 0;
	/* SB_UNFROZEN is 0 (include/linux/fs.h). The field was an int, and is an unsigned short since Linux 6.6. */
	event.frozen = BPF_CORE_READ_BITFIELD(sb, s_writers.frozen) != 0;
	bpf_get_current_comm(event.name, sizeof(event.name));
	if (bpf_ringbuf_output(&freezes, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&freezes_lost, 1);
	return 0;
}

SEC("fexit/thaw_super_locked")
int BPF_PROG(on_thawed, struct super_block *sb)
{
	return send_state(sb, true);
}

SEC("fexit/freeze_super")
int BPF_PROG(on_frozen, struct super_block *sb)
{
	return send_state(sb, false);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

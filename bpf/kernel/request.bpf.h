/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a request, on every kernel.
 *
 * Accessors that hide the differences between kernels 5.10 and 7.x. What only user space can find out (values of
 * anonymous enums and macros) arrives as cfg_* constants, set from the kernel's BTF before the programs are loaded.
 */
#pragma once

#include "verifier.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* rq_flags bit of a request that is a stage of a flush sequence. */
const volatile __u32 cfg_flush_sequence_flag = 1U << 4;
/* rq_flags bit that is set if start_time_ns is fresh; 0 where a stale start_time_ns is zero. */
const volatile __u32 cfg_stamped_flag = 0;

/* What tells an ordinary read or write from other requests; set by user space like the others. */
const volatile struct {
	__u32 rare_flags;    /* of cmd_flags: operations other than REQ_OP_READ (0) and REQ_OP_WRITE (1), and REQ_FUA */
	__u32 examined;	     /* of rq_flags: both of the above */
	__u32 when_ordinary; /* their value: stamped, and no stage of a flush sequence */
} cfg_request = {};

#define OPERATION_MASK 0xff /* REQ_OP_BITS is 8 on every kernel since 4.10 */

/* `queue`: that of the request. Each load in a branch of its own: merged, they cost additions of offsets. */
static __always_inline struct gendisk *request_disk(struct request *rq, struct request_queue *queue)
{
	struct gendisk *disk;

	if (bpf_core_field_exists(((struct request___until_5_16 *)rq)->rq_disk)) {
		disk = ((struct request___until_5_16 *)rq)->rq_disk;
		ONE_COPY(disk);
	} else {
		disk = ((struct request_queue___since_5_15 *)queue)->disk;
		ONE_COPY(disk);
	}
	return disk;
}

/* The device number as in block_device.bd_dev (MINORBITS in include/linux/kdev_t.h). */
static __always_inline __u32 disk_number(struct gendisk *disk)
{
	return (__u32)disk->major << 20 | (__u32)disk->first_minor;
}

/* Distinguishes one incarnation of a disk from the next or, without diskseq, at least from other disks. */
static __always_inline __u64 disk_identity(struct gendisk *disk)
{
	if (bpf_core_field_exists(((struct gendisk___since_5_15 *)disk)->diskseq))
		return ((struct gendisk___since_5_15 *)disk)->diskseq;
	return disk_number(disk);
}

/*
 * Tag that stays with the request for its whole life: the scheduler's where there is one (the driver's changes when a
 * request is requeued), else the driver's.
 */
static __always_inline __u32 request_tag(struct request *rq)
{
	int internal_tag = rq->internal_tag;

	return (__u32)(internal_tag >= 0 ? internal_tag : rq->tag);
}

/* start_time_ns, or 0 where the kernel did not stamp this request. Flush requests are stamped without the flag. */
static __always_inline __u64 request_start_ns(struct request *rq, bool is_flush)
{
	if (cfg_stamped_flag && !is_flush && !(rq->rq_flags & cfg_stamped_flag))
		return 0;
	return rq->start_time_ns;
}

static __always_inline bool has_waiters(struct blk_mq_tags *tags)
{
	if (!tags)
		return false;
	if (bpf_core_field_exists(tags->bitmap_tags.ws_active))
		return tags->bitmap_tags.ws_active.counter > 0;
	if (bpf_core_field_exists(((struct blk_mq_tags___until_5_15 *)tags)->bitmap_tags))
		return ((struct blk_mq_tags___until_5_15 *)tags)->bitmap_tags->ws_active.counter > 0;
	return false;
}

/*
 * Whether a request waits for a tag of this request's hardware queue: it is at full depth. Under a scheduler,
 * submitters wait for the scheduler's tags; waits for the driver's own leave no trace where the tag set has one user.
 */
static __always_inline bool tags_exhausted(struct request *rq)
{
	struct blk_mq_hw_ctx *hctx = rq->mq_hctx;

	return has_waiters(hctx->tags) || (rq->internal_tag >= 0 && has_waiters(hctx->sched_tags));
}

/*
 * Whether the driver has had this request before. Its allocation clears the deadline, and each start sets it after the
 * issue tracepoint (blk_mq_rq_ctx_init() and blk_mq_start_request() in block/blk-mq.c; a flush request is cleared as a
 * whole by blk_rq_init()). True where this cannot be determined: then no issue is ordinary.
 */
static __always_inline bool was_issued(struct request *rq)
{
	return !bpf_core_field_exists(rq->deadline) || rq->deadline;
}

/* Whether the whole request ends with this call: nr_bytes is what ends now, __data_len what was left. */
static __always_inline bool is_final_completion(struct request *rq, __u32 nr_bytes)
{
	return nr_bytes >= rq->__data_len;
}

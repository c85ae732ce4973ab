/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pieces of the kernel's own structures that we touch.
 *
 * Hand-written partial declarations: CO-RE finds the fields of the running kernel by name. A field that only some
 * kernels have lives in a flavour named for the version that has it; when that version is no longer supported, its
 * flavour can go. Fields are read by plain dereference (tp_btf gives typed pointers), which costs a load and no
 * helper.
 */
#pragma once

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h: the enumerators that we need, values are kernel ABI. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_RB_NO_WAKEUP = 1,
};

/* Whether the running kernel has a helper. */
enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175, /* since Linux 5.15 */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
};

/* since Linux 5.15 (cf179948554a "block: add disk sequence number") */
struct gendisk___since_5_15 {
	__u64 diskseq;
};

struct sbitmap_queue {
	atomic_t ws_active;
};

struct blk_mq_tags {
	struct sbitmap_queue bitmap_tags;
};

/* until Linux 5.15: the tags are behind a pointer (ae0f1a732f4a "blk-mq: Stop using pointers for blk_mq_tags...") */
struct blk_mq_tags___until_5_15 {
	struct sbitmap_queue *bitmap_tags;
};

struct blk_mq_hw_ctx {
	unsigned int queue_num;
	struct blk_mq_tags *tags;
	struct blk_mq_tags *sched_tags;
};

struct request_queue {
	int id;
};

/* since Linux 5.15 (d152c682f03c "block: add an explicit ->disk backpointer to the request_queue") */
struct request_queue___since_5_15 {
	struct gendisk *disk;
};

enum mq_rq_state {
	MQ_RQ_IDLE = 0,
};

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
};

struct sb_writers {
	int frozen;
};

struct super_operations {
	void *freeze_fs;
};

struct super_block {
	__u32 s_dev;
	const struct super_operations *s_op;
	struct sb_writers s_writers;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	__u8 bi_status;
	atomic_t __bi_remaining; /* more than 1: pieces were split off, and have not ended */
	struct bvec_iter bi_iter;
	void (*bi_end_io)(struct bio *bio);
};

/* until Linux 5.12: a bio knows its disk (309dca309fc3 "block: store a block_device pointer in struct bio") */
struct bio___until_5_12 {
	struct gendisk *bi_disk;
};

struct task_struct {
	unsigned int flags;
};

/* What a task had in its registers when it entered the kernel. */
struct pt_regs {
#ifdef __TARGET_ARCH_x86
	unsigned long si;
	unsigned long orig_ax;
#else
	__u64 regs[31];
	int syscallno;
#endif
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	unsigned int cmd_flags;
	unsigned int rq_flags;
	int tag;
	int internal_tag;
	unsigned int __data_len;
	unsigned short nr_phys_segments; /* of a discard: the number of its ranges */
	__u64 __sector;
	struct bio *bio;
	__u64 start_time_ns;
	enum mq_rq_state state;
	unsigned long deadline;
};

/* until Linux 5.16 (f3fa33acca9f "block: remove the ->rq_disk field in struct request") */
struct request___until_5_16 {
	struct gendisk *rq_disk;
};

#pragma clang attribute pop

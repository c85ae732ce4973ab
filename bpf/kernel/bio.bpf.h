/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a bio's hint, stream and first page, on every kernel.
 *
 * All by plain dereference. Where a kernel lacks a field, the accessor notices at load time, and the branch is dropped.
 */
#pragma once

#include "verifier.bpf.h"
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The hint in struct inode and struct bio was an integer until Linux 6.9 (449813515d3e "block, fs: Restore the
 * per-bio/request data lifetime fields"), and CO-RE finds a field only as the kind that it is. */
enum rw_hint {
	WRITE_LIFE_EXTREME = 5,
} __attribute__((packed)); /* one byte, as in the kernel: libbpf does not widen the load of an enum */

struct inode {
	__u16 i_mode;
	__u8 i_write_hint;
};

struct inode___since_6_9 {
	enum rw_hint i_write_hint;
};

struct address_space {
	struct inode *host;
};

struct list_head {
	struct list_head *next;
};

struct page {
	unsigned long flags;
	struct list_head lru;	     /* its first word is compound_head in a tail page */
	unsigned long compound_head; /* address of the head + 1; until 7.0 */
	struct address_space *mapping;
};

struct memdesc_flags___since_6_18 {
	unsigned long f;
};

/* since Linux 6.18 (53fbef56e07d "mm: introduce memdesc_flags_t") */
struct page___since_6_18 {
	struct memdesc_flags___since_6_18 flags;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter___write {
	__u64 bi_sector;
	unsigned int bi_size;
};

struct bio___write {
	struct bio___write *bi_next;
	unsigned int bi_opf;
	struct bvec_iter___write bi_iter;
	struct bio_vec *bi_io_vec;
	void (*bi_end_io)(struct bio *bio);
	void *bi_private;
	struct blkcg_gq *bi_blkg; /* absent without CONFIG_BLK_CGROUP */
};

struct buffer_head {
	void (*b_end_io)(struct buffer_head *buffer, int uptodate); /* until 7.x */
};

/* Since Linux 5.5 (67c0496e87d1 "kernfs: convert kernfs_node->id from union kernfs_node_id to u64"). */
struct kernfs_node {
	const char *name;
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	__u64 serial_nr;
	struct cgroup_subsys_state *parent;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct request___write {
	struct bio___write *biotail;
};

/* until Linux 5.16 (c75e707fe1aa "block: remove the per-bio/request write hint") */
struct bio___until_5_16 {
	__u16 bi_write_hint;
};

struct bio___since_6_9 {
	enum rw_hint bi_write_hint;
};

/* since Linux 6.16 (5006f85ea23e "block: introduce a write_stream field in struct bio") */
struct bio___since_6_16 {
	__u8 bi_write_stream;
};

enum pageflags {
	PG_writeback,
	PG_swapbacked,
};

enum req_flag_bits {
	__REQ_SYNC,
	__REQ_META,
	__REQ_PRIO,
	__REQ_IDLE,
	__REQ_FUA,
	__REQ_PREFLUSH,
	__REQ_SWAP,
	__REQ_NOUNMAP,
};

#pragma clang attribute pop

#define REQUEST_FLAG(name) (1U << bpf_core_enum_value(enum req_flag_bits, name))

static __always_inline __u64 page_flags(struct page *page)
{
	if (bpf_core_field_exists(((struct page___since_6_18 *)page)->flags.f))
		return ((struct page___since_6_18 *)page)->flags.f;
	return page->flags;
}

/* Since Linux 6.2 (a35b9af4ec2c "bpf: Add a kfunc for generic type cast"); the verifier turns it into a move. */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __weak __ksym;
const volatile bool cfg_has_cast = false;

#define CAST(address, type) ((type *)bpf_rdonly_cast((void *)(address), bpf_core_type_id_kernel(type)))

/*
 * The page that has the flags and the mapping: for a larger page, its head. NULL where finding it is not worth the
 * price of a helper: before Linux 6.2, when larger pages were few, and since 7.0, when compound_info became a mask.
 */
static __always_inline struct page *page_head(struct page *page)
{
	if (!(low_bits(page->lru.next) & 1))
		return page;
	if (!cfg_has_cast || !bpf_core_field_exists(page->compound_head))
		return NULL;
	return bpf_rdonly_cast((char *)page->lru.next - 1, bpf_core_type_id_kernel(struct page));
}

static __always_inline bool has_page_flag(__u64 flags, __u64 bit)
{
	return flags >> bit & 1;
}

static __always_inline __u32 inode_hint(struct inode *inode)
{
	if (bpf_core_field_exists(((struct inode___since_6_9 *)inode)->i_write_hint))
		return ((struct inode___since_6_9 *)inode)->i_write_hint;
	return inode->i_write_hint;
}

static __always_inline bool bio_has_hint(struct bio___write *bio)
{
	return bpf_core_field_exists(((struct bio___since_6_9 *)bio)->bi_write_hint) ||
	       bpf_core_field_exists(((struct bio___until_5_16 *)bio)->bi_write_hint);
}

static __always_inline __u32 bio_hint(struct bio___write *bio)
{
	if (bpf_core_field_exists(((struct bio___since_6_9 *)bio)->bi_write_hint))
		return ((struct bio___since_6_9 *)bio)->bi_write_hint;
	if (bpf_core_field_exists(((struct bio___until_5_16 *)bio)->bi_write_hint))
		return ((struct bio___until_5_16 *)bio)->bi_write_hint;
	return 0;
}

static __always_inline __u32 bio_stream(struct bio___write *bio)
{
	if (bpf_core_field_exists(((struct bio___since_6_16 *)bio)->bi_write_stream))
		return ((struct bio___since_6_16 *)bio)->bi_write_stream;
	return 0;
}

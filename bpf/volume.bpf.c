// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * How long the bios of a device take: of volumes, which have no requests, and of what lies below them.
 *
 * The kernel's own account of volumes counts in jiffies, and a bio carries no time of its own on newer kernels. So a
 * bio is remembered by its address, from the tracepoint where it is submitted to the one where it ends, alone or with
 * its request. Each bio passes the first once, also if its driver submits what is left of it again; the parts that were
 * split off pass only the second, and are in no slot. Every bio of the host passes both: the programs are attached only
 * where there are volumes.
 *
 * A bio that was remapped (by md's linear and raid0 before Linux 5.14, by a multipath head) ends on another device than
 * it was submitted to. So the end does not look at the device.
 */
#include "kernel/request.bpf.h"
#include "block/device_rows.bpf.h"
#include "abi/volume_abi.h"

#define CLASS_FLUSH 2 /* as in abi/block_abi.h */

const volatile __u8 cfg_class_of_op[256] = {};
const volatile __u32 cfg_preflush = 0;	  /* REQ_PREFLUSH */
const volatile __u32 cfg_silent_end = 1;  /* bi_end_io of bios whose end the kernel does not report, its low half */
const volatile __u32 cfg_set_mask = 0;	  /* sets of bio_sets - 1; a power of two - 1 */
const volatile __u32 cfg_stripe_mask = 0; /* groups of CPUs - 1 */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DEVICE_ROW_ENTRIES);
	__type(key, __u32);
	__type(value, __u64);
} volume_devices SEC(".maps"); /* [hash of the device number] */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct volume_cell);
} volume_cells SEC(".maps"); /* [row][cell] */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bio_set);
} bio_sets SEC(".maps");

/* Stamps by address, where the kernel has no atomic exchange to take a free way with. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} bios SEC(".maps");

static __always_inline struct volume_cell *cell_of(__u32 row, __u32 class)
{
	__u32 stripes = cfg_stripe_mask + 1, index;

	index = class < VOLUME_HOT_CLASSES ? (bpf_get_smp_processor_id() & cfg_stripe_mask) * VOLUME_HOT_CLASSES + class
					   : stripes * VOLUME_HOT_CLASSES + class - VOLUME_HOT_CLASSES;
	index += row * volume_cells_of_row(stripes);
	return bpf_map_lookup_elem(&volume_cells, &index);
}

static __always_inline struct volume_cell *cell_of_stamp(__u64 stamp)
{
	return cell_of(stamp & ((1 << BIO_STAMP_ROW_BITS) - 1),
		       stamp >> BIO_STAMP_ROW_BITS & ((1 << BIO_STAMP_CLASS_BITS) - 1));
}

static __noinline void count_missed(__u64 stamp)
{
	struct volume_cell *cell = cell_of_stamp(stamp);

	if (cell)
		__sync_fetch_and_add(&cell->missed, 1);
}

/* The class of a bio, or VOLUME_CLASSES if it is none that is counted. */
static __always_inline __u32 class_of_bio(struct bio *bio)
{
	__u32 class = cfg_class_of_op[bio->bi_opf & OPERATION_MASK];

	/* A flush is an empty write with this flag. */
	if (!bio->bi_iter.bi_size && bio->bi_opf & cfg_preflush)
		class = CLASS_FLUSH;
	return class < VOLUME_CLASSES ? class : VOLUME_CLASSES;
}

static __always_inline __u32 device_of_bio(struct bio *bio)
{
	struct gendisk *disk;

	if (!bpf_core_field_exists(((struct bio___until_5_12 *)bio)->bi_disk))
		return bio->bi_bdev->bd_dev;
	disk = ((struct bio___until_5_12 *)bio)->bi_disk;
	return disk ? disk_number(disk) : 0;
}

/* The stamp of a submitted bio that is to be timed, or 0. */
static __always_inline __u64 submitted(struct bio *bio, struct volume_cell **cell)
{
	__u32 row = device_row(&volume_devices, device_of_bio(bio)), class;

	if (!row)
		return 0;
	class = class_of_bio(bio);
	if (class == VOLUME_CLASSES)
		return 0;
	*cell = cell_of(row - 1, class);
	if (!*cell)
		return 0;
	__sync_fetch_and_add(&(*cell)->submitted, 1);
	__sync_fetch_and_add(&(*cell)->bytes, bio->bi_iter.bi_size);
	return bio_stamp(bpf_ktime_get_ns(), class, row - 1);
}

/* How a bio ended. */
#define DONE 0
#define FAILED 1
#define UNTIMED 2 /* not done, as it would have had to wait; or only a part of it */

static __always_inline void ended(__u64 stamp, __u32 outcome)
{
	struct volume_cell *cell = cell_of_stamp(stamp);
	__s64 age_ns = bio_age_ns(stamp, bpf_ktime_get_ns());
	__u32 word = latency_word(age_ns);

	if (!cell)
		return;
	if (outcome == UNTIMED) {
		__sync_fetch_and_add(&cell->untimed, 1);
		return;
	}
	if (word < LATENCY_WORDS)
		__sync_fetch_and_add(&cell->latency[word], 1);
	if (age_ns > 0)
		__sync_fetch_and_add(&cell->sum_ns, age_ns);
	__sync_fetch_and_add(&cell->timed, 1);
	if (outcome == FAILED)
		__sync_fetch_and_add(&cell->failed, 1);
}

/* include/linux/blk_types.h: what a bio with REQ_NOWAIT ends with; its submitter tries again. */
#define BLK_STS_AGAIN 12
#define EAGAIN 11

static __always_inline __u32 outcome_of_bio(struct bio *bio)
{
	__u32 status = bio->bi_status;

	return status == BLK_STS_AGAIN ? UNTIMED : status ? FAILED : DONE;
}

/* A bio from which pieces were split off ends with the last of them, and no program sees that. */
static __always_inline __u32 outcome_in_request(struct bio *bio, int error)
{
	if (bio->__bi_remaining.counter > 1 || error == -EAGAIN)
		return UNTIMED;
	return error ? FAILED : DONE;
}

/*
 * Bios of requests pass block_rq_complete instead of block_bio_complete. A request may have many, and a part of it may
 * end alone. (A bio beyond the limit is one whose end was not seen.) The end of a stage of a flush sequence is none of
 * the bio; once the sequence has ended, the request no longer has the flag.
 */
#define MAX_BIOS_OF_REQUEST 256
#define MAX_BIOS_OF_REQUEST_HASH 64 /* older kernels follow each of them */
#define FOR_EACH_ENDING_BIO(rq, nr_bytes, max, action)                                                                 \
	do {                                                                                                           \
		struct bio *bio = (rq)->bio;                                                                           \
		__u32 left = (nr_bytes), number;                                                                       \
                                                                                                                       \
		if ((rq)->rq_flags & cfg_flush_sequence_flag)                                                          \
			break;                                                                                         \
		for (number = 0; number < (max) && bio && left >= bio->bi_iter.bi_size; number++) {                    \
			left -= bio->bi_iter.bi_size;                                                                  \
			action;                                                                                        \
			bio = bio->bi_next;                                                                            \
		}                                                                                                      \
	} while (0)

static __always_inline struct bio_set *set_of(__u64 address)
{
	__u32 index = bio_hash(address) & cfg_set_mask;

	return bpf_map_lookup_elem(&bio_sets, &index);
}

#define RESERVED 1 /* a way that is being taken: its stamp comes before its address */

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_volume_submit, struct bio *bio)
{
	__u64 address = address_of(bio), stamp, way;
	struct bio_set *set = set_of(address);
	struct volume_cell *cell = NULL;

	if (!set)
		return 0;
		/* The memory of a bio whose end was not seen. */
#pragma unroll
	for (way = 0; way < BIO_WAYS; way++) {
		if (set->bio[way] == address) {
			count_missed(set->stamp[way]);
			*(volatile __u64 *)&set->bio[way] = 0;
		}
	}
	stamp = submitted(bio, &cell);
	if (!stamp || !cell)
		return 0;
#pragma unroll
	for (way = 0; way < BIO_WAYS; way++) {
		if (!set->bio[way] && !__sync_val_compare_and_swap(&set->bio[way], 0, RESERVED)) {
			*(volatile __u64 *)&set->stamp[way] = stamp;
			__sync_lock_test_and_set(&set->bio[way], address);
			return 0;
		}
	}
#pragma unroll
	for (way = 0; way < BIO_WAYS; way++) {
		__u64 other = set->bio[way], of_other = set->stamp[way];

		if (other > RESERVED && bio_age_ns(of_other, stamp >> BIO_STAMP_TIME_SHIFT) > BIO_GONE_NS &&
		    __sync_val_compare_and_swap(&set->bio[way], other, RESERVED) == other) {
			count_missed(of_other);
			*(volatile __u64 *)&set->stamp[way] = stamp;
			__sync_lock_test_and_set(&set->bio[way], address);
			return 0;
		}
	}
	__sync_fetch_and_add(&cell->untimed, 1);
	return 0;
}

/* Not static: then it is verified once, and not for each bio of a request. */
__noinline int take(__u64 address, __u32 outcome)
{
	struct bio_set *set = set_of(address);
	__u64 way;

	if (!set)
		return 0;
#pragma unroll
	for (way = 0; way < BIO_WAYS; way++) {
		if (set->bio[way] == address) {
			__u64 stamp = set->stamp[way];

			/* An exchange, so that the stamp is read before the way is free. */
			__sync_lock_test_and_set(&set->bio[way], 0);
			ended(stamp, outcome);
			return 0;
		}
	}
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_volume_end, struct request_queue *queue, struct bio *bio)
{
	return take(address_of(bio), outcome_of_bio(bio));
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_volume_request_end, struct request *rq, int error, unsigned int nr_bytes)
{
	FOR_EACH_ENDING_BIO(rq, nr_bytes, MAX_BIOS_OF_REQUEST, take(address_of(bio), outcome_in_request(bio, error)));
	return 0;
}

/* The same without atomic exchanges: they came with Linux 5.12, on arm64 with 5.18. */
static __always_inline int submit_to_hash(struct bio *bio)
{
	__u64 address = address_of(bio), stamp, *stale;
	struct volume_cell *cell = NULL;

	stale = bpf_map_lookup_elem(&bios, &address);
	if (stale) {
		count_missed(*stale);
		bpf_map_delete_elem(&bios, &address);
	}
	stamp = submitted(bio, &cell);
	if (stamp && cell &&
	    (low_bits(bio->bi_end_io) == cfg_silent_end || bpf_map_update_elem(&bios, &address, &stamp, 0)))
		__sync_fetch_and_add(&cell->untimed, 1);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_volume_submit_hash, struct bio *bio)
{
	return submit_to_hash(bio);
}

/* until Linux 5.10 (e8a676d61c07 "block: simplify and extend the block_bio_merge tracepoint class") */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_volume_submit_hash_5_10, struct request_queue *queue, struct bio *bio)
{
	return submit_to_hash(bio);
}

static __noinline int take_from_hash(__u64 address, __u32 outcome)
{
	__u64 *known, stamp;

	known = bpf_map_lookup_elem(&bios, &address);
	if (!known)
		return 0;
	stamp = *known;
	bpf_map_delete_elem(&bios, &address);
	ended(stamp, outcome);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_volume_end_hash, struct request_queue *queue, struct bio *bio)
{
	return take_from_hash(address_of(bio), outcome_of_bio(bio));
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_volume_request_end_hash, struct request *rq, int error, unsigned int nr_bytes)
{
	FOR_EACH_ENDING_BIO(rq, nr_bytes, MAX_BIOS_OF_REQUEST_HASH,
			    take_from_hash(address_of(bio), outcome_in_request(bio, error)));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

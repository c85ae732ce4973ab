/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps of the volume programs: what is counted in the row of a block device, and which bios are in flight.
 *
 * A row belongs to a block device (disk or partition) whose bios are timed: a volume, or what lies below one. Counters
 * are changed by atomic adds; user space reads them through the mapping and never resets them.
 */
#pragma once

#include "device_rows.h"
#include "latency_buckets.h"

/* Operations as the CLASS_* of block_abi.h; passthrough commands are no bios. */
#define VOLUME_CLASSES 7
#define VOLUME_HOT_CLASSES 2 /* read and write: cells for several groups of CPUs */
#define VOLUME_COLD_CLASSES (VOLUME_CLASSES - VOLUME_HOT_CLASSES)
#define VOLUME_MAX_STRIPES 4
#define VOLUME_MAX_ROWS 2048

/* One operation of one device, on one group of CPUs. At rest, submitted = timed + untimed + missed. */
struct volume_cell {
	__u64 submitted; /* bios, as their submitter made them */
	__u64 bytes;	 /* of these */
	__u64 untimed;	 /* of these: no way was free, they were not done, or ended in pieces */
	__u64 missed;	 /* of these: they are gone, and no end was seen */
	__u64 timed;	 /* ends */
	__u64 failed;	 /* of these: with an error */
	__u64 sum_ns;
	__u64 pad;
	__u64 latency[LATENCY_WORDS];
	__u64 end_pad[4]; /* to a multiple of the cache line */
};

/* Cells of a row: those of reads and writes by group of CPUs, then the rest. */
static inline __attribute__((always_inline)) __u32 volume_cells_of_row(__u32 stripes)
{
	return stripes * VOLUME_HOT_CLASSES + VOLUME_COLD_CLASSES;
}

/*
 * Bios in flight, by address, in one cache line: a bio's address, or 0 where there is none, or 1 for a moment; and what
 * it is and when it was submitted. The time has 49 bits, so it tells apart the last 3.2 days.
 */
#define BIO_WAYS 4
struct bio_set {
	__u64 bio[BIO_WAYS];
	__u64 stamp[BIO_WAYS]; /* time << 15 | class << 12 | row */
};
#define BIO_STAMP_ROW_BITS 12
#define BIO_STAMP_CLASS_BITS 3
#define BIO_STAMP_TIME_SHIFT (BIO_STAMP_ROW_BITS + BIO_STAMP_CLASS_BITS)
#define BIO_GONE_NS 300000000000LL /* where room is wanted, a bio that is older is taken for missed */

static inline __attribute__((always_inline)) __u64 bio_stamp(__u64 now, __u32 operation_class, __u32 row)
{
	return now << BIO_STAMP_TIME_SHIFT | operation_class << BIO_STAMP_ROW_BITS | row;
}

/* Of all possible times, it was stamped at the one nearest to now. */
static inline __attribute__((always_inline)) __s64 bio_age_ns(__u64 stamp, __u64 now)
{
	__u64 then = stamp >> BIO_STAMP_TIME_SHIFT << BIO_STAMP_TIME_SHIFT;

	return (__s64)((now << BIO_STAMP_TIME_SHIFT) - then) >> BIO_STAMP_TIME_SHIFT;
}

static inline __attribute__((always_inline)) __u32 bio_hash(__u64 address)
{
	return (__u32)((address >> 6) * 0x9e3779b97f4a7c15ULL >> 40);
}

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(VOLUME_MAX_ROWS <= 1 << BIO_STAMP_ROW_BITS, "a stamp has room for each row");
static_assert(VOLUME_CLASSES <= 1 << BIO_STAMP_CLASS_BITS, "a stamp has room for each class");
static_assert(sizeof(struct volume_cell) % 64 == 0, "a cell starts on a cache line");
static_assert(sizeof(struct bio_set) == 64, "a set is one cache line");

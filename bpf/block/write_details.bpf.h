/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What made a write, which hint and stream it carries, and whether it matches what the drive prefers.
 *
 * Determined once: at the end, or when a first part ends or is given back, because that takes bios away. Bios stay on
 * the request until the tracepoint is over. A request consists of bios, mostly one; each is counted separately.
 * Whatever the flags, the function that ends the bio and its first page do not show is WRITE_OTHER, never a guess.
 */
#pragma once

#include "../kernel/bio.bpf.h"
#include "maps.bpf.h"
#include "events.bpf.h"
#include "../abi/attribution_abi.h"

/* Whether hints are read from the file of a page where bios do not carry them: for all writes on some kernels, for
 * ext4's on others, or as configured. */
const volatile bool cfg_hints_of_pages = false;
/* CPUs share tagged cells: cell = CPU number & mask. */
const volatile __u32 cfg_tagged_mask = 0;

/* The functions that end most I/Os, known before the load: immediates, not a table. Low halves; 1: none. */
const volatile __u32 cfg_end_iomap_dio = 1;
const volatile __u32 cfg_end_blkdev_async = 1;

#define MERGED_BIOS 16 /* of one request are examined one by one: verifying takes time, too */
#define MODE_FORMAT 0170000
#define MODE_BLOCK_DEVICE 0060000

static __always_inline struct write_cell *write_cell_of(__u32 device, __u32 cpu)
{
	__u32 key = device * cfg_cpus + cpu;

	return bpf_map_lookup_elem(&write_cells, &key);
}

static __always_inline struct tagged_cell *tagged_cell_of(__u32 device)
{
	__u32 key = device * (cfg_tagged_mask + 1) + (bpf_get_smp_processor_id() & cfg_tagged_mask);

	return bpf_map_lookup_elem(&tagged_cells, &key);
}

/* What a function reveals: see struct end_function_set; 0: nothing. */
static __always_inline __u32 end_entry(__u32 function)
{
	__u32 key = end_function_hash(function);
	struct end_function_set *set = bpf_map_lookup_elem(&end_functions, &key);
	__u32 way;

	if (!set)
		return 0;
#pragma unroll
	for (way = 0; way < END_FUNCTION_WAYS; way++) {
		__u64 entry = set->entry[way];

		if (entry >> 8 == function)
			return entry & 0xff;
	}
	return 0;
}

static __always_inline __u32 class_of_page(struct page *page)
{
	__u64 flags;

	page = page_head(page);
	if (!page)
		return WRITE_OTHER;
	flags = page_flags(page);
	if (has_page_flag(flags, bpf_core_enum_value(enum pageflags, PG_writeback)))
		return WRITE_WRITEBACK;
	/* Anonymous or shared memory: it belongs to a process, and is written without the page cache. */
	if (has_page_flag(flags, bpf_core_enum_value(enum pageflags, PG_swapbacked)))
		return WRITE_DIRECT;
	return WRITE_OTHER;
}

/* What the function that ends a bio reveals; of a piece that was split off, the function of the bio that waits for it.
 */
static __always_inline __u32 class_from_end(struct bio___write *bio)
{
	__u32 entry = end_entry(low_bits(bio->bi_end_io));

	if (entry >> END_PATH_SHIFT == END_CHAIN && cfg_has_cast)
		entry = end_entry(low_bits(CAST(bio->bi_private, struct bio___write)->bi_end_io));
	return entry & END_WRITE_MASK;
}

/* The class from the flags and the function alone; WRITE_UNKNOWN where the page must be checked. */
static __always_inline __u32 class_from_bio(struct bio___write *bio)
{
	const __u32 log = REQUEST_FLAG(__REQ_SYNC) | REQUEST_FLAG(__REQ_IDLE);
	__u32 flags = bio->bi_opf, function = low_bits(bio->bi_end_io), known;

	if (flags & REQUEST_FLAG(__REQ_SWAP))
		return WRITE_SWAP;
	if (function == cfg_end_iomap_dio || function == cfg_end_blkdev_async)
		known = WRITE_DIRECT + 1;
	else
		known = class_from_end(bio);
	if (known)
		return known - 1;
	if (!(flags & REQUEST_FLAG(__REQ_META)))
		return WRITE_UNKNOWN;
	/* jbd2 writes back what it has logged with the same flags as the log, but those buffers are marked PRIO. */
	return (flags & (log | REQUEST_FLAG(__REQ_PRIO))) == log ? WRITE_JOURNAL : WRITE_METADATA;
}

/* A page under writeback has its file; no other page looks like one (a direct write from shared memory does not). */
static __always_inline __u32 hint_of_page(struct page *page, bool bios_have_hints)
{
	struct address_space *mapping;
	struct inode *inode;
	__u32 hint;

	page = page_head(page);
	if (!page || !has_page_flag(page_flags(page), bpf_core_enum_value(enum pageflags, PG_writeback)))
		return HINT_DEFAULT;
	mapping = page->mapping;
	if (!mapping || low_bits(mapping) & 1)
		return HINT_DEFAULT;
	inode = mapping->host;
	hint = inode_hint(inode);
	if (hint || bios_have_hints)
		return hint;
	/* Kernels whose bios carry no hints do not pass one on to the block device's own inode either. */
	return (inode->i_mode & MODE_FORMAT) == MODE_BLOCK_DEVICE ? HINT_DEFAULT : HINT_NOT_SET;
}

static __always_inline __u32 write_hint(struct bio___write *bio, __u32 class)
{
	__u32 hint = bio_hint(bio);

	if (!hint && cfg_hints_of_pages && class == WRITE_WRITEBACK)
		hint = hint_of_page(bio->bi_io_vec->bv_page, bio_has_hint(bio));
	return hint;
}

static __always_inline __u64 beyond(__u64 offset, __u32 unit)
{
	return unit & (unit - 1) ? offset % unit : offset & (unit - 1);
}

static __always_inline void record_alignment(bool shared, struct write_cell *cell,
					     const struct device_geometry *geometry, __u64 begin, __u32 bytes)
{
	if (beyond(begin, geometry->write_alignment) || beyond(begin + bytes, geometry->write_granularity))
		ADD(shared, cell->misaligned_bytes, bytes);
	if (bytes < geometry->write_granularity)
		ADD(shared, cell->small_bytes, bytes);
}

static __always_inline void record_stream(bool shared, struct write_cell *cell, __u32 device, __u32 stream, __u32 bytes)
{
	struct tagged_cell *tagged;

	if (!stream)
		return;
	tagged = tagged_cell_of(device);
	if (!tagged)
		return;
	BOUND(stream, WRITE_STREAMS - 1);
	__sync_fetch_and_add(&tagged->stream_bytes[stream], bytes);
	ADD(shared, cell->stream_bytes, bytes);
}

static __always_inline void record_bio(bool shared, struct write_cell *cell, __u32 class, __u32 hint, __u32 bytes)
{
	BOUND(class, WRITE_CLASSES - 1);
	BOUND(hint, HINTS - 1);
	ADD(shared, cell->class_bytes[class], bytes);
	ADD(shared, cell->hint_bytes[hint], bytes);
}

/* The class of a bio and its hint, in one number. */
#define KIND_HINT_SHIFT 8

/*
 * The kind of a bio that was merged with the first of its write. It has the first one's class if both come from the
 * same function with the same flags: others are merged so rarely that they need not be classified. The kernel does not
 * merge different hints. Not inlined: the verifier follows a loop around it once for each round, not for each way.
 */
static __noinline int merged_kind(struct bio___write *bio, struct bio___write *first, __u32 first_kind)
{
	__u32 class = first_kind & (WRITE_CLASSES - 1), hint = first_kind >> KIND_HINT_SHIFT;
	__u64 unknown;

	if (!bio || !first)
		return 0;
	unknown = bio->bi_iter.bi_sector;
	if (bio->bi_opf != first->bi_opf || low_bits(bio->bi_end_io) != low_bits(first->bi_end_io))
		class = WRITE_OTHER;
	else if (class == WRITE_UNKNOWN)
		class = class_of_page(bio->bi_io_vec->bv_page);
	class = as_unknown(class, unknown);
	if (cfg_hints_of_pages)
		hint = write_hint(bio, class);
	return as_unknown(class | hint << KIND_HINT_SHIFT, unknown);
}

/* The bios after the first. In a long chain, the last one stands for those that were not examined. */
static __noinline int record_merged(struct request *rq, struct write_cell *cell, __u32 first_kind, __u32 left,
				    bool shared)
{
	struct bio___write *first = (struct bio___write *)rq->bio, *bio;
	__u32 number, kind, bytes;

	if (!first || !cell)
		return 0;
	bio = first->bi_next;

#pragma clang loop unroll(disable)
	for (number = 0; bio && number <= MERGED_BIOS; number++) {
		bytes = bio->bi_iter.bi_size;
		if (number == MERGED_BIOS) {
			bio = ((struct request___write *)rq)->biotail;
			bytes = left;
		}
		kind = merged_kind(bio, first, first_kind);
		record_bio(shared, cell, kind, kind >> KIND_HINT_SHIFT, bytes);
		left -= bytes;
		bio = bio->bi_next;
	}
	return 0;
}

/*
 * Any write whose bios are all there: at its end, or before it loses some. Returns its hint. `shared`: see ADD. Not
 * inlined, because most writes are plain, or at least the verifier follows it only here.
 */
static __noinline int record_write(struct request *rq, struct device_state *state, __u32 device, __u32 cpu, bool shared)
{
	struct write_cell *cell = write_cell_of(device, cpu);
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u32 bytes = rq->__data_len, size = bytes, bio_class, class, hint;
	__u64 unknown = rq->__sector;

	if (!state || !cell || !bio)
		return HINT_DEFAULT;
	record_alignment(shared, cell, &state->geometry, rq->__sector << 9, bytes);
	record_stream(shared, cell, device, bio_stream(bio), bytes);
	bio_class = as_unknown(class_from_bio(bio), unknown);
	class = bio_class == WRITE_UNKNOWN ? class_of_page(bio->bi_io_vec->bv_page) : bio_class;
	class = as_unknown(class, unknown);
	hint = as_unknown(write_hint(bio, class), unknown);
	BOUND(hint, HINTS - 1);
	if (bio->bi_next)
		size = bio->bi_iter.bi_size;
	record_bio(shared, cell, class, hint, size);
	ADD(shared, cell->hint_ios[hint], 1);
	if (bio->bi_next)
		record_merged(rq, cell, as_unknown(bio_class | hint << KIND_HINT_SHIFT, unknown), bytes - size, shared);
	return hint;
}

/* A write of one bio by direct I/O, without a hint or a stream. */
static __always_inline bool is_plain_write(struct bio___write *bio, __u32 path)
{
	return is_direct(path) && !(address_of(bio->bi_next) | bio_hint(bio) | bio_stream(bio));
}

static __always_inline void add_plain_write(struct write_cell *cell, const struct device_geometry *geometry,
					    __u64 sector, __u32 bytes)
{
	__u32 begin = (__u32)sector << 9, granularity = geometry->write_granularity;

	if ((begin & (geometry->write_alignment - 1)) | ((begin + bytes) & (granularity - 1)))
		cell->misaligned_bytes += bytes;
	if (bytes < granularity)
		cell->small_bytes += bytes;
	cell->class_bytes[WRITE_DIRECT] += bytes;
	cell->hint_bytes[HINT_DEFAULT] += bytes;
	cell->hint_ios[HINT_DEFAULT] += 1;
}

/* A write at its end, whose path the issue has determined; `row`: of its cell. Returns its hint. */
static __always_inline __u32 add_write(struct request *rq, struct device_state *state, __u32 device, __u32 *row,
				       __u32 cpu, __u32 path)
{
	struct write_cell *cell;

	if (!is_plain_write((struct bio___write *)rq->bio, path) || state->geometry.flags & DEVICE_ODD_WRITE_UNITS)
		return record_write(rq, state, device, cpu, false);
	cell = bpf_map_lookup_elem(&write_cells, row);
	if (cell)
		add_plain_write(cell, &state->geometry, rq->__sector, rq->__data_len);
	return HINT_DEFAULT;
}

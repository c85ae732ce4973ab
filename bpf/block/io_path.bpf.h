/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Determines the path by which a bio entered the kernel.
 *
 * It is known from the function that ends the bio and, for direct I/O, from the kiocb that waits for it: each
 * identifies what made it. Since Linux 6.2 these can be followed by plain loads (bpf_rdonly_cast); before, each step
 * would be a helper call, so direct I/O has no known engine there. What is not recognised is PATH_OTHER, never a guess.
 */
#pragma once

#include "write_details.bpf.h"
#include "../abi/attribution_abi.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kiocb {
	void (*ki_complete)(struct kiocb *iocb, long result);
};

struct iomap_dio {
	struct kiocb *iocb;
};

struct dio { /* fs/direct-io.c */
	struct kiocb *iocb;
};

struct blkdev_dio {
	struct kiocb *iocb;
	unsigned int flags;
	struct bio___write bio;
};

struct io_ring_ctx {
	unsigned int flags;
};

struct io_kiocb {
	struct kiocb begins_with; /* never relocated: the kernel has a union there */
	struct io_ring_ctx *ctx;
};

#pragma clang attribute pop

const volatile __u32 cfg_ki_io_uring = 1; /* like the two in write_details.bpf.h */
const volatile __u32 cfg_ki_libaio = 1;

#define SETUP_SQPOLL (1U << 1)	     /* IORING_SETUP_SQPOLL in include/uapi/linux/io_uring.h */
#define BLKDEV_DIO_IS_SYNC (1U << 1) /* DIO_IS_SYNC in block/fops.c; a bit field until 5.16, where nothing is cast */

static __always_inline __u32 path_of_io_uring(struct kiocb *iocb)
{
	if (!bpf_core_field_exists(((struct io_kiocb *)0)->ctx))
		return PATH_IO_URING;
	return CAST(iocb, struct io_kiocb)->ctx->flags & SETUP_SQPOLL ? PATH_SQPOLL : PATH_IO_URING;
}

/* The path, from the kiocb that waits for a direct I/O. */
static __always_inline __u32 path_of_iocb(struct kiocb *iocb)
{
	__u32 function;

	if (!iocb)
		return PATH_DIRECT;
	function = low_bits(iocb->ki_complete);
	if (!function)
		return PATH_SYNC;
	if (function == cfg_ki_libaio)
		return PATH_LIBAIO;
	if (function == cfg_ki_io_uring)
		return path_of_io_uring(iocb);
	switch (end_entry(function) >> END_PATH_SHIFT) {
	case END_KI_LIBAIO:
		return PATH_LIBAIO;
	case END_KI_IO_URING:
	case END_KI_IO_URING_POLLED:
		return path_of_io_uring(iocb);
	case END_KI_LOOP:
		return PATH_LOOP;
	}
	return PATH_DIRECT;
}

static __always_inline struct blkdev_dio *blkdev_dio_around(struct bio___write *bio)
{
	return CAST(address_of(bio) - bpf_core_field_offset(struct blkdev_dio, bio), struct blkdev_dio);
}

/* PATH_RAW for a page in the page cache of a block device, 0 for one of a file. */
static __always_inline __u32 access_of_page(struct page *page)
{
	struct address_space *mapping;

	page = page_head(page);
	if (!page)
		return 0;
	mapping = page->mapping;
	if (!mapping || low_bits(mapping) & 3)
		return 0;
	return (mapping->host->i_mode & MODE_FORMAT) == MODE_BLOCK_DEVICE ? PATH_RAW : 0;
}

static __always_inline __u32 path_of_pages(struct bio___write *bio, __u32 class)
{
	if (bio->bi_opf & REQUEST_FLAG(__REQ_META))
		return PATH_METADATA;
	return (class == CLASS_WRITE ? PATH_WRITEBACK : PATH_BUFFERED_READ) | access_of_page(bio->bi_io_vec->bv_page);
}

static __always_inline __u32 path_unrecognised(struct bio___write *bio)
{
	return bio->bi_opf & REQUEST_FLAG(__REQ_META) ? PATH_METADATA : PATH_OTHER;
}

/* The path of direct I/O, from what waits for it; of no known engine where the kernel lets us follow nothing. */
static __always_inline __u32 path_of_direct(struct bio___write *bio, __u32 end)
{
	if (end == END_IOMAP_DIO)
		return cfg_has_cast ? path_of_iocb(CAST(bio->bi_private, struct iomap_dio)->iocb) : PATH_DIRECT;
	if (end == END_DIO) {
		if (!cfg_has_cast || !bpf_core_field_exists(((struct dio *)0)->iocb))
			return PATH_DIRECT;
		return path_of_iocb(CAST(bio->bi_private, struct dio)->iocb);
	}
	if (!cfg_has_cast)
		return PATH_DIRECT | PATH_RAW;
	if (end == END_BLKDEV_ASYNC)
		return path_of_iocb(blkdev_dio_around(bio)->iocb) | PATH_RAW;
	if (CAST(bio->bi_private, struct blkdev_dio)->flags & BLKDEV_DIO_IS_SYNC)
		return PATH_SYNC | PATH_RAW;
	return path_of_iocb(CAST(bio->bi_private, struct blkdev_dio)->iocb) | PATH_RAW;
}

/* END_* of the bio's function or, until 7.x, of the function of the buffer that the bio was made for. */
static __always_inline __u32 end_of_bio(struct bio___write *bio)
{
	__u32 end = end_entry(low_bits(bio->bi_end_io)) >> END_PATH_SHIFT;

	if (end != END_BUFFER || !cfg_has_cast || !bpf_core_field_exists(((struct buffer_head *)0)->b_end_io))
		return end;
	return end_entry(low_bits(CAST(bio->bi_private, struct buffer_head)->b_end_io)) >> END_PATH_SHIFT;
}

/* The path of any bio. */
static __noinline int path_slowly(struct bio___write *bio, __u32 class)
{
	__u32 end;

	if (bio->bi_opf & REQUEST_FLAG(__REQ_SWAP))
		return PATH_SWAP;
	end = end_of_bio(bio);
	if (end == END_CHAIN && cfg_has_cast) {
		bio = CAST(bio->bi_private, struct bio___write);
		end = end_of_bio(bio);
	}
	switch (end) {
	case END_IOMAP_DIO:
	case END_BLKDEV_DIO:
	case END_BLKDEV_ASYNC:
	case END_DIO:
		return path_of_direct(bio, end);
	case END_BLKDEV_SIMPLE:
		return PATH_SYNC | PATH_RAW;
	case END_WAIT:
		if (!(bio->bi_opf & REQUEST_FLAG(__REQ_META)) && class_of_page(bio->bi_io_vec->bv_page) == WRITE_DIRECT)
			return PATH_SYNC | PATH_RAW;
		return path_unrecognised(bio);
	case END_PAGES:
		return path_of_pages(bio, class);
	case END_JOURNAL:
		return PATH_JOURNAL;
	case END_METADATA:
		return PATH_METADATA;
	case END_SWAP:
		return PATH_SWAP;
	case END_STACKED:
		return PATH_STACKED;
	}
	return path_unrecognised(bio);
}

static __always_inline __u32 path_of(struct bio___write *bio, __u32 class)
{
	__u32 function = low_bits(bio->bi_end_io);

	if (function == cfg_end_iomap_dio)
		return path_of_direct(bio, END_IOMAP_DIO);
	if (function == cfg_end_blkdev_async)
		return path_of_direct(bio, END_BLKDEV_ASYNC);
	return path_slowly(bio, class);
}

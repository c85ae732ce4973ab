/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reports to the flash model what happens to a device's pages.
 *
 * Runs at every successful end of a part of a request, whether its issue was seen or not, with the range that ended:
 * failed I/O is in no event, and I/O that is submitted again counts once. Completions may come in a different order
 * than issues; two writes of a page that were in flight together have no order. Pages written are counted exactly. An
 * event is sent only if a followed page is among them: that path may call the ring buffer, and is not inlined. For most
 * writes, one hash shows that it need not be taken.
 */
#pragma once

#include "device_lookup.bpf.h"
#include "write_details.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* bytes; user space sets it */
} samples SEC(".maps");

static __always_inline struct page_range of_drive(const struct device_state *state, struct page_range pages)
{
	pages.first += state->sampling.first_page;
	return pages;
}

/*
 * Sends the followed pages among these. Neither inlined nor static: the verifier checks it only once, whatever calls
 * it. Nothing waits for events: they are fetched once a tick.
 */
__noinline int send_sample(__u32 device, __u64 page, __u64 pages, __u32 kind, __u32 hint)
{
	struct device_state *state = device_state_of(device);
	struct page_range all = {page, pages}, followed;
	struct sample_event event = {.kind = kind, .hint = hint};
	const struct page_sampling *sampling;

	if (!state)
		return 0;
	sampling = &state->sampling;
	followed = followed_pages(of_drive(state, all), sampling->groups, sampling->rate_bits, sampling->seed);
	if (!followed.count)
		return 0;
	event.first = followed.first;
	event.count = followed.count;
	event.sampling = sampling->sampling;
	BOUND(kind, SAMPLE_KINDS - 1);
	if (bpf_ringbuf_output(&samples, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&state->samples_lost[kind], 1);
	return 0;
}

/* The same for a discard. Called once for each range: see send_sample. */
__noinline int send_discard(__u32 device, __u64 sector, __u32 bytes, __u32 kind)
{
	struct device_state *state = device_state_of(device);
	struct page_range pages;

	if (!state)
		return 0;
	pages = covered_pages(sector << 9, bytes, state->sampling.page_bits);
	return send_sample(device, pages.first, pages.count, kind, 0);
}

static __always_inline __u32 sample_kind(struct request *rq, __u32 class)
{
	if (class != CLASS_WRITE_ZEROES)
		return SAMPLE_DISCARD;
	return rq->cmd_flags & REQUEST_FLAG(__REQ_NOUNMAP) ? SAMPLE_ZEROES_KEPT : SAMPLE_ZEROES;
}

/*
 * Discards and zeroes. A discard of several ranges has one bio for each; in a discard of one range, the bios are
 * neighbours and the drive saw them as one. Not inlined, because they are few.
 */
static __noinline int sample_ranges(struct request *rq, struct device_state *state, __u32 device, __u32 class,
				    __u32 nr_bytes)
{
	__u32 kind = as_unknown(sample_kind(rq, class), rq->__sector), left = nr_bytes, number;
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u64 unknown = rq->__sector;

	if (!state)
		return 0;
	if (rq->nr_phys_segments <= 1) {
		send_discard(device, rq->__sector, nr_bytes, kind);
		return 0;
	}
#pragma clang loop unroll(disable)
	for (number = 0; number < SAMPLE_RANGES; number++) {
		__u64 beyond;

		if (!bio || !left)
			return 0;
		/* How much of it ended, without a branch that the verifier would follow in each iteration. */
		beyond = (__u64)left - bio->bi_iter.bi_size;
		beyond &= ~(beyond >> 63) + 1;
		send_discard(device, bio->bi_iter.bi_sector, bio->bi_iter.bi_size + (__u32)beyond, kind);
		left = as_unknown(left - bio->bi_iter.bi_size - (__u32)beyond, unknown);
		bio = bio->bi_next;
	}
	if (bio && left)
		__sync_fetch_and_add(&state->samples_lost[SAMPLE_DISCARD], 1);
	return 0;
}

/* The hint of the first bio: the kernel does not merge bios with different hints. */
static __always_inline __u32 sample_hint(struct request *rq)
{
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u32 hint = bio_hint(bio);

	if (!hint && cfg_hints_of_pages)
		hint = hint_of_page(bio->bi_io_vec->bv_page, bio_has_hint(bio));
	return hint;
}

/* A part of a write. Not inlined: after it, the verifier does not distinguish the ways through it any more. */
static __noinline int sample_write(struct request *rq, struct device_state *state, __u32 device, __u32 nr_bytes)
{
	struct write_cell *cell = write_cell_of(device, bpf_get_smp_processor_id());
	const struct page_sampling *sampling;
	struct page_range touched;
	__u32 hint;

	if (!state || !cell || !rq->bio)
		return 0;
	sampling = &state->sampling;
	touched = touched_pages(rq->__sector << 9, nr_bytes, sampling->page_bits);
	hint = as_unknown(sample_hint(rq), rq->__sector);
	BOUND(hint, HINTS - 1);
	cell->hint_pages[hint] += touched.count;
	if (may_hold_followed(of_drive(state, touched), sampling->rate_bits, sampling->seed))
		send_sample(device, touched.first, touched.count, SAMPLE_WRITE, hint);
	return 0;
}

/* Call it at each end of a part, before anything else is counted. */
static __noinline int sample(const struct io *io, int error, __u32 nr_bytes)
{
	__u32 class;

	if (!io || !io->state->sampling.groups || error || !nr_bytes)
		return 0;
	class = io->class;
	if (class == CLASS_WRITE)
		sample_write(io->rq, io->state, io->device, nr_bytes);
	else if (class >= CLASS_DISCARD && class <= CLASS_SECURE_ERASE)
		sample_ranges(io->rq, io->state, io->device, class, nr_bytes);
	return 0;
}

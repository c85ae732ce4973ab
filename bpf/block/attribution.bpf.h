/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts a read, write or discard for its cgroup and for the path by which it entered the kernel.
 *
 * The cgroup is read when a request ends: its first bio is still attached, and the kernel is about to read the same
 * memory. The path of most reads and writes is determined at the issue and remembered in the slot: the memory that
 * shows it was mostly written by that CPU, and the CPU of the end would have to wait for it. It is determined at every
 * end that is not ordinary, and for what the issue did not recognise. When a request ends in parts, each part counts
 * its bytes, and the last one counts the I/O. A request without a bio has no cgroup, and PATH_OTHER. To be called
 * before the same I/O is added to the device's cells: a reader of those finds all of it here.
 */
#pragma once

#include "device_lookup.bpf.h"
#include "io_path.bpf.h"

/* All of this costs nothing where it is switched off. */
const volatile bool cfg_attribution = false;
const volatile __u32 cfg_attribution_sets = 1; /* of one CPU */
const volatile __u32 cfg_announced = 1;	       /* a power of two: the ring of one CPU */
/* CPUs share the counts of I/Os that found no cell: cell = CPU number & mask. */
const volatile __u32 cfg_other_mask = 0;

ARRAY_MAP(attributions, struct attribution_set);       /* [CPU][set] */
ARRAY_MAP(unattributed_cells, struct unattributed);    /* [device][some CPUs] */
ARRAY_MAP(announced_cgroups, struct announced_cgroup); /* [CPU][ring] */
ARRAY_MAP(announcement_states, struct announcements);  /* [CPU] */

#define AMOUNT(ios, bytes) ((__u64)(ios) << 32 | (bytes))

static __always_inline struct cgroup_subsys_state *cgroup_of(struct bio___write *bio)
{
	if (!bpf_core_field_exists(bio->bi_blkg))
		return NULL;
	return &bio->bi_blkg->blkcg->css;
}

/* 0: there is no bio, or it is charged to no cgroup. */
static __always_inline __u64 cgroup_serial(struct bio___write *bio)
{
	if (!bio || !bpf_core_field_exists(bio->bi_blkg))
		return 0;
	return cgroup_of(bio)->serial_nr;
}

static __always_inline bool is_attributed(const struct device_state *state)
{
	return cfg_attribution && !(state->geometry.flags & DEVICE_UNATTRIBUTED);
}

static __always_inline void add_attributed(struct attributed *cell, __u64 amount, __u64 device_ns)
{
	cell->ios += amount >> 32;
	cell->bytes += (__u32)amount;
	cell->device_ns += device_ns;
}

static __always_inline void add_unattributed(__u64 key, __u32 cpu, __u64 amount, __u64 device_ns)
{
	__u32 device = key >> ATTRIBUTION_DEVICE_SHIFT & ATTRIBUTION_DEVICE_MASK;
	__u32 at = device * (cfg_other_mask + 1) + (cpu & cfg_other_mask);
	struct unattributed *other = bpf_map_lookup_elem(&unattributed_cells, &at);
	__u32 operation = key >> ATTRIBUTION_OPERATION_SHIFT, path = key;

	if (!other)
		return;
	BOUND(operation, ATTRIBUTED_OPERATIONS - 1);
	BOUND(path, PATH_CODES - 1);
	__sync_fetch_and_add(&other->of[operation][path].ios, amount >> 32);
	__sync_fetch_and_add(&other->of[operation][path].bytes, (__u32)amount);
	__sync_fetch_and_add(&other->of[operation][path].device_ns, device_ns);
	__sync_fetch_and_add(&other->events, 1);
}

/* Whether user space knows, or will find out, what the cgroup is called. */
static __always_inline bool announce(struct announcements *own, struct bio___write *bio, __u64 serial, __u32 cpu)
{
	struct announced_cgroup *entry;
	struct cgroup_subsys_state *css;
	__u32 at, known;
	__u64 written;

	if (!serial || !bio)
		return true;
	known = cgroup_known_at(serial);
	BOUND(known, CGROUPS_KNOWN - 1);
	if (own->known[known] == serial)
		return true;
	written = own->written;
	if (written - *(volatile __u64 *)&own->read >= cfg_announced)
		return false;
	at = cpu * cfg_announced + ((__u32)written & (cfg_announced - 1));
	entry = bpf_map_lookup_elem(&announced_cgroups, &at);
	if (!entry)
		return false;
	css = cgroup_of(bio);
	entry->serial = serial;
	entry->cgroup = css->cgroup->kn->id;
	entry->parent = css->parent ? css->parent->cgroup->kn->id : 0;
	if (bpf_probe_read_kernel_str(entry->name, sizeof(entry->name), css->cgroup->kn->name) < 0)
		entry->name[0] = 0;
	*(volatile __u64 *)&own->written = written + 1;
	own->known[known] = serial;
	return true;
}

/* Finds the key's cell in the set, or else the first free one; ATTRIBUTED_IN_SET: neither. Not inlined: the verifier
 * does not distinguish what was found any more. */
static __noinline int way_in_set(const struct attribution_set *set, __u64 key)
{
	__u32 chosen = ATTRIBUTED_IN_SET, way;

	if (!set)
		return chosen;

#pragma unroll
	for (way = ATTRIBUTED_IN_SET; way-- > 0;) {
		if (set->cell[way].key == ATTRIBUTION_FREE)
			chosen = way;
	}
#pragma unroll
	for (way = 0; way < ATTRIBUTED_IN_SET; way++) {
		if (set->cell[way].key == key)
			chosen = way;
	}
	return as_unknown(chosen, key);
}

/*
 * For any key: it has a cell in one of its sets, or gets one, or its I/O is counted as unattributed. Not inlined, like
 * everything rare.
 */
static __noinline int attribute_slowly(struct request *rq, __u64 key, __u64 amount, __u64 device_ns, __u32 cpu)
{
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u32 base = cpu * cfg_attribution_sets, first, second, chosen;
	struct attribution_set *set, *other;
	struct attributed *cell;

	first = base + attribution_first_set(key, cfg_attribution_sets);
	second = base + attribution_second_set(key, cfg_attribution_sets);
	set = bpf_map_lookup_elem(&attributions, &first);
	other = bpf_map_lookup_elem(&attributions, &second);
	if (!set || !other)
		return 0;
	chosen = way_in_set(other, key);
	/* An existing cell keeps counting; a new one is preferably in the first set. */
	BOUND(chosen, 2 * ATTRIBUTED_IN_SET - 1);
	if (chosen >= ATTRIBUTED_IN_SET || other->cell[chosen].key != key) {
		__u32 rather = way_in_set(set, key);

		BOUND(rather, 2 * ATTRIBUTED_IN_SET - 1);
		if (rather < ATTRIBUTED_IN_SET) {
			chosen = rather;
			second = first;
		}
	}
	if (chosen >= ATTRIBUTED_IN_SET) {
		add_unattributed(key, cpu, amount, device_ns);
		return 0;
	}
	BOUND(chosen, ATTRIBUTED_IN_SET - 1);
	set = bpf_map_lookup_elem(&attributions, &second);
	if (!set)
		return 0;
	cell = &set->cell[chosen];
	if (cell->key != key) {
		struct announcements *own = bpf_map_lookup_elem(&announcement_states, &cpu);

		if (cell->key != ATTRIBUTION_FREE || !own ||
		    !announce(own, bio, key >> ATTRIBUTION_SERIAL_SHIFT, cpu)) {
			add_unattributed(key, cpu, amount, device_ns);
			return 0;
		}
		*(volatile __u64 *)&cell->key = key;
		/* User space looks for new cells when this counter grows. */
		*(volatile __u64 *)&own->taken += 1;
	}
	add_attributed(cell, amount, device_ns);
	return 0;
}

static __always_inline void attribute_key(struct request *rq, __u64 key, __u64 amount, __u64 device_ns, __u32 cpu)
{
	__u32 at = cpu * cfg_attribution_sets + attribution_first_set(key, cfg_attribution_sets), way;
	struct attribution_set *set = bpf_map_lookup_elem(&attributions, &at);

	if (!set)
		return;
#pragma unroll
	for (way = 0; way < ATTRIBUTED_IN_SET; way++) {
		if (set->cell[way].key == key) {
			add_attributed(&set->cell[way], amount, device_ns);
			return;
		}
	}
	attribute_slowly(rq, key, amount, device_ns, cpu);
}

/*
 * What the issue can find out about the path of a read or a write. A path that is not recognised yet is determined
 * again at the end: a bio that others are chained to may get its end function only after they were submitted (iomap's
 * writeback, Linux 6.2 to 6.8).
 */
static __always_inline __u32 path_at_issue(struct request *rq, const struct device_state *state, __u32 operation)
{
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u32 path;

	if (!is_attributed(state) || !bio)
		return PATH_UNKNOWN;
	path = path_of(bio, operation);
	return path == PATH_OTHER ? PATH_UNKNOWN : path;
}

/* A read or a write that ends as a whole. */
static __always_inline void attribute(struct request *rq, __u32 device, __u32 cpu, __u32 operation, __u32 path,
				      __u32 bytes, __u64 device_ns)
{
	struct bio___write *bio = (struct bio___write *)rq->bio;

	if (path == PATH_UNKNOWN)
		path = as_unknown(bio ? path_slowly(bio, operation) : PATH_OTHER, rq->__sector);
	attribute_key(rq, attribution_key(cgroup_serial(bio), device, operation, path), AMOUNT(1, bytes), device_ns,
		      cpu);
}

/* Everything else: parts, requests whose issue was not seen or never happened, discards, commits. */
static __noinline int attribute_rare(struct request *rq, __u32 device, __u32 operation, __u64 amount, __u64 device_ns)
{
	struct bio___write *bio = (struct bio___write *)rq->bio;
	__u32 path = PATH_OTHER;

	if (!amount)
		return 0;
	if (bio && operation <= ATTRIBUTED_WRITE)
		path = as_unknown(path_slowly(bio, operation), rq->__sector);
	attribute_slowly(rq, attribution_key(cgroup_serial(bio), device, operation, path), amount, device_ns,
			 bpf_get_smp_processor_id());
	return 0;
}

/* `device_ns` is 0 where it is not known. */
static __always_inline void attribute_rarely(const struct io *io, __u32 ios, __u32 bytes, __u64 device_ns)
{
	__u32 class = as_unknown(io->class, io->now);

	if (!is_attributed(io->state))
		return;
	if (class < HOT_CLASSES)
		attribute_rare(io->rq, io->device, as_unknown(class, io->now), AMOUNT(ios, bytes), device_ns);
	else if (class == CLASS_DISCARD)
		attribute_rare(io->rq, io->device, ATTRIBUTED_DISCARD, AMOUNT(ios, bytes), device_ns);
}

static __always_inline void attribute_commit(const struct io *io)
{
	if (is_attributed(io->state))
		attribute_rare(io->rq, io->device, ATTRIBUTED_COMMIT, AMOUNT(1, 0), 0);
}

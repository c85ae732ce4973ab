/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps of the block programs: what the kernel counts in them, and what user space writes there for the kernel.
 *
 * The only description of the maps, shared by both sides: plain C, fixed widths, no unnamed padding. The kernel only
 * ever adds; user space reads through the mapping and never resets a counter. User space writes the control tables
 * (which disks are measured) and the geometry in device_state; the kernel only caches them in queue_entries.
 *
 * Words have a single writer: a word of a per-CPU cell is written by one program on one CPU, and the kernel never runs
 * a program inside itself on one CPU. When the other program of that CPU adds to such a word, which is rare, it does so
 * atomically. Words that several CPUs share also need atomic adds. (Before Linux 6.1 there is no such guard: an
 * interrupt inside an increment can lose it, and nothing counts how often.)
 */
#pragma once

#include "attribution_abi.h"
#include "latency_buckets.h"
#include "sample_abi.h"
#include "write_abi.h"

/* Operation classes, in the order of the cells. Read and write are hot: one cell for each CPU. */
#define CLASS_READ 0
#define CLASS_WRITE 1
#define CLASS_FLUSH 2
#define CLASS_DISCARD 3
#define CLASS_WRITE_ZEROES 4
#define CLASS_SECURE_ERASE 5
#define CLASS_ZONE 6
#define CLASS_PASSTHROUGH 7
#define CLASSES 8
#define HOT_CLASSES 2
#define COLD_CLASSES (CLASSES - HOT_CLASSES)

/* What else was in flight during a read or write; bit 0 discard, bit 1 flush. */
#define DURINGS 4

/* One operation of one device: on one CPU (read, write), or on all of them (the rest, atomic adds). */
struct io_cell {
	/* Every I/O adds to the first cache line. The change stamp is issues, reissues, completions and bytes. */
	__u64 issues;	   /* first issues; only the issue program writes this word and reissues */
	__u64 completions; /* final completions of issued requests */
	__u64 bytes;
	__u64 size_sum_bytes;
	__u64 sequential_bytes;
	__u64 queue_sum_ns;
	__u64 total_sum_ns;
	__u64 device_sum_ns[DURINGS];
	__u64 reissues; /* issues of a request that was already in flight */
	__u64 queue_full_ns;
	__u64 untimed; /* final completions of requests whose issue was left out (DEVICE_UNTIMED): reads and writes
			  only */
	__u64 counter_pad[2];
	__u32 size[SIZE_WORDS];
	__u32 queue[LATENCY_WORDS];
	__u32 total[LATENCY_WORDS];
	__u32 device[DURINGS][LATENCY_WORDS];
	__u8 pad[24]; /* to a multiple of the cache line */
};

/* The reads and writes of one device on one CPU. */
struct hot_cells {
	struct io_cell of[HOT_CLASSES];
};

/*
 * An issued request: 16 bytes, so four share a cache line. A tag serves one request at a time, so a slot has one writer
 * at a time. Reads and writes are stored without checking what was there before, but they are counted: at the next end
 * that is seen, the count shows whether one was missed. (Slots that tags share may lose such a count.)
 */
struct issue_slot {
	__u64 issued;  /* top 4 bits: operation class; next 5: path; rest: time of the last issue (within 208 days) */
	__u32 request; /* low half of the address of the kernel's struct request: compared, never dereferenced */
	union {
		struct {
			__u8 issues[HOT_CLASSES]; /* first issues of reads and writes without an end, modulo 256 */
			__u8 cold;		  /* class of a request of a cold class without an end, or 0 */
			__u8 early;		  /* see SLOT_EARLY; 0: not counted early */
		};
		__u32 held; /* all four; 0: free */
	};
};
#define SLOT_CLASS_SHIFT 60
#define SLOT_PATH_SHIFT 55
/* Whatever is counted once per request was counted before its end, while its bios were complete; the low bits hold its
 * hint. */
#define SLOT_EARLY 0x80

/* Value of `held` while a slot holds exactly one request, of this class, which was not counted early. */
static inline __attribute__((always_inline)) __u32 held_by(__u32 operation_class)
{
	return operation_class < HOT_CLASSES ? 1U << (8 * operation_class) : operation_class << 16;
}

/* Whether a slot holds nothing but a request of this class, counted early or not. */
static inline __attribute__((always_inline)) int holds_only(__u32 held, __u32 operation_class)
{
	return held << 8 == held_by(operation_class) << 8;
}

static inline __attribute__((always_inline)) __u64 slot_issued(__u32 operation_class, __u32 path, __u64 now)
{
	return (__u64)(operation_class << (SLOT_CLASS_SHIFT - SLOT_PATH_SHIFT) | path) << SLOT_PATH_SHIFT |
	       (now & ((1ULL << SLOT_PATH_SHIFT) - 1));
}

static inline __attribute__((always_inline)) __u32 slot_path(__u64 issued)
{
	return (__u32)(issued >> SLOT_PATH_SHIFT) & (PATH_CODES - 1);
}

/* Nanoseconds from the time in a slot's first word until now: of all possible times, it is the one nearest to now. */
static inline __attribute__((always_inline)) __s64 ns_since(__u64 issued, __u64 now)
{
	return (__s64)((now - issued) << (64 - SLOT_PATH_SHIFT)) >> (64 - SLOT_PATH_SHIFT);
}

static inline __attribute__((always_inline)) __u64 slot_time(__u64 issued, __u64 now)
{
	return now - (__u64)ns_since(issued, now);
}

/* Where a device's requests find their slots; copied into queue_entry when a queue is first seen. A cache line of its
 * own in device_state, written only by user space: all of it before the device is made known; later only the flags, the
 * drive and the preferred write granularity and alignment. */
#define SLOTS_EXACT 1	  /* one slot for each hardware queue and tag: a foreign request there is a missed completion */
#define DEVICE_RETIRING 2 /* gone or excluded: nothing new is measured; what is in flight may still end */
/* Left out for a while, to spare the host's CPUs: ... */
#define DEVICE_UNATTRIBUTED 4	  /* ... who does the I/O, and by which path */
#define DEVICE_UNTIMED 8	  /* ... issues of reads and writes, whose ends then have only a total time */
#define DEVICE_ODD_WRITE_UNITS 16 /* write granularity or alignment is not a power of two */
struct device_geometry {
	__u32 slot_base;
	__u32 slot_mask;
	__u32 slot_stride; /* tags of one hardware queue */
	__u32 flags;
	__u32 drive;		 /* device whose interference state is used: paths of one multipath head share one */
	__u32 write_granularity; /* bytes, not 0: writes should end at a multiple of it, begin at one of the next */
	__u32 write_alignment;
	__u32 pad;
};

/*
 * Rare events, one counter for each operation class of a device; atomic adds. Every issue is a completion, a failover,
 * a missed completion, a slot collision, or still in flight; strays and unissued requests are ends without an issue.
 */
#define EVENT_UNISSUED 0	  /* completed without ever being issued */
#define EVENT_FAILOVER 1	  /* a multipath path gave the request back with nothing done */
#define EVENT_COMPLETION_MISSED 2 /* issued, and its end was not seen */
#define EVENT_STRAY 3		  /* ended, and its issue was not seen */
#define EVENT_SLOT_COLLISION 4	  /* a slot that tags share was taken from it */
#define EVENT_CLOCK 5		  /* one of its times was not positive */
#define EVENT_UNSTAMPED 6	  /* the kernel did not note when it was allocated */
#define EVENT_FLUSH_DATA_STAGE 7  /* write that is a stage of a flush sequence: diskstats counts the parent */
#define EVENT_LONE_FLUSH 8	  /* flush that is not a stage of a sequence: diskstats counts a read */
#define EVENTS 9
#define STATUSES 32 /* blk_status_t, larger ones in the last */
struct operation_events {
	__u64 count[EVENTS];
	__u64 errors[STATUSES];
};

/* What all CPUs share about one device. */
struct device_state {
	struct device_geometry geometry;
	struct page_sampling sampling;
	/* Requests allocated up to this time may have been issued while DEVICE_UNTIMED was set. In the geometry's cache
	 * line, and written only by user space. */
	__u64 timed_since_ns;
	/* What every completion reads, in one cache line: discards and flushes without an end, which only those write,
	 * ... */
	__u64 others_in_flight;
	__u64 discard_last_end_ns;
	__u64 flush_last_end_ns;
	/* ... and time at full depth, written only while a request waits for a tag. */
	__u64 full_since; /* ns since boot; in the low bits (QUEUE_FULL_CPUS_MASK), how many CPUs want to change it */
	__u64 full_paused_ns; /* first completion since then that saw no request wait; before then: while one waits */
	__u64 read_pad[3];
	/* Read only while a discard or a flush is in flight. */
	__u64 discards_started;
	__u64 discards_ended;
	__u64 discard_last_start_ns;
	__u64 flushes_started;
	__u64 flushes_ended;
	__u64 flush_last_start_ns;
	__u64 start_pad[2];
	__u64 samples_lost[SAMPLE_KINDS]; /* events for which the ring buffer had no room; atomic adds */
	__u64 lost_pad[4];
};
#define MAX_DEVICES 1024 /* rows of this table, which is of a fixed size: 256 KiB */

/* Rare events of one device. */
struct device_events {
	struct operation_events of[CLASSES];
};
#define QUEUE_FULL_CPUS_MASK 0xfffU
#define QUEUE_FULL_UPDATE_NS 65536ULL	      /* the cache line is not written more often than this */
#define QUEUE_FULL_SILENCE_NS 10000000ULL     /* a pause without completions for this long has ended the interval */
#define INTERFERENCE_STALE_NS 300000000000ULL /* an end that has been missing for this long was missed by us */

/* Sequential streams: where I/Os of the device ended recently, direct-mapped. */
#define STREAM_ENDS 2048
struct stream_ends {
	__u32 end[STREAM_ENDS];
};

/* Disks that user space has decided about, by kernel name; open addressing, KNOWN_DISK_PROBES steps. */
#define DISK_NAME_WORDS 4 /* DISK_NAME_LEN is 32 */
#define KNOWN_DISKS 4096
#define KNOWN_DISK_PROBES 8
#define DEVICE_EXCLUDED 0xffff
#define DEVICE_WITHOUT_ROW 0xfffe /* to be measured, but the tables are full: its I/Os are counted as lost */
struct known_disk {
	__u64 name[DISK_NAME_WORDS];
	__u64 identity; /* as disk_identity() in bpf/kernel/request.bpf.h; 0: any */
	__u32 device;	/* index + 1, one of the two above, or 0 for an empty entry (written last) */
	__u32 pad;
};

/* Index of a name in known_disks. */
static inline __attribute__((always_inline)) __u32 known_disk_hash(const __u64 name[DISK_NAME_WORDS])
{
	__u64 hash = name[0] * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ name[1]) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ name[2]) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ name[3]) * 0x9e3779b97f4a7c15ULL;
	return (__u32)(hash >> 52) & (KNOWN_DISKS - 1);
}

/*
 * Cache of the decision for a request queue, by queue id, and of where its requests find their slots (as in
 * device_geometry). The disk is written last and read first. On machines that reorder loads (not on x86), an I/O
 * concurrent with a queue's first may see the disk before the rest: its request is then put into a slot that is not its
 * own, and counts as a stray or a missed completion.
 */
#define QUEUE_IDS 8192
struct queue_entry {
	__u64 disk; /* identity << 16 | device as in known_disk */
	__u32 slot_base;
	__u32 slot_mask;
	__u32 slot_stride;
	__u32 pad[3];
};
#define QUEUE_ENTRY_DEVICE_BITS 16
#define QUEUE_ENTRY_IDENTITY_MASK ((1ULL << (64 - QUEUE_ENTRY_DEVICE_BITS)) - 1)

/* The host as a whole; atomic adds, all rare. */
#define HOST_DEVICE_TABLE_FULL 0
#define HOST_DEVICE_PENDING 1
#define HOST_QUEUE_ID_RANGE 2
#define HOST_DISKLESS_REQUESTS 3
#define HOST_COUNTERS 4
struct host_state {
	__u64 count[HOST_COUNTERS];
};

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
static_assert(PATH_CODES == 1 << (SLOT_CLASS_SHIFT - SLOT_PATH_SHIFT), "a slot has room for each path");
static_assert(PATH_OTHER == 0 && PATH_UNKNOWN == PATH_CODES - 1, "path_at_issue() counts on it");
static_assert(sizeof(struct io_cell) % 64 == 0, "a cell starts on a cache line");
static_assert(sizeof(struct io_cell) == 5376, "change tests/unit/kernel_memory_test.cpp too");
static_assert(sizeof(struct issue_slot) == 16, "four slots share a cache line");
static_assert(sizeof(struct device_geometry) == 32, "");
static_assert(sizeof(struct device_state) == 256, "four cache lines");
static_assert(sizeof(struct known_disk) == 48, "");
static_assert(sizeof(struct queue_entry) == 32, "two entries share a cache line");

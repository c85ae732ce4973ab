/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would the block programs count if the kernel did exactly this?
 *
 * Runs the programs themselves, compiled for this machine: one disk, one CPU, one hardware queue. The test plays the
 * kernel: it fills in a request, and decides which tracepoints fire. No program has seen an event that it leaves out.
 * Not thread-safe; fake_kernel_boot() starts from scratch.
 */
#pragma once

#include <linux/types.h>

#include "bpf/abi/block_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_TAGS 8
#define FAKE_RANGES 8
#define FAKE_EVENTS 4096 /* capacity of the ring buffer */

/* A struct request of the kernel: those of one tag reuse the same structure, except for flushes. */
struct fake_request {
  __u32 structure; /* which structure it is, less than FAKE_TAGS * 2 */
  __u32 tag;
  __u32 operation; /* the kernel's op code */
  __u32 bytes;     /* left to do */
  __u64 sector;
  __u64 start_ns;  /* 0: no timestamp */
  __u8 started;    /* the driver has, or had, it */
  __u8 had_before; /* the driver had it before this event */
  __u8 without_bio;
  __u8 way;         /* FAKE_*: how its bio was submitted */
  __u32 cgroup;     /* index in fake_cgroups of the cgroup charged for it; 0: none */
  __u8 keeps_space; /* zeroes: REQ_NOUNMAP */
  __u8 flush_stage; /* of a flush sequence */
  /* For a discard with several ranges: its bios, with the sectors and bytes given here; 0: one bio for all of it. */
  __u32 ranges;
  struct fake_range {
    __u64 sector;
    __u32 bytes;
  } range[FAKE_RANGES];
};

/* What ends the bio, and what waits for it. */
#define FAKE_UNKNOWN 0
#define FAKE_FILE_LIBAIO 1
#define FAKE_FILE_IO_URING 2
#define FAKE_FILE_SQPOLL 3
#define FAKE_FILE_SYNC 4
#define FAKE_FILE_ENGINE 5 /* a kiocb with an unknown function */
#define FAKE_RAW_IO_URING 6
#define FAKE_RAW_SYNC 7   /* a struct blkdev_dio marked so */
#define FAKE_RAW_PIECE 8  /* split off from one of FAKE_RAW_IO_URING */
#define FAKE_JOURNAL 9    /* a buffer of the journal */
#define FAKE_WRITEBACK 10 /* of a file system's page cache */
#define FAKE_WAYS 11

struct fake_cgroup {
  __u64 serial, id, parent;
  const char* name;
};
#define FAKE_CGROUPS 16
#define FAKE_SETS 64
#define FAKE_ANNOUNCEMENTS 8

extern __u64 fake_now; /* the clock, in nanoseconds */
extern struct hot_cells fake_hot;
extern struct io_cell fake_cold_cells[COLD_CLASSES];
extern struct device_state* const fake_state;
extern struct device_events fake_device_events;
extern struct write_cell fake_writes;
extern struct attribution_set fake_attributions[FAKE_SETS];
extern struct unattributed fake_unattributed;
extern struct announced_cgroup fake_announced[FAKE_ANNOUNCEMENTS];
extern struct announcements fake_announcements;
extern struct fake_cgroup fake_cgroups[FAKE_CGROUPS]; /* for the test to change */
extern struct sample_event fake_events[FAKE_EVENTS];  /* sent so far */
extern __u32 fake_events_sent;
extern __u32 fake_events_room; /* more than this are refused */

/* Called whenever a program looks something up in a table, as if user space read it at that moment. */
extern void (*fake_on_lookup)(void);

/* Called before a program reads, or adds to, a word that all CPUs share, as if this CPU were interrupted there. */
extern void (*fake_on_shared_word)(void);

void fake_kernel_boot(void);
void fake_kernel_share_slots(void); /* two tags for each */
/* I/O is attributed, in this many sets of cells; `cast`: the kernel lets programs follow pointers, since 6.2. */
void fake_kernel_attribute(__u32 sets, int cast);
/* Cache lines of a table (a map's name, or "all") that have changed since the last note. */
void fake_kernel_note(void);
__u32 fake_kernel_lines(const char* table);
void fake_kernel_issue(const struct fake_request* request);
void fake_kernel_complete(const struct fake_request* request, int error, __u32 bytes);
void fake_kernel_complete_only(const struct fake_request* request, int error, __u32 bytes);
/* A request ends at this time, while others wait for a tag, or do not: the nanoseconds that its end adds. */
__u64 fake_kernel_queue_full(int waits, __u64 now);

/* Only for the substitutes of libbpf's headers. */
void* fake_element(void* map, __u32 key);
long fake_send(void* map, const void* data, __u64 size, __u64 flags);
long fake_copy(void* to, __u32 size, const void* from);

#ifdef __cplusplus
}
#endif

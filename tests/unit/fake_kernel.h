/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would the block programs count if the kernel did exactly this?
 *
 * Runs the programs themselves, compiled for this machine: one disk, one CPU, one hardware queue. The test plays the
 * kernel: it fills in a request, and says which tracepoints fire. Whatever it leaves out, no program has seen. Not
 * thread-safe; fake_kernel_boot() begins anew.
 */
#pragma once

#include <linux/types.h>

#include "bpf/abi/block_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_TAGS 8

/* One struct request of the kernel: those of one tag are the same structure again and again, but for flushes. */
struct fake_request {
  __u32 structure; /* which structure it is, below FAKE_TAGS * 2 */
  __u32 tag;
  __u32 operation; /* the kernel's op code */
  __u32 bytes;     /* left to do */
  __u64 sector;
  __u64 start_ns;  /* 0: not stamped */
  __u8 started;    /* the driver has, or had, it */
  __u8 had_before; /* the driver had it before this event */
  __u8 without_bio;
};

extern __u64 fake_now; /* the clock, in nanoseconds */
extern struct io_cell fake_hot_cells[HOT_CLASSES];
extern struct io_cell fake_cold_cells[COLD_CLASSES];
extern struct device_state fake_state;
extern struct write_cell fake_writes;

void fake_kernel_boot(void);
void fake_kernel_share_slots(void); /* two tags for each */
void fake_kernel_issue(const struct fake_request* request);
void fake_kernel_complete(const struct fake_request* request, int error, __u32 bytes);

/* For the stand-ins of libbpf's headers alone. */
void* fake_element(void* map, __u32 key);
long fake_copy(void* to, __u32 size, const void* from);

#ifdef __cplusplus
}
#endif

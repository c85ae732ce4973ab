/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does one line of the trace hold?
 * The record that iotrace.bpf.c writes and tests/kernel/lib/trace.py reads (keep RECORD there in step).
 * It shares nothing with bpf/abi, on purpose: this is the other witness.
 */
#pragma once

enum event_type { EVENT_ISSUE = 0, EVENT_COMPLETE = 1, EVENT_REQUEUE = 2, EVENT_TYPES = 3 };

struct event {
  unsigned long long before_ns; /* clock in the program attached first; 0 if it did not see the event */
  unsigned long long after_ns;  /* clock in the program attached last */
  unsigned long long request;   /* address of the struct request */
  unsigned long long sector;
  unsigned long long start_time_ns;
  unsigned int dev; /* major << 20 | minor */
  int tag;
  int internal_tag;
  unsigned int hctx;
  unsigned int cmd_flags;
  unsigned int rq_flags;
  unsigned int data_len;
  unsigned int nr_bytes; /* completions only */
  unsigned int cpu;
  unsigned char type;
  unsigned char status;  /* completions only */
  unsigned char started; /* the driver has, or had, the request: its state is not idle */
  unsigned char flags;   /* EVENT_*, below */
};

#define EVENT_FLUSH_STAGE 1 /* a stage of a flush sequence */
#define EVENT_HAS_BIO 2
#define EVENT_HAD_BEFORE 4 /* the driver had the request before this event */

/* Counted in the kernel; the loader refuses a trace in which the first is not 0. */
struct trace_losses {
  unsigned long long ring_full;
  unsigned long long no_before;
};

#define MAX_DISKS 16

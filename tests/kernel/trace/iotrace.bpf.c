/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which requests were issued, requeued and completed, and between which two instants did each event happen?
 *
 * A full trace for tests. Every tracepoint has two programs: `before`, attached before the subject under test, notes
 * the clock; `after`, attached after the subject, reads the clock again and writes the record. Probes of a tracepoint
 * run in the order of their attachment, so the clock reading that the subject took for the same event lies in
 * [before_ns, after_ns].
 */
/* The types come first. */
/* clang-format off */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "event.h"
/* clang-format on */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile unsigned int cfg_disks[MAX_DISKS];
const volatile unsigned int cfg_disk_count;
struct trace_losses losses;

struct request___until_v5_16 {
  struct gendisk* rq_disk;
} __attribute__((preserve_access_index));

/* Named since Linux 6.11; a macro before. */
enum rqf_flags___since_6_11 { __RQF_FLUSH_SEQ___since_6_11 };
#define FLUSH_SEQ_UNTIL_6_10 (1U << 4)

struct note {
  __u64 request;
  __u64 ns;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, EVENT_TYPES);
  __type(key, __u32);
  __type(value, struct note);
} notes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 64 << 20); /* resized by the loader */
} events SEC(".maps");

/* 0 for a request without a disk, or for a disk that is not traced. */
static __always_inline __u32 traced_dev(struct request* rq) {
  struct gendisk* disk;
  __u32 dev;
  int i;

  if (bpf_core_field_exists(((struct request___until_v5_16*)0)->rq_disk))
    disk = ((struct request___until_v5_16*)rq)->rq_disk;
  else
    disk = rq->q->disk;
  if (!disk) return 0;
  dev = (__u32)disk->major << 20 | (__u32)disk->first_minor;
  for (i = 0; i < MAX_DISKS; i++)
    if (i < cfg_disk_count && cfg_disks[i] == dev) return dev;
  return 0;
}

static __always_inline bool is_flush_stage(struct request* rq) {
  if (bpf_core_enum_value_exists(enum rqf_flags___since_6_11, __RQF_FLUSH_SEQ___since_6_11))
    return (__u32)rq->rq_flags >> bpf_core_enum_value(enum rqf_flags___since_6_11, __RQF_FLUSH_SEQ___since_6_11) & 1;
  return (__u32)rq->rq_flags & FLUSH_SEQ_UNTIL_6_10;
}

static __always_inline void note_before(struct request* rq, __u32 type) {
  struct note* note;

  if (!traced_dev(rq)) return;
  note = bpf_map_lookup_elem(&notes, &type);
  if (!note) return;
  note->request = (__u64)rq;
  note->ns = bpf_ktime_get_ns();
}

static __always_inline void write_event(struct request* rq, __u32 type, __u32 status, __u32 nr_bytes) {
  __u64 now = bpf_ktime_get_ns();
  __u32 dev = traced_dev(rq);
  struct note* note;
  struct event* event;

  if (!dev) return;
  event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
  if (!event) {
    __sync_fetch_and_add(&losses.ring_full, 1);
    return;
  }
  note = bpf_map_lookup_elem(&notes, &type);
  /* An interrupt between the two programs may have noted another request. */
  if (note && note->request == (__u64)rq) {
    event->before_ns = note->ns;
    note->request = 0;
  } else {
    event->before_ns = 0;
    __sync_fetch_and_add(&losses.no_before, 1);
  }
  event->after_ns = now;
  event->request = (__u64)rq;
  event->sector = rq->__sector;
  event->start_time_ns = rq->start_time_ns;
  event->dev = dev;
  event->tag = rq->tag;
  event->internal_tag = rq->internal_tag;
  event->hctx = rq->mq_hctx ? rq->mq_hctx->queue_num : 0;
  event->cmd_flags = rq->cmd_flags;
  event->rq_flags = (__u32)rq->rq_flags;
  event->data_len = rq->__data_len;
  event->nr_bytes = nr_bytes;
  event->cpu = bpf_get_smp_processor_id();
  event->type = (__u8)type;
  event->status = (__u8)status;
  event->started = rq->state != MQ_RQ_IDLE;
  event->flags = (is_flush_stage(rq) ? EVENT_FLUSH_STAGE : 0) | (rq->bio ? EVENT_HAS_BIO : 0) |
                 (rq->deadline ? EVENT_HAD_BEFORE : 0);
  /* The loader polls the ring by itself: a wake-up per event would disturb the run. */
  bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(before_issue, struct request* rq) {
  note_before(rq, EVENT_ISSUE);
  return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(before_complete, struct request* rq) {
  note_before(rq, EVENT_COMPLETE);
  return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(before_requeue, struct request* rq) {
  note_before(rq, EVENT_REQUEUE);
  return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(after_issue, struct request* rq) {
  write_event(rq, EVENT_ISSUE, 0, 0);
  return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(after_complete, struct request* rq, int status, unsigned int nr_bytes) {
  write_event(rq, EVENT_COMPLETE, (__u32)status, nr_bytes);
  return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(after_requeue, struct request* rq) {
  write_event(rq, EVENT_REQUEUE, 0, 0);
  return 0;
}

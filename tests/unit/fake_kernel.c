/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_kernel.h"

#include <stdlib.h>
#include <string.h>

/* User space sets the programs' constants before the load, as a test does here. */
#define const
#include "bpf/block_io.bpf.c"
#undef const

#define QUEUE_ID 1

__u64 fake_now;
struct io_cell fake_hot_cells[HOT_CLASSES];
struct io_cell fake_cold_cells[COLD_CLASSES];
struct device_state fake_state;
struct write_cell fake_writes;

static struct issue_slot slots[FAKE_TAGS];
static struct tagged_cell of_hints;
static struct commit_cell of_commits;
static struct stream_ends ends;
static struct host_state host;
static struct end_function_set functions[END_FUNCTION_SETS];
static struct known_disk disks[KNOWN_DISKS];

static const struct table {
  void* map;
  void* elements;
  size_t size, count;
} tables[] = {
    {&issue_slots, slots, sizeof slots[0], FAKE_TAGS},
    {&hot_cells, fake_hot_cells, sizeof fake_hot_cells[0], HOT_CLASSES},
    {&cold_cells, fake_cold_cells, sizeof fake_cold_cells[0], COLD_CLASSES},
    {&write_cells, &fake_writes, sizeof fake_writes, 1},
    {&tagged_cells, &of_hints, sizeof of_hints, 1},
    {&commit_cells, &of_commits, sizeof of_commits, 1},
    {&streams, &ends, sizeof ends, 1},
    {&host_states, &host, sizeof host, 1},
    {&end_functions, functions, sizeof functions[0], END_FUNCTION_SETS},
    {&known_disks, disks, sizeof disks[0], KNOWN_DISKS},
    {&device_states, &fake_state, sizeof fake_state, 1},
};

/* A request begins with its queue or its disk, depending on who asks: what only some kernels have is declared apart. */
static union {
  struct request_queue queue;
  struct gendisk disk;
} queue;
static struct blk_mq_tags no_waiters;
static struct blk_mq_hw_ctx hardware_queue = {.tags = &no_waiters, .sched_tags = &no_waiters};
static struct request requests[FAKE_TAGS * 2];
static struct page page;
static struct bio_vec pages = {&page};
static struct bio___write bio = {.bi_io_vec = &pages};

void* fake_element(void* map, __u32 key) {
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i)
    if (tables[i].map == map) return key < tables[i].count ? (char*)tables[i].elements + key * tables[i].size : NULL;
  abort();
}

long fake_copy(void* to, __u32 size, const void* from) {
  memcpy(to, from, size);
  return (long)size;
}

void fake_kernel_boot(void) {
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i)
    memset(tables[i].elements, 0, tables[i].size * tables[i].count);
  memset(queue_entries, 0, sizeof queue_entries);
  memset(requests, 0, sizeof requests);
  for (__u32 code = 0; code <= OPERATION_MASK; ++code) cfg_class_of_op[code] = CLASS_ZONE;
  cfg_class_of_op[0] = CLASS_READ;
  cfg_class_of_op[1] = CLASS_WRITE;
  cfg_class_of_op[2] = CLASS_FLUSH;
  cfg_class_of_op[3] = CLASS_DISCARD;
  cfg_class_of_op[9] = CLASS_WRITE_ZEROES;
  queue.disk = (struct gendisk){.major = QUEUE_ID, .disk_name = "fake0"};
  fake_state.geometry = (struct device_geometry){.slot_mask = FAKE_TAGS - 1,
                                                 .slot_stride = FAKE_TAGS,
                                                 .flags = SLOTS_EXACT,
                                                 .write_granularity = 4096,
                                                 .write_alignment = 4096};
  queue_entries[QUEUE_ID] = (struct queue_entry){.disk = disk_identity(&queue.disk) << QUEUE_ENTRY_DEVICE_BITS | 1,
                                                 .slot_mask = FAKE_TAGS - 1,
                                                 .slot_stride = FAKE_TAGS};
  fake_now = 1000000;
}

void fake_kernel_share_slots(void) {
  fake_state.geometry.flags = 0;
  fake_state.geometry.slot_mask = queue_entries[QUEUE_ID].slot_mask = FAKE_TAGS / 2 - 1;
}

static struct request* kernels(const struct fake_request* request) {
  struct request* rq = &requests[request->structure];

  *rq = (struct request){.q = &queue.queue,
                         .mq_hctx = &hardware_queue,
                         .cmd_flags = request->operation,
                         .tag = (int)request->tag,
                         .internal_tag = -1,
                         .__data_len = request->bytes,
                         .__sector = request->sector,
                         .bio = request->without_bio ? NULL : (struct bio*)&bio,
                         .start_time_ns = request->start_ns,
                         .state = request->started ? 1 : MQ_RQ_IDLE,
                         .deadline = request->had_before};
  return rq;
}

void fake_kernel_issue(const struct fake_request* request) { on_issue(kernels(request)); }

void fake_kernel_complete(const struct fake_request* request, int error, __u32 bytes) {
  on_complete(kernels(request), error, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_kernel.h"

#include <stdlib.h>
#include <string.h>

void (*fake_on_shared_word)(void);
static void shared_word(void) {
  if (fake_on_shared_word) fake_on_shared_word();
}
#define READ_ONCE_U64(word) (shared_word(), *(volatile __u64*)&(word))
#define __sync_fetch_and_add(word, more) (shared_word(), __sync_fetch_and_add(word, more))

/* User space sets the programs' constants before loading them, and so does a test here. */
#define const
#include "bpf/block_io.bpf.c"
#undef const

#define QUEUE_ID 1

__u64 fake_now;
struct hot_cells fake_hot;
struct io_cell fake_cold_cells[COLD_CLASSES];
struct device_events fake_device_events;
struct write_cell fake_writes;
struct attribution_set fake_attributions[FAKE_SETS];
struct unattributed fake_unattributed;
struct announced_cgroup fake_announced[FAKE_ANNOUNCEMENTS];
struct announcements fake_announcements;
struct fake_cgroup fake_cgroups[FAKE_CGROUPS];
struct sample_event fake_events[FAKE_EVENTS];
__u32 fake_events_sent;
__u32 fake_events_room;
void (*fake_on_lookup)(void);
struct device_state* const fake_state = &device_states[0];

static struct issue_slot slots[FAKE_TAGS];
static struct tagged_cell of_hints;
static struct commit_cell of_commits;
static struct stream_ends ends;
static struct host_state host;
static struct end_function_set functions[END_FUNCTION_SETS];
static struct known_disk disks[KNOWN_DISKS];

static struct table {
  const char* name;
  void* map;
  void* elements;
  size_t size, count;
  void* before;
} tables[] = {
    {"issue_slots", &issue_slots, slots, sizeof slots[0], FAKE_TAGS, NULL},
    {"hot_cells", &hot_cells, &fake_hot, sizeof fake_hot, 1, NULL},
    {"cold_cells", &cold_cells, fake_cold_cells, sizeof fake_cold_cells[0], COLD_CLASSES, NULL},
    {"write_cells", &write_cells, &fake_writes, sizeof fake_writes, 1, NULL},
    {"tagged_cells", &tagged_cells, &of_hints, sizeof of_hints, 1, NULL},
    {"commit_cells", &commit_cells, &of_commits, sizeof of_commits, 1, NULL},
    {"streams", &streams, &ends, sizeof ends, 1, NULL},
    {"host_states", &host_states, &host, sizeof host, 1, NULL},
    {"end_functions", &end_functions, functions, sizeof functions[0], END_FUNCTION_SETS, NULL},
    {"known_disks", &known_disks, disks, sizeof disks[0], KNOWN_DISKS, NULL},
    {"device_states", NULL, device_states, sizeof device_states[0], 1, NULL},
    {"rare_events", &rare_events, &fake_device_events, sizeof fake_device_events, 1, NULL},
    {"attributions", &attributions, fake_attributions, sizeof fake_attributions[0], FAKE_SETS, NULL},
    {"unattributed_cells", &unattributed_cells, &fake_unattributed, sizeof fake_unattributed, 1, NULL},
    {"announced_cgroups", &announced_cgroups, fake_announced, sizeof fake_announced[0], FAKE_ANNOUNCEMENTS, NULL},
    {"announcement_states", &announcement_states, &fake_announcements, sizeof fake_announcements, 1, NULL},
};

/* A request begins with its queue or its disk, depending on the reader: fields of only some kernels are separate. */
static union {
  struct request_queue queue;
  struct gendisk disk;
} queue;
static struct blk_mq_tags no_waiters;
static struct blk_mq_hw_ctx hardware_queue = {.tags = &no_waiters, .sched_tags = &no_waiters};
static struct request requests[FAKE_TAGS * 2];
static struct page page;
static struct bio_vec pages = {&page};

/* What waits for a bio, by FAKE_*. Of the kernel's functions only the addresses matter. */
static struct io_ring_ctx ring, polled_ring = {.flags = SETUP_SQPOLL};
static struct io_kiocb iocbs[FAKE_WAYS] = {[FAKE_FILE_IO_URING] = {.ctx = &ring},
                                           [FAKE_FILE_SQPOLL] = {.ctx = &polled_ring},
                                           [FAKE_RAW_IO_URING] = {.ctx = &ring},
                                           [FAKE_RAW_PIECE] = {.ctx = &ring}};
static struct iomap_dio file_dios[FAKE_WAYS];
static struct buffer_head journal_buffer;
struct maker {
  struct blkdev_dio dio; /* its bio is the first, or the one from which others were split off */
  struct bio___write piece;
  struct cgroup_subsys_state parent;
  struct cgroup parent_directory;
  struct kernfs_node parent_node;
  struct blkcg_gq charged;
  struct blkcg blkcg;
  struct cgroup directory;
  struct kernfs_node node;
};
static struct maker makers[FAKE_TAGS * 2];

enum function {
  IOMAP_DIO = 1,
  BLKDEV_ASYNC,
  BLKDEV,
  CHAIN,
  BUFFER,
  JOURNAL,
  PAGES,
  LIBAIO,
  IO_URING,
  UNKNOWN,
  FUNCTIONS
};
static const __u8 shown[FUNCTIONS] = {
    [IOMAP_DIO] = END_IOMAP_DIO << END_PATH_SHIFT | (WRITE_DIRECT + 1),
    [BLKDEV_ASYNC] = END_BLKDEV_ASYNC << END_PATH_SHIFT | (WRITE_DIRECT + 1),
    [BLKDEV] = END_BLKDEV_DIO << END_PATH_SHIFT | (WRITE_DIRECT + 1),
    [CHAIN] = END_CHAIN << END_PATH_SHIFT,
    [BUFFER] = END_BUFFER << END_PATH_SHIFT,
    [JOURNAL] = END_JOURNAL << END_PATH_SHIFT,
    [PAGES] = END_PAGES << END_PATH_SHIFT | (WRITE_WRITEBACK + 1),
    [LIBAIO] = END_KI_LIBAIO << END_PATH_SHIFT,
    [IO_URING] = END_KI_IO_URING << END_PATH_SHIFT,
};

static __u32 address_of_function(enum function function) { return 0x81000000U + 0x40U * function; }
static void* pointer_to(enum function function) { return (void*)(unsigned long)address_of_function(function); }

void* bpf_rdonly_cast(void* pointer, __u32 type) {
  (void)type;
  return pointer;
}
static struct bio___write bios[FAKE_RANGES];

void* fake_element(void* map, __u32 key) {
  if (fake_on_lookup) fake_on_lookup();
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i)
    if (tables[i].map == map) return key < tables[i].count ? (char*)tables[i].elements + key * tables[i].size : NULL;
  abort();
}

long fake_send(void* map, const void* data, __u64 size, __u64 flags) {
  if (map != &samples || size != sizeof fake_events[0] || flags != BPF_RB_NO_WAKEUP) abort();
  if (fake_events_sent >= fake_events_room) return -11; /* EAGAIN */
  memcpy(&fake_events[fake_events_sent++], data, size);
  return 0;
}

long fake_copy(void* to, __u32 size, const void* from) {
  strncpy(to, from, size);
  return (long)strlen(from);
}

void fake_kernel_boot(void) {
  fake_on_lookup = fake_on_shared_word = NULL;
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
  cfg_request.rare_flags = 0xfe | REQUEST_FLAG(__REQ_FUA);
  cfg_request.examined = cfg_flush_sequence_flag;
  queue.disk = (struct gendisk){.major = QUEUE_ID, .disk_name = "fake0"};
  fake_state->geometry = (struct device_geometry){.slot_mask = FAKE_TAGS - 1,
                                                  .slot_stride = FAKE_TAGS,
                                                  .flags = SLOTS_EXACT,
                                                  .write_granularity = 4096,
                                                  .write_alignment = 4096};
  queue_entries[QUEUE_ID] = (struct queue_entry){.disk = disk_identity(&queue.disk) << QUEUE_ENTRY_DEVICE_BITS | 1,
                                                 .slot_mask = FAKE_TAGS - 1,
                                                 .slot_stride = FAKE_TAGS};
  fake_events_sent = 0;
  fake_events_room = FAKE_EVENTS;
  fake_now = 1000000;
  cfg_attribution = false;
}

void fake_kernel_attribute(__u32 sets, int cast) {
  static const enum function of_iocb[FAKE_WAYS] = {
      [FAKE_FILE_LIBAIO] = LIBAIO,  [FAKE_FILE_IO_URING] = IO_URING, [FAKE_FILE_SQPOLL] = IO_URING,
      [FAKE_FILE_ENGINE] = UNKNOWN, [FAKE_RAW_IO_URING] = IO_URING,  [FAKE_RAW_PIECE] = IO_URING};
  cfg_attribution = true;
  cfg_attribution_sets = sets;
  cfg_announced = FAKE_ANNOUNCEMENTS;
  cfg_has_cast = cast;
  cfg_end_iomap_dio = address_of_function(IOMAP_DIO);
  for (__u32 function = IOMAP_DIO; function < FUNCTIONS; ++function) {
    const __u32 address = address_of_function(function);
    for (__u32 way = 0; shown[function] && way < END_FUNCTION_WAYS; ++way) {
      __u64* entry = &functions[end_function_hash(address)].entry[way];
      if (*entry) continue;
      *entry = (__u64)address << 8 | shown[function];
      break;
    }
  }
  for (__u32 way = 0; way < FAKE_WAYS; ++way) {
    iocbs[way].begins_with.ki_complete = of_iocb[way] ? pointer_to(of_iocb[way]) : NULL;
    file_dios[way].iocb = &iocbs[way].begins_with;
  }
  journal_buffer.b_end_io = pointer_to(JOURNAL);
}

static void charge(struct maker* maker, const struct fake_cgroup* cgroup) {
  maker->node = (struct kernfs_node){.name = (char*)cgroup->name, .id = cgroup->id};
  maker->directory.kn = &maker->node;
  maker->parent_node.id = cgroup->parent;
  maker->parent_directory.kn = &maker->parent_node;
  maker->parent.cgroup = &maker->parent_directory;
  maker->blkcg.css =
      (struct cgroup_subsys_state){.cgroup = &maker->directory, .serial_nr = cgroup->serial, .parent = &maker->parent};
  maker->charged.blkcg = &maker->blkcg;
}

static struct bio___write* submitted(const struct fake_request* request) {
  struct maker* maker = &makers[request->structure];
  struct bio___write* bio = &maker->dio.bio;

  charge(maker, &fake_cgroups[request->cgroup]);
  *bio = (struct bio___write){.bi_io_vec = &pages, .bi_blkg = &maker->charged};
  maker->dio.iocb = &iocbs[request->way].begins_with;
  maker->dio.flags = request->way == FAKE_RAW_SYNC ? BLKDEV_DIO_IS_SYNC : 0;
  switch (request->way) {
    case FAKE_FILE_LIBAIO:
    case FAKE_FILE_IO_URING:
    case FAKE_FILE_SQPOLL:
    case FAKE_FILE_SYNC:
    case FAKE_FILE_ENGINE:
      bio->bi_end_io = pointer_to(IOMAP_DIO);
      bio->bi_private = &file_dios[request->way];
      break;
    case FAKE_RAW_SYNC:
      bio->bi_end_io = pointer_to(BLKDEV);
      bio->bi_private = &maker->dio;
      break;
    case FAKE_RAW_IO_URING:
    case FAKE_RAW_PIECE:
      bio->bi_end_io = pointer_to(BLKDEV_ASYNC);
      break;
    case FAKE_JOURNAL:
      bio->bi_end_io = pointer_to(BUFFER);
      bio->bi_private = &journal_buffer;
      break;
    case FAKE_WRITEBACK:
      bio->bi_end_io = pointer_to(PAGES);
      break;
  }
  if (request->way != FAKE_RAW_PIECE) return bio;
  maker->piece = *bio;
  maker->piece.bi_end_io = pointer_to(CHAIN);
  maker->piece.bi_private = bio;
  return &maker->piece;
}

void fake_kernel_share_slots(void) {
  fake_state->geometry.flags = 0;
  fake_state->geometry.slot_mask = queue_entries[QUEUE_ID].slot_mask = FAKE_TAGS / 2 - 1;
}

void fake_kernel_note(void) {
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i) {
    const size_t bytes = tables[i].size * tables[i].count;
    tables[i].before = realloc(tables[i].before, bytes);
    memcpy(tables[i].before, tables[i].elements, bytes);
  }
}

__u32 fake_kernel_lines(const char* name) {
  __u32 lines = 0;
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; ++i) {
    const size_t bytes = tables[i].size * tables[i].count;
    if (strcmp(name, "all") != 0 && strcmp(name, tables[i].name) != 0) continue;
    for (size_t at = 0; at < bytes; at += 64) {
      const size_t rest = bytes - at < 64 ? bytes - at : 64;
      lines += memcmp((char*)tables[i].elements + at, (char*)tables[i].before + at, rest) != 0;
    }
  }
  return lines;
}

static struct request* kernels(const struct fake_request* request) {
  struct request* rq = &requests[request->structure];
  __u32 ranges = request->ranges ? request->ranges : 1;

  struct bio___write* first = submitted(request);

  for (__u32 i = 0; i < ranges; ++i) {
    struct bio___write* bio = i == 0 ? first : &bios[i];
    if (i > 0) *bio = (struct bio___write){.bi_io_vec = &pages};
    bio->bi_next = i + 1 < ranges ? &bios[i + 1] : NULL;
    bio->bi_iter.bi_sector = request->ranges ? request->range[i].sector : request->sector;
    bio->bi_iter.bi_size = request->ranges ? request->range[i].bytes : request->bytes;
  }
  *rq = (struct request){.q = &queue.queue,
                         .mq_hctx = &hardware_queue,
                         .cmd_flags = request->operation | (request->keeps_space ? REQUEST_FLAG(__REQ_NOUNMAP) : 0),
                         .rq_flags = request->flush_stage ? cfg_flush_sequence_flag : 0,
                         .tag = (int)request->tag,
                         .internal_tag = -1,
                         .__data_len = request->bytes,
                         .__sector = request->sector,
                         .bio = request->without_bio ? NULL : (struct bio*)first,
                         .nr_phys_segments = request->ranges,
                         .start_time_ns = request->start_ns,
                         .state = request->started ? 1 : MQ_RQ_IDLE,
                         .deadline = request->had_before};
  return rq;
}

void fake_kernel_issue(const struct fake_request* request) { on_issue(kernels(request)); }

void fake_kernel_complete(const struct fake_request* request, int error, __u32 bytes) {
  on_complete(kernels(request), error, bytes);
}

void fake_kernel_complete_only(const struct fake_request* request, int error, __u32 bytes) {
  on_complete_only(kernels(request), error, bytes);
}

__u64 fake_kernel_queue_full(int waits, __u64 now) {
  struct blk_mq_tags tags = {.bitmap_tags = {.ws_active = {waits}}};
  struct blk_mq_hw_ctx queue_of_request = {.tags = &tags};
  struct request ended = {.mq_hctx = &queue_of_request, .internal_tag = -1};

  return queue_full_ns(&ended, fake_state, now);
}

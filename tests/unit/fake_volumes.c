/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_volumes.h"

#include <stdlib.h>
#include <string.h>

/* A kernel's hash table, of which the programs need three functions. */
static int fake_update(__u64 key, __u64 value);
static void fake_delete(__u64 key);
#define bpf_map_update_elem(map, key, value, flags) fake_update(*(key), *(value))
#define bpf_map_delete_elem(map, key) fake_delete(*(key))

/* User space sets the programs' constants before loading them, and so does a test here. */
#define const
#include "bpf/volume.bpf.c"
#undef const

#define CELLS (FAKE_ROWS * (VOLUME_HOT_CLASSES + VOLUME_COLD_CLASSES))

__u64 fake_now;
static int is_old;
static __u64 devices[DEVICE_ROW_ENTRIES];
static struct volume_cell cells[CELLS];
static struct bio_set set;
static struct { __u64 key, value; } entries[FAKE_BIOS / 2];
static struct block_device block_devices[FAKE_STRANGER + 1];
static struct bio structures[FAKE_BIOS];

/* The key of a hash table is an address, of which the low half says enough here. */
static __u64* entry_of(__u32 key) {
  for (__u32 i = 0; i < FAKE_BIOS / 2; ++i)
    if ((__u32)entries[i].key == key) return &entries[i].value;
  return NULL;
}

void* fake_element(void* map, __u32 key) {
  if (map == &volume_devices) return &devices[key];
  if (map == &volume_cells) return key < CELLS ? &cells[key] : NULL;
  if (map == &bio_sets) return key == 0 ? &set : NULL;
  if (map == &bios) return entry_of(key);
  abort();
}

static int fake_update(__u64 key, __u64 value) {
  for (__u32 i = 0; i < FAKE_BIOS / 2; ++i) {
    if (entries[i].key) continue;
    entries[i].key = key;
    entries[i].value = value;
    return 0;
  }
  return -7; /* E2BIG */
}

static void fake_delete(__u64 key) {
  for (__u32 i = 0; i < FAKE_BIOS / 2; ++i)
    if (entries[i].key == key) entries[i].key = 0;
}

static void enter(__u32 device, __u32 row) {
  devices[device_row_hash(device)] = (__u64)(row + 1) << DEVICE_ROW_SHIFT | device;
}

void fake_volumes_boot(int old) {
  is_old = old;
  memset(devices, 0, sizeof devices);
  memset(cells, 0, sizeof cells);
  memset(&set, 0, sizeof set);
  memset(entries, 0, sizeof entries);
  enter(FAKE_VOLUME, 0);
  enter(FAKE_MEMBER, 1);
  for (__u32 device = 0; device <= FAKE_STRANGER; ++device) block_devices[device].bd_dev = device;
  for (__u32 code = 0; code <= OPERATION_MASK; ++code) cfg_class_of_op[code] = 7;
  for (__u32 code = 0; code < 4; ++code) cfg_class_of_op[code] = (__u8)code;
  for (__u32 bio = 0; bio < FAKE_BIOS; ++bio) structures[bio].bi_end_io = NULL;
  cfg_preflush = FAKE_PREFLUSH;
  cfg_silent_end = 1;
  fake_now = 1000000;
}

void fake_volumes_submit(__u32 bio, __u32 device, __u32 operation, __u32 bytes) {
  struct bio* one = &structures[bio];
  one->bi_bdev = &block_devices[device];
  one->bi_opf = operation;
  one->bi_iter.bi_size = bytes;
  one->__bi_remaining.counter = 1;
  if (is_old)
    on_volume_submit_hash_5_10(NULL, one);
  else
    on_volume_submit(one);
}

void fake_volumes_end(__u32 bio, __u32 device, __u8 status) {
  struct bio* one = &structures[bio];
  one->bi_bdev = &block_devices[device];
  one->bi_iter.bi_size = 0;
  one->bi_status = status;
  if (is_old)
    on_volume_end_hash(NULL, one);
  else
    on_volume_end(NULL, one);
}

static void end_chain(struct bio* bio) { (void)bio; }

void fake_volumes_chain(__u32 bio) {
  structures[bio].bi_end_io = end_chain;
  cfg_silent_end = low_bits(end_chain);
}

void fake_volumes_split(__u32 bio) { structures[bio].__bi_remaining.counter = 2; }

void fake_volumes_request_end(__u32 first, __u32 bios, __u32 ended_bytes, int error, int flush_stage) {
  struct request request = {.bio = &structures[first], .rq_flags = flush_stage ? cfg_flush_sequence_flag : 0};
  for (__u32 i = 0; i < bios; ++i) structures[first + i].bi_next = i + 1 < bios ? &structures[first + i + 1] : NULL;
  if (is_old)
    on_volume_request_end_hash(&request, error, ended_bytes);
  else
    on_volume_request_end(&request, error, ended_bytes);
}

const struct volume_cell* fake_volumes_cell(__u32 row, __u32 operation_class) {
  return &cells[row * (VOLUME_HOT_CLASSES + VOLUME_COLD_CLASSES) + operation_class];
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to a file or device in a way that fio cannot express: under a lifetime hint of the inode, or into a write
 * stream through io_uring. Also makes the kernel swap. For guests, which have no Python.
 *
 *   tagged_write FILE BYTES [block=N] [offset=N] [hint=N] [stream=N] [direct]     then fsync
 *   tagged_write swap BYTES                                                       anonymous memory, asked to be paged
 * out
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_RW_HINT (1024 + 12)
#define PAGEOUT 21
#define STREAM_OFFSET 44 /* of sqe->write_stream, Linux 6.16; shared with splice_fd_in */

static void* memory(size_t bytes) {
  char* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) err(1, "mmap");
  madvise(data, bytes, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < bytes; i += 8) memcpy(data + i, &(uint64_t){i * 0x9e3779b97f4a7c15ULL}, 8);
  return data;
}

static void swap_out(size_t bytes) {
  char* data = memory(bytes);
  if (madvise(data, bytes, PAGEOUT) != 0) err(1, "MADV_PAGEOUT");
  sleep(1);
}

/* One write at a time: a ring of one entry. */
static void write_to_stream(int ring, struct io_uring_params* p, int fd, void* data, size_t bytes, off_t at,
                            int stream) {
  static char *sq, *cq;
  static struct io_uring_sqe* sqe;
  if (sq == NULL) {
    sq = mmap(NULL, p->sq_off.array + 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    cq = mmap(NULL, p->cq_off.cqes + 4 * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
              IORING_OFF_CQ_RING);
    sqe = mmap(NULL, sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || (void*)sqe == MAP_FAILED) err(1, "io_uring mmap");
  }
  memset(sqe, 0, sizeof(*sqe));
  sqe->opcode = IORING_OP_WRITE;
  sqe->fd = fd;
  sqe->addr = (uintptr_t)data;
  sqe->len = (uint32_t)bytes;
  sqe->off = (uint64_t)at;
  ((unsigned char*)sqe)[STREAM_OFFSET] = (unsigned char)stream;
  ((uint32_t*)(sq + p->sq_off.array))[0] = 0;
  __atomic_fetch_add((uint32_t*)(sq + p->sq_off.tail), 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) err(1, "io_uring_enter");
  uint32_t* head = (uint32_t*)(cq + p->cq_off.head);
  struct io_uring_cqe* done = (struct io_uring_cqe*)(cq + p->cq_off.cqes);
  int result = done[*head & (p->cq_entries - 1)].res;
  __atomic_fetch_add(head, 1, __ATOMIC_RELEASE);
  if (result != (int)bytes) errx(1, "stream %d: %s", stream, result < 0 ? strerror(-result) : "short write");
}

int main(int argc, char** argv) {
  if (argc < 3) errx(2, "usage: tagged_write FILE BYTES [block=N] [offset=N] [hint=N] [stream=N] [direct]");
  size_t bytes = strtoull(argv[2], NULL, 0), block = bytes;
  off_t offset = 0;
  uint64_t hint = 0;
  int stream = 0, flags = O_RDWR, hinted = 0;
  if (strcmp(argv[1], "swap") == 0) {
    swap_out(bytes);
    return 0;
  }
  for (char** argument = argv + 3; *argument; ++argument) {
    const char* value = strchr(*argument, '=');
    value = value ? value + 1 : "";
    if (strncmp(*argument, "block=", 6) == 0)
      block = strtoull(value, NULL, 0);
    else if (strncmp(*argument, "offset=", 7) == 0)
      offset = strtoll(value, NULL, 0);
    else if (strncmp(*argument, "hint=", 5) == 0)
      hint = strtoull(value, NULL, 0), hinted = 1;
    else if (strncmp(*argument, "stream=", 7) == 0)
      stream = atoi(value);
    else if (strcmp(*argument, "direct") == 0)
      flags |= O_DIRECT;
    else
      errx(2, "what is %s?", *argument);
  }
  /* A file is created; a device must exist, and O_CREAT would hide that it does not. */
  int fd = open(argv[1], flags | (strncmp(argv[1], "/dev/", 5) == 0 ? 0 : O_CREAT), 0600);
  if (fd < 0) err(1, "%s", argv[1]);
  if (hinted && fcntl(fd, SET_RW_HINT, &hint) != 0) err(1, "F_SET_RW_HINT %llu", (unsigned long long)hint);
  struct io_uring_params parameters = {0};
  int ring = stream ? (int)syscall(SYS_io_uring_setup, 1, &parameters) : -1;
  if (stream && ring < 0) err(1, "io_uring_setup");
  char* data = memory(block);
  for (size_t done = 0; done < bytes; done += block) {
    if (stream)
      write_to_stream(ring, &parameters, fd, data, block, offset + (off_t)done, stream);
    else if (pwrite(fd, data, block, offset + (off_t)done) != (ssize_t)block)
      err(1, "write");
  }
  if (fsync(fd) != 0) err(1, "fsync");
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends all kinds of messages to the NVMe log reader, over its socket, and checks the answers against rules of its own.
 * For guests, which have no Python:   reader_fuzz SEED MESSAGES CONTROLLERS
 *
 * A reader limits how many commands it sends, so there is another one for every few messages; the last one is flooded.
 * Prints the commands that must have reached the drives, "identify CNS TIMES" or "log LID LSP BYTES TIMES", and in the
 * last line "fuzzed ..."; stops with exit code 1 at the first answer that is wrong.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MARK 0x3152504e
#define RESPONSE_MARK 0x3153504e
#define WINDOW 16
#define MESSAGES_OF_ONE (12 * WINDOW) /* fewer than its burst of commands to one drive */
#define BURST 240                     /* commands to one drive at once */
#define A_SECOND 10                   /* and in the long run */
#define FLOOD 2000
#define LONGEST 70000

struct request {
  uint32_t mark, controller;
  uint64_t id;
  uint32_t nsid;
  uint16_t page, group;
  uint8_t kind, uuid, reserved[2];
  uint32_t version;
};

struct response {
  uint32_t mark;
  int32_t result;
  uint64_t id, began, ended;
  uint32_t bytes, version;
  uint8_t data[4096];
};

/* In the order of the reader's own list: the parameters with which each page is requested. */
static const struct page {
  uint8_t lid, lsp;
  uint16_t bytes;
  bool of_group, by_uuid;
} pages[] = {
    {0x02, 0, 512, false, false},  {0x20, 0, 4096, true, false},  {0x21, 0, 4096, true, false},
    {0x22, 0, 64, true, false},    {0x23, 1, 4096, true, false},  {0x23, 0, 4096, true, false},
    {0xc0, 0, 512, false, true},   {0xc0, 0, 512, false, false},  {0xca, 0, 512, false, true},
    {0xca, 0, 512, false, false},  {0xca, 0, 512, false, false},  {0xca, 0, 512, false, false},
    {0xca, 0, 512, false, false},  {0xca, 0, 512, false, false},  {0xca, 0, 512, false, false},
    {0xfb, 0, 512, false, false},  {0xd0, 0, 512, false, false},  {0xca, 0, 512, false, false},
    {0xca, 0, 512, false, false},  {0xfb, 0, 512, false, false},  {0xd0, 0, 512, false, false},
    {0xc4, 0, 512, false, false},  {0xc0, 0, 2048, false, false}, {0x09, 0, 512, true, false},
    {0xd0, 0, 4096, false, false},
};
enum { PAGES = sizeof pages / sizeof *pages };
static const uint8_t cns_of_kind[] = {0x01, 0x00, 0x17, 0x19};

static uint32_t version; /* the reader's */
static uint64_t state;
static uint64_t identified[4], logged[PAGES];

static uint64_t any(uint64_t below) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return below ? z % below : z;
}

/* Mostly what a request may contain, and values next to that. */
static struct request plausible(uint64_t number, unsigned controllers) {
  static const uint32_t nsids[] = {0, 0, 0, 1, 2, 0xffffffff, 0xfffffffe};
  static const uint16_t groups[] = {0, 0, 1, 1, 2, 0xffff};
  static const uint8_t uuids[] = {0, 0, 0, 1, 127, 128, 255};
  struct request r = {
      REQUEST_MARK, (uint32_t)any(controllers + 1), number, 0, 0, 0, (uint8_t)(any(3) ? any(7) : 4), 0, {0}, version};
  r.page = (uint16_t)(r.kind == 4 || any(10) == 0 ? any(PAGES + 3) : 0);
  if (r.kind == 1 || any(10) == 0) r.nsid = nsids[any(7)];
  if (r.kind == 4 || any(10) == 0) r.group = groups[any(6)];
  if (r.kind == 4 || any(10) == 0) r.uuid = uuids[any(7)];
  if (any(20) == 0) r.reserved[any(2)] = (uint8_t)any(0);
  if (any(50) == 0) r.id = 0;
  if (any(50) == 0) r.version = (uint32_t)any(0);
  if (any(20) == 0) ((uint8_t*)&r)[any(sizeof r)] ^= (uint8_t)(1U << any(8));
  if (r.id) r.id = number; /* distinguishes the answers */
  return r;
}

static bool allowed(const struct request* r) {
  for (unsigned i = 0; i < sizeof r->reserved; ++i)
    if (r->reserved[i]) return false;
  if (r->id == 0 || r->kind > 4) return false;
  if (r->kind == 4) {
    if (r->page >= PAGES || r->nsid) return false;
    const struct page* page = &pages[r->page];
    return page->of_group == (r->group != 0) && r->uuid <= (page->by_uuid ? 127 : 0);
  }
  if (r->page || r->group || r->uuid) return false;
  return r->kind == 1 ? r->nsid != 0 && r->nsid != 0xffffffff : r->nsid == 0;
}

static pid_t start_reader(int* socket) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) err(1, "socketpair");
  pid_t pid = fork();
  if (pid < 0) err(1, "fork");
  if (pid == 0) {
    close(ends[0]);
    if (ends[1] != 3) dup2(ends[1], 3), close(ends[1]);
    execlp("ssdpulse", "ssdpulse", "nvme-reader", (char*)NULL);
    err(1, "ssdpulse");
  }
  close(ends[1]);
  *socket = ends[0];
  return pid;
}

/* Every answer contains it, even one to a request without a version. */
static uint32_t version_of_reader(int socket) {
  static struct response r;
  const struct request nothing = {.mark = REQUEST_MARK};
  if (send(socket, &nothing, sizeof nothing, MSG_NOSIGNAL) != sizeof nothing) err(1, "send");
  if (recv(socket, &r, sizeof r, 0) != sizeof r || r.result != -EPROTO) errx(1, "no version, result %d", r.result);
  return r.version;
}

/* One answer, checked against the request that it names. */
static void judge(int socket, struct request* waiting, unsigned controllers) {
  static struct response r;
  struct pollfd end = {socket, POLLIN, 0};
  if (poll(&end, 1, 60000) != 1) errx(1, "no answer");
  ssize_t length = recv(socket, &r, sizeof r, MSG_TRUNC);
  if (length != sizeof r || r.mark != RESPONSE_MARK) errx(1, "an answer of %zd bytes, mark %x", length, r.mark);
  struct request* asked = NULL;
  for (unsigned i = 0; i < WINDOW && !asked; ++i)
    if (waiting[i].mark && waiting[i].id == r.id) asked = &waiting[i];
  if (!asked) errx(1, "an answer to nothing: id %llu result %d", (unsigned long long)r.id, r.result);
  const bool may = allowed(asked), is_there = asked->controller < controllers;
  const bool sent = r.began != 0;
  if (asked->version != version ? r.result != -EPROTO || sent
      : !may                    ? r.result != -EINVAL || sent
      : !is_there               ? r.result != -ENODEV || sent
                                : r.result < 0 || !sent)
    errx(1, "kind %u controller %u nsid %u page %u group %u uuid %u: result %d, %ssent", asked->kind, asked->controller,
         asked->nsid, asked->page, asked->group, asked->uuid, r.result, sent ? "" : "not ");
  if ((r.result == 0) != (r.bytes != 0)) errx(1, "result %d with %u bytes", r.result, r.bytes);
  if (sent) ++*(asked->kind == 4 ? &logged[asked->page] : &identified[asked->kind]);
  asked->mark = 0;
}

static void end_reader(pid_t reader, int socket) {
  if (kill(reader, 0)) err(1, "the reader is gone");
  close(socket);
  if (waitpid(reader, NULL, 0) != reader) err(1, "waitpid");
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A drive gets its burst, and what the seconds add; all else is answered with EDQUOT. Returns how many it got. */
static unsigned flood(int socket) {
  static struct response r;
  unsigned sent = 0;
  const double begin = now();
  for (uint64_t id = 1; id <= FLOOD; ++id) {
    const struct request one = {REQUEST_MARK, 0, id, 0, 0, 0, 4, 0, {0}, version};
    if (send(socket, &one, sizeof one, MSG_NOSIGNAL) != sizeof one) err(1, "send");
    if (recv(socket, &r, sizeof r, 0) != sizeof r) errx(1, "no answer to a flood");
    if (r.began == 0 && r.result != -EDQUOT) errx(1, "in a flood, result %d", r.result);
    sent += r.began != 0;
  }
  const double most = BURST + 1 + A_SECOND * (now() - begin);
  if (sent < BURST || sent > most) errx(1, "a flood of %d: %u sent, at most %.0f may be", FLOOD, sent, most);
  logged[0] += sent;
  return sent;
}

int main(int argc, char** argv) {
  if (argc != 4) errx(2, "reader_fuzz SEED MESSAGES CONTROLLERS");
  state = strtoull(argv[1], NULL, 0);
  const uint64_t messages = strtoull(argv[2], NULL, 0);
  const unsigned controllers = (unsigned)strtoul(argv[3], NULL, 0);
  static uint8_t garbage[LONGEST];
  int socket;
  pid_t reader = start_reader(&socket);
  version = version_of_reader(socket);
  uint64_t requests = 0, refused = 0, absent = 0, malformed = 0;
  for (uint64_t sent = 0; sent < messages;) {
    struct request waiting[WINDOW] = {0};
    unsigned expected = 0;
    if (sent % MESSAGES_OF_ONE == 0 && sent > 0) {
      end_reader(reader, socket);
      reader = start_reader(&socket);
    }
    for (unsigned i = 0; i < WINDOW && sent < messages; ++i, ++sent) {
      const bool is_garbage = any(4) == 0;
      struct request r = plausible(sent + 1, controllers);
      const void* data = &r;
      size_t size = sizeof r;
      if (is_garbage) {
        size = any(50) ? any(100) : any(LONGEST);
        for (size_t at = 0; at < size; at += 8)
          memcpy(garbage + at, &(uint64_t){any(0)}, size - at < 8 ? size - at : 8);
        if (any(2) && size >= 4) memcpy(garbage, &(uint32_t){REQUEST_MARK}, 4);
        if (size == sizeof r) {
          memcpy(garbage + offsetof(struct request, id), &r.id, sizeof r.id);
          memcpy(&r, garbage, size);
        }
        data = garbage;
      }
      if (send(socket, data, size, MSG_NOSIGNAL) != (ssize_t)size) err(1, "send %zu bytes", size);
      if (size != sizeof r || r.mark != REQUEST_MARK) {
        ++malformed;
        continue;
      }
      waiting[i] = r;
      ++expected;
      ++requests;
      if (r.version != version || !allowed(&r))
        ++refused;
      else if (r.controller >= controllers)
        ++absent;
    }
    while (expected--) judge(socket, waiting, controllers);
  }
  end_reader(reader, socket);
  reader = start_reader(&socket);
  const unsigned flooded = flood(socket);
  end_reader(reader, socket);
  for (unsigned kind = 0; kind < 4; ++kind)
    if (identified[kind]) printf("identify %u %llu\n", cns_of_kind[kind], (unsigned long long)identified[kind]);
  for (unsigned page = 0; page < PAGES; ++page)
    if (logged[page])
      printf("log %u %u %u %llu\n", pages[page].lid, pages[page].lsp, pages[page].bytes,
             (unsigned long long)logged[page]);
  printf("fuzzed messages=%llu malformed=%llu requests=%llu refused=%llu of_no_drive=%llu sent_of_flood=%u\n",
         (unsigned long long)messages, (unsigned long long)malformed, (unsigned long long)requests,
         (unsigned long long)refused, (unsigned long long)absent, flooded);
  return 0;
}

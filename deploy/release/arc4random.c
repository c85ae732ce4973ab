// SPDX-License-Identifier: Apache-2.0
// The functions of glibc 2.36 that the private libraries use, for hosts with an older one. As in glibc, the process
// aborts if there are no random bytes.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMaxPerCall = 256 };  // per call of getentropy

void arc4random_buf(void* buffer, size_t size) {
  unsigned char* next = buffer;
  while (size > 0) {
    const size_t part = size < kMaxPerCall ? size : kMaxPerCall;
    if (getentropy(next, part) != 0) {
      abort();
    }
    next += part;
    size -= part;
  }
}

uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}

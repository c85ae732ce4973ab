// SPDX-License-Identifier: Apache-2.0
// What the private libraries use of glibc 2.36, for hosts with an older one. As there, without random bytes there is no
// way to go on.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMostAtOnce = 256 };  // of getentropy

void arc4random_buf(void* buffer, size_t size) {
  unsigned char* next = buffer;
  while (size > 0) {
    const size_t part = size < kMostAtOnce ? size : kMostAtOnce;
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

// SPDX-License-Identifier: Apache-2.0
// The steps that tests of the block programs repeat: the fake kernel allocates, issues and ends an I/O. Each step is
// one microsecond.
#pragma once

#include <cstdint>

#include "tests/unit/fake_kernel.h"

namespace ssdpulse::test {

constexpr std::uint32_t kRead = 0, kWrite = 1, kFlush = 2, kDiscard = 3, kZeroes = 9;  // the kernel's op codes

/// Allocates the next I/O of one of the kernel's request structures, which serves one tag. 4 KiB, at its own sector.
inline fake_request io(std::uint32_t operation, std::uint32_t structure = 1) {
  fake_now += 1000;
  fake_request request{};
  request.structure = request.tag = structure;
  request.operation = operation;
  request.bytes = 4096;
  request.sector = fake_now;
  request.start_ns = fake_now;
  return request;
}

inline void issue(fake_request& request) {
  fake_now += 1000;
  fake_kernel_issue(&request);
  request.started = request.had_before = 1;
}

inline void end(const fake_request& request) {
  fake_now += 1000;
  fake_kernel_complete(&request, 0, request.bytes);
}

}  // namespace ssdpulse::test

// SPDX-License-Identifier: Apache-2.0
// Words of the kernel's tables, which it writes while we read. Each is read once, whole, and before whatever is read
// later; a store is seen after all earlier stores.
#pragma once

#include <linux/types.h>

namespace ssdpulse::block {

template <typename Word>
Word load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

inline void store(__u64& word, __u64 value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

}  // namespace ssdpulse::block

// SPDX-License-Identifier: Apache-2.0
// Which pages of a drive does the model follow?
// One of each `rate` pages: of every aligned group of `rate` pages the one that a keyed hash picks. What is written
// over and over within one group is therefore followed with luck only; the volume lock of MiniatureDrive makes up for
// it. Against a threshold on a hash of each page it has the same accuracy, but no variance in the number of pages, and
// a range of any length costs two hashes: the followed pages of a range have consecutive indexes.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace ssdpulse::analysis {

/// Consecutive pages, or consecutive indexes of followed pages.
struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const PageRange&) const = default;
};

/// What a write of these bytes programs: every page that it touches. `end` does not overflow: no drive has 2^63 bytes.
constexpr PageRange pages_touched(std::uint64_t offset, std::uint64_t bytes, std::uint64_t page_bytes) {
  const std::uint64_t first = offset / page_bytes;
  return {first, bytes == 0 ? 0 : (offset + bytes - 1) / page_bytes - first + 1};
}

/// What a discard of these bytes frees: every page that it covers.
constexpr PageRange pages_covered(std::uint64_t offset, std::uint64_t bytes, std::uint64_t page_bytes) {
  const std::uint64_t first = (offset + page_bytes - 1) / page_bytes;
  const std::uint64_t end = (offset + bytes) / page_bytes;
  return {first, end > first ? end - first : 0};
}

/// A keyed 32-bit hash that a BPF program can compute, too (the finalizer of MurmurHash3).
constexpr std::uint32_t keyed_hash(std::uint64_t value, std::uint32_t key) {
  auto mixed = static_cast<std::uint32_t>(value) ^ static_cast<std::uint32_t>(value >> 32) * 0x9E3779B1U ^ key;
  mixed = (mixed ^ mixed >> 16) * 0x85EBCA6BU;
  mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35U;
  return mixed ^ mixed >> 16;
}

class PageSample {
 public:
  /// Fewer followed pages are not accurate, more are not needed: n lies in [kUsualPages * 3/4, kUsualPages * 3/2).
  static constexpr std::uint64_t kUsualPages = 65536;
  static constexpr unsigned kMostRateBits = 31;  // 2^31 pages of 4 KiB a followed one: beyond any drive

  /// `rate_bits`: one of 2^rate_bits pages. `seed`: secret, so that nobody writes beside the sample on purpose.
  PageSample(std::uint64_t drive_pages, unsigned rate_bits, std::uint32_t seed)
      : rate_bits_(rate_bits), seed_(seed), pages_(whole(drive_pages >> rate_bits)) {}

  /// The rate for about that many followed pages; 0 where the drive has no more.
  static unsigned rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages);

  /// Indexes of the followed pages in a range of the drive's pages. What lies beyond the drive has none.
  [[nodiscard]] PageRange followed(PageRange range) const;

  /// The followed page with this index, as a page of the drive.
  [[nodiscard]] std::uint64_t page_of(std::uint64_t index) const {
    return (index << rate_bits_) + (keyed_hash(index, seed_) & ((std::uint32_t{1} << rate_bits_) - 1));
  }

  [[nodiscard]] std::uint64_t pages() const { return pages_; }
  [[nodiscard]] unsigned rate_bits() const { return rate_bits_; }
  [[nodiscard]] std::uint32_t seed() const { return seed_; }

 private:
  // Replicates take quarters of the sample; a tail of a few groups is left out.
  static constexpr std::uint64_t whole(std::uint64_t groups) {
    return groups < 4 ? groups : groups & ~std::uint64_t{3};
  }

  unsigned rate_bits_;
  std::uint32_t seed_;
  std::uint64_t pages_;
};

}  // namespace ssdpulse::analysis

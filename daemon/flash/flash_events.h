// SPDX-License-Identifier: Apache-2.0
// PageSample: the pages of a drive that the model follows; FlashTick: what happened to them between two ticks;
// EventLosses: how much of that was lost.
// One in `rate` pages is followed: of every aligned group of `rate` pages, the one that a keyed hash picks, with the
// same arithmetic as on the kernel side (bpf/abi/page_sampling.h). So what is written over and over within one group is
// followed only by luck; the volume lock of MiniatureDrive makes up for that. Compared with a threshold on a hash of
// each page, this is as accurate, but has no variance in the number of pages, and a range of any length costs two
// hashes: the followed pages of a range have consecutive indexes.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <span>

#include "bpf/abi/page_sampling.h"
#include "daemon/flash/binary_state.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

/// The same as page_range.
struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const PageRange&) const = default;
};

/// `page_bytes`: a power of two.
constexpr unsigned page_bits(std::uint64_t page_bytes) { return static_cast<unsigned>(std::countr_zero(page_bytes)); }

inline PageRange as_range(const page_range& range) { return {range.first, range.count}; }

/// What a write of these bytes programs: every page that it touches.
inline PageRange pages_touched(std::uint64_t offset, std::uint64_t bytes, std::uint64_t page_bytes) {
  return as_range(touched_pages(offset, bytes, page_bits(page_bytes)));
}

/// What a discard of these bytes frees: every page that it covers.
inline PageRange pages_covered(std::uint64_t offset, std::uint64_t bytes, std::uint64_t page_bytes) {
  return as_range(covered_pages(offset, bytes, page_bits(page_bytes)));
}

class PageSample {
 public:
  /// Fewer followed pages are not accurate, more are not needed: n lies in [kUsualPages * 3/4, kUsualPages * 3/2).
  static constexpr std::uint64_t kUsualPages = 65536;
  static constexpr unsigned kMaxRateBits = 31;  // 2^31 pages of 4 KiB per followed page: beyond any drive

  /// `rate_bits`: one of 2^rate_bits pages. `seed`: secret, so that nobody can avoid the sample on purpose.
  PageSample(std::uint64_t drive_pages, unsigned rate_bits, std::uint32_t seed)
      : rate_bits_(rate_bits), seed_(seed), pages_(whole(drive_pages >> rate_bits)) {}

  /// The rate for about that many followed pages; 0 if the drive has no more.
  static unsigned rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages);

  /// Indexes of the followed pages in a range of the drive's pages. Pages beyond the drive have none.
  [[nodiscard]] PageRange followed(PageRange range) const {
    return as_range(followed_pages({range.first, range.count}, pages_, rate_bits_, seed_));
  }

  /// The followed page with this index, as a page of the drive.
  [[nodiscard]] std::uint64_t page_of(std::uint64_t index) const { return followed_page(index, rate_bits_, seed_); }

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

using model::FlashEvent;
using model::FlashEventKind;
using model::PagesByHint;

/// What a miniature drive learns about the host's I/O on one drive between two ticks.
/// The kernel side samples (PageSample) and sends one event for each completed write, discard or write of zeroes that
/// contains a followed page; the indexes of those pages are consecutive. It also counts every page that was written, by
/// hint, because the log moves with all of them. Completions may come in a different order than the I/Os were issued.
/// That does not matter for wear: two writes of a page that were in flight together have no order.
/// Events are in the order in which they came. Does not own them.
struct FlashTick {
  std::chrono::nanoseconds at{0};  // monotonic
  std::span<const FlashEvent> events;
  PagesByHint written{};            // pages of the drive, exactly: including those of lost events
  std::uint64_t lost_writes = 0;    // events
  std::uint64_t lost_discards = 0;  // discards and zeroes
};

/// The share of the events of the last drive write that was lost. The trace of a lost event, a page that wrongly seems
/// to hold data or none, is overwritten within about that time.
class EventLosses {
 public:
  static constexpr double kMaxWrites = 0.03;     // at 10 % a uniform load reads 8.5 % high
  static constexpr double kMaxDiscards = 0.005;  // a lost discard may be a whole file

  explicit EventLosses(std::uint64_t drive_pages) : part_pages_(drive_pages / kParts + 1) {}

  /// Events. Those that were lost are not in `writes` and `discards`.
  struct Events {
    std::uint64_t writes = 0;
    std::uint64_t lost_writes = 0;
    std::uint64_t discards = 0;
    std::uint64_t lost_discards = 0;

    Events& operator+=(const Events& other);
  };
  /// Adds what came while the host wrote that many pages of the drive, followed or not.
  void add(const Events& seen, std::uint64_t drive_pages);

  /// Shares, 0 to 1.
  struct Rates {
    double writes;
    double discards;
    [[nodiscard]] bool too_many() const { return writes > kMaxWrites || discards > kMaxDiscards; }
  };
  [[nodiscard]] Rates rates() const;

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  static constexpr std::size_t kParts = 16;  // of a drive write

  std::uint64_t part_pages_;
  std::uint64_t volume_ = 0;  // in the newest part
  std::size_t newest_ = 0;
  std::array<Events, kParts + 1> parts_{};
};

}  // namespace ssdpulse::flash

// SPDX-License-Identifier: Apache-2.0
// MiniatureDrive: a page-mapped flash translation layer, which shows what a drive relocates if it holds only these
// pages. Pages are appended to open blocks, the frontiers; when erased blocks run out, a block is collected: its valid
// pages are appended elsewhere, and it is erased. Write amplification is what was programmed divided by what the host
// wrote.
//
// It is a scale model: it has one followed page for every `scale` pages of the drive, in blocks that are smaller by the
// same factor, so that the number of blocks is the drive's. The log of a drive moves with everything that is written,
// so the volume lock keeps this one in step with the true volume of writes (advance()). If the sample was written less
// than its share, a page is programmed that is dead on arrival; if it was written more, a write whose present copy lies
// in an open block is absorbed. So hot pages that are not followed show up as dead pages, and followed hot ones do not
// count `scale` times.
//
// A drive without pages is possible, and does nothing. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/flash/binary_state.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

using model::CollectionPolicy;

struct MiniatureShape {
  std::uint32_t pages = 0;        // logical
  std::uint32_t block_pages = 1;  // a power of two
  double overprovisioning = 0.1;  // physical pages that can hold data over logical ones, minus 1
  CollectionPolicy policy = CollectionPolicy::greedy;
  std::uint32_t streams = 1;  // kinds of data that the host keeps apart; each has its own frontiers
  std::uint32_t scale = 1;    // pages of the drive per page here; a power of two
  bool operator==(const MiniatureShape&) const = default;
};

class MiniatureDrive {
 public:
  static constexpr std::uint32_t kMaxStreams = 8;
  static constexpr std::uint32_t kMaxPages = std::uint32_t{1} << 30;  // slots are 32-bit numbers, over-provisioned too

  /// Pages, cumulative.
  struct Counts {
    std::uint64_t host = 0;  // programmed for the host
    std::uint64_t relocated = 0;
  };

  /// `mapped`: each page holds data, written in the order of addresses; otherwise none does.
  MiniatureDrive(const MiniatureShape& shape, bool mapped);

  /// `page` is below the shape's pages, `stream` below its streams.
  void write(std::uint32_t page, std::uint32_t stream);
  void discard(std::uint32_t page);
  /// The host wrote this many pages of the whole drive, followed or not.
  void advance(std::uint32_t stream, std::uint64_t drive_pages);

  [[nodiscard]] const MiniatureShape& shape() const { return shape_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t mapped_pages() const { return mapped_; }
  [[nodiscard]] std::size_t memory_bytes() const;
  static std::size_t memory_bytes(const MiniatureShape& shape);

  /// The invariant that does not hold, or null: for tests, and for a state that was read from a file.
  [[nodiscard]] const char* broken_invariant() const;

  /// Saves the whole state, so that a restored drive continues bit for bit as the saved one.
  void save(BinaryWriter& out) const;
  /// Restores into a drive of the same shape. False: the bytes are not such a state, and this drive must not be used.
  bool restore(BinaryReader& in);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Pages by which the log may differ from the true volume; for large blocks, an eighth of a block.
  static constexpr std::uint64_t kMinSlack = 8;

  enum class BlockState : std::uint8_t { erased, open, closed };
  struct Block {
    std::uint32_t valid = 0;
    std::uint32_t used = 0;  // slots programmed
    std::uint32_t next = 0;  // in the list of its bucket
    std::uint32_t previous = 0;
    std::uint64_t age_from = 0;  // the clock when it was closed
    BlockState state = BlockState::erased;
    std::uint8_t stream = 0;
  };
  struct Stream {
    std::uint64_t volume = 0;  // pages of the drive that the host wrote
    std::uint64_t programmed = 0;
  };

  [[nodiscard]] bool collects_apart() const;
  [[nodiscard]] std::uint32_t block_of(std::uint32_t slot) const { return slot >> block_bits_; }
  [[nodiscard]] std::uint64_t due(const Stream& stream) const { return stream.volume >> scale_bits_; }
  std::uint32_t append(std::uint32_t frontier, std::uint32_t page);
  void program(std::uint32_t page, std::uint32_t stream);
  void invalidate(std::uint32_t slot);
  void make_room(std::uint32_t frontier);
  void open_block(std::uint32_t frontier);
  void close_block(std::uint32_t frontier);
  void collect();
  std::uint32_t pick_victim();
  [[nodiscard]] std::uint32_t best_by_cost_and_benefit() const;
  void link(std::uint32_t block);
  void insert(std::uint32_t block, std::uint32_t next);
  void unlink(std::uint32_t block);
  [[nodiscard]] const char* broken_blocks() const;
  [[nodiscard]] const char* broken_lists() const;
  [[nodiscard]] std::vector<std::uint32_t> order() const;
  bool take_pages();
  bool take_order(const std::vector<std::uint32_t>& order);
  [[nodiscard]] std::uint32_t bucket_of(const Block& block) const;

  MiniatureShape shape_;
  unsigned block_bits_ = 0;
  unsigned scale_bits_ = 0;
  std::uint64_t slack_ = kMinSlack;
  std::uint32_t reserve_ = 1;           // blocks kept erased
  std::uint32_t heads_ = 0;             // where the heads of the lists are in blocks_
  std::vector<std::uint32_t> slot_of_;  // by page; kNone: not mapped
  std::vector<std::uint32_t> page_of_;  // by slot; a copy is valid if its page's slot is this one
  std::vector<Block> blocks_;           // followed by the heads of the buckets' lists
  std::vector<std::uint32_t> erased_;
  std::vector<std::uint32_t> frontiers_;  // open blocks: by stream, then those for collected pages by stream
  std::vector<Stream> streams_;
  std::uint32_t lowest_ = 0;  // no bucket below it has a block
  std::uint64_t mapped_ = 0;
  std::uint64_t clock_ = 0;  // pages programmed
  Counts counts_;
};

using model::Estimate;

/// A miniature drive with copies that show how far its write amplification can be trusted.
/// Small blocks amplify less than large blocks, by about a constant divided by their size, whatever the policy. So the
/// sample is also split into halves, each a miniature drive with blocks half as large and the same number of them: the
/// halves fall short of the whole by as much as the whole falls short of the drive (a jackknife). Quarters of the
/// sample show the scatter that its choice causes.
class ReplicatedDrive {
 public:
  enum class Replicates : std::uint8_t {
    none,      // every page is followed: nothing to correct, and no scatter
    halves,    // the scatter is taken from elsewhere
    quarters,  // halves and quarters
  };
  static constexpr std::size_t kMaxCopies = 7;
  /// Of the whole, its halves, its quarters.
  using Counts = std::array<MiniatureDrive::Counts, kMaxCopies>;

  /// `whole.pages` is a multiple of 4 and its blocks have at least 16 pages, if there are replicates.
  ReplicatedDrive(const MiniatureShape& whole, Replicates replicates, bool mapped);

  void write(std::uint32_t page, std::uint32_t stream);
  void discard(std::uint32_t page);
  void advance(std::uint32_t stream, std::uint64_t drive_pages);

  [[nodiscard]] Replicates replicates() const { return replicates_; }
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] const std::vector<MiniatureDrive>& copies() const { return copies_; }
  static std::size_t memory_bytes(const MiniatureShape& whole, Replicates replicates);

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  /// Which quarter a page belongs to. Structures with a period of four followed pages end up in different quarters,
  /// because a hash rotates the order of the quarters.
  static std::uint32_t quarter_of(std::uint32_t page);

  template <typename Do>
  void in_each(std::uint32_t page, Do act);

  Replicates replicates_;
  std::vector<MiniatureDrive> copies_;
};

/// Write amplification between two moments. `scatter`: the relative standard error, if it is known from another run of
/// the same sample. Absent if the host wrote nothing.
std::optional<Estimate> estimate(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to,
                                 ReplicatedDrive::Replicates replicates, double scatter = 0);

/// The relative standard error of a run with quarters.
double scatter_of(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to);

}  // namespace ssdpulse::flash

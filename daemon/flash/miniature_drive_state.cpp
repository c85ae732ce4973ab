// SPDX-License-Identifier: Apache-2.0
// What is saved of a miniature drive, and what must be true of it. The owners of slots, the counts of valid pages and
// the buckets follow from where each page is and from the order of the blocks.
#include <algorithm>

#include "daemon/flash/miniature_drive.h"

namespace ssdpulse::flash {

const char* MiniatureDrive::broken_invariant() const {
  std::vector<std::uint32_t> valid(heads_);
  std::uint64_t mapped = 0;
  for (std::uint32_t page = 0; page < shape_.pages; ++page) {
    const std::uint32_t slot = slot_of_[page];
    if (slot != kNone) {
      if (slot >= page_of_.size() || page_of_[slot] != page) {
        return "a page is not where it is said to be";
      }
      ++valid[block_of(slot)];
      ++mapped;
    }
  }
  if (mapped != mapped_) {
    return "mapped pages are miscounted";
  }
  for (std::uint32_t number = 0; number < heads_; ++number) {
    if (valid[number] != (blocks_[number].state == BlockState::erased ? 0 : blocks_[number].valid)) {
      return "valid pages of a block are miscounted";
    }
  }
  if (erased_.size() < reserve_) {
    return "the reserve is used up";
  }
  const char* const broken = broken_blocks();
  return broken != nullptr ? broken : broken_lists();
}

const char* MiniatureDrive::broken_blocks() const {
  for (const std::uint32_t number : erased_) {
    if (blocks_[number].state != BlockState::erased) {
      return "an erased block is in use";
    }
  }
  for (const std::uint32_t number : frontiers_) {
    if (blocks_[number].state != BlockState::open) {
      return "a frontier is not open";
    }
  }
  for (std::uint32_t number = 0; number < heads_; ++number) {
    if (blocks_[number].state == BlockState::closed && blocks_[number].used != shape_.block_pages) {
      return "a block was closed before it was full";
    }
  }
  return nullptr;
}

const char* MiniatureDrive::broken_lists() const {
  std::size_t closed = 0;
  for (std::uint32_t head = heads_; head < blocks_.size(); ++head) {
    for (std::uint32_t number = blocks_[head].next; number != head; number = blocks_[number].next) {
      if (blocks_[number].state != BlockState::closed || heads_ + bucket_of(blocks_[number]) != head) {
        return "a block is in the wrong bucket";
      }
      if (++closed > heads_) {
        return "a bucket has no end";
      }
    }
  }
  return closed + erased_.size() + frontiers_.size() == heads_ ? nullptr : "a block is lost";
}

std::size_t MiniatureDrive::memory_bytes() const {
  return sizeof *this + (slot_of_.capacity() + page_of_.capacity() + erased_.capacity()) * sizeof(std::uint32_t) +
         blocks_.capacity() * sizeof(Block);
}

/// Closed blocks in the order of their buckets, then the erased ones, then the frontiers.
std::vector<std::uint32_t> MiniatureDrive::order() const {
  std::vector<std::uint32_t> result;
  result.reserve(heads_);
  for (std::uint32_t head = heads_; head < blocks_.size(); ++head) {
    for (std::uint32_t number = blocks_[head].next; number != head; number = blocks_[number].next) {
      result.push_back(number);
    }
  }
  result.insert(result.end(), erased_.begin(), erased_.end());
  result.insert(result.end(), frontiers_.begin(), frontiers_.end());
  return result;
}

void MiniatureDrive::save(BinaryWriter& out) const {
  out(slot_of_);
  for (std::uint32_t number = 0; number < heads_; ++number) {
    const Block& block = blocks_[number];
    out(block.used, block.age_from, block.state, block.stream);
  }
  out(order());
  for (const Stream& stream : streams_) {
    out(stream.volume, stream.programmed);
  }
  out(clock_, counts_.host, counts_.relocated);
}

bool MiniatureDrive::restore(BinaryReader& in) {
  in(slot_of_);
  for (std::uint32_t number = 0; number < heads_; ++number) {
    Block& block = blocks_[number];
    in(block.used, block.age_from, block.state, block.stream);
    block.valid = 0;
    if (block.used > shape_.block_pages || block.state > BlockState::closed || block.stream >= shape_.streams) {
      return false;
    }
  }
  std::vector<std::uint32_t> order(heads_);
  in(order);
  for (Stream& stream : streams_) {
    in(stream.volume, stream.programmed);
  }
  in(clock_, counts_.host, counts_.relocated);
  return in.good() && take_pages() && take_order(order) && broken_invariant() == nullptr;
}

bool MiniatureDrive::take_pages() {
  std::fill(page_of_.begin(), page_of_.end(), kNone);
  mapped_ = 0;
  for (std::uint32_t page = 0; page < shape_.pages; ++page) {
    const std::uint32_t slot = slot_of_[page];
    if (slot == kNone) {
      continue;
    }
    if (slot >= page_of_.size() || page_of_[slot] != kNone) {
      return false;
    }
    Block& block = blocks_[block_of(slot)];
    if (block.state == BlockState::erased || slot - (block_of(slot) << block_bits_) >= block.used) {
      return false;
    }
    page_of_[slot] = page;
    ++block.valid;
    ++mapped_;
  }
  return true;
}

bool MiniatureDrive::take_order(const std::vector<std::uint32_t>& order) {
  std::vector<bool> seen(heads_);
  for (std::uint32_t head = heads_; head < blocks_.size(); ++head) {
    blocks_[head].next = blocks_[head].previous = head;
  }
  erased_.clear();
  std::size_t frontier = 0;
  lowest_ = static_cast<std::uint32_t>(blocks_.size()) - heads_;
  for (const std::uint32_t number : order) {
    if (number >= heads_ || seen[number]) {
      return false;
    }
    seen[number] = true;
    const Block& block = blocks_[number];
    if (block.state == BlockState::erased) {
      erased_.push_back(number);
    } else if (block.state == BlockState::closed) {
      lowest_ = std::min(lowest_, bucket_of(block));
      insert(number, heads_ + bucket_of(block));
    } else if (frontier < frontiers_.size()) {
      frontiers_[frontier++] = number;
    } else {
      return false;
    }
  }
  return frontier == frontiers_.size();
}

}  // namespace ssdpulse::flash

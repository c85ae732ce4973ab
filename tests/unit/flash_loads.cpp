// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/flash_loads.h"

#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

namespace ssdpulse::test {
namespace {

constexpr std::uint8_t kShort = 2;  // model::WriteHint::short_lived

/// Slots of equal size that hold files; deleting a file frees its slot.
class FileLoad {
 public:
  FileLoad(std::uint64_t slots, std::uint64_t slot_pages, std::uint64_t least_pages, std::vector<std::size_t> levels,
           std::uint64_t seed)
      : slot_pages_(slot_pages),
        least_pages_(least_pages),
        dice_(seed),
        capacity_(std::move(levels)),
        files_(capacity_.size()),
        free_(slots) {
    std::iota(free_.begin(), free_.end(), std::uint64_t{0});
  }

  FlashOperation operator()() {
    Writer& writer = writers_[dice_.below(writers_.size())];
    if (writer.left == 0) {
      if (writer.level) {
        files_[*writer.level].push_back({writer.slot, writer.size});
      }
      writer.level = dice_.below(files_.size());
      auto& level = files_[*writer.level];
      writer.size = writer.left = least_pages_ + dice_.below(slot_pages_ - least_pages_ + 1);
      const bool full = level.size() >= capacity_[*writer.level];
      const std::uint64_t slot = take_free();
      writer.slot = slot;
      if (full) {
        std::swap(level[dice_.below(level.size())], level.back());
        const File gone = level.back();
        level.pop_back();
        free_.push_back(gone.slot);
        return {true, gone.slot * slot_pages_, gone.size};
      }
    }
    const std::uint64_t first = writer.slot * slot_pages_ + writer.size - writer.left;
    const std::uint64_t count = std::min<std::uint64_t>(writer.left, 32);
    writer.left -= count;
    return {false, first, count};
  }

 private:
  struct File {
    std::uint64_t slot;
    std::uint64_t size;
  };
  struct Writer {
    std::optional<std::size_t> level;
    std::uint64_t slot = 0;
    std::uint64_t size = 0;
    std::uint64_t left = 0;
  };
  std::uint64_t take_free() {
    std::swap(free_[dice_.below(free_.size())], free_.back());
    const std::uint64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  std::uint64_t slot_pages_;
  std::uint64_t least_pages_;
  FlashDice dice_;
  std::vector<std::size_t> capacity_;
  std::vector<std::vector<File>> files_;
  std::vector<std::uint64_t> free_;
  std::array<Writer, 3> writers_;
};

/// The pages in use, from which one can be picked.
class InUse {
 public:
  explicit InUse(std::uint64_t pages) : place_(pages), pages_(pages) {
    std::iota(place_.begin(), place_.end(), 0U);
    pages_ = place_;
  }
  void add(std::uint32_t page) {
    if (place_[page] == kNowhere) {
      place_[page] = static_cast<std::uint32_t>(pages_.size());
      pages_.push_back(page);
    }
  }
  std::uint32_t take(FlashDice& dice) {
    const auto at = static_cast<std::uint32_t>(dice.below(pages_.size()));
    const std::uint32_t page = pages_[at];
    pages_[at] = pages_.back();
    place_[pages_[at]] = at;
    pages_.pop_back();
    place_[page] = kNowhere;
    return page;
  }
  [[nodiscard]] bool empty() const { return pages_.empty(); }

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> pages_;
};

}  // namespace

FlashLoad uniform_load(std::uint64_t pages, std::uint64_t seed) {
  return [=, dice = FlashDice(seed)]() mutable { return FlashOperation{false, dice.below(pages), 1}; };
}

FlashLoad hot_cold_load(std::uint64_t pages, double written, double share, bool scattered, std::uint64_t seed) {
  const auto hot = static_cast<std::uint64_t>(share * static_cast<double>(pages));
  return [=, dice = FlashDice(seed), scatter = Scatter(pages)]() mutable {
    const bool to_hot = dice.share() < written;
    const std::uint64_t page = to_hot ? dice.below(hot) : hot + dice.below(pages - hot);
    return FlashOperation{false, scattered ? scatter(page) : page, 1, to_hot ? kShort : std::uint8_t{0}};
  };
}

FlashLoad zipf_load(std::uint64_t pages, double theta, std::uint64_t seed) {
  return [dice = FlashDice(seed), zipf = Zipf(pages, theta), scatter = Scatter(pages)]() mutable {
    return FlashOperation{false, scatter(zipf(dice)), 1};
  };
}

FlashLoad wal_load(std::uint64_t pages, std::uint64_t seed) {
  const std::uint64_t log = pages / 20;
  return [=, dice = FlashDice(seed), at = std::uint64_t{0}]() mutable {
    if (dice.share() < 0.5) {
      at = at + 4 > log ? 0 : at;
      return FlashOperation{false, std::exchange(at, at + 4), 4, kShort};
    }
    return FlashOperation{false, log + dice.below((pages - log) / 4) * 4, 4};
  };
}

FlashLoad lsm_load(std::uint64_t pages, std::uint64_t seed) {
  constexpr std::uint64_t kSlots = 1024;
  const std::vector<std::size_t> levels{4, 24, 132, 680};  // 840 of 1024 slots
  return
      [load = std::make_shared<FileLoad>(kSlots, pages / kSlots, pages / kSlots, levels, seed)] { return (*load)(); };
}

FlashLoad files_load(std::uint64_t pages, std::uint64_t seed) {
  const std::uint64_t slots = pages / 256;
  return [load = std::make_shared<FileLoad>(slots, 256, 192, std::vector<std::size_t>{slots * 85 / 100}, seed)] {
    return (*load)();
  };
}

FlashLoad discard_load(std::uint64_t pages, double discarded, std::uint64_t seed) {
  return [=, dice = FlashDice(seed), in_use = std::make_shared<InUse>(pages)]() mutable {
    if (!in_use->empty() && dice.share() < discarded) {
      return FlashOperation{true, in_use->take(dice), 1};
    }
    const std::uint64_t page = dice.below(pages);
    in_use->add(static_cast<std::uint32_t>(page));
    return FlashOperation{false, page, 1};
  };
}

FlashLoad circle_load(std::uint64_t pages) {
  return [=, at = std::uint64_t{0}]() mutable {
    const std::uint64_t first = at;
    const std::uint64_t count = std::min<std::uint64_t>(32, pages - first);
    at = (first + count) % pages;
    return FlashOperation{false, first, count};
  };
}

FlashLoad few_pages_load(std::uint64_t pages, std::uint64_t seed) {
  return [=, dice = FlashDice(seed), scatter = Scatter(pages)]() mutable {
    return FlashOperation{false, dice.share() < 0.5 ? scatter(dice.below(16)) : dice.below(pages), 1};
  };
}

FlashLoad corner_load(std::uint64_t pages, std::uint64_t seed) { return uniform_load(pages / 10, seed); }

}  // namespace ssdpulse::test

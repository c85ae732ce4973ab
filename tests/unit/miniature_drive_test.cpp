// SPDX-License-Identifier: Apache-2.0
// Does a miniature drive relocate what theory predicts, and does nothing break it? Theory: uniform writes, in the limit
// of many blocks. FIFO (Xiang and Kurkoski): a block that is collected has a share p of valid pages, p = exp(-alpha (1
// - p)). Greedy: blocks decay from full to m valid pages, where they wait to be collected. Where there is no theory,
// the figures are compared with those of another simulator.
#include "daemon/flash/miniature_drive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/flash_loads.h"
#include "tests/unit/flash_tier.h"

namespace ssdpulse::flash {
namespace {

using test::FlashDice;
using test::FlashLoad;

constexpr std::uint32_t kPages = 1 << 19;

double fifo_theory(double alpha) {
  double valid = 0.5;
  for (int i = 0; i < 10'000; ++i) {
    valid = std::exp(-alpha * (1 - valid));
  }
  return 1 / (1 - valid);
}

/// A block of b pages loses its j-th last valid page after 1/j; at m it is collected after `wait`, or decays to m - 1
/// and is collected at once. On average a block holds b / alpha valid pages, which determines m and the wait.
double greedy_theory(double alpha, int block_pages) {
  double lifetime = 0;
  for (int level = block_pages; level > 0; --level) {
    const double mean = block_pages / alpha;
    const double wait = (mean * lifetime - (block_pages - level)) / (level - mean);
    if (level < mean && wait >= 0 && wait <= 1.0 / level) {
      return block_pages / (block_pages - (level - level * wait));
    }
    lifetime += 1.0 / level;
  }
  return 0;
}

/// Warmed up for six drive writes, counted for six more.
double amplification(const MiniatureShape& shape, const FlashLoad& load) {
  MiniatureDrive drive(shape, true);
  MiniatureDrive::Counts begin;
  for (int half = 0; half < 2; ++half) {
    begin = drive.counts();
    while (drive.counts().host - begin.host < 6ULL * shape.pages) {
      const auto operation = load();
      for (std::uint64_t i = 0; i < operation.count; ++i) {
        const auto page = static_cast<std::uint32_t>(operation.first + i);
        if (operation.discard) {
          drive.discard(page);
        } else {
          drive.write(page, shape.streams > 1 && operation.hint != 0 ? 1 : 0);
        }
      }
    }
  }
  EXPECT_EQ(drive.broken_invariant(), nullptr) << drive.broken_invariant();
  const auto host = static_cast<double>(drive.counts().host - begin.host);
  return 1 + static_cast<double>(drive.counts().relocated - begin.relocated) / host;
}

struct Oracle {
  const char* what;
  double overprovisioning;
  CollectionPolicy policy;
  std::uint32_t streams;
  std::function<FlashLoad(std::uint64_t seed)> load;
  double expected;
  double tolerance;
};

void expect_all(const std::vector<Oracle>& oracles) {
  std::vector<std::function<void()>> work;
  for (const Oracle& oracle : oracles) {
    for (int seed = 1; seed <= test::flash_seeds(); ++seed) {
      work.emplace_back([&oracle, seed] {
        const double found = amplification({kPages, 64, oracle.overprovisioning, oracle.policy, oracle.streams, 1},
                                           oracle.load(static_cast<std::uint64_t>(seed)));
        EXPECT_NEAR(found / oracle.expected, 1, oracle.tolerance) << oracle.what << " seed " << seed;
        std::printf("%-34s %.3f: %.4f (%.4f, %+.2f %%)\n", oracle.what, oracle.overprovisioning, found, oracle.expected,
                    (found / oracle.expected - 1) * 100);
      });
    }
  }
  test::in_parallel(work);
}

FlashLoad uniform(std::uint64_t seed) { return test::uniform_load(kPages, seed); }
std::function<FlashLoad(std::uint64_t)> hot_cold(double written, double share) {
  return [=](std::uint64_t seed) { return test::hot_cold_load(kPages, written, share, false, seed); };
}
std::function<FlashLoad(std::uint64_t)> discards(double share) {
  return [=](std::uint64_t seed) { return test::discard_load(kPages, share, seed); };
}

TEST(FlashTheory, IsAsPublished) {
  EXPECT_NEAR(fifo_theory(1.07), 7.817, 0.001);
  EXPECT_NEAR(fifo_theory(1.12), 4.846, 0.001);
  EXPECT_NEAR(fifo_theory(1.28), 2.481, 0.001);
  // The usual formula has no wait, and allows any number of pages per block: slightly lower, mostly for small blocks.
  EXPECT_NEAR(greedy_theory(1.07, 64) / 6.999, 1.0016, 0.0002);
  EXPECT_NEAR(greedy_theory(1.12, 64) / 4.528, 1.0006, 0.0002);
  EXPECT_NEAR(greedy_theory(1.28, 64) / 2.402, 1.0003, 0.0002);
  EXPECT_NEAR(greedy_theory(1.12, 32) / 4.248, 1.0054, 0.0002);
}

TEST(MiniatureDrive, RelocatesWhatTheorySays) {
  std::vector<Oracle> oracles;
  for (const double more : {0.07, 0.12, 0.20, 0.28, 0.50}) {
    oracles.push_back(
        {"greedy uniform", more, CollectionPolicy::greedy, 1, uniform, greedy_theory(1 + more, 64), 0.005});
  }
  for (const double more : {0.07, 0.12, 0.28}) {
    oracles.push_back({"fifo uniform", more, CollectionPolicy::fifo, 1, uniform, fifo_theory(1 + more), 0.005});
  }
  expect_all(oracles);
}

TEST(MiniatureDrive, RelocatesWhatAnotherSimulatorDoes) {
  const double tenth = 1 / 9.0;  // a tenth of the flash is spare
  expect_all({
      {"discard a tenth", 0.12, CollectionPolicy::greedy, 1, discards(0.1), 2.53, 0.005},
      {"discard a fifth", 0.12, CollectionPolicy::greedy, 1, discards(0.2), 1.695, 0.005},
      {"discard three tenths", 0.12, CollectionPolicy::greedy, 1, discards(0.3), 1.258, 0.005},
      {"fifo 80/20", 0.12, CollectionPolicy::fifo, 1, hot_cold(0.8, 0.2), 5.20, 0.005},
      {"fifo 90/5", tenth, CollectionPolicy::fifo, 1, hot_cold(0.9, 0.05), 6.91, 0.005},
      {"greedy 80/20", 0.12, CollectionPolicy::greedy, 1, hot_cold(0.8, 0.2), 4.90, 0.01},
      {"own frontier uniform", 0.12, CollectionPolicy::greedy_gc_frontier, 1, uniform, 4.53, 0.02},
      {"own frontier 80/20", 0.12, CollectionPolicy::greedy_gc_frontier, 1, hot_cold(0.8, 0.2), 4.83, 0.02},
      {"own frontier 90/10", 0.12, CollectionPolicy::greedy_gc_frontier, 1, hot_cold(0.9, 0.1), 5.21, 0.02},
      {"greedy by hint 80/20", 0.12, CollectionPolicy::greedy, 2, hot_cold(0.8, 0.2), 4.52, 0.02},
      {"greedy by hint 90/5", tenth, CollectionPolicy::greedy, 2, hot_cold(0.9, 0.05), 4.78, 0.02},
  });
}

TEST(MiniatureDrive, HoldsWhatDiscardsLeave) {
  for (const auto& [share, in_use] : {std::pair{0.1, 0.889}, {0.2, 0.750}, {0.3, 0.573}}) {
    MiniatureDrive drive({kPages / 8, 64, 0.12, CollectionPolicy::greedy, 1, 1}, true);
    const auto load = test::discard_load(kPages / 8, share, 3);
    for (int i = 0; i < 1'000'000; ++i) {
      const auto operation = load();
      operation.discard ? drive.discard(static_cast<std::uint32_t>(operation.first))
                        : drive.write(static_cast<std::uint32_t>(operation.first), 0);
    }
    EXPECT_NEAR(static_cast<double>(drive.mapped_pages()) / (kPages / 8), in_use, 0.005);
  }
}

TEST(MiniatureDrive, RelocatesNothingUntilAllFlashIsWritten) {
  for (const auto policy :
       {CollectionPolicy::greedy, CollectionPolicy::greedy_gc_frontier, CollectionPolicy::cost_benefit}) {
    MiniatureDrive drive({65'536, 64, 0.12, policy, 1, 1}, false);
    const auto load = test::hot_cold_load(65'536, 0.8, 0.2, true, 5);
    while (drive.counts().relocated == 0) {
      drive.write(static_cast<std::uint32_t>(load().first), 0);
    }
    EXPECT_NEAR(static_cast<double>(drive.counts().host) / (1.12 * 65'536), 1, 0.005) << static_cast<int>(policy);
  }
}

/// A drive of any shape, with any operations, stopped and restored in between.
void play_any_drive(std::uint64_t seed) {
  FlashDice dice(seed);
  MiniatureShape shape;
  shape.pages = static_cast<std::uint32_t>(dice.below(600));
  shape.block_pages = 1U << dice.below(6);
  shape.overprovisioning = 0.01 + dice.share();
  shape.policy = static_cast<CollectionPolicy>(dice.below(model::kCollectionPolicies));
  shape.streams = 1 + static_cast<std::uint32_t>(dice.below(MiniatureDrive::kMaxStreams));
  shape.scale = 1U << dice.below(8);
  MiniatureDrive drive(shape, dice.below(2) == 0);
  for (int i = 0; i < 60; ++i) {
    const auto stream = static_cast<std::uint32_t>(dice.below(shape.streams));
    const std::uint64_t action = dice.below(4);
    const std::uint64_t count = shape.pages == 0 ? 0 : dice.below(dice.below(8) == 0 ? shape.pages : 8);
    for (std::uint64_t j = 0; j < count; ++j) {
      const auto page = static_cast<std::uint32_t>(dice.below(shape.pages));
      action == 0 ? drive.discard(page) : drive.write(page, stream);
    }
    drive.advance(stream, action == 1 ? dice.below(4096) : count * shape.scale);
    ASSERT_EQ(drive.broken_invariant(), nullptr) << drive.broken_invariant() << ", seed " << seed;
    if (dice.below(16) == 0) {
      BinaryWriter out;
      drive.save(out);
      MiniatureDrive other(shape, false);
      BinaryReader in(out.bytes());
      ASSERT_TRUE(other.restore(in) && in.complete()) << "seed " << seed;
      drive = std::move(other);
    }
  }
}

TEST(MiniatureDrive, NothingBreaksAnyDrive) {
  std::vector<std::function<void()>> work;
  const int sequences = test::flash_seeds() > 1 ? 1'000'000 : 10'000;
  constexpr int kPart = 500;
  for (int part = 0; part < sequences; part += kPart) {
    work.emplace_back([part] {
      for (int i = 0; i < kPart; ++i) {
        play_any_drive(static_cast<std::uint64_t>(part + i));
      }
    });
  }
  test::in_parallel(work);
}

TEST(MiniatureDrive, DamagedStatesAreRefused) {
  const MiniatureShape shape{256, 8, 0.2, CollectionPolicy::greedy_gc_frontier, 2, 4};
  MiniatureDrive drive(shape, true);
  FlashDice dice(4);
  for (int i = 0; i < 2000; ++i) {
    drive.write(static_cast<std::uint32_t>(dice.below(256)), static_cast<std::uint32_t>(dice.below(2)));
    drive.advance(0, 4);
  }
  BinaryWriter out;
  drive.save(out);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = out.bytes();
    damaged[dice.below(damaged.size())] = static_cast<char>(dice.next());
    damaged.resize(dice.below(4) == 0 ? dice.below(damaged.size()) : damaged.size());
    MiniatureDrive other(shape, false);
    BinaryReader in(damaged);
    if (!other.restore(in)) {
      ++refused;
      continue;
    }
    EXPECT_EQ(other.broken_invariant(), nullptr);
    for (std::uint32_t page = 0; page < 256; ++page) {
      other.write(page, 1);
    }
    EXPECT_EQ(other.broken_invariant(), nullptr);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace ssdpulse::flash

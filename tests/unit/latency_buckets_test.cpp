// SPDX-License-Identifier: Apache-2.0
// Is the bucket of every latency the one that the definition gives? The oracle is the definition itself in exact
// integers: v nanoseconds are in native index i or below iff v^8 <= 10^72 * 2^i. Tested at every bound and one
// nanosecond to either side, without sampling. The header is the one that the kernel programs include; tests/kernel
// runs the same values through a BPF program.
#include "bpf/abi/latency_buckets.h"

#include <gmpxx.h>
#include <gtest/gtest.h>
#include <linux/types.h>
#include <rapidcheck.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

namespace {

/// Whether v <= 2^(index/8) seconds.
bool at_or_below(std::uint64_t value_ns, int index) {
  mpz_class left;
  mpz_class right;
  const mpz_class value(std::to_string(value_ns));
  mpz_pow_ui(left.get_mpz_t(), value.get_mpz_t(), 8);
  mpz_ui_pow_ui(right.get_mpz_t(), 10, 72);
  if (index >= 0) {
    right <<= static_cast<unsigned>(index);
  } else {
    left <<= static_cast<unsigned>(-index);
  }
  return left <= right;
}

/// By linear search through the definition.
std::uint32_t oracle(std::int64_t latency_ns) {
  if (latency_ns <= 0) {
    return LATENCY_ZERO_WORD;
  }
  const auto value = static_cast<std::uint64_t>(latency_ns);
  if (at_or_below(value, LATENCY_FIRST_NATIVE_INDEX - 1)) {
    return LATENCY_UNDER_WORD;
  }
  for (int index = LATENCY_FIRST_NATIVE_INDEX; index <= LATENCY_LAST_NATIVE_INDEX; ++index) {
    if (at_or_below(value, index)) {
      return static_cast<std::uint32_t>(index - LATENCY_FIRST_NATIVE_INDEX + LATENCY_FIRST_NATIVE_WORD);
    }
  }
  return LATENCY_OVER_WORD;
}

/// floor(10^9 * 2^(index/8)) by GMP's integer root.
std::int64_t bound_ns(int index) {
  mpz_class radicand;
  mpz_ui_pow_ui(radicand.get_mpz_t(), 10, 72);
  if (index >= 0) {
    radicand <<= static_cast<unsigned>(index);
  } else {
    radicand >>= static_cast<unsigned>(-index);
  }
  mpz_class root;
  mpz_root(root.get_mpz_t(), radicand.get_mpz_t(), 8);
  return root.get_si();
}

TEST(LatencyBuckets, EveryBoundAndItsNeighbours) {
  int checked = 0;
  for (int index = LATENCY_FIRST_NATIVE_INDEX - 1; index <= LATENCY_LAST_NATIVE_INDEX; ++index) {
    for (std::int64_t offset = -1; offset <= 1; ++offset) {
      const std::int64_t value = bound_ns(index) + offset;
      ASSERT_EQ(latency_word(value), oracle(value)) << "at " << value << " ns";
      ++checked;
    }
  }
  std::printf("%d values at %d bounds checked\n", checked, checked / 3);
}

TEST(LatencyBuckets, ZeroUnderAndOver) {
  constexpr std::int64_t kValues[] = {0,         1,         2,           -1,          -1'000'000'000, 952,
                                      953,       954,       63999999999, 64000000000, 64000000001,    1LL << 40,
                                      1LL << 59, 1LL << 62, INT64_MAX,   INT64_MIN};
  for (const std::int64_t value : kValues) {
    EXPECT_EQ(latency_word(value), oracle(value)) << value;
  }
  for (int power = 0; power < 63; ++power) {
    for (int offset = -1; offset <= 1; ++offset) {
      const std::int64_t value = (std::int64_t{1} << power) + offset;
      EXPECT_EQ(latency_word(value), oracle(value)) << value;
    }
  }
  EXPECT_EQ(latency_word(0), std::uint32_t{LATENCY_ZERO_WORD});
  EXPECT_EQ(latency_word(953), std::uint32_t{LATENCY_UNDER_WORD});
  EXPECT_EQ(latency_word(954), std::uint32_t{LATENCY_FIRST_NATIVE_WORD});
  EXPECT_EQ(latency_word(1'000'000'000), std::uint32_t{LATENCY_FIRST_NATIVE_WORD - LATENCY_FIRST_NATIVE_INDEX});
  EXPECT_EQ(latency_word(64'000'000'001), std::uint32_t{LATENCY_OVER_WORD});
}

TEST(LatencyBuckets, AllOfTheFirstMicrosecondsAndRandomOnes) {
  for (std::int64_t value = 0; value < 20'000; ++value) {
    ASSERT_EQ(latency_word(value), oracle(value)) << value;
  }
  EXPECT_TRUE(rc::check("any latency", [] {
    const auto magnitude = *rc::gen::inRange(0, 63);
    const auto value = static_cast<std::int64_t>(*rc::gen::arbitrary<std::uint64_t>() >> magnitude >> 1);
    RC_ASSERT(latency_word(value) == oracle(value));
  }));
}

TEST(SizeBuckets, EveryPowerOfTwoAndItsNeighbours) {
  // Schema 0: word 1 + i holds (2^(i-1), 2^i].
  const auto size_oracle = [](std::uint64_t bytes) {
    std::uint32_t word = 0;
    if (bytes > 0) {
      for (word = 1; bytes > std::uint64_t{1} << (word - 1); ++word) {
      }
    }
    return word;
  };
  for (unsigned power = 0; power <= 32; ++power) {
    for (int offset = -1; offset <= 1; ++offset) {
      const std::uint64_t bytes = (std::uint64_t{1} << power) + static_cast<std::uint64_t>(offset);
      if (bytes <= UINT32_MAX) {
        ASSERT_EQ(size_word(static_cast<std::uint32_t>(bytes)), size_oracle(bytes)) << bytes;
      }
    }
  }
  EXPECT_EQ(size_word(4096), 13U);  // le=4096 is 2^12
}

TEST(LatencyBuckets, CommittedTablesAreWhatTheGeneratorPrints) {
  const std::string directory = std::string(SSDPULSE_SOURCE_DIR) + "/bpf/abi/";
  const std::unique_ptr<FILE, int (*)(FILE*)> generator(
      popen(("python3 " + directory + "generate_latency_bucket_tables.py").c_str(), "r"), pclose);
  ASSERT_TRUE(generator);
  std::string generated;
  std::array<char, 4096> piece;
  for (std::size_t n = 0; (n = fread(piece.data(), 1, piece.size(), generator.get())) > 0;) {
    generated.append(piece.data(), n);
  }
  std::ifstream file(directory + "latency_bucket_tables.h");
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(generated, committed.str());
}

}  // namespace

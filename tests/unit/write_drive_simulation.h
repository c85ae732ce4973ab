// SPDX-License-Identifier: Apache-2.0
// What would a drive's counters show, and what is true? A drive whose bytes are known exactly (GMP integers), with
// counters of every unit and rounding, which may be updated only now and then, wrap, saturate, restart or be rolled
// back, by a byte or by everything; read by polls that are late, missed or slow, some of which show an absurd page.
// Shares nothing with the ledger except its input types.
#pragma once

#include <gmpxx.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/wear/write_ledger.h"

namespace ssdpulse::wear::simulation {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

/// Every choice of a simulation: from a generator, or from a script that a shrinking test framework can shorten.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  explicit Dice(const std::vector<std::uint32_t>& script) : script_(&script) {}

  /// 0 .. sides - 1; 0 is the simplest choice.
  std::uint64_t roll(std::uint64_t sides) { return sides <= 1 ? 0 : next() % sides; }
  bool once_in(std::uint64_t times) { return roll(times) == times - 1; }
  /// Any magnitude below 2^bits.
  std::uint64_t magnitude(unsigned bits) {
    const auto size = roll(std::min(bits, 64U) + 1);
    return size == 0 ? 0 : next() & (~std::uint64_t{0} >> (64 - size));
  }

 private:
  std::uint64_t next() {
    if (script_ == nullptr) {
      // splitmix64: seeding costs nothing, which a million short sequences need.
      std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
      return mixed ^ (mixed >> 31);
    }
    return position_ < script_->size() ? (*script_)[position_++] * std::uint64_t{0x100000001} : 0;
  }

  std::uint64_t state_ = 0;
  const std::vector<std::uint32_t>* script_ = nullptr;
  std::size_t position_ = 0;
};

mpz_class to_mpz(model::Uint128 value);
model::Uint128 to_uint128(const mpz_class& value);

/// What has happened to a counter since the last reading, apart from writes.
enum class Fate : std::uint8_t { none, restarted, rolled_back, several };
Fate both(Fate a, Fate b);

struct Counter {
  std::uint64_t unit = 1;
  model::Rounding rounding = model::Rounding::exact;
  std::uint64_t offset = 0;  // position between two counts at which the next begins, if the rounding is unknown
  unsigned bits = 128;
  bool saturates = false;
  Nanoseconds period = 0;  // between updates; 0: always up to date
  Nanoseconds phase = 0;

  mpz_class written;  // bytes, whatever has happened to the counter
  mpz_class truth;    // bytes, as this counter would show them with a unit of one byte
  mpz_class shown;    // the truth at the last update
  Fate fate = Fate::none;

  [[nodiscard]] mpz_class count_of(const mpz_class& bytes) const;
  /// `bytes` evenly over (from, to].
  void write(std::uint64_t bytes, Nanoseconds from, Nanoseconds to);
  void restart();
  void roll_back(const mpz_class& bytes);
  [[nodiscard]] model::ByteCounter read(bool unit_is_told) const;
};

/// What is true at a reading, as of the moment that the sample calls `at`.
struct Truth {
  mpz_class host_written;  // since the very first reading
  mpz_class media_written;
  mpz_class host;  // `truth` of the counters
  mpz_class media;
  mpz_class host_shown;  // what the counters represent: less than the truth if they lag
  mpz_class media_shown;
  mpz_class host_shown_after;  // at the second reading of the host's counter
  mpz_class block;
  bool idle = false;            // no host write since the first host reading of the previous sample
  Fate host_fate = Fate::none;  // since the previous sample
  Fate media_fate = Fate::none;
};

class Drive {
 public:
  explicit Drive(Dice& dice);

  /// Lets time pass, then polls.
  wear::WriteSample poll(Truth& truth);
  /// Makes one page of a reading absurd: a count is below `last`, or above what any drive can have written since.
  /// Returns whether it did.
  bool garble(wear::WriteSample& sample, const wear::WriteSample& last);
  /// As when the daemon restarts.
  void restart_block_layer() { block_ = 0; }

  [[nodiscard]] std::chrono::nanoseconds poll_interval() const { return std::chrono::nanoseconds(interval_); }
  /// Both counters are refreshed at the same times, now and then.
  [[nodiscard]] bool refreshes_together() const {
    return host_.period != 0 && host_.period == media_.period && host_.phase == media_.phase;
  }
  [[nodiscard]] bool block_layer_sees_all() const { return block_sees_ == Block::all; }

 private:
  void choose_counters();
  void choose_start(Counter& counter);
  void pass(Nanoseconds time, bool busy);
  void wait_for_poll();
  void suffer(std::uint64_t what);
  void fall(Counter& counter);
  std::optional<model::Uint128> absurd_count(const model::ByteCounter& count, model::Uint128 last);

  Dice& dice_;
  Nanoseconds interval_ = 30 * kSecond;
  Counter host_;
  Counter media_;
  bool same_page_ = false;
  bool unit_is_told_ = true;
  enum class Block : std::uint8_t { all, none, less, more } block_sees_ = Block::all;
  unsigned rate_bits_ = 30;        // host bytes in a poll
  std::uint64_t sixteenths_ = 16;  // media bytes per 16 of the host's
  Nanoseconds now_ = 0;
  std::uint64_t block_ = 0;
  std::uint64_t written_since_ = 0;
  std::int64_t wall_ = 0;
  std::string serial_ = "S1";
  std::string firmware_ = "F1";
};

}  // namespace ssdpulse::wear::simulation

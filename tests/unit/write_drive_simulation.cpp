// SPDX-License-Identifier: Apache-2.0
// The simulated drive: see the header.
#include "tests/unit/write_drive_simulation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ssdpulse::wear::simulation {

using model::Rounding;

mpz_class to_mpz(model::Uint128 value) {
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64)};
  mpz_class result;
  mpz_import(result.get_mpz_t(), 2, -1, sizeof(std::uint64_t), 0, 0, words.data());
  return result;
}

model::Uint128 to_uint128(const mpz_class& value) {
  std::array<std::uint64_t, 4> words{};
  mpz_export(words.data(), nullptr, -1, sizeof(std::uint64_t), 0, 0, value.get_mpz_t());
  return model::Uint128{words[1]} << 64 | words[0];
}

Fate both(Fate a, Fate b) { return a == Fate::none ? b : b == Fate::none ? a : Fate::several; }

mpz_class Counter::count_of(const mpz_class& bytes) const {
  if (unit == 1) {
    return bytes;
  }
  mpz_class count;
  if (rounding == Rounding::up) {
    mpz_cdiv_q_ui(count.get_mpz_t(), bytes.get_mpz_t(), unit);
  } else {
    count = bytes + offset;
    mpz_fdiv_q_ui(count.get_mpz_t(), count.get_mpz_t(), unit);
  }
  return count;
}

void Counter::write(std::uint64_t bytes, Nanoseconds from, Nanoseconds to) {
  written += bytes;
  if (period == 0) {
    truth += bytes;
    shown = truth;
  } else {
    const Nanoseconds update = (to - phase) / period * period + phase;  // the last one up to `to`
    if (update > from) {
      shown = truth + static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) *
                                                 static_cast<std::uint64_t>(update - from) /
                                                 static_cast<std::uint64_t>(to - from));
    }
    truth += bytes;
  }
  if (!saturates) {
    mpz_class capacity = unit;
    capacity <<= bits;
    if (count_of(truth) * unit >= capacity) {
      truth -= capacity;
      truth = std::max(truth, mpz_class(0));
      shown = truth;
      fate = both(fate, Fate::restarted);
    }
  }
}

void Counter::restart() {
  truth = shown = 0;
  fate = both(fate, Fate::restarted);
}

void Counter::roll_back(const mpz_class& bytes) {
  truth = shown = std::max(mpz_class(shown - bytes), mpz_class(0));
  fate = both(fate, Fate::rolled_back);
}

model::ByteCounter Counter::read(bool unit_is_told) const {
  mpz_class count = count_of(shown);
  if (saturates && mpz_sizeinbase(count.get_mpz_t(), 2) > bits) {
    return {~model::Uint128{0}, unit, rounding};
  }
  return {to_uint128(count), unit_is_told ? unit : 0, rounding};
}

Drive::Drive(Dice& dice) : dice_(dice) {
  if (dice_.once_in(4)) {
    interval_ = dice_.once_in(2) ? 10 * kSecond : 3600 * kSecond;  // the shortest and the longest
  }
  choose_counters();
  rate_bits_ = static_cast<unsigned>(10 + dice_.roll(36));
  if (dice_.roll(4) != 0) {
    // Fast enough for the counters to be useful.
    const auto grain = std::max(host_.unit, media_.unit);
    rate_bits_ =
        std::min(52U, 70U - static_cast<unsigned>(__builtin_clzll(grain)) + static_cast<unsigned>(dice_.roll(8)));
  }
  sixteenths_ = 16 + dice_.roll(32);
  if (dice_.once_in(4)) {
    sixteenths_ = 1 + dice_.roll(1600);
  }
  block_sees_ = static_cast<Block>(dice_.roll(4));
  // No more than any drive can do: the host at twice the rate in each of four parts of a poll, the media in proportion.
  constexpr unsigned kMaxBits = 38;  // in a short poll
  const auto more = 64U - static_cast<unsigned>(__builtin_clzll(sixteenths_ / 16 + 1));
  rate_bits_ = std::min(rate_bits_, kMaxBits - 3 - more);
  now_ = static_cast<Nanoseconds>(dice_.roll(400)) * interval_ - 100 * interval_;
}

void Drive::choose_counters() {
  constexpr std::array<std::uint64_t, 8> kUnits{1, 512, 512000, 1000000, 1 << 20, 32ULL << 20, 1000000000, 1ULL << 30};
  const auto choose_unit = [&](Counter& counter) {
    counter.period = 0;
    counter.unit = kUnits[dice_.roll(kUnits.size())];
    counter.rounding = counter.unit == 1 ? Rounding::exact : dice_.once_in(2) ? Rounding::up : Rounding::unknown;
    if (counter.rounding == Rounding::unknown) {
      counter.offset = dice_.roll(counter.unit);
    }
    counter.bits = dice_.once_in(2) ? 64 : 128;
    counter.saturates = counter.bits == 128 && dice_.once_in(2);
    choose_start(counter);
    // At most as late as the ledger allows for.
    const auto most = dice_.once_in(8) ? 3600 * kSecond : std::min(3600 * kSecond, 12 * interval_);
    if (dice_.once_in(4) && 3 * interval_ < most) {
      counter.period =
          3 * interval_ + static_cast<Nanoseconds>(dice_.roll(static_cast<std::uint64_t>(most - 3 * interval_)));
      counter.phase = static_cast<Nanoseconds>(dice_.roll(static_cast<std::uint64_t>(counter.period))) -
                      400 * interval_ - 200 * counter.period;
    }
  };
  unit_is_told_ = true;
  choose_unit(host_);
  choose_unit(media_);
  if (host_.period != 0 && dice_.once_in(2)) {  // one cache of both
    media_.period = host_.period;
    media_.phase = host_.phase;
  }
  same_page_ = dice_.once_in(2);
  if (same_page_ && dice_.once_in(2)) {
    media_.unit = host_.unit;
    media_.rounding = host_.rounding;
    media_.offset = host_.offset;
    choose_start(media_);
    unit_is_told_ = !dice_.once_in(4);
    if (!unit_is_told_) {
      host_.saturates = media_.saturates = false;
    }
  }
}

void Drive::choose_start(Counter& counter) {
  mpz_class count = 0;
  const auto below = [&](unsigned bits) {
    mpz_class value = 1;
    value <<= bits;
    return mpz_class(value - dice_.magnitude(20) - 1);
  };
  switch (dice_.roll(4)) {
    case 0:
      count = dice_.magnitude(40) + 1;
      break;
    case 1:
      count = dice_.magnitude(10);
      break;
    case 2:
      count = below(64);
      break;
    case 3:
      count = below(counter.bits);
      break;
  }
  counter.truth = count * counter.unit;
  if (counter.truth > 0 && counter.unit > 1) {
    counter.truth -= dice_.roll(counter.unit);
  }
  if (counter.count_of(counter.truth) >= mpz_class(1) << counter.bits) {
    counter.truth -= counter.unit;
  }
  counter.shown = counter.truth;
}

void Drive::pass(Nanoseconds time, bool busy) {
  if (time <= 0) {
    return;
  }
  std::uint64_t host = 0;
  std::uint64_t media = 0;
  if (busy) {
    host = dice_.roll(4) != 0 ? (std::uint64_t{1} << rate_bits_) + dice_.roll(std::uint64_t{1} << rate_bits_)
                              : dice_.magnitude(rate_bits_);
    media = host / 16 * sixteenths_;
  }
  if (dice_.once_in(4)) {
    media += dice_.magnitude(rate_bits_);  // at the drive's own discretion
  }
  const Nanoseconds until = now_ + time;
  host_.write(host, now_, until);
  media_.write(media, now_, until);
  written_since_ |= host;
  switch (block_sees_) {
    case Block::all:
    case Block::none:
      block_ += host;
      break;
    case Block::less:
      block_ += host / 2;
      break;
    case Block::more:
      block_ += host * 2;
      break;
  }
  now_ = until;
}

void Drive::wait_for_poll() {
  const auto quarter = static_cast<std::uint64_t>(interval_ / 4);
  Nanoseconds wait = interval_ - interval_ / 8 + static_cast<Nanoseconds>(dice_.roll(quarter));
  if (dice_.once_in(12)) {
    wait *= static_cast<Nanoseconds>(1 + dice_.roll(8));  // missed polls
    if (dice_.once_in(8)) {
      wait *= static_cast<Nanoseconds>(1 + dice_.roll(400));
    }
  }
  const bool busy = dice_.roll(6) != 5;
  const Nanoseconds part = static_cast<Nanoseconds>(dice_.roll(static_cast<std::uint64_t>(wait)));
  pass(part, busy);
  bool quiet = dice_.roll(8) == 7;
  if (dice_.once_in(16)) {
    suffer(dice_.roll(8));
    quiet = dice_.once_in(2);  // so that even a small fall shows
  }
  pass(wait - part, busy && !quiet);
}

void Drive::suffer(std::uint64_t what) {
  switch (what) {
    case 0:
      firmware_ += '+';
      break;
    case 1:
      host_.restart();
      [[fallthrough]];
    case 2:
      media_.restart();
      break;
    case 3:
      fall(host_);
      [[fallthrough]];
    case 4:
      fall(media_);
      break;
    case 5:
      fall(host_);
      break;
    case 6:
      host_.restart();
      break;
    case 7:
      serial_ += '+';
      choose_counters();
      host_.fate = media_.fate = Fate::none;
      break;
  }
}

/// By one byte, by what is written in a while, by any amount, or by everything.
void Drive::fall(Counter& counter) {
  const std::uint64_t choice = dice_.roll(4);
  if (choice == 3) {
    counter.roll_back(counter.shown);
  } else {
    counter.roll_back(mpz_class(choice == 0 ? 1 : dice_.magnitude(choice == 1 ? rate_bits_ + 4 : 64)));
  }
}

std::optional<model::Uint128> Drive::absurd_count(const model::ByteCounter& counter, model::Uint128 last) {
  constexpr model::Uint128 kLeap = model::Uint128{1} << 62;  // more bytes than any drive writes in the longest wait
  const std::uint64_t choice = dice_.roll(5);
  if (choice == 4 || (choice == 3 && counter.unit_bytes == 0)) {
    return ~model::Uint128{0};
  }
  if (choice == 3) {
    const model::Uint128 leap = kLeap << dice_.roll(60);
    return last > ~leap ? ~model::Uint128{0} : last + leap;
  }
  if (last == 0) {
    return std::nullopt;
  }
  return choice == 0 ? 0 : choice == 1 ? last - 1 - std::min<model::Uint128>(last - 1, dice_.magnitude(40)) : last / 2;
}

bool Drive::garble(wear::WriteSample& sample, const wear::WriteSample& last) {
  const auto replace = [&](std::optional<model::ByteCounter>& counter, const model::ByteCounter& before) {
    const auto count = absurd_count(*counter, before.count);
    if (count) {
      counter->count = *count;
    }
    return count.has_value();
  };
  if (same_page_) {
    const bool host = replace(sample.host_before, *last.host_after);
    sample.host_after = sample.host_before;
    return replace(sample.media, *last.media) || host;
  }
  switch (dice_.roll(3)) {
    case 0:
      return replace(sample.media, *last.media);
    case 1:
      return replace(sample.host_before, *last.host_after);
    default:
      return replace(sample.host_after, *last.host_after);
  }
}

wear::WriteSample Drive::poll(Truth& truth) {
  wait_for_poll();
  const bool slow = dice_.once_in(8);
  const auto between = [&] {
    return static_cast<Nanoseconds>(dice_.roll(static_cast<std::uint64_t>(slow ? 4 * kSecond : kSecond / 100)));
  };
  const auto pause = [&] {
    pass(between(), dice_.once_in(2));
    if (dice_.once_in(128)) {
      suffer(1 + dice_.roll(6));  // the drive stays the same
    }
  };
  wear::WriteSample sample;
  const auto read_host = [&](std::optional<model::ByteCounter>& into, std::optional<model::BlockWrites>& writes) {
    into = host_.read(unit_is_told_);
    if (block_sees_ != Block::none) {
      writes = model::BlockWrites{.written_bytes = block_};
    }
  };
  const auto written_before = written_since_;
  written_since_ = 0;
  if (!same_page_) {
    read_host(sample.host_before, sample.block_before);
    pause();
  }
  sample.media = media_.read(unit_is_told_);
  sample.at = std::chrono::nanoseconds(now_);
  truth.media_fate = std::exchange(media_.fate, Fate::none);
  truth.host_written = host_.written;
  truth.media_written = media_.written;
  truth.host = host_.truth;
  truth.media = media_.truth;
  truth.host_shown = host_.shown;
  truth.media_shown = media_.shown;
  truth.block = block_;
  if (same_page_) {
    read_host(sample.host_before, sample.block_before);
  } else {
    pause();
  }
  read_host(sample.host_after, sample.block_after);
  truth.host_fate = std::exchange(host_.fate, Fate::none);
  truth.host_shown_after = host_.shown;
  truth.idle = written_before == 0 && written_since_ == 0;
  wall_ = dice_.once_in(16) ? static_cast<std::int64_t>(dice_.magnitude(50)) : wall_ + 30'000'000;
  sample.wall = std::chrono::system_clock::time_point(std::chrono::microseconds(wall_));
  sample.serial = serial_;
  sample.firmware = firmware_;
  return sample;
}

}  // namespace ssdpulse::wear::simulation

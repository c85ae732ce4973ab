// SPDX-License-Identifier: Apache-2.0
#include "daemon/wear/write_ledger.h"

#include <algorithm>
#include <array>

namespace ssdpulse::wear {
namespace {

constexpr std::string_view kStateVersion = "write-ledger-3 ";
constexpr std::string_view kDigits = "0123456789abcdef";

/// Stores what a ledger has learned across a restart of the daemon, as text. Each type lists its fields once, for
/// writing and reading, in a static archive(self, fields), as fields(self.a_, self.b_).
/// Numbers are lower-case hexadecimal digits, strings a leading x and two digits per character; a blank follows each.
class StateWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (write(fields), ...);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void write(model::Uint128 value) {
    std::string digits;
    do {
      digits += kDigits[static_cast<std::size_t>(value & 15)];
      value >>= 4;
    } while (value != 0);
    std::reverse(digits.begin(), digits.end());
    text_ += digits + ' ';
  }
  void write(std::uint64_t value) { write(model::Uint128{value}); }
  void write(bool value) { write(model::Uint128{value}); }
  void write(model::Rounding value) { write(static_cast<model::Uint128>(value)); }
  void write(std::int64_t value) { write(model::Uint128{static_cast<std::uint64_t>(value)}); }
  void write(std::chrono::nanoseconds value) { write(std::int64_t{value.count()}); }
  void write(std::chrono::system_clock::time_point value) {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::microseconds>(value.time_since_epoch());
    write(static_cast<std::uint64_t>(std::max<std::int64_t>(since_epoch.count(), 0)));
  }
  void write(const std::string& value) {
    text_ += 'x';
    for (const char character : value) {
      const auto byte = static_cast<unsigned char>(character);
      text_ += kDigits[byte >> 4];
      text_ += kDigits[byte & 15];
    }
    text_ += ' ';
  }
  template <typename T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) {
      write(*value);
    }
  }
  template <typename T>
  void write(const std::vector<T>& values) {
    write(std::uint64_t{values.size()});
    for (const T& value : values) {
      write(value);
    }
  }
  template <typename T>
  void write(const T& value) {
    T::archive(value, *this);
  }

  std::string text_;
};

/// The text is not trusted: what does not fit fails the whole read, and sums of accepted numbers do not overflow.
class StateReader {
 public:
  explicit StateReader(std::string_view text) : rest_(text) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  /// Whether everything was read without an error, and nothing is left.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  static constexpr std::uint64_t kMaxElements = 64;
  static constexpr std::uint64_t kMaxMicroseconds = std::uint64_t{1} << 52;  // the year 2112

  std::string_view next_word() {
    const std::size_t end = rest_.find(' ');
    if (end == std::string_view::npos || end == 0) {
      good_ = false;
      rest_ = {};
      return "0";
    }
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return word;
  }
  std::uint64_t number_up_to(std::uint64_t max) {
    model::Uint128 value = 0;
    read(value);
    good_ = good_ && value <= max;
    return good_ ? static_cast<std::uint64_t>(value) : 0;
  }
  std::int64_t signed_number() {
    constexpr std::int64_t kMaxNanoseconds = std::int64_t{1} << 60;  // 36 years of nanoseconds
    const auto value = static_cast<std::int64_t>(number_up_to(UINT64_MAX));
    good_ = good_ && value < kMaxNanoseconds && value > -kMaxNanoseconds;
    return good_ ? value : 0;
  }
  void read(model::Uint128& value) {
    constexpr std::size_t kMaxDigits = 32;
    value = 0;
    const std::string_view word = next_word();
    good_ = good_ && word.size() <= kMaxDigits;
    for (const char character : word) {
      const std::size_t digit = kDigits.find(character);
      if (digit == std::string_view::npos) {
        good_ = false;
        return;
      }
      value = value << 4 | digit;
    }
  }
  void read(std::uint64_t& value) { value = number_up_to(UINT64_MAX); }
  void read(bool& value) { value = number_up_to(1) == 1; }
  void read(model::Rounding& value) {
    value = static_cast<model::Rounding>(number_up_to(static_cast<std::uint64_t>(model::Rounding::unknown)));
  }
  void read(std::int64_t& value) { value = signed_number(); }
  void read(std::chrono::nanoseconds& value) { value = std::chrono::nanoseconds(signed_number()); }
  void read(std::chrono::system_clock::time_point& value) {
    value = std::chrono::system_clock::time_point(std::chrono::microseconds(number_up_to(kMaxMicroseconds)));
  }
  void read(std::string& value) {
    constexpr std::size_t kMaxDigits = 512;
    value.clear();
    std::string_view word = next_word();
    if (word[0] != 'x' || word.size() % 2 != 1 || word.size() > kMaxDigits) {
      good_ = false;
      return;
    }
    for (word.remove_prefix(1); !word.empty(); word.remove_prefix(2)) {
      const std::size_t high = kDigits.find(word[0]);
      const std::size_t low = kDigits.find(word[1]);
      if (high == std::string_view::npos || low == std::string_view::npos) {
        good_ = false;
        return;
      }
      value += static_cast<char>(high << 4 | low);
    }
  }
  template <typename T>
  void read(std::optional<T>& value) {
    bool present = false;
    read(present);
    value = present ? std::optional<T>(std::in_place) : std::nullopt;
    if (value) {
      read(*value);
    }
  }
  template <typename T>
  void read(std::vector<T>& values) {
    values.resize(number_up_to(kMaxElements));
    for (T& value : values) {
      read(value);
    }
  }
  template <typename T>
  void read(T& value) {
    T::archive(value, *this);
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

bool WriteLedger::saturated(const WriteSample& sample) {
  const auto full = [](const std::optional<model::ByteCounter>& counter) {
    return counter && counter->count == kUnbounded;
  };
  return full(sample.host_before) || full(sample.media) || full(sample.host_after);
}

std::optional<WriteLedger::Reading> WriteLedger::usable(const WriteSample& sample) {
  if (!sample.host_before || !sample.host_after || saturated(sample) ||
      sample.host_after->count < sample.host_before->count) {
    return std::nullopt;
  }
  Reading reading{sample.at,
                  CounterFormat(*sample.host_after),
                  {sample.host_before->count, sample.host_after->count},
                  {},
                  std::nullopt,
                  std::nullopt};
  if (sample.media) {
    reading.media_format = CounterFormat(*sample.media);
    reading.media = sample.media->count;
  }
  if (sample.block_before && sample.block_after) {
    reading.block = HostPoint{reading.host, reading.host_format, *sample.block_before, *sample.block_after,
                              sample.block_largest_request_bytes};
  }
  return reading;
}

void WriteLedger::observe(const WriteSample& sample) {
  meet_drive(sample);
  if (!host_.seen()) {
    at_ = sample.at;  // the time of the wear data, without any reading
    wall_ = sample.wall;
  }
  wear_.observe(sample.at, sample.percentage_used.value_or(-1));
  if (sample.endurance_estimate) {
    endurance_estimate_ = sample.endurance_estimate;
  }
  if (saturated(sample)) {
    lifetime_.lose();
  }
  const auto reading = usable(sample);
  if (!reading) {
    // Saturated, or reset between the reads: nothing before can be compared with anything after.
    if (sample.host_before && sample.host_after) {
      if (!host_.seen()) {
        lifetime_.lose();  // and nothing shows how much was lost
      }
      break_off();
      interrupted_ = true;
    }
    return;
  }
  if ((media_.seen() && !reading->media) || (host_.seen() && reading->at == at_)) {
    return;
  }
  if (host_.seen() && reading->at < at_) {
    windows_.clear();
    host_lag_.forget_times();
    media_lag_.forget_times();
    idle_since_.reset();
    block_.reset();
  }
  learn_units(*reading);
  const bool new_epoch =
      host_.seen() &&
      (interrupted_ || sample.firmware != firmware_ || host_.breaks(reading->host_format, reading->host) ||
       (reading->media && media_.breaks(reading->media_format, {*reading->media, *reading->media})));
  if (new_epoch) {
    begin_epoch(*reading, sample.firmware);
  } else {
    watch_idleness(*reading);
    watch_refresh(*reading);
  }
  interrupted_ = false;
  firmware_ = sample.firmware;
  wall_ = sample.wall;
  counted_since_birth_ = sample.counted_since_birth;
  compresses_ = sample.compresses;
  host_.advance(reading->host_format, reading->host);
  if (reading->media) {
    media_.advance(reading->media_format, {*reading->media, *reading->media});
  }
  watch_lag(*reading);
  if (!new_epoch) {  // an epoch may have begun in the middle of the sample
    if (reading->media) {
      windows_.add({reading->at, reading->host, *reading->media});
    }
    watch_drift(*reading);
  }
  at_ = reading->at;
  timed_ = true;
  readings_ = std::min(readings_ + 1, 2U);
  block_ = reading->block;
}

void WriteLedger::meet_drive(const WriteSample& sample) {
  if (serial_ && *serial_ != sample.serial) {
    *this = WriteLedger(poll_interval_);
  }
  if (!serial_) {
    serial_ = sample.serial;
    since_ = sample.wall;
  }
}

void WriteLedger::learn_units(const Reading& reading) {
  if (host_.would_learn(reading.host_format)) {
    host_.learn(reading.host_format);
    lifetime_.learn_host(reading.host_format);
    media_lag_.forget_times();  // its evidence was in the unknown unit
  }
  if (reading.media && media_.would_learn(reading.media_format)) {
    media_.learn(reading.media_format);
    lifetime_.learn_media(reading.media_format);
  }
}

void WriteLedger::watch_refresh(const Reading& reading) {
  if (host_.seen() && media_.seen() && reading.media) {
    refresh_.observe(reading.host.high != host_.last().high, *reading.media != media_.last().high);
  }
}

void WriteLedger::watch_lag(const Reading& reading) {
  WriteEvidence evidence;
  if (reading.block && host_.format().known()) {
    evidence.block = {reading.block->before.written_bytes, reading.block->after.written_bytes};
  }
  host_lag_.observe(reading.at, reading.host.high, evidence, host_.format().doubt());
  if (!reading.media) {
    return;
  }
  if (comparable()) {
    evidence.host = host_.format().interval(reading.host);
  } else {
    evidence = {};
  }
  media_lag_.observe(reading.at, *reading.media, evidence, media_.format().doubt() + kMaxBufferedBytes);
}

void WriteLedger::watch_idleness(const Reading& reading) {
  const auto unmoved = [](const BlockWrites& from, const BlockWrites& to) {
    return from.written_bytes == to.written_bytes && from.zeroed_bytes == to.zeroed_bytes && from.losses == to.losses;
  };
  const bool idle =
      block_ && reading.block && unmoved(block_->before, reading.block->after) && host_.last().low == reading.host.high;
  if (!idle) {
    idle_since_.reset();
    return;
  }
  if (!idle_since_) {
    idle_since_ = at_;
  }
  // A lagging counter may still be showing what was written before.
  if (reading.media && media_.seen() && media_.format().known() &&
      at_ - *idle_since_ >= media_lag_.lag(poll_interval_)) {
    idle_media_ = add(idle_media_, media_.format().bytes(*reading.media - media_.last().high));
  }
}

void WriteLedger::watch_drift(const Reading& reading) {
  constexpr auto kCounters = std::to_array<std::uint64_t BlockWrites::*>(
      {&BlockWrites::written_bytes, &BlockWrites::zeroed_bytes, &BlockWrites::discarded_bytes, &BlockWrites::losses});
  const bool fell = block_ && reading.block && std::any_of(kCounters.begin(), kCounters.end(), [&](auto counter) {
                      return reading.block->before.*counter < block_->after.*counter;
                    });
  const bool known = reading.block && host_.format().known();
  if (fell || !known) {
    drift_.forget_begin();
  }
  if (known) {
    drift_.observe(*reading.block, host_lag_.lag(poll_interval_) == Time{0});
  }
}

std::optional<WriteLedger::Newest> WriteLedger::newest() const {
  if (!host_.seen()) {
    return std::nullopt;
  }
  Newest newest{{}, timed_, {behind(host_lag_), behind(media_lag_)}};
  WriteSample& sample = newest.sample;
  sample.at = at_;
  sample.wall = wall_;
  sample.host_before = host_.format().counter(host_.last().low);
  sample.host_after = host_.format().counter(host_.last().high);
  if (media_.seen()) {
    sample.media = media_.format().counter(media_.last().high);
  }
  sample.serial = serial_.value_or("");
  sample.firmware = firmware_;
  return newest;
}

void WriteLedger::remember(const WriteSample& sample) {
  const auto reading = usable(sample);
  if (!reading || !reading->media || !media_.seen() || (epochs_ > 0 && reading->at <= epoch_at_)) {
    return;
  }
  const auto same = [](const CounterFormat& then, const CounterFormat& now) { return !then.known() || then == now; };
  if (sample.serial != serial_ || sample.firmware != firmware_ || !same(reading->host_format, host_.format()) ||
      !same(reading->media_format, media_.format())) {
    windows_.clear();
    return;
  }
  windows_.add({reading->at, reading->host, *reading->media});
}

std::string WriteLedger::save() const {
  StateWriter writer;
  archive(*this, writer);
  return std::string(kStateVersion) + writer.text();
}

util::Result<WriteLedger> WriteLedger::restore(std::string_view text, Time poll_interval, Time at,
                                               std::chrono::system_clock::time_point wall) {
  if (!text.starts_with(kStateVersion)) {
    return util::fail("not a write ledger of this version");
  }
  WriteLedger ledger(poll_interval);
  StateReader reader(text.substr(kStateVersion.size()));
  archive(ledger, reader);
  ledger.readings_ = 2;
  if (!reader.complete()) {
    return util::fail("the text of the write ledger is damaged");
  }
  // The old clock may have ended with its boot. Only the wall clock knows how long ago that was. If it went backwards,
  // no time is taken to have passed; likewise if it went forward by decades, as it does on a host without a battery.
  const auto since = wall - ledger.wall_;
  const bool absent = since > since.zero() && since < kLongestAbsence;
  const Time moved = at - (absent ? std::chrono::duration_cast<Time>(since) : Time{0}) - ledger.at_;
  ledger.at_ += moved;
  ledger.epoch_at_ += moved;
  ledger.wear_.move_times(moved);
  return ledger;
}

}  // namespace ssdpulse::wear

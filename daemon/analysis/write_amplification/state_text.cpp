// SPDX-License-Identifier: Apache-2.0
// Words of lower-case hexadecimal digits, one blank after each; strings with a leading x, two digits per character.
#include "daemon/analysis/write_amplification/state_text.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

void StateWriter::write(model::Uint128 value) {
  std::string digits;
  do {
    digits += kDigits[static_cast<std::size_t>(value & 15)];
    value >>= 4;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  text_ += digits + ' ';
}

void StateWriter::write(const std::string& value) {
  text_ += 'x';
  for (const char character : value) {
    const auto byte = static_cast<unsigned char>(character);
    text_ += kDigits[byte >> 4];
    text_ += kDigits[byte & 15];
  }
  text_ += ' ';
}

std::string_view StateReader::next_word() {
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

void StateReader::read(model::Uint128& value) {
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

std::uint64_t StateReader::number_up_to(std::uint64_t most) {
  model::Uint128 value = 0;
  read(value);
  good_ = good_ && value <= most;
  return good_ ? static_cast<std::uint64_t>(value) : 0;
}

std::int64_t StateReader::signed_number() {
  constexpr std::int64_t kMaxNanoseconds = std::int64_t{1} << 60;  // 36 years of nanoseconds
  const auto value = static_cast<std::int64_t>(number_up_to(UINT64_MAX));
  good_ = good_ && value < kMaxNanoseconds && value > -kMaxNanoseconds;
  return good_ ? value : 0;
}

void StateReader::read(std::string& value) {
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

}  // namespace ssdpulse::analysis

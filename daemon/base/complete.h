// SPDX-License-Identifier: Apache-2.0
// Tables that are complete, or do not compile: as many entries as the enumeration has values, and no empty text.
// Nobody counts by hand, so a new value without its entry is an error at the table and not an empty string at run time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace ssdpulse::util {

/// A text that is never empty: a part that each entry of a table must have.
class Text {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that a table holds plain literals
  consteval Text(const char* text) : text_(text) {
    if (text_.empty()) {
      throw "an entry of a table has an empty text";
    }
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator std::string_view() const { return text_; }
  [[nodiscard]] constexpr std::string_view view() const { return text_; }

 private:
  std::string_view text_;
};

/// Whether the enumeration has a name for this value: compilers print any other as a cast, "(Cause)8".
template <auto kValue>
consteval bool is_enumerator() {
  constexpr std::string_view kFunction = __PRETTY_FUNCTION__;
  constexpr std::string_view kBefore = "kValue = ";
  return kFunction[kFunction.find(kBefore) + kBefore.size()] != '(';
}

/// How many values an enumeration has that counts from 0 without gaps.
template <typename Enum, std::size_t kFrom = 0>
consteval std::size_t count_of() {
  if constexpr (is_enumerator<static_cast<Enum>(kFrom)>()) {
    return count_of<Enum, kFrom + 1>();
  } else {
    return kFrom;
  }
}

/// The name of this value in the source, without its scope.
template <auto kValue>
consteval std::string_view enumerator_name() {
  constexpr std::string_view kFunction = __PRETTY_FUNCTION__;
  constexpr std::string_view kBefore = "kValue = ";
  constexpr std::size_t kFirst = kFunction.find(kBefore) + kBefore.size();
  constexpr std::string_view kQualified = kFunction.substr(kFirst, kFunction.find_first_of(";]", kFirst) - kFirst);
  return kQualified.substr(kQualified.rfind(':') + 1);
}

/// The names of all values in the source, in their order.
template <typename Enum>
consteval auto enumerator_names() {
  return []<std::size_t... kValues>(std::index_sequence<kValues...>) {
    return std::array<std::string_view, sizeof...(kValues)>{enumerator_name<static_cast<Enum>(kValues)>()...};
  }
  (std::make_index_sequence<count_of<Enum>()>());
}

/// The names of an enumeration's values, or other texts for each, in its order.
template <typename Enum, std::size_t kGiven>
consteval std::array<std::string_view, count_of<Enum>()> names(const Text (&texts)[kGiven]) {
  static_assert(kGiven == count_of<Enum>(), "one text for each value of the enumeration");
  std::array<std::string_view, count_of<Enum>()> all{};
  for (std::size_t i = 0; i < kGiven; ++i) {
    all[i] = texts[i];
  }
  return all;
}

/// Whether a table of entries has one for each value, in the order of the enumeration; `key`: the value it is about.
template <typename Enum, typename Entry, std::size_t kEntries>
consteval bool is_table_of(const std::array<Entry, kEntries>& table, Enum Entry::*key) {
  bool ordered = kEntries == count_of<Enum>();
  for (std::size_t i = 0; i < kEntries; ++i) {
    ordered = ordered && static_cast<std::size_t>(table[i].*key) == i;
  }
  return ordered;
}

/// One text of each entry.
template <typename Entry, std::size_t kEntries>
consteval std::array<std::string_view, kEntries> column(const std::array<Entry, kEntries>& table, Text Entry::*text) {
  std::array<std::string_view, kEntries> all{};
  for (std::size_t i = 0; i < kEntries; ++i) {
    all[i] = (table[i].*text).view();
  }
  return all;
}

}  // namespace ssdpulse::util

// SPDX-License-Identifier: Apache-2.0
// The kinds of value that keys hold. A kind reads a Value into a field, writes it back, and says what it allows, for
// the schema, the commented defaults and the manual.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

/// Where a key's reader reports: every message begins with the key's full name.
struct Field {
  std::string_view key;
  Report& report;
  void wrong(Position at, const std::string& message) const { report.add(at, std::string(key) + ": " + message); }
};

/// What a kind allows, in words for people and editors.
struct Form {
  std::string schema;      // members of a JSON schema, without braces
  std::string least = {};  // of a range, with their unit; empty: none
  std::string most = {};
  std::vector<std::string> values = {};  // words to choose from; empty: it is no choice
};

/// One address, or a list of at least one, each once.
struct ListenAddresses {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& texts) const;
  /// As documents show it: one address without brackets.
  [[nodiscard]] Value shown(const std::vector<std::string>& texts) const;
  [[nodiscard]] Form form() const;
};

/// A list of shell globs on device names.
struct Patterns {
  std::size_t at_least = 0;

  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& globs) const;
  [[nodiscard]] Form form() const;
};

void read_word(const Value& value, const Field& field, const std::vector<std::string>& words, std::size_t& out);
Form form_of_words(std::vector<std::string> words);

/// One word out of a few, each standing for a value of an enumeration.
template <typename Enum, std::size_t N>
struct OneOf {
  std::array<std::pair<std::string_view, Enum>, N> words;

  void read(const Value& value, const Field& field, Enum& out) const {
    std::size_t chosen = N;
    read_word(value, field, texts(), chosen);
    if (chosen < N) {
      out = words[chosen].second;
    }
  }
  [[nodiscard]] Value write(Enum wanted) const {
    for (const auto& word : words) {
      if (word.second == wanted) {
        return make_scalar(word.first, true);
      }
    }
    return {};
  }
  [[nodiscard]] Form form() const { return form_of_words(texts()); }

 private:
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const auto& word : words) {
      all.emplace_back(word.first);
    }
    return all;
  }
};

/// A duration with its unit, within a range.
struct DurationWithin {
  std::chrono::nanoseconds least;
  std::chrono::nanoseconds most;

  void read(const Value& value, const Field& field, std::chrono::nanoseconds& out) const;
  [[nodiscard]] Value write(std::chrono::nanoseconds duration) const;
  [[nodiscard]] Form form() const;
};

/// A number of bytes with its unit, within a range.
struct SizeWithin {
  std::uint64_t least;
  std::uint64_t most;

  void read(const Value& value, const Field& field, std::uint64_t& out) const;
  [[nodiscard]] Value write(std::uint64_t bytes) const;
  [[nodiscard]] Form form() const;
};

/// A share in percent; 0% for none.
struct PercentOrNone {
  double least;  // other than none

  void read(const Value& value, const Field& field, double& out) const;
  [[nodiscard]] Value write(double ratio) const;
  [[nodiscard]] Form form() const;
};

/// An absolute path, or an empty text for "none".
struct PathOrNone {
  std::size_t longest = 4000;  // PATH_MAX less what is added to it

  void read(const Value& value, const Field& field, std::string& out) const;
  [[nodiscard]] Value write(const std::string& path) const;
  [[nodiscard]] Form form() const;
};

/// A whole number within a range.
struct NumberWithin {
  std::uint64_t least;
  std::uint64_t most;

  void read(const Value& value, const Field& field, std::uint64_t& out) const;
  [[nodiscard]] Value write(std::uint64_t number) const;
  [[nodiscard]] Form form() const;
};

/// A list of mappings, each with a pattern and a name.
struct TenantPatterns {
  static constexpr std::size_t kMaxPatterns = 1000;  // each is tried for each new cgroup
  static constexpr std::size_t kLongestName = 128;
  static constexpr std::size_t kLongestMatch = 4096;

  void read(const Value& value, const Field& field, std::vector<TenantPattern>& out) const;
  [[nodiscard]] Value write(const std::vector<TenantPattern>& patterns) const;
  [[nodiscard]] Form form() const;

 private:
  static void check(const Value& item, const Field& field, const TenantPattern& pattern);
};

/// true or false.
struct YesOrNo {
  void read(const Value& value, const Field& field, bool& out) const;
  [[nodiscard]] Value write(bool yes) const;
  [[nodiscard]] Form form() const;
};

/// A list of names of hosts, as browsers send them: without a port.
struct HostNames {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& names) const;
  [[nodiscard]] Form form() const;
};

/// A list of metric groups. The group that shows how far the others can be trusted is never left out.
struct GroupsToLeaveOut {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& groups) const;
  [[nodiscard]] Form form() const;
};

}  // namespace ssdpulse::config

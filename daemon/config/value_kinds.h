// SPDX-License-Identifier: Apache-2.0
// The kinds of value that keys hold. A kind reads a Value into a member of Config, writes it back, and says what it
// allows, for the schema, the commented defaults and the manual. What it does not allow it reports, and leaves the
// member as it was or incomplete.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/config/config.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

/// What a kind allows, as text for people and editors.
struct Form {
  std::string schema;    // members of a JSON schema, without braces
  std::string min = {};  // of a range, with their unit; empty: none
  std::string max = {};
  std::vector<std::string> values = {};  // to choose from; empty: it is no choice
};

/// true or false.
struct YesOrNo {
  void read(const Value& value, const Field& field, bool& out) const;
  [[nodiscard]] Value write(bool yes) const;
  [[nodiscard]] Form form() const;
};

/// A whole number within a range.
struct NumberWithin {
  std::uint64_t min;
  std::uint64_t max;

  void read(const Value& value, const Field& field, std::uint64_t& out) const;
  [[nodiscard]] Value write(std::uint64_t number) const;
  [[nodiscard]] Form form() const;
};

/// A duration or a number of bytes with its unit, within a range.
template <typename Quantity>
struct QuantityWithin {
  Quantity min;
  Quantity max;

  void read(const Value& value, const Field& field, Quantity& out) const;
  [[nodiscard]] Value write(Quantity quantity) const;
  [[nodiscard]] Form form() const;
};
using DurationWithin = QuantityWithin<std::chrono::nanoseconds>;
using SizeWithin = QuantityWithin<std::uint64_t>;

/// A share in percent; 0% for none.
struct PercentOrNone {
  double min;  // other than none

  void read(const Value& value, const Field& field, double& out) const;
  [[nodiscard]] Value write(double ratio) const;
  [[nodiscard]] Form form() const;
};

/// The index of the value among the choices; nothing, and reported, if it is none of them.
std::optional<std::size_t> read_choice(const Value& value, const Field& field, const Form& choices);
Form form_of_choice(const std::vector<std::string>& values);

/// The name of an enumeration's value.
template <typename Enum>
struct EnumName {
  std::array<std::string_view, util::count_of<Enum>()> names;

  void read(const Value& value, const Field& field, Enum& out) const {
    if (const auto chosen = read_choice(value, field, form())) {
      out = static_cast<Enum>(*chosen);
    }
  }
  [[nodiscard]] Value write(Enum value) const { return make_scalar(names[static_cast<std::size_t>(value)], true); }
  [[nodiscard]] Form form() const { return form_of_choice({names.begin(), names.end()}); }
};

/// One in so many, a power of two up to 128: 1/1, 1/2, ...; 0 is "auto".
struct SampleShare {
  void read(const Value& value, const Field& field, std::uint32_t& out) const;
  [[nodiscard]] Value write(std::uint32_t one_in) const;
  [[nodiscard]] Form form() const;
};

/// An absolute path, or an empty text for "none".
struct PathOrNone {
  std::size_t max_bytes = 4000;  // PATH_MAX less what is added to it

  void read(const Value& value, const Field& field, std::string& out) const;
  [[nodiscard]] Value write(const std::string& path) const;
  [[nodiscard]] Form form() const;
};

/// A list of texts that are all of one form.
struct TextList {
  std::string_view expected;                                     // "a list of patterns, as in ..."
  std::optional<std::string> (*validate)(const Value& element);  // what is wrong with it
  Form element;
  bool may_be_empty = true;

  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& texts) const;
  [[nodiscard]] Form form() const;
};

/// Shell globs on device names.
TextList device_patterns(bool may_be_empty);
/// Names of hosts, as browsers send them: without a port.
TextList host_names();
/// Groups of metrics. The group that shows how far the others can be trusted is never left out.
TextList groups_to_leave_out();

/// One address, or a list of at least one, each once.
struct ListenAddresses {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const;
  [[nodiscard]] Value write(const std::vector<std::string>& texts) const;
  /// As documents show it: one address without brackets.
  [[nodiscard]] Value shown(const std::vector<std::string>& texts) const;
  [[nodiscard]] Form form() const;
};

/// A list of mappings, each with a pattern and a name.
struct TenantPatterns {
  static constexpr std::size_t kMaxPatterns = 1000;  // each is tried for each new cgroup
  static constexpr std::size_t kMaxNameBytes = 128;
  static constexpr std::size_t kMaxMatchBytes = 4096;

  void read(const Value& value, const Field& field, std::vector<TenantPattern>& out) const;
  [[nodiscard]] Value write(const std::vector<TenantPattern>& patterns) const;
  [[nodiscard]] Form form() const;
};

}  // namespace ssdpulse::config

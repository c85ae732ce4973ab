// SPDX-License-Identifier: Apache-2.0
// Values with a syntax of their own: durations, sizes and listen addresses, each tested separately against an oracle in
// 128-bit arithmetic or by construction.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "daemon/config/value_text.h"

namespace ssdpulse::config {
namespace {

using Wide = unsigned __int128;

const std::vector<std::pair<std::string, std::uint64_t>> kDurations{{"ns", 1},
                                                                    {"us", 1000},
                                                                    {"ms", 1000 * 1000},
                                                                    {"s", 1000ULL * 1000 * 1000},
                                                                    {"m", 60'000'000'000},
                                                                    {"h", 3600'000'000'000},
                                                                    {"d", 86400'000'000'000}};
const std::vector<std::pair<std::string, std::uint64_t>> kSizes{{"B", 1},
                                                                {"kB", 1000},
                                                                {"MB", 1000 * 1000},
                                                                {"GB", 1000ULL * 1000 * 1000},
                                                                {"TB", 1'000'000'000'000},
                                                                {"KiB", 1ULL << 10},
                                                                {"MiB", 1ULL << 20},
                                                                {"GiB", 1ULL << 30},
                                                                {"TiB", 1ULL << 40}};
constexpr std::uint64_t kMaxNs = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint64_t>::max();

TEST(Duration, reads_each_unit) {
  using namespace std::chrono_literals;
  const std::map<std::string, std::chrono::nanoseconds> expected{{"5s", 5s},        {"250ms", 250ms}, {"1h", 1h},
                                                                 {"90d", 90 * 24h}, {"7us", 7us},     {"1ns", 1ns},
                                                                 {"90m", 90min},    {"0s", 0s},       {"0005s", 5s}};
  for (const auto& [text, value] : expected) {
    ASSERT_TRUE(parse_duration(text).has_value()) << text;
    EXPECT_EQ(*parse_duration(text), value) << text;
  }
}

TEST(Duration, says_what_is_wrong) {
  const std::string expected = "; expected a whole number and a unit (d, h, m, s, ms, us, ns), for example 30s";
  const std::map<std::string, std::string> wrong{{"30", "'30' has no unit"},
                                                 {"0", "'0' has no unit"},
                                                 {"", "'' does not begin with a number"},
                                                 {"s", "'s' does not begin with a number"},
                                                 {"-5s", "'-5s' is negative"},
                                                 {"+5s", "'+5s' does not begin with a number"},
                                                 {"1.5s", "'1.5s' has a fraction"},
                                                 {"1,5s", "'1,5s' has a fraction"},
                                                 {"5 s", "'5 s' has the unknown unit ' s'"},
                                                 {" 5s", "' 5s' does not begin with a number"},
                                                 {"5S", "'5S' has the unknown unit 'S'"},
                                                 {"5sec", "'5sec' has the unknown unit 'sec'"},
                                                 {"1h30m", "'1h30m' has the unknown unit 'h30m'"},
                                                 {"0x10s", "'0x10s' has the unknown unit 'x10s'"},
                                                 {"1e3s", "'1e3s' has the unknown unit 'e3s'"},
                                                 {"4KiB", "'4KiB' has the unknown unit 'KiB'"},
                                                 {"5\ns", "'5\\x0as' has the unknown unit '\\x0as'"},
                                                 {"99999999999999999999s", "'99999999999999999999s' is too large"},
                                                 {"106752d", "'106752d' is too large"}};
  for (const auto& [text, message] : wrong) {
    ASSERT_FALSE(parse_duration(text).has_value()) << text;
    EXPECT_EQ(parse_duration(text).error().message, message + expected);
  }
}

TEST(Size, says_what_is_wrong) {
  const std::string expected =
      "; expected a whole number and a unit (TiB, TB, GiB, GB, MiB, MB, KiB, kB, B), for example 64MiB";
  const std::map<std::string, std::string> wrong{{"4096", "'4096' has no unit"},
                                                 {"4K", "'4K' has the unknown unit 'K'"},
                                                 {"4KB", "'4KB' has the unknown unit 'KB'"},
                                                 {"-1B", "'-1B' is negative"},
                                                 {"0.5MiB", "'0.5MiB' has a fraction"},
                                                 {"18446744073709551616B", "'18446744073709551616B' is too large"},
                                                 {"16777216TiB", "'16777216TiB' is too large"}};
  for (const auto& [text, message] : wrong) {
    ASSERT_FALSE(parse_size(text).has_value()) << text;
    EXPECT_EQ(parse_size(text).error().message, message + expected);
  }
}

/// Any number, often one close to the largest that the unit allows.
std::uint64_t number_near(std::uint64_t most) {
  const auto offset = *rc::gen::inRange<std::uint64_t>(0, 4);
  return *rc::gen::weightedOneOf<std::uint64_t>(
      {{1, rc::gen::arbitrary<std::uint64_t>()}, {2, rc::gen::just(most - 2 + offset)}});
}

RC_GTEST_PROP(Duration, agrees_with_wide_arithmetic_at_and_around_overflow, ()) {
  const auto unit = *rc::gen::elementOf(kDurations);
  const std::uint64_t number = number_near(kMaxNs / unit.second);
  const auto duration = parse_duration(std::to_string(number) + unit.first);
  RC_ASSERT(duration.has_value() == (Wide{number} * unit.second <= kMaxNs));
  if (duration) {
    RC_ASSERT(static_cast<std::uint64_t>(duration->count()) == number * unit.second);
  }
}

RC_GTEST_PROP(Size, agrees_with_wide_arithmetic_at_and_around_overflow, ()) {
  const auto unit = *rc::gen::elementOf(kSizes);
  const std::uint64_t most = kMaxBytes / unit.second;
  const std::uint64_t number = most == kMaxBytes ? *rc::gen::arbitrary<std::uint64_t>() : number_near(most);
  const auto size = parse_size(std::to_string(number) + unit.first);
  RC_ASSERT(size.has_value() == (Wide{number} * unit.second <= kMaxBytes));
  if (size) {
    RC_ASSERT(*size == number * unit.second);
  }
}

RC_GTEST_PROP(Duration, round_trip, ()) {
  const auto unit = *rc::gen::elementOf(kDurations);
  const auto number = *rc::gen::inRange<std::uint64_t>(0, 100'000);
  const std::chrono::nanoseconds round(static_cast<std::int64_t>(number * unit.second));
  RC_ASSERT(parse_duration(format_duration(round)) == round);
  const std::chrono::nanoseconds any(*rc::gen::nonNegative<std::int64_t>());
  RC_ASSERT(parse_duration(format_duration(any)) == any);
}

RC_GTEST_PROP(Size, round_trip, ()) {
  const auto unit = *rc::gen::elementOf(kSizes);
  const std::uint64_t round = *rc::gen::inRange<std::uint64_t>(0, 100'000) * unit.second;
  RC_ASSERT(parse_size(format_size(round)) == round);
  const auto any = *rc::gen::arbitrary<std::uint64_t>();
  RC_ASSERT(parse_size(format_size(any)) == any);
}

TEST(Units, are_written_in_the_largest_that_divides) {
  using namespace std::chrono_literals;
  EXPECT_EQ(format_duration(48h), "2d");
  EXPECT_EQ(format_duration(90min), "90m");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(std::chrono::nanoseconds::max()), "9223372036854775807ns");
  EXPECT_EQ(format_size(4096), "4KiB");
  EXPECT_EQ(format_size(64'000'000), "64MB");
  EXPECT_EQ(format_size(0), "0B");
}

RC_GTEST_PROP(Units, survive_any_bytes, (const std::string& text)) {
  (void)parse_duration(text);
  (void)parse_size(text);
  (void)parse_listen_address(text);
  (void)parse_listen_address('[' + text);
}

TEST(Address, reads_every_form) {
  const std::map<std::string, ListenAddress> expected{{":9090", {"", 9090}},
                                                      {":0", {"", 0}},
                                                      {":65535", {"", 65535}},
                                                      {"127.0.0.1:10936", {"127.0.0.1", 10936}},
                                                      {"0.0.0.0:1", {"0.0.0.0", 1}},
                                                      {"localhost:80", {"localhost", 80}},
                                                      {"Db-1.Example.COM:80", {"db-1.example.com", 80}},
                                                      {"[::1]:80", {"::1", 80}},
                                                      {"[::]:80", {"::", 80}},
                                                      {"[0:0:0:0:0:0:0:1]:80", {"::1", 80}},
                                                      {"[2001:DB8::A]:80", {"2001:db8::a", 80}},
                                                      {"[::ffff:192.0.2.1]:80", {"::ffff:192.0.2.1", 80}}};
  for (const auto& [text, value] : expected) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address.has_value()) << text << ": " << address.error().message;
    EXPECT_EQ(address->host, value.host) << text;
    EXPECT_EQ(address->port, value.port) << text;
    EXPECT_EQ(parse_listen_address(to_string(*address)), *address) << text;
  }
}

TEST(Address, says_what_is_wrong) {
  const std::string port = "has no port number from 0 to 65535 after its last colon";
  const std::map<std::string, std::string> wrong{
      {"", "has no port"},
      {"127.0.0.1", "has no port"},
      {"[::1]", "has no port"},
      {"9090", "has no port"},
      {":", port},
      {"localhost:", port},
      {":65536", port},
      {":99999999999999999999", port},
      {":-1", port},
      {":+1", port},
      {":80x", port},
      {": 80", port},
      {":http", port},
      {"::1:80", "has more than one colon: an IPv6 address needs brackets"},
      {"http://x:80", "has more than one colon: an IPv6 address needs brackets"},
      {"[::1:80", "has no valid IPv6 address in its brackets"},
      {"[]:80", "has no valid IPv6 address in its brackets"},
      {"[:80", "has no valid IPv6 address in its brackets"},
      {"[127.0.0.1]:80", "has no valid IPv6 address in its brackets"},
      {"[fe80::1%eth0]:80", "has no valid IPv6 address in its brackets"},
      {"256.0.0.1:80", "has no valid IPv4 address"},
      {"127.1:80", "has no valid IPv4 address"},
      {"*:80", "has no valid host name"},
      {"-a:80", "has no valid host name"},
      {"a b:80", "has no valid host name"},
      {std::string(254, 'a') + ":80", "has no valid host name"}};
  for (const auto& [text, why] : wrong) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_NE(address.error().message.find("' " + why + "; expected HOST:PORT, [IPV6]:PORT or :PORT"),
              std::string::npos)
        << address.error().message;
  }
}

}  // namespace
}  // namespace ssdpulse::config

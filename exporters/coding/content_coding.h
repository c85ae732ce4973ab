// SPDX-License-Identifier: Apache-2.0
// AcceptItem: one element of an Accept or Accept-Encoding header (RFC 9110, 12.5), with its quality. gzip() compresses
// a page, with libdeflate: in less than half the time of zlib, and smaller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::coding {

struct AcceptItem {
  std::string name;                                             // media range or coding, lower case
  std::vector<std::pair<std::string, std::string>> parameters;  // names in lower case; without q
  double quality = 1.0;                                         // 0 (not acceptable) to 1

  [[nodiscard]] std::string_view parameter(std::string_view wanted) const;  // empty if absent
};

/// Elements whose quality cannot be read are dropped, the others count.
std::vector<AcceptItem> parse_accept(std::string_view header);

/// The best quality among the elements that match; nothing if none does.
template <typename Matches>
std::optional<double> quality_of(const std::vector<AcceptItem>& items, Matches matches) {
  std::optional<double> best;
  for (const auto& item : items) {
    if (matches(item)) {
      best = std::max(best.value_or(0), item.quality);
    }
  }
  return best;
}

inline auto named(std::string_view name) {
  return [name](const AcceptItem& item) { return item.name == name; };
}

/// Whether to compress, by Accept-Encoding: gzip (or *) accepted and not less preferred than identity. False without a
/// header.
bool prefers_gzip(std::string_view accept_encoding);

/// Levels of libdeflate. The fastest shrinks a page of metrics of 64 busy devices to 15 %. Those beyond 9 take
/// megabytes of memory while they work, for 3 % less.
enum class Effort : std::uint8_t { fastest = 1, usual = 6, small = 9 };

/// The bytes in gzip format; nothing if there is no memory for it: then send them as they are.
std::optional<std::string> gzip(const std::string& bytes, Effort effort = Effort::fastest);

}  // namespace ssdpulse::coding

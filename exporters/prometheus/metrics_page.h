// SPDX-License-Identifier: Apache-2.0
// MetricsPage: the page of one Snapshot in the format and coding that the client prefers.
// Owns the bytes of the newest Snapshot: each (format, coding) is rendered at most once per Snapshot, on first demand,
// and every client shares them. Knows nothing about sockets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "daemon/model/metric_groups.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::exposition {

struct Body {
  std::string content_type;
  std::string content_encoding;  // gzip, or empty
  std::string bytes;
};

/// Thread-safe. Callers that need the same rendering at the same time wait for the one that makes it; none holds a
/// lock once the body is returned, however slowly it is sent. Memory: six bodies each of the usual selection of groups
/// and of the whole page, for each Snapshot of which one is still being sent, and kMaxBytes of other selections.
class MetricsPage {
 public:
  /// Selections of groups that are rendered per Snapshot besides the usual one and the whole page: further ones have to
  /// wait for the next. Enough for a handful of servers with needs of their own; each may cost six renderings a second.
  static constexpr std::size_t kMaxSelections = 4;
  /// The most that the bodies of such selections may hold together, including those still being sent: a client that
  /// reads slowly holds one for as long as its connection lasts. Enough for three whole text pages of 64 busy disks.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  /// `usual`: the selection that is rendered whatever else is requested, so that no client keeps a scrape from its
  /// page.
  explicit MetricsPage(model::MetricGroups usual = model::all_metric_groups());
  ~MetricsPage();

  /// `snapshot` must not be null. One with a smaller number than an earlier call's gets the newer page, so that
  /// requests that overtake each other render nothing twice. `native_alone`: see choose_format. Null: too many
  /// different selections of groups were requested for this Snapshot, or their bodies hold too much.
  [[nodiscard]] std::shared_ptr<const Body> get(const std::shared_ptr<const model::Snapshot>& snapshot,
                                                std::string_view accept, std::string_view accept_encoding,
                                                bool native_alone = false,
                                                model::MetricGroups groups = model::all_metric_groups());

  /// How many renderings have been made; each format and coding counts.
  [[nodiscard]] std::uint64_t renderings() const;

 private:
  class Renderings;
  using Held = std::shared_ptr<std::atomic<std::size_t>>;  // bytes; shared with the bodies, which may outlive the page
  [[nodiscard]] std::shared_ptr<Renderings> of(const std::shared_ptr<const model::Snapshot>& snapshot);

  const model::MetricGroups usual_;
  const Held held_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::mutex mutex_;  // never held while rendering
  std::shared_ptr<Renderings> current_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace ssdpulse::exposition

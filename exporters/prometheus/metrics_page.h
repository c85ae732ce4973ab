// SPDX-License-Identifier: Apache-2.0
// MetricsPage: the page of one Snapshot in the format and coding that the client prefers.
// Owns the bytes of the newest Snapshot: each (format, coding) is rendered at most once per Snapshot, on first demand,
// and every client shares them. Knows nothing of sockets.
#pragma once

#include <atomic>
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

/// Thread-safe. Callers who want the same rendering at the same time wait for the one that makes it; none holds a
/// lock once the body is returned, however slowly it is sent. Memory: six bodies for each of at most kMostSelections
/// selections of groups, and those still being sent.
class MetricsPage {
 public:
  /// Different selections of groups that are rendered of one Snapshot: whoever asks for more has to wait for the next.
  static constexpr std::size_t kMostSelections = 8;

  /// `usual`: the selection that is rendered whatever else was asked for, so that nobody keeps a scrape from its page.
  explicit MetricsPage(model::MetricGroups usual = model::all_metric_groups());
  ~MetricsPage();

  /// `snapshot` must not be null. One with a smaller number than an earlier call's gets the newer page, so that
  /// requests that overtake each other render nothing twice. `native_alone`: see choose_format. Null: too many
  /// different selections of groups were asked for of this Snapshot.
  [[nodiscard]] std::shared_ptr<const Body> get(const std::shared_ptr<const model::Snapshot>& snapshot,
                                                std::string_view accept, std::string_view accept_encoding,
                                                bool native_alone = false,
                                                model::MetricGroups groups = model::all_metric_groups());

  /// How many renderings were made so far, each format and coding by itself.
  [[nodiscard]] std::uint64_t renderings() const;

 private:
  class Renderings;
  [[nodiscard]] std::shared_ptr<Renderings> of(const std::shared_ptr<const model::Snapshot>& snapshot);

  const model::MetricGroups usual_;
  std::mutex mutex_;  // never held while rendering
  std::shared_ptr<Renderings> current_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace ssdpulse::exposition

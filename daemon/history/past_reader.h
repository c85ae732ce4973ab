// SPDX-License-Identifier: Apache-2.0
// PastReader: answers questions about the past from the rows of a history file, over one connection, until a deadline.
// An error says what to do. For one thread; history_reader.h provides it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/history/file_account.h"
#include "daemon/history/history_reader.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/write_ladder.h"

namespace ssdpulse::history {

/// Spikes end after ten minutes at the latest, when slow I/O becomes the new baseline; bursts may last longer.
inline constexpr std::chrono::hours kLongestMark{6};
inline constexpr std::chrono::hours kLongestWait{24};  // of what holds up I/O above the drives

inline constexpr const char* kNoSuchDevice = "no device of that name in the history";

inline model::WallTime end_of(model::WallTime begin, double seconds) {
  return begin + std::chrono::duration_cast<model::WallTime::duration>(std::chrono::duration<double>(seconds));
}

class PastReader {
 public:
  /// Opens the file to read it, and checks that it has this version.
  static Outcome<PastReader> open(const std::string& path, std::chrono::milliseconds slice, Deadline deadline);

  using EachLoad = std::function<void(model::MinuteOf&&)>;

  Outcome<std::vector<model::PastDevice>> devices(std::uint64_t* left_out);
  /// Those that had one of these names last.
  Outcome<std::vector<model::PastDevice>> devices_called(const std::set<std::string>& names);
  Outcome<void> minutes(const Which& device, const model::Window& window, const EachLoad& each);
  Outcome<model::Series> series(const Which& device, const model::Window& window, std::size_t points);
  Outcome<model::PastMoment> moment(model::PastTime at);
  Outcome<model::PastDay> day(model::PastTime at);
  Outcome<model::PastLadder> ladder(const model::Window& window);
  Outcome<std::vector<model::Bytes>> seconds(const Which& device, const model::Window& window);
  Outcome<std::vector<model::Mark>> marks(const model::Window& window);
  /// `cut`: set where there are more than the newest kMaxMarks.
  Outcome<std::vector<model::SettingChange>> settings(const model::Window& window, const std::string& device = {},
                                                      bool* cut = nullptr);

 private:
  PastReader(Connection connection, std::chrono::milliseconds slice, Deadline deadline)
      : connection_(std::move(connection)), slice_(slice), deadline_(deadline) {}

  /// See store.h.
  struct Lane {
    std::int64_t id = 0;
    std::int64_t minutes_from = 0;
    std::int64_t hours_made_to = 0;
    std::int64_t last_measured = 0;
    std::int64_t last_minute = 0;  // no row is younger
    bool operator==(const Lane&) const = default;
  };
  struct Found {
    model::PastDevice device;
    std::vector<Lane> lanes;
  };
  static std::int64_t last_measured(const Found& found);
  [[nodiscard]] Slices slices() { return {connection_, slice_, deadline_}; }
  /// Rows of a lane that meet the condition, ascending. `select` ends before WHERE.
  Outcome<void> read_lane(const Lane& lane, const std::string& select, const std::string& condition, std::int64_t from,
                          std::int64_t to, const std::function<void(std::int64_t minute, const Statement&)>& take);
  /// The first ("ASC") or last ("DESC") minute of a lane in a window, without those that a clock ahead stamped.
  Outcome<std::optional<std::int64_t>> nearest(const Lane& lane, const char* table, const char* order,
                                               std::int64_t from, std::int64_t to);
  Outcome<Account> account();
  /// Without the lanes of the write ladder.
  Outcome<std::vector<Found>> all();
  /// Whether minutes became hours since.
  Outcome<bool> changed(const Found& found, const model::Window& window, bool hours_only);
  Outcome<bool> any_changed(const std::vector<Found>& devices, const model::Window& window);
  Outcome<std::vector<Lane>> lanes_of(const std::string& identity);
  /// The earliest stamp of a lane in a window.
  Outcome<std::optional<std::int64_t>> first_in(const Lane& lane, std::int64_t from, std::int64_t to);
  /// Windows of what the points of the series leave out.
  Outcome<void> add_clock_ahead(const Found& found, model::Series& series);
  Outcome<Found> find(const Which& device);
  Outcome<void> first_and_last(Found& found);
  Outcome<void> loads(const Found& found, const Lane& lane, const char* table, std::int64_t from, std::int64_t to,
                      std::chrono::minutes length, const EachLoad& each);
  /// Of one lane, ascending.
  Outcome<void> minutes_of(const Found& found, const Lane& lane, const model::Window& window, bool hours_only,
                           const EachLoad& each);
  /// Minutes, and hours where there are none, ascending; starts over if minutes became hours meanwhile.
  Outcome<void> minutes_of(const Found& found, const model::Window& window, bool hours_only, const EachLoad& each,
                           const std::function<void()>& restart);
  Outcome<void> add_points(const Found& found, model::Series& series);
  Outcome<void> add_tenants(const Found& found, bool hours_only, model::Series& series);
  /// Those of all devices that began in these milliseconds, ascending.
  Outcome<void> spikes(std::int64_t from, std::int64_t to, const std::function<void(model::PastSpike&&)>& each);
  Outcome<void> bursts(std::int64_t from, std::int64_t to, const std::function<void(model::PastBurst&&)>& each);
  Outcome<void> waits(std::int64_t from, std::int64_t to, const std::function<void(model::PastWait&&)>& each);
  Outcome<void> add_events(model::Series& series);
  Outcome<void> add_measured(const std::vector<Found>& devices, model::PastTime at, model::PastMoment& moment);
  Outcome<void> add_neighbours(const std::vector<Found>& devices, model::PastMoment& moment);
  Outcome<void> add_events(model::PastTime at, model::PastMoment& moment);
  Outcome<void> add_drive(const Found& found, model::Series& series);
  /// For each name the device that had it last, if it was seen since then.
  Outcome<std::vector<Found>> seen_since(model::PastTime since);
  Outcome<void> add_day_of(const Found& found, model::PastDay& day);
  Outcome<void> add_day_spikes(model::PastDay& day);
  Outcome<void> add_day_bursts(model::PastDay& day);

  Connection connection_;
  std::chrono::milliseconds slice_;
  Deadline deadline_;
};

}  // namespace ssdpulse::history

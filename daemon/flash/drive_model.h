// SPDX-License-Identifier: Apache-2.0
// DriveModel: the flash model of one drive, from the drive's first tick to its last: it takes the events of all its
// namespaces, fits its over-provisioning to the drive's own counter if there is one, starts over when the drive reports
// that something else emptied it, and is kept across restarts as a DriveState. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/flash/flash_fit.h"
#include "daemon/flash/flash_input.h"
#include "daemon/flash/flash_model.h"

namespace ssdpulse::flash {

/// What is saved of a drive's model.
struct DriveState {
  std::string key;  // FlashDrive::key
  FlashModelSettings settings;
  PolicyFit::Ranges fit = PolicyFit().ranges();
  CollectionWatch::State collection;
  double fitted_at = 0;  // when it was last fitted; seconds since the epoch, like the next
  double kept_at = 0;
  std::optional<double> host_written_bytes = {};  // by the drive's own counter
  // Since that was read, if it was not read again since an earlier state:
  std::uint64_t seen_bytes = 0;  // written
  double absence = 0;            // seconds without observation
  std::string model = {};        // FlashModel::save()
};

std::string bytes_of(const DriveState& state);

/// The bytes are not trusted: an error says what is wrong with them.
util::Result<DriveState> read_state(std::string_view bytes, const std::string& key);

class DriveModel {
 public:
  DriveModel(const FlashDrive& drive, const FlashModelSettings& settings);
  /// Continues the saved state of the same drive; what was written meanwhile is a gap. An error if it does not fit.
  static util::Result<std::unique_ptr<DriveModel>> resume(const FlashDrive& drive, const DriveState& state,
                                                          std::chrono::nanoseconds at, model::WallTime wall);

  /// What is known about the drive now; call at every tick, before its events.
  void know(const FlashDrive& drive, model::WallTime wall);
  /// An event of one of its namespaces; its `device` is an index into those of `samples`.
  void collect(const model::FlashEvent& event) { events_.push_back(event); }
  void count(const model::DeviceFlashSamples& since_last_tick);
  void count_lost(const std::array<std::uint64_t, model::kFlashEventKinds>& events);
  /// Everything of a tick has been collected and counted.
  void end_tick(std::chrono::nanoseconds at);

  /// Evaluates everything that is modelled: takes milliseconds.
  void evaluate(model::WallTime wall);
  [[nodiscard]] model::FlashEstimate estimate() const;
  [[nodiscard]] DriveState state(model::WallTime wall) const;

  [[nodiscard]] const FlashModelSettings& settings() const { return model_->settings(); }
  [[nodiscard]] const std::string& key() const { return drive_.key; }
  void keep_what_ifs(std::size_t max_runs) { model_->keep_what_ifs(max_runs); }
  /// The sampling of its namespaces.
  [[nodiscard]] Sampling sampling() const;
  [[nodiscard]] std::uint64_t written_bytes() const { return written_pages_ * settings().page_bytes; }

 private:
  DriveModel(const FlashDrive& drive, std::unique_ptr<FlashModel> model);
  void account_for_gap();
  [[nodiscard]] bool gap_is_unknown() const;
  void drop_counter();
  void watch_counters();
  void fit(const model::FlashReport& report, model::WallTime wall);
  void watch_collection(const model::FlashReport& report);
  [[nodiscard]] double unused() const;
  void notice_format();
  [[nodiscard]] model::EffectiveOverprovisioning overprovisioning() const;

  FlashDrive drive_;
  std::unique_ptr<FlashModel> model_;
  bool resumed_ = false;
  std::vector<model::FlashEvent> events_;  // of this tick, like the next three
  model::PagesByHint written_{};
  std::uint64_t lost_writes_ = 0;
  std::uint64_t lost_discards_ = 0;
  std::uint64_t written_pages_ = 0;  // by this process, like the next two
  std::uint64_t all_lost_writes_ = 0;
  std::uint64_t all_lost_discards_ = 0;

  // The drive's counter when the state was saved. Absent: everything written since then is accounted for.
  std::optional<double> kept_host_bytes_;
  std::uint64_t seen_bytes_ = 0;  // written since then, by earlier processes
  double absence_ = 0;            // seconds without observation, since then
  std::chrono::nanoseconds resumed_at_{0};
  std::optional<double> first_host_bytes_;  // when this process first saw it
  PolicyFit fit_;
  CollectionWatch collection_;
  double fitted_at_ = 0;  // seconds since the epoch; 0: never
  std::optional<model::ModelDrift> drift_;
  // Shares of the drive: what it last reported as in use; what the model wrongly took for used when that report came,
  // until it is evaluated; and the largest such value so far.
  std::optional<double> reported_used_;
  std::optional<double> unused_then_;
  std::optional<double> max_unused_;
  std::array<std::optional<model::Estimate>, model::kFlashWindows> likely_;
  std::shared_ptr<const model::FlashReport> report_;
};

}  // namespace ssdpulse::flash

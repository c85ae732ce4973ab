// SPDX-License-Identifier: Apache-2.0
// ModelSet: the flash models of all drives of the host, within one budget of memory.
// Makes a model for each drive that has one, passes events to it, drops what-ifs if memory is short, and keeps states
// across restarts (StateFiles). A running model does not restart because another drive appears or disappears: a new
// drive gets what the running models leave, a smaller sample or no model. No thread, no clock: times come with the
// input. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/base/result.h"
#include "daemon/flash/drive_model.h"
#include "daemon/flash/flash_input.h"
#include "daemon/flash/flash_model.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

/// The states of the flash models. One file for each drive, flash-HASH.state in the directory of the history, written
/// under another name and renamed: there is either the old state or the new state, also after a crash, and if another
/// process writes it as well. What is read is not trusted: the reader of the bytes has to check it.
class StateFiles {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20;  // of a file: twice what a model may take
  static constexpr std::size_t kMaxFiles = 256;                    // of drives present or gone; the oldest are removed

  /// `directory` empty: nothing is kept. `max_total_bytes`: of all files; the oldest are removed.
  explicit StateFiles(std::string directory, std::uint64_t max_total_bytes = UINT64_MAX)
      : directory_(std::move(directory)), max_total_bytes_(max_total_bytes) {}

  /// `key`: FlashDrive::key. Absent: there is no state.
  [[nodiscard]] util::Result<std::optional<std::string>> read(const std::string& key) const;
  /// The first write for a drive also calls tidy().
  [[nodiscard]] util::Result<void> write(const std::string& key, const std::string& bytes) const;
  /// Removes the oldest files beyond kMaxFiles and `max_total_bytes`, and those that were never renamed.
  void tidy() const;

  [[nodiscard]] bool keeps() const { return !directory_.empty(); }
  [[nodiscard]] std::string path_of(const std::string& key) const;

 private:
  std::string directory_;
  std::uint64_t max_total_bytes_;
};

struct ModelSettings {
  std::uint64_t memory_bytes = ModelBudget::kDefault;
  /// Instead of the usual rate, one of 2^rate_bits pages: for tests on small disks.
  std::optional<unsigned> rate_bits;
  bool virtual_too = false;                                                 // also drives that hide what is behind them
  std::string directory;                                                    // for states; empty: none are kept
  std::function<std::uint32_t()> make_seed;                                 // secret
  std::chrono::nanoseconds evaluation_interval = std::chrono::seconds(10);  // between evaluations of a model
  std::chrono::nanoseconds keep_interval = std::chrono::hours(1);
};

class ModelSet {
 public:
  explicit ModelSet(ModelSettings settings);

  void observe(const FlashInput& input);
  /// Call at the end.
  void keep_all(model::WallTime wall);

  /// The sampling of all drives that have a model.
  [[nodiscard]] std::shared_ptr<const Sampling> sampling() const { return sampling_; }
  [[nodiscard]] std::shared_ptr<const model::FlashFigures> figures() const { return figures_; }

 private:
  struct Entry {
    FlashDrive drive;
    std::optional<model::FlashSilence> silence;  // why there is no model
    std::unique_ptr<DriveModel> model;
    std::optional<model::FlashSilence> lasting;  // what the drive was planned as, like the next
    bool was_ready = false;
    std::chrono::nanoseconds seen_at{0};      // first
    std::chrono::nanoseconds evaluate_at{0};  // due, like the next
    std::chrono::nanoseconds keep_at{0};
    std::uint64_t kept_bytes = 0;  // written_bytes() of the model when last kept
  };

  struct Lost {
    std::uint64_t writes = 0;
    std::uint64_t discards = 0;
  };

  bool adopt(const FlashInput& input);
  void plan(const FlashInput& input);
  [[nodiscard]] ModelScale scale() const;
  void report_scale();
  void make_model(Entry& entry, const FlashModelSettings& wanted, const FlashInput& input);
  std::optional<DriveState> kept(const FlashDrive& drive);
  [[nodiscard]] bool ready(const Entry& entry, std::chrono::nanoseconds at) const;
  [[nodiscard]] FlashModelSettings settings_of(const FlashDrive& drive) const;
  void distribute(const FlashInput& input);
  model::DeviceFlashSamples since_last_tick(const model::DeviceFlashSamples& now);
  bool evaluate_next(const FlashInput& input);
  void keep(Entry& entry, model::WallTime wall);
  void end(Entry& entry, model::WallTime wall);
  void describe();

  ModelSettings settings_;
  StateFiles files_;
  std::map<std::string, Entry> drives_;                      // by name
  std::map<std::string, model::DeviceFlashSamples> totals_;  // by device, at the last tick
  std::shared_ptr<const Sampling> sampling_ = std::make_shared<Sampling>();
  std::shared_ptr<const model::FlashFigures> figures_ = std::make_shared<model::FlashFigures>();
  ModelScale scale_ = ModelScale::all;
  std::map<std::string, Lost> lost_before_;  // by key of the drive: events lost by its models that ended
  std::uint64_t overflowed_ = 0;
  std::uint64_t states_rejected_ = 0;
  std::uint64_t state_failures_ = 0;
};

}  // namespace ssdpulse::flash

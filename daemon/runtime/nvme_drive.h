// SPDX-License-Identifier: Apache-2.0
// What is known of one NVMe drive, from its first poll to its removal?
// Joins what its log pages say with what the block layer counted. Holds no descriptor and asks nothing itself: the
// monitor carries requests and answers. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/latency_words.h"
#include "daemon/analysis/log_read_effect.h"
#include "daemon/analysis/write_amplification/write_ledger.h"
#include "daemon/model/nvme.h"
#include "daemon/runtime/history/drive_minute.h"
#include "daemon/sources/nvme/drive_poller.h"
#include "daemon/sources/nvme/source_choice.h"
#include "daemon/util/result.h"

namespace ssdpulse::runtime {

using SteadyTime = std::chrono::steady_clock::time_point;

/// What the block layer has counted of a device up to this moment; null where it is not measured.
using ReadBlockLayer = std::function<std::shared_ptr<const model::DeviceIo>(const std::string& device)>;

class NvmeDrive {
 public:
  /// `place`: by how much the drive's second poll is later than an interval, so that drives are spread out.
  NvmeDrive(nvme::NvmeSubsystem subsystem, nvme::RefusedPages& refused, SteadyTime first_poll,
            std::chrono::nanoseconds place);

  /// What sysfs says of it now; its controller may be another one of the same subsystem.
  void update(nvme::NvmeSubsystem subsystem);

  /// Begins a poll if one is due and the drive can be asked.
  void advance(SteadyTime now, std::chrono::nanoseconds interval, const ReadBlockLayer& block);
  /// Somebody wants to know more than the last poll told. Asked early, but never nearer to the last poll than the
  /// shortest interval that may be configured.
  void poll_soon() { soon_ = true; }
  /// The next command; the caller says with sent() that it is on its way.
  std::optional<nvme::Request> next() { return poller_.next(); }
  void sent(SteadyTime now) { asked_at_ = now; }
  void answer(const nvme::Response& response, const ReadBlockLayer& block);

  /// When advance() has something to do before the next tick: the I/Os near a log read end 50 ms after it.
  [[nodiscard]] std::optional<SteadyTime> deadline() const { return near_until_; }

  /// Whose past the drive wants to know, once: when it has said who it is. Nothing is accounted before remember().
  std::optional<history::DriveKey> asks_for_history();
  void remember(const util::Result<history::Recalled>& recalled);
  /// Adds what is to be kept of the minute that ends now.
  void add_minute(history::Batch& batch, const ReadBlockLayer& block);

  [[nodiscard]] model::NvmeDrive describe(SteadyTime now) const;
  [[nodiscard]] const nvme::NvmeSubsystem& subsystem() const { return subsystem_; }

 private:
  void finish_poll(const ReadBlockLayer& block);
  void account(const nvme::DriveReading& reading, std::optional<std::uint64_t> written_after);
  bool settle_source(const nvme::SourceChoice& choice);
  void observe(const analysis::WriteSample& sample);
  void measure_effect(const ReadBlockLayer& block);
  [[nodiscard]] std::optional<std::uint64_t> written_bytes(const ReadBlockLayer& block) const;
  [[nodiscard]] analysis::LatencyWords latency_words(const ReadBlockLayer& block) const;

  nvme::NvmeSubsystem subsystem_;
  nvme::RefusedPages& refused_;
  nvme::DrivePoller poller_;
  bool changed_ = false;  // since poller_ was made
  SteadyTime due_;
  SteadyTime polled_at_;
  bool soon_ = false;
  std::chrono::nanoseconds place_;
  SteadyTime media_read_at_;  // last reading of the pages that count media writes
  SteadyTime identified_at_;
  std::optional<SteadyTime> asked_at_;  // of the command that is unanswered
  std::chrono::nanoseconds interval_{};
  unsigned patience_ = 1;  // polls are this many intervals apart: more than 1 where reading logs hurts

  std::optional<std::uint64_t> written_before_;  // block layer, when the poll began
  std::optional<std::uint64_t> written_at_media_;

  std::shared_ptr<const model::NvmeIdentity> identity_;
  std::map<const nvme::LogPage*, std::vector<model::NvmeValue>> values_;  // by page, in the order of log_pages()
  model::NvmePolling polling_;
  std::optional<SteadyTime> succeeded_at_;

  enum class Past : std::uint8_t { unasked, asked, known };
  Past past_ = Past::unasked;
  history::Recalled recalled_;                  // until the source is known, that the state is of
  std::vector<analysis::WriteSample> waiting_;  // for the past
  std::optional<analysis::WriteLedger> ledger_;
  std::optional<analysis::WriteSample> last_sample_;
  std::string source_;
  nvme::SettledUnit settled_unit_;
  unsigned other_source_ = 0;  // polls in a row in which another source than ours was the best
  std::string reason_;

  analysis::LogReadEffect effect_;
  analysis::LatencyWords words_before_;   // when the poll began
  analysis::LatencyWords words_counted_;  // already in the effect's total
  std::optional<SteadyTime> near_until_;

  struct MinuteBegin {
    analysis::LatencyWords reads;
    analysis::LatencyWords writes;
    std::uint64_t discarded_bytes = 0;
  };
  [[nodiscard]] MinuteBegin read_minute(const ReadBlockLayer& block) const;
  [[nodiscard]] std::optional<double> value_of(model::NvmeField field) const;
  MinuteBegin minute_begin_;
};

}  // namespace ssdpulse::runtime

// SPDX-License-Identifier: Apache-2.0
// Stage: an analysis that the daemon runs once a second on one Tick. It returns what it found: values for the Snapshot,
// and effects, which only the runtime carries out. Pure except for what it remembers: no I/O, no clock. Stages do not
// know about each other, and their order does not matter: what others reported is in Tick::before. Owned by one thread.
//
// A new analysis is one class here and one line in stages.cpp: see deploy/docs/contributing.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/rows.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/write_details.h"
#include "daemon/stages/tick.h"
#include "daemon/util/log.h"

namespace ssdpulse::stages {

/// A request for the past of a drive. Once it has been read, it is in Tick::pasts under `key`.
struct Recall {
  std::string key;  // of DriveTick
  history::DriveKey drive;
  history::Minute since;
};

/// What the runtime is to do.
struct Effects {
  std::vector<log::Line> lines;
  history::Batch rows;
  std::vector<Recall> recalls;
  std::vector<std::string> read_counters_again;  // keys of drives whose newest reading needs another to confirm it
  std::vector<std::string> poll_soon;            // controllers of drives whose log pages would show more if read now
  /// What the drives themselves prefer, by device; absent: as before.
  std::optional<std::map<std::string, model::WritePreference>> write_preferences;
  std::optional<model::Effort> effort;  // from now on; absent: as before
};

struct Findings {
  /// Puts the values into the Snapshot of the Tick, which has the same devices in the same order. May be empty.
  std::function<void(model::Snapshot&)> values;
  Effects effects = {};
};

class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  /// Once for each tick.
  virtual Findings observe(const Tick& tick) = 0;
};

}  // namespace ssdpulse::stages

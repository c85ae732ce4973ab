// SPDX-License-Identifier: Apache-2.0
// Volumes: the stage that determines what volumes and their members did in the last minute, which floor of a stack adds
// the time, and which has become slow by itself. figures_between(): the first two, of any two readings. HoldUps: what
// may have held bios up between two floors. SlowFloors: which floors are slower than usual. Pure.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/layers.h"
#include "daemon/model/stage.h"
#include "daemon/model/volume_io.h"

namespace ssdpulse::volumes {

using Bios = std::vector<std::shared_ptr<const model::BioIo>>;

/// `layers`: those of all the time in between. Both sorted by device. A device that is not in both, or whose counts
/// began again, is left out, and so is every floor that it is part of, and one of which fewer than `min_ended` ended.
model::VolumeFigures figures_between(const Bios& before, const Bios& now, double seconds,
                                     const std::vector<model::Layer>& layers, std::uint64_t min_ended = 50);

enum class HoldUp {
  none,
  spike,  // of a drive: of reads only, whose time below begins before they wait for the drive
  other,
};

/// When something was last seen that may hold up bios on their way from a layer to what it lies on: a drive that is
/// slow or takes no more, a limit of a cgroup, a suspended volume. Such a wait is neither the layer's nor the drive's
/// own. A drive that is not measured may always hold up, and so may anything below a layer whose own thread sends
/// writes on. A spike of a drive explains no reads that wait much longer than its own I/Os take, except in layers that
/// may send them again.
class HoldUps {
 public:
  /// Call it at every tick.
  void observe(const model::Tick& tick);
  /// What may have held up bios of this floor since then, for as long as they took in it.
  [[nodiscard]] HoldUp since(model::SteadyTime begin, const model::FloorTime& floor) const;
  /// Whether anything but a spike or a busy drive was seen anywhere since then: of floors whose I/Os did not end.
  [[nodiscard]] bool anywhere_since(model::SteadyTime begin) const;

 private:
  struct Last {
    std::optional<model::SteadyTime> of_reads;
    std::optional<model::SteadyTime> of_writes;
  };
  struct Spike {  // as it was at a tick
    model::SteadyTime at;
    double longest_wait_seconds = 0;
  };
  void note(const std::string& device, model::SteadyTime at, bool of_reads);

  bool limits_known_ = false;
  std::shared_ptr<const model::Inventory> inventory_;         // of the last tick
  std::set<std::string> own_threads_;                         // volumes that send writes on by a thread of their own
  std::set<std::string> senders_again_;                       // volumes that may send a read more than once
  std::map<std::string, Last> last_;                          // by disk or volume
  std::map<std::string, std::deque<Spike>> spikes_;           // by disk
  std::set<std::string> measured_;                            // disks
  std::map<std::string, std::set<std::string>> disks_below_;  // of each partition and volume
};

/// A floor is slow if, in each of kProofs intervals, the time that is its own is at least kMinOwnSeconds, kMinOwnShare
/// of what its bios take, and kTimesUsual what is usual for bios of their size. Something that happens once, such as a
/// volume that is suspended between two ticks, is in one interval only. Between two proofs there may be one interval
/// that says nothing, because few I/Os ended or a drive below had a spike, which would otherwise delay the answer by as
/// many intervals again; none in which something else held bios up, as that may be in the intervals beside it, too.
/// What is usual is the mean of the intervals of kLearningTime in which it was not slow; one that stays slow for
/// kUsualAfter is usual from then on.
class SlowFloors {
 public:
  static constexpr std::size_t kProofs = 2;
  static constexpr double kTimesUsual = 4;
  static constexpr std::chrono::seconds kMinLearned{60};
  static constexpr std::chrono::seconds kLongestGap{10};  // twice an interval: longer, and nobody knows what was in it
  static constexpr std::chrono::minutes kLearningTime{10};
  static constexpr std::chrono::hours kUsualAfter{1};

  /// Call it for each interval in turn, with all floors that are known in it. `may_say_nothing`: whether the others
  /// keep their proofs.
  std::vector<model::SlowFloor> observe(const std::vector<model::FloorTime>& floors, std::chrono::seconds interval,
                                        bool may_say_nothing = true);
  /// Of one that was held up otherwise than by a drive's spike. Call it before observe() of that interval.
  void forget_proofs(const model::FloorTime& floor);
  /// What is usual of floors above these devices, which have changed. No proof counts that is older.
  void forget(const std::set<std::string>& members);

 private:
  struct FloorState {
    double usual_own_seconds = 0;
    double usual_bytes = 0;  // of a bio
    std::chrono::seconds learned{};
    std::chrono::seconds slow_for{};
    std::size_t proofs = 0;  // intervals in which it was slow, with one between two of them that says nothing at most
    bool in_gap = false;     // the last interval said nothing
    void forget_proofs();
  };
  void learn(FloorState& known, const model::FloorTime& floor, std::chrono::seconds interval) const;

  std::map<std::pair<std::vector<std::string>, model::Operation>, FloorState> known_;  // by members
};

class Volumes final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Mark {
    model::SteadyTime at;
    Bios bios;
  };
  std::deque<Mark> marks_;            // since the layers changed last
  std::vector<model::Layer> layers_;  // of the last tick
  HoldUps hold_ups_;
  SlowFloors slow_;
  std::shared_ptr<const model::VolumeFigures> figures_;
};

}  // namespace ssdpulse::volumes

// SPDX-License-Identifier: Apache-2.0
// Layer: a block device without requests of its own (LVM, md, dm-crypt, zram, ...): what it is, and what it lies on.
// stacks_of(): all that lies below each mounted file system, as a tree. Values only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"

namespace ssdpulse::model {

struct Filesystem;     // device.h
struct Volume;         // likewise
struct VolumeSignals;  // host_signals.h

/// The history keeps the number of a kind: add at the end.
enum class LayerKind : std::uint8_t {
  lvm,  // a logical volume, or an internal part of one, of none of the kinds below
  crypt,
  thin,
  thin_pool,
  snapshot,
  cache,
  integrity,
  verity,
  multipath,
  raid0,
  raid1,
  raid4,
  raid5,
  raid6,
  raid10,
  linear,
  bcache,
  drbd,
  zram,
  ramdisk,
  pmem,
  dm,         // of device-mapper; its UUID does not say more
  other,      // an md array that is not running, a container of arrays, ...
  partition,  // this and the next: of a place in a stack, which need not be a layer
  disk,
};
inline constexpr auto kLayerKindNames = util::names<LayerKind>(
    {"lvm",   "crypt",   "thin",  "thin_pool", "snapshot", "cache",     "integrity", "verity", "multipath",
     "raid0", "raid1",   "raid4", "raid5",     "raid6",    "raid10",    "linear",    "bcache", "drbd",
     "zram",  "ramdisk", "pmem",  "dm",        "other",    "partition", "disk"});

/// May send a read more than once: after an error, mirrors hold all reads back and try one member after the other;
/// verity reads again what it could not prove.
inline constexpr std::array kSendAgain{LayerKind::verity, LayerKind::raid1, LayerKind::raid10};

struct Layer {
  std::string name;         // the kernel's: dm-0, md0
  util::OutsideText title;  // dm's own name, md's in /dev/md; often empty
  LayerKind kind = LayerKind::other;
  std::vector<std::string> members = {};  // directly below it: disks, partitions and layers; sorted
  std::uint64_t diskseq = 0;              // unique for each incarnation; 0 before Linux 5.15
};

/// Null: it is no layer. `layers`: sorted by name, as in the inventory.
const Layer* layer_of(const std::vector<Layer>& layers, const std::string& name);

/// One place in a stack: a layer, partition or disk below what comes before it with a lower floor.
struct StackPlace {
  std::string name;
  LayerKind kind = LayerKind::other;
  std::size_t floor = 0;  // 0: the file system lies directly on it
  bool shared = false;    // it is at several places of this stack; what is below it is listed at the first one
  bool cut = false;       // more is below it, or follows it, than is listed: the stack is too large
};

inline constexpr std::size_t kMaxFloors = 16;
inline constexpr std::size_t kMaxStackPlaces = 256;

struct Stack {
  util::OutsideText mountpoint;  // empty: no mounted file system is known on this layer
  util::OutsideText fstype;
  std::vector<StackPlace> places;  // from the top; each is followed by what is below it
};

/// What is below these volumes: layers, partitions, disks. Ends, whatever the names say.
std::vector<StackPlace> places_below(const std::vector<std::string>& tops, const std::vector<Layer>& layers,
                                     const std::vector<Volume>& volumes);

struct Stacks {
  std::vector<Stack> stacks;
  std::size_t left_out = 0;
};

/// Of each mounted file system, then of each layer that carries neither a file system nor another layer. `layers` and
/// `volumes`: sorted by name. Beyond `limit`, stacks are counted and nothing else: a host can have thousands.
Stacks stacks_of(const std::vector<Filesystem>& filesystems, const std::vector<Layer>& layers,
                 const std::vector<Volume>& volumes, std::size_t limit = std::numeric_limits<std::size_t>::max());

/// A volume's health in words; empty if there is nothing to say.
struct HealthWords {
  std::string text;  // "1 member is missing; recover, 45 % done"
  bool bad = false;  // somebody should look after it
};
HealthWords health_words(const VolumeSignals& signals);

}  // namespace ssdpulse::model

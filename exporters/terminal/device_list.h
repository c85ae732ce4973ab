// SPDX-License-Identifier: Apache-2.0
// DriveList and others: what `ssdpulse devices` shows, as tables for people and as JSON for programs: which block
// devices of this host would be measured, which not, and why; what lies on them; what their drives can report. The JSON
// is a contract: names are added, not renamed.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/tenant_io.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::terminal {

/// Devices that report the same identity, among all but stacked and empty ones.
std::vector<model::IdentityClash> reported_clashes(const model::Inventory& inventory);

void print_devices(const model::Inventory& inventory, std::ostream& out);

/// Of each volume whose health the kernel reports, by name.
using VolumeHealth = std::map<std::string, model::VolumeSignals>;

/// What lies below each mount, and below each volume without one: a tree by indentation. Prints nothing if there is
/// none.
void print_stacks(const model::Inventory& inventory, const VolumeHealth& health, std::ostream& out);

/// How far the write hints of a device get.
struct HintLine {
  std::string device;
  model::WriteHintPath path;
};

/// Prints nothing if there is no device.
void print_hint_paths(const std::vector<HintLine>& lines, std::ostream& out);

/// Prints nothing if I/O is accounted below the root, or nothing is known.
void print_io_accounting(model::IoAccounting accounting, std::ostream& out);

/// An NVMe drive: what it can report, and its source of write amplification.
struct DriveLine {
  std::string controller;
  std::vector<std::string> namespaces;
  util::OutsideText firmware;
  std::vector<std::string> log_pages;  // that it provides
  std::string source;                  // of its write amplification; empty: unknown
  std::string reason;                  // why this source
  std::string failure;                 // why it cannot be read; empty: it can be
};

struct DriveList {
  std::vector<DriveLine> lines;
  std::string failure;  // why the drives could not be asked; empty: they were
};

/// Prints nothing if there is no drive.
void print_drives(const std::vector<DriveLine>& lines, std::ostream& out);

/// {"devices": [{"device", "size_bytes", "transport", "model", "serial", "firmware", "wwid", "scheduler", "queues",
/// "queue_depth", "rotational", "discard", "write_back_cache", "iostats", "state", "same_identity", "write_hints",
/// "write_separation"}], "drives": [{"controller", "devices", "firmware", "log_pages", "write_amplification_source",
/// "reason", "failure"}], "drives_failure", "stacks": [{"mountpoint", "fstype", "places": [{"name", "kind", "floor",
/// "shared", "cut"}]}], "layers": [{"name", "title", "kind", "members", "health", "bad", "missing_members",
/// "consistency_policy"}]}. Missing texts are empty. Null: what is not known, `failure` of a drive
/// that answered, and `drives_failure` if the drives could be asked. `state`: measured, excluded, stacked, empty or
/// unseen (its driver has no requests). `same_identity`: other devices that report the same. `floor`: 0 is directly
/// below the file system. `health`: in words; empty: nothing is wrong, or nothing is known.
std::string devices_json(const model::Inventory& inventory, const DriveList& drives, const std::vector<HintLine>& hints,
                         const VolumeHealth& health = {});

}  // namespace ssdpulse::terminal

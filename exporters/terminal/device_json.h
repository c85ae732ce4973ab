// SPDX-License-Identifier: Apache-2.0
// What `ssdpulse devices` shows, for programs. The form is a contract: names are added, not renamed.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "exporters/terminal/device_list.h"
#include "exporters/terminal/drive_list.h"

namespace ssdpulse::terminal {

/// {"devices": [{"device", "size_bytes", "transport", "model", "serial", "firmware", "wwid", "scheduler", "queues",
/// "queue_depth", "rotational", "discard", "write_back_cache", "iostats", "state", "same_identity", "write_hints",
/// "write_separation"}], "drives": [{"controller", "devices", "firmware", "log_pages", "write_amplification_source",
/// "reason", "failure"}], "drives_failure"}. Missing texts are empty. Null: what is not known, `failure` of a drive
/// that answered, and `drives_failure` if the drives could be asked. `state`: measured, excluded, stacked, empty or
/// unseen (its driver has no requests). `same_identity`: other devices that report the same.
std::string devices_json(const model::Inventory& inventory, const DriveList& drives,
                         const std::vector<HintLine>& hints);

}  // namespace ssdpulse::terminal

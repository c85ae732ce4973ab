// SPDX-License-Identifier: Apache-2.0
// Parses the Identify data structures (NVM Express Base 2.x, 5.1.13): what a drive is, by its own account, and which of
// the optional structures it may be asked for. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/pages/page.h"
#include "daemon/util/result.h"

namespace ssdpulse::nvme {

/// What Identify Controller (CNS 01h) contains. Fields that only sysfs and the other structures provide stay empty.
util::Result<model::NvmeIdentity> parse_identify_controller(Bytes bytes);

/// Adds what Identify Namespace (CNS 00h) contains: the endurance group, the preferred write granularity and alignment,
/// how much is in use, and how the drive ranks the block sizes that it can be formatted with.
util::Result<void> parse_identify_namespace(Bytes bytes, model::NvmeNamespace& name_space);

/// CNS 17h, up to its end mark. An entry's place is its UUID index, so none is left out.
util::Result<std::vector<Uuid>> parse_uuid_list(Bytes bytes);

/// CNS 19h.
util::Result<std::vector<std::uint16_t>> parse_endurance_group_list(Bytes bytes);

/// Whether the drive reports that it has the structure: it is never asked for one that it does not have.
bool has_uuid_list(const model::NvmeIdentity& identity);
bool has_endurance_group_list(const model::NvmeIdentity& identity);

}  // namespace ssdpulse::nvme

// SPDX-License-Identifier: Apache-2.0
// api_schema() and others: files that are made from tables of the code. Tests compare the files with them, and rewrite
// them.
#pragma once

#include <string>

namespace ssdpulse::page {

/// assets/api.schema.json, from the tables of fields (page_json.h).
std::string api_schema();

/// assets/causes.js, from model/spike_cause.h: the page imports it, and the dashboards' source reads the JSON in it.
std::string causes_script();

/// Rows of the tables in deploy/docs/causes.md, from model/spike_cause.h and model/host_signals.h.
std::string spike_cause_rows();
std::string host_wait_rows();

}  // namespace ssdpulse::page

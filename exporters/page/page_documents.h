// SPDX-License-Identifier: Apache-2.0
// assets/api.schema.json, made from the tables of fields (object.h). A test compares the file with it, and rewrites it.
#pragma once

#include <string>

namespace ssdpulse::page {

std::string api_schema();

// What the page, the dashboards and deploy/docs/causes.md say of each cause, made from the tables in
// model/spike_cause.h and model/host_wait_cause.h. A test compares the files with it, and rewrites them.

/// assets/causes.js: the page imports it, and the dashboards' source reads the JSON in it.
std::string causes_script();

/// Rows of the tables in causes.md.
std::string spike_cause_rows();
std::string host_wait_rows();

}  // namespace ssdpulse::page

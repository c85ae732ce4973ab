// SPDX-License-Identifier: Apache-2.0
// What the page, the dashboards, the API's schema and deploy/docs/causes.md say of each cause, made from the tables in
// model/spike_cause.h and model/host_wait_cause.h. A test compares the files with it, and rewrites them.
#pragma once

#include <string>

namespace ssdpulse::page {

/// assets/causes.js: the page imports it, and the dashboards' source reads the JSON in it.
std::string causes_script();

/// The definitions of a spike's cause and of a host wait's, for api.schema.json: a line each.
std::string cause_definitions();

/// Rows of the tables in causes.md.
std::string spike_cause_rows();
std::string host_wait_rows();

}  // namespace ssdpulse::page

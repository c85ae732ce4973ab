// SPDX-License-Identifier: Apache-2.0
// assets/api.schema.json, made from the tables of fields (object.h). A test compares the file with it, and rewrites it.
#pragma once

#include <string>

namespace ssdpulse::page {

std::string api_schema();

}  // namespace ssdpulse::page

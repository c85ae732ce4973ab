// SPDX-License-Identifier: Apache-2.0
// The documents about the keys, made from their table: the same texts, ranges and defaults in each.
#pragma once

#include <string>

namespace ssdpulse::config {

/// deploy/config/ssdpulse.yaml: every key at its default, with a comment.
std::string commented_defaults();

/// deploy/config/schema.json: a JSON schema of the configuration, for editors.
std::string schema_json();

/// The manual page ssdpulse.yaml(5), in mdoc.
std::string manual_page();

}  // namespace ssdpulse::config

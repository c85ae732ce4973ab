// SPDX-License-Identifier: Apache-2.0
// Output of commands: what several of them print, and texts that tests check without a daemon.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "exporters/terminal/finding_text.h"

namespace ssdpulse::cli {

/// Indented; bytes that are not UTF-8 are replaced.
template <typename Json>
void print_json(const Json& json, std::ostream& out) {
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

/// Prints the error.
inline ExitCode fail(const util::Error& error, ExitCode code = ExitCode::failure) {
  std::cerr << error.message << '\n';
  return code;
}

/// Of the commands that print findings.
struct FindingsOptions {
  ClientOptions client;
  terminal::FindingStyle style;
  bool markdown = false;
  std::string root;  // of a tree other than this host's, for tests; empty: this host
};

void print_findings(const terminal::Findings& findings, const FindingsOptions& options, std::ostream& out);

/// `ssdpulse why --verbose`: the evidence of the answer's incident, for people; empty if it has none.
std::string evidence_text(const nlohmann::json& answer);

/// `ssdpulse doctor --cost`: an answer of cost, for people.
void print_cost(const nlohmann::json& answer, std::ostream& out);

/// `ssdpulse what-if`: an answer of devices/NAME/what-if, for people.
void print_what_if(const nlohmann::json& answer, std::ostream& out);

/// What the daemon models for each drive, in words, one line each.
void print_modelled(const config::Web& web, std::ostream& out);

}  // namespace ssdpulse::cli

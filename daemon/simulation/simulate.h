// SPDX-License-Identifier: Apache-2.0
// What would drives of a given size relocate under a recorded load? For people: `ssdpulse simulate`.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/analysis/flash_model/offline_model.h"
#include "daemon/util/exit_code.h"
#include "daemon/util/result.h"

namespace ssdpulse::simulation {

/// As given on the command line.
struct SimulateArguments {
  std::string input;  // a file, or - for standard input
  std::uint64_t size_bytes = 0;
  std::uint64_t page_bytes = 4096;
  std::vector<double> overprovisioning{7, 12, 28, 50};  // percent
  std::vector<std::string> policies{"greedy", "greedy_gc_frontier", "cost_benefit"};
  std::vector<std::string> placements{"none"};
  std::string discards = "honoured";
  bool full = false;
  std::optional<std::uint64_t> sample_pages;
  std::string start = "full";
  std::string window = "50-100";  // percent of what is written
  std::uint32_t seed = 1;
  bool json = false;
};

/// Parses 4096, 960GB (1000^3), 1.92TB or 894GiB (1024^3); upper and lower case alike, below 2^64.
util::Result<std::uint64_t> size_in_bytes(std::string_view text);

struct SimulatePlan {
  analysis::OfflineSettings settings;
  analysis::OfflineModel::Window window;
};
/// What was requested, or what is wrong with it.
util::Result<SimulatePlan> plan_simulation(const SimulateArguments& arguments);

/// Results go to `out`; problems, and progress if it takes longer than two seconds, go to `err`.
util::ExitCode simulate(const SimulateArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace ssdpulse::simulation

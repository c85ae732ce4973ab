// SPDX-License-Identifier: Apache-2.0
// simulate(): what drives of a given size would relocate under a recorded load. For people: `ssdpulse simulate`.
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
  std::string input;                                    // a file, or - for standard input
  std::uint64_t size_bytes = 0;                         // of the drive
  std::uint64_t page_bytes = 4096;                      // what it maps as one: a power of two from 512 to 1 MiB
  std::vector<double> overprovisioning{7, 12, 28, 50};  // percent
  std::vector<std::string> policies{"greedy", "greedy_gc_frontier", "cost_benefit"};
  std::vector<std::string> placements{"none"};
  std::string discards = "honoured";          // or ignored
  bool full = false;                          // follow every page, not a sample
  std::optional<std::uint64_t> sample_pages;  // about this many are followed; absent: PageSample::kUsualPages
  std::string start = "full";                 // or empty
  std::string window = "50-100";              // percent of what is written
  std::uint32_t seed = 1;                     // which pages are followed
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

/// Results go to `out`; problems, and progress if it takes longer than two seconds, go to `err`. `usage`: wrong
/// arguments or input; `no_data`: too little is written in the window.
util::ExitCode simulate(const SimulateArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace ssdpulse::simulation

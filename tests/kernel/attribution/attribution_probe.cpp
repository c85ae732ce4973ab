// SPDX-License-Identifier: Apache-2.0
// ssdpulse_attribution_probe MODE CGROUPS DISK...: measures these disks (MODE is full or completion-only, with room for
// CGROUPS cgroups) and answers each input line with one line of JSON. "look" takes a sample; "gone ID..." reports which
// cgroups are gone.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>

#include "daemon/base/log.h"
#include "daemon/block/block_source.h"
#include "daemon/host/inventory.h"

namespace {

using namespace ssdpulse;

void print(const model::AttributedTotals& totals) {
  std::cout << '[' << totals.ios << ',' << totals.bytes << ',' << totals.device_ns << ']';
}

void print(const model::TotalsByOperation& totals) {
  const char* comma = "{";
  for (std::size_t i = 0; i < totals.size(); ++i) {
    std::cout << std::exchange(comma, ",") << '"' << name(model::kAttributedOperations[i]) << "\":";
    print(totals[i]);
  }
  std::cout << '}';
}

void print_paths(const model::DeviceAttribution& attribution) {
  const char* comma = "{";
  for (std::size_t path = 0; path < model::kIoPaths; ++path) {
    for (std::size_t access = 0; access < model::kIoAccesses; ++access) {
      std::cout << std::exchange(comma, ",") << '"' << model::kIoPathNames[path] << ' ' << model::kIoAccessNames[access]
                << "\":";
      print(attribution.paths[path][access]);
    }
  }
  std::cout << '}';
}

/// The device's own counts: I/Os that were timed (completion-only: all that ended), strays, bytes.
void print_own(const model::DeviceSample& sample, bool completion_only) {
  const char* comma = "{";
  for (const model::Operation operation :
       {model::Operation::read, model::Operation::write, model::Operation::discard}) {
    const model::OperationIo& io = sample.io->operation(operation);
    std::uint64_t timed = completion_only ? io.completions : 0;
    for (const auto& latency : io.device_latency) {
      timed = std::accumulate(latency.words.begin(), latency.words.end(), timed);
    }
    std::cout << std::exchange(comma, ",") << '"' << name(operation) << "\":[" << timed << ','
              << sample.events.strays[model::index(operation)] << ',' << io.bytes << ']';
  }
  std::cout << '}';
}

void print(const model::DeviceSample& sample, bool completion_only) {
  const model::DeviceAttribution& attribution = *sample.attribution;
  std::cout << "{\"own\":";
  print_own(sample, completion_only);
  std::cout << ",\"departed\":";
  print(attribution.departed);
  std::cout << ",\"other\":";
  print(attribution.other);
  std::cout << ",\"paths\":";
  print_paths(attribution);
  std::cout << ",\"cgroups\":{";
  const char* comma = "";
  for (const auto& [cgroup, totals] : attribution.cgroups) {
    std::cout << std::exchange(comma, ",") << '"' << cgroup << "\":";
    print(totals);
  }
  std::cout << "},\"commits\":{";
  comma = "";
  for (const auto& [cgroup, commits] : attribution.commits) {
    std::cout << std::exchange(comma, ",") << '"' << cgroup << "\":" << commits;
  }
  std::cout << "}}";
}

/// Skipped runs of each program, as far as the kernel counts them: an I/O whose end was skipped is missing.
void print_skipped(const std::vector<model::ProgramStats>& programs) {
  std::cout << "\"skipped\":{";
  const char* comma = "";
  for (const model::ProgramStats& program : programs) {
    std::cout << std::exchange(comma, ",") << '"' << program.name << "\":" << program.recursion_misses.value_or(0);
  }
  std::cout << '}';
}

void print(const model::BlockSample& sample, const std::vector<model::ProgramStats>& programs, bool completion_only) {
  std::cout << '{';
  print_skipped(programs);
  std::cout << ",\"devices\":{";
  const char* comma = "";
  for (const model::DeviceSample& device : sample.devices) {
    std::cout << std::exchange(comma, ",") << '"' << device.device->name << "\":";
    print(device, completion_only);
  }
  std::cout << "},\"seen\":{";
  comma = "";
  for (const auto& [cgroup, seen] : *sample.cgroups) {
    std::cout << std::exchange(comma, ",") << '"' << cgroup << "\":[" << seen.parent << ",\""
              << util::for_json(seen.leaf) << "\"]";
  }
  std::cout << "}}" << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: ssdpulse_attribution_probe full|completion-only CGROUPS DISK...\n";
    return 2;
  }
  log::set_up("warning");  // on stderr: stdout is for answers
  block::BlockChoices choices;
  choices.completion_only = std::string(arguments[1]) == "completion-only";
  choices.attribution = true;
  choices.attributed_cgroups = static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10));
  const host::DeviceFilter filter{{arguments + 3, arguments + count}, {}};
  auto inventory = host::read_inventory({}, filter);
  if (!inventory) {
    std::cerr << inventory.error().message << '\n';
    return 1;
  }
  auto source = block::BlockSource::open(*inventory, choices);
  if (!source) {
    std::cerr << source.error().message << '\n';
    return 1;
  }
  const auto& features = (*source)->kernel_features();
  const auto decision = [&](model::KernelFeature feature) {
    return name(features.at(feature), model::kKernelDecisionNames);
  };
  std::cout << "{\"io_path\":\"" << decision(model::KernelFeature::io_path) << "\",\"io_cgroup\":\""
            << decision(model::KernelFeature::io_cgroup) << "\",\"bytes\":" << (*source)->memory().attribution_bytes()
            << '}' << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "gone") {
      (*source)->release_cgroups({std::istream_iterator<model::CgroupId>(words), {}});
    }
    const auto sample = (*source)->sample();
    print(sample, (*source)->program_stats(), choices.completion_only);
  }
  return 0;
}

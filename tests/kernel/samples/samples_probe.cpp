// SPDX-License-Identifier: Apache-2.0
// ssdpulse_samples_probe full|completion-only DISK...: measures these disks and answers each input line with one line
// of JSON: what the flash model would get from one sample. Lines: "look"; "off DISK"; "sample DISK PAGE_BITS RATE_BITS
// SEED FOLLOWED FIRST_PAGE". The last two take effect at a later sample.
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "daemon/base/log.h"
#include "daemon/block/block_source.h"
#include "daemon/host/inventory.h"

namespace {

using namespace ssdpulse;

template <typename Values>
void print_array(const Values& values) {
  const char* comma = "[";
  for (const auto value : values) {
    std::cout << std::exchange(comma, ",") << value;
  }
  std::cout << ']';
}

void print(const model::FlashSamples& samples) {
  std::cout << "{\"devices\":{";
  const char* comma = "";
  for (const model::DeviceFlashSamples& device : samples.devices) {
    std::cout << std::exchange(comma, ",") << '"' << device.device << "\":{\"sampling\":" << device.sampling
              << ",\"written\":";
    print_array(device.written);
    std::cout << ",\"lost\":";
    print_array(device.lost);
    std::cout << '}';
  }
  std::cout << "},\"events\":[";
  comma = "";
  for (const model::FlashEvent& event : samples.events) {
    std::cout << std::exchange(comma, ",") << "[\"" << samples.devices[event.device].device << "\"," << event.first
              << ',' << event.count << ',' << static_cast<int>(event.kind) << ',' << static_cast<int>(event.hint)
              << ']';
  }
  std::cout << "]}" << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: ssdpulse_samples_probe full|completion-only DISK...\n";
    return 2;
  }
  log::set_up("warning");  // on stderr: stdout is for answers
  block::BlockChoices choices;
  choices.completion_only = std::string(arguments[1]) == "completion-only";
  auto inventory = host::read_inventory({}, {{arguments + 2, arguments + count}, {}});
  if (!inventory) {
    std::cerr << inventory.error().message << '\n';
    return 1;
  }
  auto source = block::BlockSource::open(*inventory, choices);
  if (!source) {
    std::cerr << source.error().message << '\n';
    return 1;
  }
  std::map<std::string, model::SamplingParameters> wanted;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    std::string disk;
    words >> word >> disk;
    if (word == "off") {
      wanted.erase(disk);
    } else if (word == "sample") {
      model::SamplingParameters& parameters = wanted[disk];
      unsigned page_bits = 0;
      unsigned rate_bits = 0;
      words >> page_bits >> rate_bits >> parameters.seed >> parameters.followed >> parameters.first_page;
      parameters.page_bits = static_cast<std::uint8_t>(page_bits);
      parameters.rate_bits = static_cast<std::uint8_t>(rate_bits);
    }
    (*source)->set_sampling(wanted);
    const auto sample = (*source)->sample();
    print(sample.flash ? *sample.flash : model::FlashSamples{});
  }
  return 0;
}

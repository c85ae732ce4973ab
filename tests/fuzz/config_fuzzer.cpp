// SPDX-License-Identifier: Apache-2.0
// Can any text make the configuration's parser crash, hang, or contradict itself? What it accepts, it prints as a text
// that means the same; what it does not accept, it gives reasons for.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "daemon/config/parse.h"

namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "what must hold does not: %s\n", what);
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ssdpulse;
  const auto outcome = config::parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzzed.yaml");
  if (!outcome) {
    require(!outcome.error().empty(), "a reason for what is not accepted");
    return 0;
  }
  const auto again = config::parse(config::print(*outcome), "printed.yaml");
  require(again.has_value(), "what is printed is accepted");
  require(config::print(*again) == config::print(*outcome), "what is printed means the same");
  return 0;
}

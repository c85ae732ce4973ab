// SPDX-License-Identifier: Apache-2.0
// Can any text make the configuration parser or the web file parser crash, hang or contradict itself? An accepted
// configuration is printed as a text that means the same; a rejected one comes with reasons.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "daemon/config/config.h"
#include "daemon/config/web_file.h"

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
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto web = config::parse_web_file(text, "fuzzed.yaml");
  require(web || !web.error().empty(), "a reason for what is no web file");
  const auto outcome = config::parse(text, "fuzzed.yaml");
  if (!outcome) {
    require(!outcome.error().empty(), "a reason for what is not accepted");
    return 0;
  }
  const auto again = config::parse(config::print(*outcome), "printed.yaml");
  require(again.has_value(), "what is printed is accepted");
  require(config::print(*again) == config::print(*outcome), "what is printed means the same");
  return 0;
}

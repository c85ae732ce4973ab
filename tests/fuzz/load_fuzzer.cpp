// SPDX-License-Identifier: Apache-2.0
// Can any bytes in the history file make the decoder of loads crash, hang or contradict itself? Whatever it accepts
// still means the same after it has been written again.
#include <cstdio>
#include <cstdlib>

#include "daemon/history/load_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ssdpulse::history;
  const auto load = decode({data, size});
  const auto tenants = decode_tenants({data, size});
  if ((load && decode(encode(*load)) != load) || (tenants && decode_tenants(encode(*tenants)) != tenants)) {
    std::fputs("what was believed is another thing once it was written\n", stderr);
    std::abort();
  }
  return 0;
}

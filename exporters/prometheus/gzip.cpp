// SPDX-License-Identifier: Apache-2.0
// How is a page made smaller?
#include "exporters/prometheus/gzip.h"

#include <zlib.h>

#include <limits>

namespace ssdpulse::exposition {
namespace {
constexpr int kWindowBits = 15 + 16;  // 16 asks zlib for a gzip header
constexpr int kMemoryLevel = 8;       // zlib's default
}  // namespace

std::optional<std::string> gzip(const std::string& bytes) {
  z_stream stream{};
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2 ||
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string result(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  // zlib takes a pointer to non-const and does not write through it.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const bool finished = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  result.resize(stream.total_out);
  result.shrink_to_fit();
  deflateEnd(&stream);
  return finished ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace ssdpulse::exposition

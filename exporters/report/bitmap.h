// SPDX-License-Identifier: Apache-2.0
// A small picture for a page: 256 colours, as a data: URI. For the files of this room alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ssdpulse::report {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// Cividis (Nunez and others, 2018), which the colour-blind read like everybody else: 0 light, 1 dark.
Colour cividis(double share);
std::string css(const Colour& colour);

/// Rows from the top, each `width` bytes that are places in the palette.
struct Bitmap {
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::array<Colour, 256> palette{};
};

/// Windows bitmap, which every browser shows and which needs no library, in base64.
std::string data_uri(const Bitmap& bitmap);

}  // namespace ssdpulse::report

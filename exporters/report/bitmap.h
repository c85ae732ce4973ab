// SPDX-License-Identifier: Apache-2.0
// A small picture for a page: 256 colours, as a data: URI. Only for the files of this folder.
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

/// Cividis (Nunez and others, 2018), which the colour-blind read as well as everybody else: 0 light, 1 dark.
Colour cividis(double share);
std::string css(const Colour& colour);

/// Rows from the top, each of `width` bytes that are indexes into the palette.
struct Bitmap {
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::array<Colour, 256> palette{};
};

/// A Windows bitmap in base64, which every browser shows and which needs no library.
std::string data_uri(const Bitmap& bitmap);

}  // namespace ssdpulse::report

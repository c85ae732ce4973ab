// SPDX-License-Identifier: Apache-2.0
#include "exporters/report/bitmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ssdpulse::report {

namespace {

void append(std::string& bytes, std::uint32_t value, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
  }
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i) {
      three = three << 8U | (i < here ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= here ? kDigits[three >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

Colour cividis(double share) {
  constexpr Colour kStops[] = {{0x00, 0x22, 0x4e}, {0x12, 0x35, 0x70}, {0x3b, 0x49, 0x6c}, {0x57, 0x5d, 0x6d},
                               {0x70, 0x71, 0x73}, {0x8a, 0x86, 0x78}, {0xa5, 0x9c, 0x74}, {0xc3, 0xb3, 0x69},
                               {0xe1, 0xcc, 0x55}, {0xfe, 0xe8, 0x38}};
  const double at = std::clamp(1 - share, 0.0, 0.9999) * (std::size(kStops) - 1);
  const auto stop = static_cast<std::size_t>(at);
  const double part = at - static_cast<double>(stop);
  const auto mixed = [part](std::uint8_t low, std::uint8_t high) {
    return static_cast<std::uint8_t>(std::lround(low + (high - low) * part));
  };
  const Colour& low = kStops[stop];
  const Colour& high = kStops[stop + 1];
  return {mixed(low.red, high.red), mixed(low.green, high.green), mixed(low.blue, high.blue)};
}

std::string css(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string data_uri(const Bitmap& bitmap) {
  constexpr std::uint32_t kFileHeader = 14;
  constexpr std::uint32_t kHeader = 40;
  const std::size_t height = bitmap.width == 0 ? 0 : bitmap.pixels.size() / bitmap.width;
  const std::size_t stride = (bitmap.width + 3) / 4 * 4;
  const auto offset = kFileHeader + kHeader + 4 * static_cast<std::uint32_t>(bitmap.palette.size());
  std::string bytes = "BM";
  append(bytes, offset + static_cast<std::uint32_t>(stride * height), 4);
  append(bytes, 0, 4);
  append(bytes, offset, 4);
  append(bytes, kHeader, 4);
  append(bytes, static_cast<std::uint32_t>(bitmap.width), 4);
  append(bytes, static_cast<std::uint32_t>(height), 4);
  append(bytes, 1, 2);  // plane
  append(bytes, 8, 2);  // bits per pixel
  append(bytes, 0, 4);  // not compressed
  append(bytes, static_cast<std::uint32_t>(stride * height), 4);
  append(bytes, 0, 4);  // no size on paper
  append(bytes, 0, 4);
  append(bytes, static_cast<std::uint32_t>(bitmap.palette.size()), 4);
  append(bytes, 0, 4);
  for (const Colour& colour : bitmap.palette) {
    append(bytes, static_cast<std::uint32_t>(colour.red << 16U | colour.green << 8U | colour.blue), 4);
  }
  for (std::size_t row = height; row-- > 0;) {  // from the bottom
    bytes.append(reinterpret_cast<const char*>(&bitmap.pixels[row * bitmap.width]), bitmap.width);
    bytes.append(stride - bitmap.width, '\0');
  }
  return "data:image/bmp;base64," + base64(bytes);
}

}  // namespace ssdpulse::report

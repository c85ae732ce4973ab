// SPDX-License-Identifier: Apache-2.0
#include "exporters/report/report_heatmap.h"

#include <fmt/format.h>
#include <linux/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bpf/abi/latency_buckets.h"
#include "daemon/model/latency_buckets.h"
#include "exporters/words/report.h"

namespace ssdpulse::report {
namespace {

using compare::Side;

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// Rows from the top, each of `width` bytes that are indexes into the palette.
struct Bitmap {
  std::size_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::array<Colour, 256> palette{};
};

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

/// Cividis (Nunez and others, 2018), which the colour-blind read as well as everybody else: 0 light, 1 dark.
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

/// A Windows bitmap in base64, which every browser shows and which needs no library.
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

constexpr std::size_t kMaxColumns = 240;
constexpr std::size_t kMaxRows = 64;
constexpr double kWidth = 480;
constexpr double kHeight = 240;
constexpr double kLeft = 52;
constexpr double kBottom = 18;

/// A stretch of the window, and what was in it.
struct Column {
  std::vector<std::uint64_t> buckets = std::vector<std::uint64_t>(LATENCY_OVER_WORD + 1);
  double minutes = 0;  // measured; 0: none
};

std::vector<Column> columns_of(const Side& side, model::Latency latency) {
  const double length = std::chrono::duration<double, std::ratio<60>>(side.window.to - side.window.from).count();
  const double longest =
      std::accumulate(side.minutes.begin(), side.minutes.end(), 1.0, [](double minutes, const model::MinuteOf& minute) {
        return std::max(minutes, static_cast<double>(minute.length.count()));
      });
  const double step = std::max(longest, std::ceil(length / kMaxColumns));
  std::vector<Column> columns(static_cast<std::size_t>(std::max(1.0, std::ceil(length / step))));
  for (const model::MinuteOf& minute : side.minutes) {
    const double at = std::chrono::duration<double, std::ratio<60>>(minute.start - side.window.from).count() / step;
    if (at < 0 || at >= static_cast<double>(columns.size())) {
      continue;
    }
    Column& column = columns[static_cast<std::size_t>(at)];
    column.minutes += static_cast<double>(minute.load.measured_ms) / 60000;
    for (const auto& [bucket, count] : minute.load.latency(latency).words) {
      column.buckets[std::min<std::size_t>(bucket, LATENCY_OVER_WORD)] += count;
    }
  }
  return columns;
}

/// I/Os per minute in a row; rows count from the lowest latency.
double cell(const Column& column, const HeatScale& scale, std::size_t row) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < scale.merged; ++i) {
    const std::size_t bucket = scale.first + row * scale.merged + i;
    count += bucket <= scale.last ? column.buckets[bucket] : 0;
  }
  return column.minutes > 0 ? static_cast<double>(count) / column.minutes : 0;
}

double below_range(const Column& column) {
  return column.minutes > 0
             ? static_cast<double>(column.buckets[LATENCY_ZERO_WORD] + column.buckets[LATENCY_UNDER_WORD]) /
                   column.minutes
             : 0;
}

double above_range(const Column& column) {
  return column.minutes > 0 ? static_cast<double>(column.buckets[LATENCY_OVER_WORD]) / column.minutes : 0;
}

constexpr std::uint8_t kNone = 0;
constexpr std::uint8_t kGap = 255;
constexpr int kLevels = 254;

/// 0 for none; else the index of a count in the palette, by its logarithm.
std::uint8_t level(double count, double max_count) {
  if (count <= 0) {
    return kNone;
  }
  constexpr double kMinCount = 1.0 / 60;  // one I/O per hour
  const double share =
      std::log(std::max(count, kMinCount) / kMinCount) / std::log(std::max(max_count, 1.0) / kMinCount);
  return static_cast<std::uint8_t>(1 + std::lround(std::clamp(share, 0.0, 1.0) * (kLevels - 1)));
}

/// The rows of the scale, with a gap and a row for what is out of range on both sides.
Bitmap bitmap_of(const std::vector<Column>& columns, const HeatScale& scale) {
  Bitmap bitmap;
  bitmap.width = columns.size();
  bitmap.palette[kNone] = {0xf4, 0xf4, 0xf4};
  bitmap.palette[kGap] = {0xff, 0xff, 0xff};
  for (int i = 1; i <= kLevels; ++i) {
    bitmap.palette[static_cast<std::size_t>(i)] = cividis(0.05 + 0.95 * (i - 1) / (kLevels - 1));
  }
  const auto add_row = [&](auto value) {
    for (const Column& column : columns) {
      bitmap.pixels.push_back(value(column));
    }
  };
  const auto gap = [](const Column&) { return kGap; };
  add_row([&](const Column& column) { return level(above_range(column), scale.max_rate); });
  add_row(gap);
  for (std::size_t row = scale.rows(); row-- > 0;) {
    add_row([&](const Column& column) { return level(cell(column, scale, row), scale.max_rate); });
  }
  add_row(gap);
  add_row([&](const Column& column) { return level(below_range(column), scale.max_rate); });
  return bitmap;
}

/// Where a latency is drawn, from the top; two rows of the bitmap are above the scale, and two below.
double height_of(double seconds, const HeatScale& scale) {
  const double bucket = std::log2(seconds) * 8 - LATENCY_FIRST_NATIVE_INDEX + LATENCY_FIRST_NATIVE_WORD + 1;
  const double row = (bucket - static_cast<double>(scale.first)) / static_cast<double>(scale.merged);
  const double rows = static_cast<double>(scale.rows()) + 4;
  return kHeight * (rows - 2 - row) / rows;
}

std::string ticks(const HeatScale& scale) {
  std::string svg;
  for (double seconds = 1e-6; seconds < 100; seconds *= 10) {
    const double y = height_of(seconds, scale);
    if (y > 12 && y < kHeight - 12) {
      svg += fmt::format(R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" stroke="#0003"/>)"
                         R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
                         kLeft, kLeft + kWidth, y, kLeft - 4, y + 4, value_text(seconds, Unit::seconds));
    }
  }
  return svg;
}

/// Runs of columns without data.
std::string hatches(const std::vector<Column>& columns) {
  std::string svg;
  const double width = kWidth / static_cast<double>(columns.size());
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i;
    while (end < columns.size() && columns[end].minutes <= 0) {
      ++end;
    }
    if (end > i) {
      svg += fmt::format(R"svg(<rect x="{:.1f}" y="0" width="{:.1f}" height="{}" fill="url(#no-data)"/>)svg",
                         kLeft + static_cast<double>(i) * width, static_cast<double>(end - i) * width, kHeight);
    }
    i = std::max(end, i + 1);
  }
  return svg;
}

/// A quantile of each column that has enough I/Os.
std::string line(const std::vector<Column>& columns, const HeatScale& scale, double share, const char* dashes) {
  constexpr std::uint64_t kMinBeyond = 3;  // a line of many points itself shows how certain it is
  const double width = kWidth / static_cast<double>(columns.size());
  std::string path;
  bool drawing = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto count = static_cast<double>(model::count(columns[i].buckets));
    const bool enough = count * (1 - share) >= static_cast<double>(kMinBeyond);
    if (enough) {
      const double y = height_of(model::upper_bound_seconds(model::quantile_bucket(columns[i].buckets, share)), scale);
      path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", kLeft + (static_cast<double>(i) + 0.5) * width,
                          std::clamp(y, 0.0, kHeight));
    }
    drawing = enough;
  }
  return path.empty()
             ? ""
             : fmt::format(R"(<path d="{}" fill="none" stroke="#d4380d" stroke-width="1.5"{}/>)", path, dashes);
}

}  // namespace

std::optional<HeatScale> heat_scale(const std::vector<const Side*>& sides, model::Latency latency) {
  HeatScale scale{.first = LATENCY_OVER_WORD, .last = 0};
  std::vector<std::vector<Column>> all;
  for (const Side* side : sides) {
    all.push_back(columns_of(*side, latency));
    for (const Column& column : all.back()) {
      for (std::size_t bucket = LATENCY_FIRST_NATIVE_WORD; bucket < LATENCY_OVER_WORD; ++bucket) {
        if (column.buckets[bucket] > 0) {
          scale.first = std::min(scale.first, bucket);
          scale.last = std::max(scale.last, bucket);
        }
      }
    }
  }
  if (scale.first > scale.last) {
    return std::nullopt;
  }
  scale.merged = (scale.last - scale.first) / kMaxRows + 1;
  for (const auto& columns : all) {
    for (const Column& column : columns) {
      for (std::size_t row = 0; row < scale.rows(); ++row) {
        scale.max_rate = std::max(scale.max_rate, cell(column, scale, row));
      }
    }
  }
  return scale;
}

std::string heatmap_svg(const Side& side, model::Latency latency, const HeatScale& scale, const std::string& label) {
  const std::vector<Column> columns = columns_of(side, latency);
  const std::string window = window_text(side.window);
  return fmt::format(
             R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}, {}" font-size="11" font-family="sans-serif">)",
             kLeft + kWidth, kHeight + kBottom, label, window) +
         R"(<defs><pattern id="no-data" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="#fff"/>)"
         R"(<path d="M0 6L6 0" stroke="#888"/></pattern></defs>)" +
         fmt::format(R"(<image x="{}" y="0" width="{}" height="{}" preserveAspectRatio="none" )"
                     R"(style="image-rendering:pixelated" href="{}"/>)",
                     kLeft, kWidth, kHeight, data_uri(bitmap_of(columns, scale))) +
         hatches(columns) + ticks(scale) + line(columns, scale, 0.5, R"( stroke-dasharray="5 3")") +
         line(columns, scale, 0.99, "") +
         fmt::format(R"(<text x="{}" y="10" text-anchor="end">&gt;64 s</text>)"
                     R"(<text x="{}" y="{}" text-anchor="end">&lt;1 us</text>)",
                     kLeft - 4, kLeft - 4, kHeight - 1) +
         fmt::format(R"(<text x="{}" y="{}">{}</text></svg>)", kLeft, kHeight + 14, window);
}

std::string heat_key_svg(const HeatScale& scale) {
  constexpr int kStops = 24;
  std::string svg = fmt::format(
      R"(<svg class="key" viewBox="0 0 420 16" font-size="11" font-family="sans-serif" role="img" aria-label="{}">)",
      words::report::kColoursMean);
  svg += fmt::format(R"(<text x="0" y="12">{}</text>)", words::report::kOneAnHour);
  for (int i = 0; i < kStops; ++i) {
    svg += fmt::format(R"(<rect x="{}" y="2" width="6" height="12" fill="{}"/>)", 62 + 6 * i,
                       css(cividis(0.05 + 0.95 * i / (kStops - 1))));
  }
  return svg + fmt::format(R"(<text x="212" y="12">{}</text></svg>)",
                           fmt::format(words::report::kPerMinute, value_text(scale.max_rate, Unit::count)));
}

}  // namespace ssdpulse::report

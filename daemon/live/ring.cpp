// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/ring.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ssdpulse::live {
namespace {

// A frame's bytes: for each device the lengths of its name and column (little-endian, 2 bytes each), the column in
// summary, name, column.
static_assert(std::is_trivially_copyable_v<ColumnSummary>);
constexpr std::size_t kLengths = 4;
constexpr std::size_t kHeader = kLengths + sizeof(ColumnSummary);

std::size_t number_at(const char* bytes) {
  return static_cast<std::uint8_t>(bytes[0]) | static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[1])) << 8;
}

void append_number(std::string& out, std::size_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8 & 0xFF));
}

std::string bytes_of(const Ring::Frame& frame) {
  std::string bytes;
  for (const auto& [device, summary, column] : frame.entries) {
    if (device.size() <= 0xFFFF && column.size() <= 0xFFFF) {
      append_number(bytes, device.size());
      append_number(bytes, column.size());
      bytes.append(reinterpret_cast<const char*>(&summary), sizeof summary);
      bytes += device;
      bytes += column;
    }
  }
  bytes.shrink_to_fit();
  return bytes;
}

struct View {
  std::string_view device;
  std::string_view column;
  ColumnSummary summary;
};

/// Takes the first entry off a frame and returns it; nothing: there is none left.
std::optional<View> take_entry(std::string_view& frame) {
  if (frame.size() < kHeader) {
    return std::nullopt;
  }
  const std::size_t name = number_at(frame.data());
  const std::size_t column = number_at(frame.data() + 2);
  View view{frame.substr(kHeader, name), frame.substr(kHeader + name, column), {}};
  std::memcpy(&view.summary, frame.data() + kLengths, sizeof view.summary);
  frame.remove_prefix(kHeader + name + column);
  return view;
}

std::optional<std::string> column_in(std::string_view frame, std::string_view device) {
  while (const auto entry = take_entry(frame)) {
    if (entry->device == device) {
      return std::string(entry->column);
    }
  }
  return std::nullopt;
}

/// A frame mostly has the devices of the one before, in the same order: `index` is then the device's position.
std::vector<std::optional<ColumnSummary>>& columns_of(Ring::Summaries& summaries, std::string_view device,
                                                      std::size_t index, std::size_t frames) {
  auto& devices = summaries.devices;
  if (index < devices.size() && devices[index].name == device) {
    return devices[index].columns;
  }
  const auto found =
      std::find_if(devices.begin(), devices.end(), [device](const auto& one) { return one.name == device; });
  if (found != devices.end()) {
    return found->columns;
  }
  return devices
      .emplace_back(Ring::Summaries::Device{std::string(device), std::vector<std::optional<ColumnSummary>>(frames)})
      .columns;
}

}  // namespace

void Ring::push(const Frame& frame) {
  std::string bytes = bytes_of(frame);
  if (bytes.size() > limit_bytes_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  while (frames_.size() >= kFrames || bytes_ + bytes.size() > limit_bytes_) {
    bytes_ -= frames_.front().bytes.size();
    frames_.pop_front();
  }
  bytes_ += bytes.size();
  frames_.push_back({std::move(bytes), frame.number, frame.end, frame.length});
}

std::vector<Second> Ring::after(std::uint64_t number, std::string_view device) const {
  std::vector<Second> seconds;
  const std::lock_guard lock(mutex_);
  seconds.reserve(frames_.size());
  for (const StoredFrame& frame : frames_) {
    if (frame.number > number) {
      seconds.push_back({frame.number, frame.end, frame.length, column_in(frame.bytes, device)});
    }
  }
  return seconds;
}

Ring::Summaries Ring::summaries(std::uint64_t newest) const {
  Summaries summaries;
  const std::lock_guard lock(mutex_);
  std::size_t frames = frames_.size();
  while (frames > 0 && frames_[frames - 1].number > newest) {
    --frames;
  }
  summaries.numbers.reserve(frames);
  summaries.ends.reserve(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const StoredFrame& frame = frames_[i];
    summaries.numbers.push_back(frame.number);
    summaries.ends.push_back(frame.end);
    std::string_view rest = frame.bytes;
    std::size_t device = 0;
    while (const auto entry = take_entry(rest)) {
      columns_of(summaries, entry->device, device++, frames)[i] = entry->summary;
    }
  }
  return summaries;
}

Ring::Reach Ring::reach() const {
  const std::lock_guard lock(mutex_);
  if (frames_.empty()) {
    return {};
  }
  const StoredFrame& oldest = frames_.front();
  return {oldest.number, frames_.back().number, oldest.end - oldest.length};
}

}  // namespace ssdpulse::live

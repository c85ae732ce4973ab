// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/ring.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ssdpulse::live {
namespace {

// A frame's bytes: for each device the lengths of its name and column (little-endian, 2 bytes each), the column in
// brief, name, column.
static_assert(std::is_trivially_copyable_v<Brief>);
constexpr std::size_t kLengths = 4;
constexpr std::size_t kHeader = kLengths + sizeof(Brief);

std::size_t number_at(const char* bytes) {
  return static_cast<std::uint8_t>(bytes[0]) | static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[1])) << 8;
}

void append_number(std::string& out, std::size_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8 & 0xFF));
}

std::string bytes_of(const Ring::Frame& frame) {
  std::string bytes;
  for (const auto& [device, brief, column] : frame.entries) {
    if (device.size() <= 0xFFFF && column.size() <= 0xFFFF) {
      append_number(bytes, device.size());
      append_number(bytes, column.size());
      bytes.append(reinterpret_cast<const char*>(&brief), sizeof brief);
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
  Brief brief;
};

/// Takes the first entry off a frame and returns it; nothing: there is none left.
std::optional<View> take_entry(std::string_view& frame) {
  if (frame.size() < kHeader) {
    return std::nullopt;
  }
  const std::size_t name = number_at(frame.data());
  const std::size_t column = number_at(frame.data() + 2);
  View view{frame.substr(kHeader, name), frame.substr(kHeader + name, column), {}};
  std::memcpy(&view.brief, frame.data() + kLengths, sizeof view.brief);
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

/// A frame mostly has the devices of the one before, in the same order: `place` is then the device's place.
std::vector<std::optional<Brief>>& columns_of(Ring::Glance& glance, std::string_view device, std::size_t place,
                                              std::size_t frames) {
  auto& devices = glance.devices;
  if (place < devices.size() && devices[place].name == device) {
    return devices[place].columns;
  }
  const auto found =
      std::find_if(devices.begin(), devices.end(), [device](const auto& one) { return one.name == device; });
  if (found != devices.end()) {
    return found->columns;
  }
  return devices.emplace_back(Ring::Glance::Device{std::string(device), std::vector<std::optional<Brief>>(frames)})
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
  for (const Kept& frame : frames_) {
    if (frame.number > number) {
      seconds.push_back({frame.number, frame.end, frame.length, column_in(frame.bytes, device)});
    }
  }
  return seconds;
}

Ring::Glance Ring::glance(std::uint64_t newest) const {
  Glance glance;
  const std::lock_guard lock(mutex_);
  std::size_t frames = frames_.size();
  while (frames > 0 && frames_[frames - 1].number > newest) {
    --frames;
  }
  glance.numbers.reserve(frames);
  glance.ends.reserve(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const Kept& frame = frames_[i];
    glance.numbers.push_back(frame.number);
    glance.ends.push_back(frame.end);
    std::string_view rest = frame.bytes;
    std::size_t device = 0;
    while (const auto entry = take_entry(rest)) {
      columns_of(glance, entry->device, device++, frames)[i] = entry->brief;
    }
  }
  return glance;
}

Ring::Reach Ring::reach() const {
  const std::lock_guard lock(mutex_);
  if (frames_.empty()) {
    return {};
  }
  const Kept& oldest = frames_.front();
  return {oldest.number, frames_.back().number, oldest.end - oldest.length};
}

}  // namespace ssdpulse::live

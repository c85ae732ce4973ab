// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/ring.h"

#include <algorithm>

namespace ssdpulse::live {
namespace {

// A frame's bytes: for each device the lengths of its name and column (little-endian, 2 bytes each), name, column.
constexpr std::size_t kHeader = 4;

std::size_t number_at(const char* bytes) {
  return static_cast<std::uint8_t>(bytes[0]) | static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[1])) << 8;
}

void append_number(std::string& out, std::size_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8 & 0xFF));
}

std::string bytes_of(const Ring::Frame& frame) {
  std::string bytes;
  for (const auto& [device, column] : frame.columns) {
    if (device.size() <= 0xFFFF && column.size() <= 0xFFFF) {
      append_number(bytes, device.size());
      append_number(bytes, column.size());
      bytes += device;
      bytes += column;
    }
  }
  bytes.push_back('\0');  // no two frames are at one place, even those without devices
  return bytes;
}

std::optional<std::string> column_in(std::string_view frame, std::string_view device) {
  while (frame.size() >= kHeader) {
    const std::size_t name = number_at(frame.data());
    const std::size_t column = number_at(frame.data() + 2);
    frame.remove_prefix(kHeader);
    if (frame.substr(0, name) == device) {
      return std::string(frame.substr(name, column));
    }
    frame.remove_prefix(name + column);
  }
  return std::nullopt;
}

}  // namespace

void Ring::drop_oldest() {
  oldest_ = (oldest_ + 1) % kFrames;
  --frames_;
}

void Ring::push(const Frame& frame) {
  const std::string bytes = bytes_of(frame);
  const std::lock_guard lock(mutex_);
  if (bytes.size() > memory_.size()) {
    return;
  }
  if (head_ + bytes.size() > memory_.size()) {
    // The rest of the memory stays empty, and what was there from the last round is the oldest.
    while (frames_ > 0 && place(0).offset >= head_) {
      drop_oldest();
    }
    head_ = 0;
  }
  const auto in_the_way = [&] {
    const Place& first = place(0);
    return first.offset >= head_ && first.offset < head_ + bytes.size();
  };
  while (frames_ > 0 && (frames_ == kFrames || in_the_way())) {
    drop_oldest();
  }
  std::copy(bytes.begin(), bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(head_));
  places_[(oldest_ + frames_) % kFrames] = {head_, bytes.size(), frame.number, frame.end, frame.length};
  ++frames_;
  head_ += bytes.size();
}

std::vector<Second> Ring::after(std::uint64_t number, std::string_view device) const {
  std::vector<Second> seconds;
  const std::lock_guard lock(mutex_);
  seconds.reserve(frames_);
  for (std::size_t i = 0; i < frames_; ++i) {
    const Place& at = place(i);
    if (at.number > number) {
      seconds.push_back({at.number, at.end, at.length, column_in({memory_.data() + at.offset, at.size}, device)});
    }
  }
  return seconds;
}

Ring::Reach Ring::reach() const {
  const std::lock_guard lock(mutex_);
  if (frames_ == 0) {
    return {};
  }
  return {place(0).number, place(frames_ - 1).number, place(0).end - place(0).length};
}

}  // namespace ssdpulse::live

// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/ring.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

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
  bytes.push_back('\0');  // so that no two frames are at the same place, even without devices
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
    // The rest of the memory stays empty; frames there from the last round are the oldest.
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

Ring::Glance Ring::glance(std::uint64_t newest) const {
  Glance glance;
  const std::lock_guard lock(mutex_);
  std::size_t frames = frames_;
  while (frames > 0 && place(frames - 1).number > newest) {
    --frames;
  }
  glance.numbers.reserve(frames);
  glance.ends.reserve(frames);
  for (std::size_t i = 0; i < frames; ++i) {
    const Place& at = place(i);
    glance.numbers.push_back(at.number);
    glance.ends.push_back(at.end);
    std::string_view rest(memory_.data() + at.offset, at.size);
    std::size_t device = 0;
    while (const auto entry = take_entry(rest)) {
      columns_of(glance, entry->device, device++, frames)[i] = entry->brief;
    }
  }
  return glance;
}

Ring::Reach Ring::reach() const {
  const std::lock_guard lock(mutex_);
  if (frames_ == 0) {
    return {};
  }
  return {place(0).number, place(frames_ - 1).number, place(0).end - place(0).length};
}

}  // namespace ssdpulse::live

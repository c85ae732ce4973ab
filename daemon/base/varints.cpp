// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/varints.h"

#include <protozero/buffer_string.hpp>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>
#include <utility>

namespace ssdpulse::util {

VarintWriter& VarintWriter::put(std::uint64_t value) {
  protozero::add_varint_to_buffer(&bytes_, value);
  return *this;
}

VarintWriter& VarintWriter::put_signed(std::int64_t value) { return put(protozero::encode_zigzag64(value)); }

VarintWriter& VarintWriter::append(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

std::string VarintWriter::take() { return std::move(bytes_); }

std::uint64_t VarintReader::take() {
  if (!good_) {
    return 0;
  }
  const char* next = left_.data();
  const char* const end = next + left_.size();
  try {
    const std::uint64_t value = protozero::decode_varint(&next, end);
    left_.remove_prefix(static_cast<std::size_t>(next - left_.data()));
    return value;
  } catch (const protozero::exception&) {
    good_ = false;
    return 0;
  }
}

std::uint64_t VarintReader::take(std::uint64_t max) {
  const std::uint64_t value = take();
  expect(value <= max);
  return good_ ? value : 0;
}

std::int64_t VarintReader::take_signed() { return protozero::decode_zigzag64(take()); }

std::string_view VarintReader::take_bytes(std::uint64_t size) {
  expect(size <= left_.size());
  if (!good_) {
    return {};
  }
  const std::string_view bytes = left_.substr(0, size);
  left_.remove_prefix(size);
  return bytes;
}

}  // namespace ssdpulse::util

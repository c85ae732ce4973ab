// SPDX-License-Identifier: Apache-2.0
// The pages of a history file as ssdpulse-history(5) and SQLite's file format describe them, read with zlib's
// checksums: which pages do not match theirs, and which are free. And seal(), for a test that has written with an
// SQLite of its own.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace ssdpulse::tests {

inline std::uint32_t big_endian(const std::string& bytes, std::size_t at, std::size_t length = 4) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < length; ++i) {
    value = value << 8U | static_cast<std::uint8_t>(bytes.at(at + i));
  }
  return value;
}

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24U), static_cast<char>(value >> 16U), static_cast<char>(value >> 8U),
          static_cast<char>(value)};
}

/// A file in memory. Pages are counted from 1.
struct PagesOfFile {
  explicit PagesOfFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
    page_bytes = bytes.empty() ? 0 : big_endian(bytes, 16, 2);
  }
  [[nodiscard]] std::size_t count() const { return page_bytes == 0 ? 0 : bytes.size() / page_bytes; }
  [[nodiscard]] std::size_t begin(std::size_t page) const { return (page - 1) * page_bytes; }
  [[nodiscard]] std::size_t reserved() const { return bytes.empty() ? 0 : big_endian(bytes, 20, 1); }

  [[nodiscard]] std::string checksum(std::size_t page) const {
    const std::string covered =
        big_endian(static_cast<std::uint32_t>(page)) + bytes.substr(begin(page), page_bytes - 8);
    const auto* data = reinterpret_cast<const Bytef*>(covered.data());
    const auto length = static_cast<uInt>(covered.size());
    return big_endian(static_cast<std::uint32_t>(::crc32(0, data, length))) +
           big_endian(static_cast<std::uint32_t>(::adler32(1, data, length)));
  }
  [[nodiscard]] bool matches(std::size_t page) const {
    return bytes.compare(begin(page) + page_bytes - 8, 8, checksum(page)) == 0;
  }
  [[nodiscard]] std::set<std::size_t> mismatched() const {
    std::set<std::size_t> pages;
    for (std::size_t page = 1; page <= count(); ++page) {
      if (!matches(page)) {
        pages.insert(page);
      }
    }
    return pages;
  }
  /// What no reader looks at: all pages of the free list but those that list the others.
  [[nodiscard]] std::set<std::size_t> unused() const {
    std::set<std::size_t> pages;
    for (std::size_t trunk = big_endian(bytes, 32); trunk != 0; trunk = big_endian(bytes, begin(trunk))) {
      for (std::size_t i = 0; i < big_endian(bytes, begin(trunk) + 4); ++i) {
        pages.insert(big_endian(bytes, begin(trunk) + 8 + 4 * i));
      }
    }
    return pages;
  }

  std::string bytes;
  std::size_t page_bytes = 0;
};

/// As the daemon would have written what is in the file, if it has room for checksums. What is right is not written.
inline void seal(const std::string& path) {
  const PagesOfFile pages(path);
  if (pages.reserved() != 8) {
    return;
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const std::size_t page : pages.mismatched()) {
    file.seekp(static_cast<std::streamoff>(pages.begin(page) + pages.page_bytes - 8));
    file << pages.checksum(page);
  }
}

}  // namespace ssdpulse::tests

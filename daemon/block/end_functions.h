// SPDX-License-Identifier: Apache-2.0
// EndFunctions: the kernel functions that end bios, buffers and kiocbs, by which the class of a write and the path of
// an I/O are recognised.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "bpf/abi/block_abi.h"
#include "daemon/base/file_descriptor.h"

namespace ssdpulse::block {

/// Address -> the lowest byte of its entry; see end_function_set in bpf/abi/write_abi.h.
using EndFunctions = std::map<std::uint64_t, std::uint8_t>;

/// Functions that end most I/Os, constants in the programs: low halves of the addresses, 1 where there is none.
struct CommonFunctions {
  std::uint32_t end_iomap_dio = 1;
  std::uint32_t end_blkdev_async = 1;
  std::uint32_t ki_io_uring = 1;
  std::uint32_t ki_libaio = 1;
  std::uint32_t end_chain = 1;
};
CommonFunctions common_functions(const EndFunctions& functions);

/// Finds them in a text like /proc/kallsyms. Empty where the kernel shows no addresses.
EndFunctions find_end_functions(std::string_view symbols);

/// Changes the entries that differ, one by one. Returns how many functions found no room.
std::size_t publish_end_functions(const EndFunctions& functions, std::span<end_function_set> table);

/// Finds them among the kernel's symbols and puts their addresses where the block programs look them up. Repeats this
/// when modules are loaded or unloaded, on a thread of its own: there are 100,000 symbols.
class EndFunctionWatch {
 public:
  /// Opens and reads the files: what they show depends on the privileges with which they are opened.
  explicit EndFunctionWatch(const std::string& proc = "/proc");

  /// What the first search found.
  [[nodiscard]] const EndFunctions& functions() const { return functions_; }
  /// From here on, functions are published in this table.
  void serve(std::span<end_function_set> table);

  /// To be called when modules may have been loaded or unloaded.
  void refresh();
  /// Publishes what was found meanwhile; cheap.
  void advance();

  [[nodiscard]] bool resolved() const { return resolved_; }

 private:
  void publish(const EndFunctions& functions);

  EndFunctions functions_;
  std::span<end_function_set> table_;
  util::UniqueFd symbols_;
  util::UniqueFd modules_;
  std::string seen_modules_;
  std::future<EndFunctions> search_;
  bool resolved_ = false;
};

}  // namespace ssdpulse::block

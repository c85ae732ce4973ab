// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/end_functions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

namespace ssdpulse::block {
namespace {

struct EndFunction {
  std::string_view name;
  std::uint32_t end;          // END_*
  std::uint32_t write_class;  // WRITE_* + 1; 0: not revealed
};
constexpr std::uint32_t kJournal = WRITE_JOURNAL + 1, kMetadata = WRITE_METADATA + 1, kWriteback = WRITE_WRITEBACK + 1,
                        kDirect = WRITE_DIRECT + 1, kOther = WRITE_OTHER + 1;

/// Each ends only bios (buffers, kiocbs) of its kind, in every kernel that has it (5.10 to 7.x).
constexpr auto kEndFunctions = std::to_array<EndFunction>({
    {"blkdev_bio_end_io", END_BLKDEV_DIO, kDirect},  // block/fops.c, fs/block_dev.c until 5.15
    {"blkdev_bio_end_io_async", END_BLKDEV_ASYNC, kDirect},
    {"blkdev_bio_end_io_simple", END_BLKDEV_SIMPLE, kDirect},
    {"iomap_dio_bio_end_io", END_IOMAP_DIO, kDirect},
    {"dio_bio_end_io", END_DIO, kDirect},  // fs/direct-io.c
    {"dio_bio_end_aio", END_DIO, kDirect},
    {"submit_bio_wait_endio", END_WAIT, 0},  // until 6.x
    {"bio_wait_end_io", END_WAIT, 0},
    {"bio_chain_endio", END_CHAIN, 0},
    {"ext4_end_bio", END_PAGES, kWriteback},
    {"iomap_writepage_end_bio", END_PAGES, kWriteback},  // until 6.16
    {"ioend_writeback_end_bio", END_PAGES, kWriteback},  // since 6.17
    {"xfs_end_bio", END_PAGES, kWriteback},
    {"mpage_end_io", END_PAGES, kWriteback},  // of writes; until 6.x also of reads
    {"mpage_write_end_io", END_PAGES, kWriteback},
    {"mpage_read_end_io", END_PAGES, 0},
    {"iomap_read_end_io", END_PAGES, 0},
    {"xlog_bio_end_io", END_JOURNAL, kJournal},
    {"xfs_buf_bio_end_io", END_METADATA, kMetadata},
    {"end_swap_bio_read", END_SWAP, 0},
    {"end_swap_bio_write", END_SWAP, 0},
    {"clone_endio", END_STACKED, 0},         // drivers/md/dm.c
    {"crypt_endio", END_STACKED, 0},         // drivers/md/dm-crypt.c
    {"super_written", END_STACKED, kOther},  // md's own superblock, which has the flags of a journal
    {"md_end_clone_io", END_STACKED, 0},
    {"raid1_end_read_request", END_STACKED, 0},
    {"raid1_end_write_request", END_STACKED, 0},
    {"raid10_end_read_request", END_STACKED, 0},
    {"raid10_end_write_request", END_STACKED, 0},
    {"raid5_end_read_request", END_STACKED, 0},
    {"raid5_end_write_request", END_STACKED, 0},
    // Functions of buffers; since 7.x, of bios themselves.
    {"end_bio_bh_io_sync", END_BUFFER, 0},
    {"end_buffer_async_read", END_PAGES, 0},
    {"end_buffer_async_read_io", END_PAGES, 0},
    {"end_buffer_async_write", END_PAGES, 0},
    {"bh_end_async_read", END_PAGES, 0},
    {"bh_end_async_write", END_PAGES, 0},
    {"journal_end_buffer_io_sync", END_JOURNAL, 0},
    {"ext4_end_buffer_io_sync", END_JOURNAL, 0},  // fast commits
    {"end_buffer_read_sync", END_METADATA, 0},
    {"end_buffer_write_sync", END_METADATA, 0},
    {"bh_end_read", END_METADATA, 0},
    {"bh_end_write", END_METADATA, 0},
    // Functions of kiocbs.
    {"io_complete_rw", END_KI_IO_URING, 0},
    {"io_complete_rw_iopoll", END_KI_IO_URING_POLLED, 0},
    {"aio_complete_rw", END_KI_LIBAIO, 0},
    {"lo_rw_aio_complete", END_KI_LOOP, 0},
});

/// "ffffffff81aeda00 t blkdev_bio_end_io_async", followed by a tab and a module's name if it belongs to one.
void find_in_line(std::string_view line, EndFunctions& found) {
  const std::size_t type = line.find(' ');
  if (type == std::string_view::npos || line.size() < type + 4 || (line[type + 1] | 0x20) != 't') {
    return;
  }
  std::string_view name = line.substr(type + 3);
  name = name.substr(0, name.find_first_of("\t "));
  const auto* const known = std::find_if(kEndFunctions.begin(), kEndFunctions.end(),
                                         [&](const EndFunction& function) { return function.name == name; });
  std::uint64_t address = 0;
  if (known != kEndFunctions.end() &&
      std::from_chars(line.data(), line.data() + type, address, 16).ptr == line.data() + type && address != 0) {
    found[address] = static_cast<std::uint8_t>(known->end << END_PATH_SHIFT | known->write_class);
  }
}

/// Calls visit(text) with whole lines until the file ends. Calling it again reads the file again.
template <typename Visit>
void read_lines(int fd, Visit visit) {
  constexpr std::size_t kPiece = std::size_t{1} << 17;
  std::vector<char> piece(kPiece);
  std::size_t held = 0;
  if (::lseek(fd, 0, SEEK_SET) != 0) {
    return;
  }
  while (held < piece.size()) {
    const ssize_t got = ::read(fd, piece.data() + held, piece.size() - held);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return;
    }
    held += static_cast<std::size_t>(got);
    const std::size_t lines = std::string_view(piece.data(), held).rfind('\n') + 1;
    visit(std::string_view(piece.data(), lines));
    std::copy(piece.begin() + static_cast<std::ptrdiff_t>(lines), piece.begin() + static_cast<std::ptrdiff_t>(held),
              piece.begin());
    held -= lines;
  }
}

EndFunctions read_end_functions(int symbols) {
  EndFunctions found;
  read_lines(symbols, [&](std::string_view text) { found.merge(find_end_functions(text)); });
  return found;
}

/// Only names and addresses: the use count of a module changes all the time.
std::string loaded_modules(int fd) {
  std::string result;
  read_lines(fd, [&](std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      result.append(line.substr(0, line.find(' '))).append(line.substr(line.rfind(' ') + 1)).push_back('\n');
      text.remove_prefix(line.size() + 1);
    }
  });
  return result;
}

}  // namespace

EndFunctions find_end_functions(std::string_view symbols) {
  EndFunctions found;
  while (!symbols.empty()) {
    const std::string_view line = symbols.substr(0, symbols.find('\n'));
    find_in_line(line, found);
    symbols.remove_prefix(std::min(symbols.size(), line.size() + 1));
  }
  return found;
}

std::size_t publish_end_functions(const EndFunctions& functions, std::span<end_function_set> table) {
  std::vector<end_function_set> wanted(table.size());
  std::size_t unplaced = 0;
  for (const auto& [address, shown] : functions) {
    const auto low = static_cast<std::uint32_t>(address);
    end_function_set& set = wanted[end_function_hash(low)];
    const auto free = std::find(std::begin(set.entry), std::end(set.entry), 0U);
    if (free == std::end(set.entry)) {
      ++unplaced;
    } else {
      *free = std::uint64_t{low} << 8 | shown;
    }
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (std::size_t way = 0; way < END_FUNCTION_WAYS; ++way) {
      std::atomic_ref(table[i].entry[way]).store(wanted[i].entry[way], std::memory_order_relaxed);
    }
  }
  return unplaced;
}

CommonFunctions common_functions(const EndFunctions& functions) {
  const auto low_address = [&](std::uint32_t end) {
    const auto found = std::find_if(functions.rbegin(), functions.rend(),
                                    [&](const auto& function) { return function.second >> END_PATH_SHIFT == end; });
    return found == functions.rend() ? 1U : static_cast<std::uint32_t>(found->first);
  };
  return {.end_iomap_dio = low_address(END_IOMAP_DIO),
          .end_blkdev_async = low_address(END_BLKDEV_ASYNC),
          .ki_io_uring = low_address(END_KI_IO_URING),
          .ki_libaio = low_address(END_KI_LIBAIO),
          .end_chain = low_address(END_CHAIN)};
}

EndFunctionWatch::EndFunctionWatch(const std::string& proc)
    : symbols_(::open((proc + "/kallsyms").c_str(), O_RDONLY | O_CLOEXEC)),
      modules_(::open((proc + "/modules").c_str(), O_RDONLY | O_CLOEXEC)) {
  seen_modules_ = loaded_modules(modules_.get());
  functions_ = read_end_functions(symbols_.get());
}

void EndFunctionWatch::serve(std::span<end_function_set> table) {
  table_ = table;
  publish(functions_);
}

void EndFunctionWatch::publish(const EndFunctions& functions) {
  resolved_ = !functions.empty() && publish_end_functions(functions, table_) == 0;
}

void EndFunctionWatch::refresh() {
  advance();
  std::string modules = loaded_modules(modules_.get());
  if (!resolved_ || modules == seen_modules_ || search_.valid()) {
    return;
  }
  seen_modules_ = std::move(modules);
  search_ = std::async(std::launch::async, read_end_functions, symbols_.get());
}

void EndFunctionWatch::advance() {
  if (search_.valid() && search_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    publish(search_.get());
  }
}

}  // namespace ssdpulse::block

// SPDX-License-Identifier: Apache-2.0
// SQLite writes whole pages, at their places. It reads whole pages, too; some versions, such as 3.46, also a part of
// one that a long value fills; and all of them parts of the file's header, before they know the size of a page, or
// whether another connection has written. What is in the header counts only once its whole page was read.
#include "daemon/history/page_checksums.h"

#include <endian.h>
#include <libdeflate.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace ssdpulse::history {
namespace {

constexpr int kHeaderBytes = 100;
constexpr int kMinPageBytes = 512;

sqlite3_vfs* default_vfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

/// A database file, as SQLite sees it. The default VFS's own file lies behind it in memory.
struct CheckedFile : sqlite3_file {
  int page_bytes;                 // 0: not known yet
  std::uint32_t mismatched_page;  // 0: none
  std::uint8_t shown_as;          // BlankPage; 0: as an error

  static CheckedFile& of(sqlite3_file* file) { return *static_cast<CheckedFile*>(file); }
  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out);
  static int read(sqlite3_file* file, void* out, int bytes, sqlite3_int64 offset);
  static int write(sqlite3_file* file, const void* page, int bytes, sqlite3_int64 offset);
  static int control(sqlite3_file* file, int operation, void* argument);

  int page_bytes_in_header();
  int read_page(void* page, int bytes, std::uint32_t number);
  void show_blank(void* page, int bytes) const;
};

/// A method of the default VFS, or of its file, under its own name.
template <auto Method>
struct Below;
template <typename Result, typename... Arguments, Result (*sqlite3_vfs::*Method)(sqlite3_vfs*, Arguments...)>
struct Below<Method> {
  static Result call(sqlite3_vfs* /*ours*/, Arguments... arguments) {
    return (default_vfs()->*Method)(default_vfs(), arguments...);
  }
};
template <typename Result, typename... Arguments, Result (*sqlite3_io_methods::*Method)(sqlite3_file*, Arguments...)>
struct Below<Method> {
  static Result call(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* const inner = CheckedFile::of(file).below();
    return (inner->pMethods->*Method)(inner, arguments...);
  }
};

/// Version 1: neither mapped into memory nor with a write-ahead log.
constexpr sqlite3_io_methods kCheckedFileMethods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = Below<&sqlite3_io_methods::xClose>::call;
  methods.xRead = CheckedFile::read;
  methods.xWrite = CheckedFile::write;
  methods.xTruncate = Below<&sqlite3_io_methods::xTruncate>::call;
  methods.xSync = Below<&sqlite3_io_methods::xSync>::call;
  methods.xFileSize = Below<&sqlite3_io_methods::xFileSize>::call;
  methods.xLock = Below<&sqlite3_io_methods::xLock>::call;
  methods.xUnlock = Below<&sqlite3_io_methods::xUnlock>::call;
  methods.xCheckReservedLock = Below<&sqlite3_io_methods::xCheckReservedLock>::call;
  methods.xFileControl = CheckedFile::control;
  methods.xSectorSize = Below<&sqlite3_io_methods::xSectorSize>::call;
  methods.xDeviceCharacteristics = Below<&sqlite3_io_methods::xDeviceCharacteristics>::call;
  return methods;
}();

using Checksum = std::array<std::uint32_t, 2>;
static_assert(sizeof(Checksum) == kChecksumBytes);

Checksum checksum_of(const void* page, int page_bytes, std::uint32_t number) {
  const auto bytes = static_cast<std::size_t>(page_bytes - kChecksumBytes);
  const std::uint32_t key = htobe32(number);
  return {htobe32(libdeflate_crc32(libdeflate_crc32(0, &key, sizeof(key)), page, bytes)),
          htobe32(libdeflate_adler32(libdeflate_adler32(1, &key, sizeof(key)), page, bytes))};
}

/// Journals and temporary files are the default VFS's own.
int CheckedFile::open(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return default_vfs()->xOpen(default_vfs(), path, file, flags, flags_out);
  }
  auto* const checked = new (file) CheckedFile{};
  const int code = default_vfs()->xOpen(default_vfs(), path, checked->below(), flags, flags_out);
  checked->pMethods = checked->below()->pMethods == nullptr ? nullptr : &kCheckedFileMethods;
  return code;
}

int CheckedFile::page_bytes_in_header() {
  std::array<std::uint8_t, 2> size{};  // zeros where there is no header
  below()->pMethods->xRead(below(), size.data(), size.size(), 16);
  const int bytes = size[0] << 8 | size[1];
  return bytes == 1 ? 65536 : bytes < kMinPageBytes ? 0 : bytes;
}

int CheckedFile::read_page(void* page, int bytes, std::uint32_t number) {
  const sqlite3_int64 begin = static_cast<sqlite3_int64>(number - 1) * bytes;
  const int code = below()->pMethods->xRead(below(), page, bytes, begin);
  if (code == SQLITE_OK) {
    const Checksum wanted = checksum_of(page, bytes, number);
    if (std::memcmp(static_cast<char*>(page) + bytes - kChecksumBytes, wanted.data(), kChecksumBytes) == 0) {
      return SQLITE_OK;
    }
  } else if (code == SQLITE_IOERR_SHORT_READ) {
    sqlite3_int64 end = 0;
    if (const int failed = below()->pMethods->xFileSize(below(), &end); failed != SQLITE_OK || end <= begin) {
      return failed != SQLITE_OK ? failed : code;  // behind the end SQLite finds zeros
    }
  } else if (shown_as == 0 || code != SQLITE_IOERR_READ) {
    return code;
  }
  mismatched_page = number;
  if (shown_as == 0 || number == 1) {
    return SQLITE_IOERR_DATA;
  }
  show_blank(page, bytes);
  return SQLITE_OK;
}

/// In SQLite's file format: the page's kind, one cell, where it is, and it: an empty record, of a table with the number
/// 0. SQLite has no leaf without a cell, and reads on behind one that has none as if it had.
void CheckedFile::show_blank(void* page, int bytes) const {
  constexpr auto kOfTable =
      std::to_array<std::uint8_t>({1, 0, 1, 0});  // bytes of the record, number, bytes of its header
  constexpr auto kOfIndex = std::to_array<std::uint8_t>({1, 1, 0, 0});
  auto* const to = static_cast<std::uint8_t*>(page);
  const auto cell = static_cast<std::size_t>(bytes - kChecksumBytes) - kOfTable.size();
  const std::uint16_t at = htobe16(static_cast<std::uint16_t>(cell));
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  to[0] = shown_as;
  to[4] = 1;
  std::memcpy(to + 5, &at, sizeof(at));
  std::memcpy(to + 8, &at, sizeof(at));
  std::memcpy(to + cell, shown_as == static_cast<std::uint8_t>(BlankPage::of_table) ? kOfTable.data() : kOfIndex.data(),
              kOfTable.size());
}

int CheckedFile::read(sqlite3_file* file, void* out, int bytes, sqlite3_int64 offset) {
  if (offset + bytes <= kHeaderBytes) {
    return Below<&sqlite3_io_methods::xRead>::call(file, out, bytes, offset);
  }
  CheckedFile& checked = of(file);
  checked.page_bytes = checked.page_bytes == 0 ? checked.page_bytes_in_header() : checked.page_bytes;
  const int page_bytes = checked.page_bytes == 0 ? std::max(bytes, kMinPageBytes) : checked.page_bytes;
  const auto number = static_cast<std::uint32_t>(offset / page_bytes + 1);
  const auto skipped = static_cast<int>(offset % page_bytes);
  if (skipped == 0 && bytes == page_bytes) {
    return checked.read_page(out, bytes, number);
  }
  if (skipped + bytes > page_bytes) {  // the header names smaller pages than SQLite has: it is damaged
    checked.mismatched_page = 1;
    return SQLITE_IOERR_DATA;
  }
  const std::unique_ptr<char[]> page(new (std::nothrow) char[static_cast<std::size_t>(page_bytes)]());
  if (page == nullptr) {
    return SQLITE_IOERR_NOMEM;
  }
  const int code = checked.read_page(page.get(), page_bytes, number);
  std::memcpy(out, page.get() + skipped, static_cast<std::size_t>(bytes));
  return code;
}

/// The checksum goes into SQLite's own copy of the page, as in SQLite's cksumvfs: what its journal keeps of a page then
/// has one, too. So whoever rolls back after a crash, even an SQLite that knows nothing of it, restores good pages.
int CheckedFile::write(sqlite3_file* file, const void* page, int bytes, sqlite3_int64 offset) {
  of(file).page_bytes = bytes;
  const Checksum checksum = checksum_of(page, bytes, static_cast<std::uint32_t>(offset / bytes + 1));
  std::memcpy(static_cast<char*>(const_cast<void*>(page)) + bytes - kChecksumBytes, checksum.data(), kChecksumBytes);
  return Below<&sqlite3_io_methods::xWrite>::call(file, page, bytes, offset);
}

int CheckedFile::control(sqlite3_file* file, int operation, void* argument) {
  if (operation == kGetMismatchedPage) {
    *static_cast<std::uint32_t*>(argument) = of(file).mismatched_page;
    return SQLITE_OK;
  }
  if (operation == kShowMismatchedAs) {
    of(file).shown_as = *static_cast<std::uint8_t*>(argument);
    return SQLITE_OK;
  }
  return Below<&sqlite3_io_methods::xFileControl>::call(file, operation, argument);
}

sqlite3_vfs make_vfs(const char* name) {
  sqlite3_vfs vfs{};
  vfs.iVersion = 1;
  vfs.szOsFile = static_cast<int>(sizeof(CheckedFile)) + default_vfs()->szOsFile;
  vfs.mxPathname = default_vfs()->mxPathname;
  vfs.zName = name;
  vfs.xOpen = CheckedFile::open;
  vfs.xDelete = Below<&sqlite3_vfs::xDelete>::call;
  vfs.xAccess = Below<&sqlite3_vfs::xAccess>::call;
  vfs.xFullPathname = Below<&sqlite3_vfs::xFullPathname>::call;
  vfs.xDlOpen = Below<&sqlite3_vfs::xDlOpen>::call;
  vfs.xDlError = Below<&sqlite3_vfs::xDlError>::call;
  vfs.xDlSym = Below<&sqlite3_vfs::xDlSym>::call;
  vfs.xDlClose = Below<&sqlite3_vfs::xDlClose>::call;
  vfs.xRandomness = Below<&sqlite3_vfs::xRandomness>::call;
  vfs.xSleep = Below<&sqlite3_vfs::xSleep>::call;
  vfs.xCurrentTime = Below<&sqlite3_vfs::xCurrentTime>::call;
  vfs.xGetLastError = Below<&sqlite3_vfs::xGetLastError>::call;
  return vfs;
}

}  // namespace

const char* checksum_vfs() {
  static constexpr const char* kName = "ssdpulse";
  static const bool registered = [] {  // where it fails, SQLite knows no VFS of that name, and opens nothing
    if (default_vfs() == nullptr) {
      return false;
    }
    static sqlite3_vfs vfs = make_vfs(kName);
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
  }();
  (void)registered;
  return kName;
}

}  // namespace ssdpulse::history

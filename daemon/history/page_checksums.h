// SPDX-License-Identifier: Apache-2.0
// Page checksums: an SQLite VFS over the default one, for databases whose pages end in a checksum each. A page that is
// not as it was written is an error (SQLITE_IOERR_DATA) when it is read, and never an answer. What it cannot notice: a
// page that is as it was written earlier, because a later write was lost.
#pragma once

namespace ssdpulse::history {

/// At the end of each page, big-endian: CRC-32, then Adler-32, of the page's number (4 bytes) and of the page up to
/// there. The number shows a page that was written to the place of another.
inline constexpr int kChecksumBytes = 8;

/// The name of the VFS, which the first call registers. From any thread. Whoever creates a database with it reserves
/// kChecksumBytes in each page (SQLITE_FCNTL_RESERVE_BYTES).
const char* checksum_vfs();

/// For sqlite3_file_control(): the page that did not match its checksum when it was read (std::uint32_t); 0: each did.
inline constexpr int kGetMismatchedPage = 0x53534443;

/// What a damaged page looks like: a leaf without rows, of a table or of an index, as which SQLite keeps a table
/// WITHOUT ROWID.
enum class BlankPage : unsigned char { of_table = 0x0D, of_index = 0x0A };
/// For sqlite3_file_control(): from now on, a page that cannot be read, or does not match its checksum, is such a page
/// (std::uint8_t) instead of an error, but for the first, which has the schema. Pages that SQLite has in its cache stay
/// as they are.
inline constexpr int kShowMismatchedAs = 0x53534445;

}  // namespace ssdpulse::history

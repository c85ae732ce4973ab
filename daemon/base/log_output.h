// SPDX-License-Identifier: Apache-2.0
// The two forms of a log line that have fields of their own: entries of systemd's journal, so that
// `journalctl SSDPULSE_DEVICE=nvme0n1` finds them, and JSON for collectors that parse each line (`--log.format json`).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"

namespace ssdpulse::log {

/// One datagram: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, and SSDPULSE_NAME for each field. `priority`: '0' to '7',
/// syslog(3).
std::string journal_entry(char priority, std::string_view message, const std::vector<Field>& fields);

/// A connection to the journal, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): sd_journal_sendv(3) waits
/// while the journal's queue is full, and a journal that hangs must not stop the measuring.
class Journal {
 public:
  static constexpr std::string_view kSocket = "/run/systemd/journal/socket";

  /// Nothing if no journal listens. `path` must be shorter than 108 bytes.
  static std::optional<Journal> open(std::string_view path = kSocket);

  /// False if not accepted: the journal is gone or full, or the entry is too large. Never waits. Any thread.
  [[nodiscard]] bool send(const std::string& entry) const;

 private:
  Journal(util::UniqueFd socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}

  util::UniqueFd socket_;
  std::string path_;  // passed with each send, so that a restarted journal is found
};

/// {"time":"2026-01-31T23:59:59.123Z","level":"info","message":"...","fields":{"device":"sda"}}, without a line break.
/// `fields` is left out if there are none. Bytes that are not UTF-8 become U+FFFD.
std::string json_line(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message,
                      const std::vector<Field>& fields);

}  // namespace ssdpulse::log

// SPDX-License-Identifier: Apache-2.0
// Counters of the web server. Values only.
#pragma once

#include <cstdint>

namespace ssdpulse::model {

/// Cumulative since the daemon's start, except `connections`.
struct WebFigures {
  std::uint64_t answers = 0;            // sent completely, whatever their status
  std::uint64_t refused_requests = 0;   // of those: the permitted number was already being answered
  std::uint64_t refused_logins = 0;     // the permitted number of passwords was already waiting to be checked
  std::uint64_t refused_unread = 0;     // too many bytes were waiting to be read
  std::uint64_t refused_users = 0;      // no or wrong credentials
  std::uint64_t cut_connections = 0;    // reset at a deadline
  std::uint64_t accept_errors = 0;      // out of file descriptors or memory
  std::uint64_t failed_handshakes = 0;  // connections that ended before their TLS handshake did
  std::uint64_t connections = 0;        // open now
};

}  // namespace ssdpulse::model

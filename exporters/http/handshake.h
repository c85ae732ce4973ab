// SPDX-License-Identifier: Apache-2.0
// Handshake: how far the TLS handshake of one connection got. Written only by the server's thread, during the
// handshake; lives as long as the connection.
#pragma once

#include <string_view>

namespace ssdpulse::http {

class Tls;

struct Handshake {
  const Tls* tls = nullptr;  // whose certificates were shown; null: the connection has no TLS
  bool began = false;        // the client's first message was understood
  bool refused = false;      // the client's certificate was refused
  bool sent = false;         // our last message was sent
  bool received = false;     // the client's last message was received

  [[nodiscard]] bool failed() const { return tls != nullptr && !(sent && received); }

  /// Why the handshake failed, as far as the server can know.
  [[nodiscard]] std::string_view reason() const {
    if (!began) {
      return "the client said nothing, or spoke no TLS, or no version or cipher of it that is allowed";
    }
    return refused ? "the client's certificate was refused"
                   : "the client gave up, or has no certificate: see its own log; it may not trust ours";
  }
};

}  // namespace ssdpulse::http

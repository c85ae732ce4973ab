// SPDX-License-Identifier: Apache-2.0
// WebFile: TLS, users and headers from the file in web.config_file, in the format that Prometheus exporters share
// (github.com/prometheus/exporter-toolkit, docs/web-configuration.md).
// Only parses: reads no certificate and knows no TLS library, so that whether a certificate is valid and a cipher suite
// known is left to the caller. No message repeats a secret. Stricter than the exporters:
// an empty file or section is an error, so that a truncated file cannot remove the protection, and so is anything that
// we do not support (rate_limit).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

struct WebFile {
  struct Tls {
    std::string cert;  // PEM text; or instead
    std::string cert_file;
    std::string key;
    std::string key_file;
    std::string client_ca;
    std::string client_ca_file;
    std::string client_auth_type = "NoClientCert";
    std::vector<std::string> client_allowed_sans;
    std::string min_version = "TLS12";
    std::string max_version = "TLS13";
    std::vector<std::string> cipher_suites;      // IANA's names
    std::vector<std::string> curve_preferences;  // as Go calls them
    bool prefer_server_cipher_suites = true;
    bool operator==(const Tls&) const = default;
  };

  std::optional<Tls> tls;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> users;  // name, bcrypt hash
  bool operator==(const WebFile&) const = default;
};

/// A whole WebFile, or every problem in the order of the text.
using WebFileOutcome = tl::expected<WebFile, std::vector<Problem>>;

/// `path` is named in problems, and file names are relative to its directory. Any bytes are safe.
WebFileOutcome parse_web_file(std::string_view text, const std::string& path);

/// Reads a regular file of at most 1 MiB and parses it.
WebFileOutcome load_web_file(const std::string& path);

}  // namespace ssdpulse::config

// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/web_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>

#include "daemon/config/value_kinds.h"

namespace ssdpulse::config {
namespace {

constexpr std::size_t kHashBytes = 60;
constexpr std::size_t kHashPrefixBytes = 7;  // $2y$10$
// Each step doubles the time of a login; 14 is about a second.
constexpr int kMinCost = 4;
constexpr int kMaxCost = 14;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/';
}

/// What is wrong with a bcrypt hash, also if it could not be verified within a request's time; nothing if it is right.
/// Never repeats the text: $2a$, $2b$ or $2y$, two digits of cost, $, 22 letters of salt and 31 of hash.
std::optional<std::string> validate_password_hash(std::string_view text) {
  const bool known = text.substr(0, 4) == "$2a$" || text.substr(0, 4) == "$2b$" || text.substr(0, 4) == "$2y$";
  if (!known) {
    return "expected a bcrypt hash, which begins with $2y$, $2b$ or $2a$ (htpasswd -nBC 10 USER makes one)";
  }
  const std::string_view cost = text.substr(4, 2);
  const bool digits = std::all_of(cost.begin(), cost.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text.size() != kHashBytes || !digits || text[6] != '$' ||
      !std::all_of(text.begin() + kHashPrefixBytes, text.end(), is_letter)) {
    return "is not a complete bcrypt hash: expected 60 characters, as in $2y$10$ and 53 letters, digits, dots or "
           "slashes";
  }
  const int value = (cost[0] - '0') * 10 + (cost[1] - '0');
  if (value < kMinCost || value > kMaxCost) {
    return "a bcrypt cost of " + std::to_string(value) + "; expected " + std::to_string(kMinCost) + " to " +
           std::to_string(kMaxCost) + ": each step doubles the time of a login, and 14 is a second";
  }
  return std::nullopt;
}

const std::vector<std::string> kVersions{"TLS10", "TLS11", "TLS12", "TLS13"};  // in their order
const std::vector<std::string> kClientAuthTypes{
    "NoClientCert",      "RequestClientCert",       "RequireAnyClientCert",
    "RequireClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"};

/// Which values a header may have; none: any. The exporters do not allow other headers either.
const std::map<std::string, std::vector<std::string>> kHeaders{{"Content-Security-Policy", {}},
                                                               {"Strict-Transport-Security", {}},
                                                               {"X-Content-Type-Options", {"nosniff"}},
                                                               {"X-Frame-Options", {"deny", "sameorigin"}},
                                                               {"X-XSS-Protection", {}}};

using Reader = std::function<void(const Value&, const Field&)>;
using Readers = std::vector<std::pair<std::string, Reader>>;

void read_mapping(const std::string& section, const Value& value, Report& report, const Readers& readers) {
  std::vector<std::string> names;
  for (const auto& reader : readers) {
    names.push_back(reader.first);
  }
  const Field at{section, report};
  if (value.kind != Value::Kind::mapping || value.entries.empty()) {
    at.wrong(value, "has nothing below it; expected " + joined(names));
    return;
  }
  visit_entries(value, names, report, [&](const std::string& name, const Value& held) {
    const auto reader =
        std::find_if(readers.begin(), readers.end(), [&](const auto& known) { return known.first == name; });
    reader->second(held, {section + "." + name, report});
  });
}

/// A non-empty text: PEM that is in the file itself.
Reader text_into(std::string& out) {
  return [&out](const Value& value, const Field& at) {
    if (at.expect(Value::Kind::scalar, value, "a text") && value.text.empty()) {
      at.wrong(value, "is empty; expected a text in PEM format, or the line left out");
    } else {
      out = value.text;
    }
  };
}

Reader file_into(std::string& out, const std::filesystem::path& directory) {
  return [&out, directory](const Value& value, const Field& at) {
    if (!at.expect(Value::Kind::scalar, value, "a file name")) {
      return;
    }
    // Not repeated: what was put here by mistake may be a key.
    if (value.text.empty() || has_control_character(value.text) || value.text.find("-----BEGIN") != std::string::npos) {
      at.wrong(value,
               "is not a file name; expected one, or the line left out (a text in PEM format goes in the key without "
               "_file)");
    } else {
      out = (directory / value.text).lexically_normal().string();
    }
  };
}

Reader choice_into(std::string& out, const std::vector<std::string>& choices) {
  return [&out, &choices](const Value& value, const Field& at) {
    const std::string choice = "one of " + joined(choices);
    if (!at.expect(Value::Kind::scalar, value, choice)) {
      return;
    }
    if (std::find(choices.begin(), choices.end(), value.text) == choices.end()) {
      at.wrong(value, "expected " + choice + ", got " + in_quotes(value.text));
    } else {
      out = value.text;
    }
  };
}

Reader names_into(std::vector<std::string>& out) {
  return [&out](const Value& value, const Field& at) {
    if (value.kind != Value::Kind::list || value.items.empty()) {
      at.wrong(value, "expected a list of at least one name, or the line left out");
      return;
    }
    for (const Value& item : value.items) {
      if (!at.expect(Value::Kind::scalar, item, "a name")) {
        continue;
      }
      if (item.text.empty() || has_control_character(item.text)) {
        at.wrong(item, "is not a valid name");
      } else if (std::find(out.begin(), out.end(), item.text) != out.end()) {
        at.wrong(item, in_quotes(item.text) + " is given twice; expected each once");
      } else {
        out.push_back(item.text);
      }
    }
  };
}

Reader boolean_into(bool& out) {
  return [&out](const Value& value, const Field& at) { YesOrNo{}.read(value, at, out); };
}

std::size_t rank(const std::string& version) {
  return static_cast<std::size_t>(std::find(kVersions.begin(), kVersions.end(), version) - kVersions.begin());
}

/// Checks what must hold between the keys of the section.
void check_tls(const WebFile::Tls& tls, const Value& section, Report& report) {
  const Field at{"tls_server_config", report};
  const auto one_of_two = [&](const std::string& text, const std::string& file, const std::string& name, bool needed) {
    if (!text.empty() && !file.empty()) {
      at.wrong(section, "both " + name + " and " + name + "_file are given; expected one of them");
    } else if (needed && text.empty() && file.empty()) {
      at.wrong(section, "neither " + name + " nor " + name + "_file is given; expected one of them");
    }
  };
  const bool verifies = tls.client_auth_type.find("Verify") != std::string::npos;
  one_of_two(tls.cert, tls.cert_file, "cert", true);
  one_of_two(tls.key, tls.key_file, "key", true);
  one_of_two(tls.client_ca, tls.client_ca_file, "client_ca", verifies);
  if (!verifies && (!tls.client_ca.empty() || !tls.client_ca_file.empty())) {
    at.wrong(section, "client_ca_file has no effect with client_auth_type " + tls.client_auth_type +
                          "; expected RequireAndVerifyClientCert");
  }
  if (!tls.client_allowed_sans.empty() && tls.client_auth_type != "RequireAndVerifyClientCert") {
    at.wrong(section, "client_allowed_sans protects nothing with client_auth_type " + tls.client_auth_type +
                          "; expected RequireAndVerifyClientCert");
  }
  if (rank(tls.min_version) > rank(tls.max_version)) {
    at.wrong(section, "min_version " + tls.min_version + " is above max_version " + tls.max_version);
  }
}

void read_tls(const Value& value, const std::filesystem::path& directory, Report& report, WebFile& out) {
  WebFile::Tls tls;
  read_mapping("tls_server_config", value, report,
               {{"cert", text_into(tls.cert)},
                {"cert_file", file_into(tls.cert_file, directory)},
                {"key", text_into(tls.key)},
                {"key_file", file_into(tls.key_file, directory)},
                {"client_ca", text_into(tls.client_ca)},
                {"client_ca_file", file_into(tls.client_ca_file, directory)},
                {"client_auth_type", choice_into(tls.client_auth_type, kClientAuthTypes)},
                {"client_allowed_sans", names_into(tls.client_allowed_sans)},
                {"min_version", choice_into(tls.min_version, kVersions)},
                {"max_version", choice_into(tls.max_version, kVersions)},
                {"cipher_suites", names_into(tls.cipher_suites)},
                {"curve_preferences", names_into(tls.curve_preferences)},
                {"prefer_server_cipher_suites", boolean_into(tls.prefer_server_cipher_suites)}});
  if (report.empty()) {
    check_tls(tls, value, report);
  }
  out.tls = std::move(tls);
}

void read_headers(const Value& value, const Field& at, WebFile& out) {
  std::vector<std::string> names;
  for (const auto& header : kHeaders) {
    names.push_back(header.first);
  }
  if (!at.expect(Value::Kind::mapping, value, "headers (" + joined(names) + ")")) {
    return;
  }
  visit_entries(value, names, at.report, [&](const std::string& name, const Value& held) {
    const Field header{at.key + "." + name, at.report};
    if (held.kind == Value::Kind::null || (held.kind == Value::Kind::scalar && held.text.empty())) {
      return;  // like the exporters: blank means not set
    }
    if (!header.expect(Value::Kind::scalar, held, "a text")) {
      return;
    }
    const auto& allowed = kHeaders.at(name);
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), held.text) == allowed.end()) {
      header.wrong(held, "expected one of " + joined(allowed) + ", got " + in_quotes(held.text));
    } else if (has_control_character(held.text)) {
      header.wrong(held, "contains a control character");
    } else {
      out.headers.emplace_back(name, held.text);
    }
  });
}

void read_http(const Value& value, Report& report, WebFile& out) {
  bool http2 = false;  // only permits it; every HTTP/2 client can fall back to HTTP/1.1
  read_mapping("http_server_config", value, report,
               {{"http2", boolean_into(http2)},
                {"headers", [&out](const Value& held, const Field& at) { read_headers(held, at, out); }}});
}

void read_users(const Value& value, Report& report, WebFile& out) {
  const Field section{"basic_auth_users", report};
  if (value.kind != Value::Kind::mapping || value.entries.empty()) {
    section.wrong(value, "has no user below it; expected NAME: BCRYPT_HASH");
    return;
  }
  visit_entries(value, {}, report, [&](const std::string& name, const Value& held) {
    const Field at{section.key, report};
    if (name.empty() || name.find(':') != std::string::npos || has_control_character(name)) {
      // Not repeated: there may be a password after the colon.
      at.wrong(held,
               "this cannot be a user name: it is empty, or contains a colon or a control character; expected NAME: "
               "BCRYPT_HASH");
    } else if (held.kind != Value::Kind::scalar) {
      at.wrong(held, in_quotes(name) + ": expected a bcrypt hash, got " + std::string(describe(held.kind)));
    } else if (const auto flaw = validate_password_hash(held.text)) {
      at.wrong(held, in_quotes(name) + ": " + *flaw);
    } else {
      out.users.emplace_back(name, held.text);
    }
  });
}

}  // namespace

WebFileOutcome parse_web_file(std::string_view text, const std::string& path) {
  Report report(path);
  WebFile file;
  const auto directory = std::filesystem::path(path).parent_path();
  const std::vector<std::string> sections{"tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"};
  if (const auto root = read_document(text, report)) {
    if (root->kind != Value::Kind::mapping || root->entries.empty()) {
      report.add(root->kind == Value::Kind::null ? Position{} : root->at,
                 "the file protects nothing; expected " + joined({sections.begin(), sections.end() - 1}));
    } else {
      visit_entries(*root, sections, report, [&](const std::string& name, const Value& value) {
        if (name == sections[0]) {
          read_tls(value, directory, report, file);
        } else if (name == sections[1]) {
          read_http(value, report, file);
        } else if (name == sections[2]) {
          read_users(value, report, file);
        } else {
          report.add(value.at,
                     "rate_limit: not supported: the server has its own limits; expected the section left out");
        }
      });
    }
  }
  if (!report.empty()) {
    return tl::unexpected(report.take());
  }
  return file;
}

WebFileOutcome load_web_file(const std::string& path) { return parse_file(path, parse_web_file); }

}  // namespace ssdpulse::config

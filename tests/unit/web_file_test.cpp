// SPDX-License-Identifier: Apache-2.0
// Is the web configuration file read as the exporters read it, and is every error reported where it is?
#include "daemon/config/web_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

namespace ssdpulse::config {
namespace {

const std::string kHash = "$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze";

std::string errors_of(const std::string& text) {
  const auto outcome = parse_web_file(text, "/etc/x/web.yaml");
  return outcome ? "" : to_string(outcome.error());
}

TEST(WebFile, ReadsEveryKey) {
  const auto outcome = parse_web_file(
      "tls_server_config:\n"
      "  cert_file: server.crt\n  key_file: /etc/ssl/server.key\n  client_ca_file: ../ca.crt\n"
      "  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [prom.example, 192.0.2.1]\n"
      "  min_version: TLS13\n  max_version: TLS13\n  cipher_suites: [TLS_AES_128_GCM_SHA256]\n"
      "  curve_preferences: [X25519]\n  prefer_server_cipher_suites: false\n"
      "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
      "    Strict-Transport-Security: max-age=31536000\n    X-XSS-Protection:\n"
      "basic_auth_users:\n  alice: " +
          kHash + "\n  \"b ob\": '" + kHash + "'\n",
      "/etc/x/web.yaml");
  WebFile expected;
  expected.tls = WebFile::Tls{};
  expected.tls->cert_file = "/etc/x/server.crt";
  expected.tls->key_file = "/etc/ssl/server.key";
  expected.tls->client_ca_file = "/etc/ca.crt";
  expected.tls->client_auth_type = "RequireAndVerifyClientCert";
  expected.tls->client_allowed_sans = {"prom.example", "192.0.2.1"};
  expected.tls->min_version = expected.tls->max_version = "TLS13";
  expected.tls->cipher_suites = {"TLS_AES_128_GCM_SHA256"};
  expected.tls->curve_preferences = {"X25519"};
  expected.tls->prefer_server_cipher_suites = false;
  expected.headers = {{"X-Frame-Options", "deny"}, {"Strict-Transport-Security", "max-age=31536000"}};
  expected.users = {{"alice", kHash}, {"b ob", kHash}};
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(*outcome, expected);
}

TEST(WebFile, PemTextMayStandInIt) {
  const auto outcome = parse_web_file("tls_server_config:\n  cert: |\n    -----BEGIN\n    x\n  key: k\n", "web.yaml");
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->tls->cert, "-----BEGIN\nx\n");
  EXPECT_EQ(outcome->tls->key, "k");
}

// Each text with the complete error message, except for the file's name, /etc/x/web.yaml.
const std::pair<std::string, std::string> kFaults[] = {
    {"", ": the file protects nothing; expected tls_server_config, http_server_config, basic_auth_users"},
    {"{}", ":1:1: the file protects nothing; expected tls_server_config, http_server_config, basic_auth_users"},
    {"- a", ":1:1: the file protects nothing; expected tls_server_config, http_server_config, basic_auth_users"},
    {"tls_config: {}",
     ":1:1: unknown key 'tls_config' (did you mean 'tls_server_config'?); expected one of tls_server_config, "
     "http_server_config, basic_auth_users, "
     "rate_limit"},
    {"rate_limit: {burst: 1}",
     ":1:13: rate_limit: not supported: the server has its own limits; expected the section left out"},
    {"tls_server_config:\n",
     ":1:1: tls_server_config: has nothing below it; expected cert, cert_file, key, key_file, client_ca, "
     "client_ca_file, client_auth_type, client_allowed_sans, min_version, max_version, cipher_suites, "
     "curve_preferences, prefer_server_cipher_suites"},
    {"tls_server_config: {cert_file: c}",
     ":1:20: tls_server_config: neither key nor key_file is given; expected one of them"},
    {"tls_server_config: {cert: a, cert_file: c, key: k}",
     ":1:20: tls_server_config: both cert and cert_file are given; expected one of them"},
    {"tls_server_config: {cert_file: '', key: k}",
     ":1:32: tls_server_config.cert_file: is not a file name; expected one, or the line left out (a text in PEM format "
     "goes in the key without _file)"},
    {"tls_server_config: {cert: c, key_file: '-----BEGIN EC PRIVATE KEY----- MHcCAQEE'}",
     ":1:40: tls_server_config.key_file: is not a file name; expected one, or the line left out (a text in PEM format "
     "goes in the key without _file)"},
    {"tls_server_config: {cert: '', key: k}",
     ":1:27: tls_server_config.cert: is empty; expected a text in PEM format, or the line left out"},
    {"tls_server_config: {cert: [], key: k}", ":1:27: tls_server_config.cert: expected a text, got a list"},
    {"tls_server_config: {cert: c, key: k, min_version: TLS14}",
     ":1:51: tls_server_config.min_version: expected one of TLS10, TLS11, TLS12, TLS13, got 'TLS14'"},
    {"tls_server_config: {cert: c, key: k, min_version: TLS13, max_version: TLS12}",
     ":1:20: tls_server_config: min_version TLS13 is above max_version TLS12"},
    {"tls_server_config: {cert: c, key: k, client_auth_type: Yes}",
     ":1:56: tls_server_config.client_auth_type: expected one of NoClientCert, RequestClientCert, "
     "RequireAnyClientCert, RequireClientCert, VerifyClientCertIfGiven, RequireAndVerifyClientCert, got 'Yes'"},
    {"tls_server_config: {cert: c, key: k, client_auth_type: RequireAndVerifyClientCert}",
     ":1:20: tls_server_config: neither client_ca nor client_ca_file is given; expected one of them"},
    {"tls_server_config: {cert: c, key: k, client_ca_file: a}",
     ":1:20: tls_server_config: client_ca_file has no effect with client_auth_type NoClientCert; expected "
     "RequireAndVerifyClientCert"},
    {"tls_server_config: {cert: c, key: k, client_auth_type: RequireAnyClientCert, client_allowed_sans: [a]}",
     ":1:20: tls_server_config: client_allowed_sans protects nothing with client_auth_type RequireAnyClientCert; "
     "expected RequireAndVerifyClientCert"},
    {"tls_server_config: {cert: c, key: k, cipher_suites: []}",
     ":1:53: tls_server_config.cipher_suites: expected a list of at least one name, or the line left out"},
    {"tls_server_config: {cert: c, key: k, cipher_suites: [A, A]}",
     ":1:57: tls_server_config.cipher_suites: 'A' is given twice; expected each once"},
    {"tls_server_config: {cert: c, key: k, prefer_server_cipher_suites: yes}",
     ":1:67: tls_server_config.prefer_server_cipher_suites: expected true or false, got 'yes'"},
    {"http_server_config: {headers: {Server: x}}",
     ":1:32: unknown key 'Server'; expected one of Content-Security-Policy, Strict-Transport-Security, "
     "X-Content-Type-Options, X-Frame-Options, X-XSS-Protection"},
    {"http_server_config: {headers: {X-Frame-Options: allow}}",
     ":1:49: http_server_config.headers.X-Frame-Options: expected one of deny, sameorigin, got 'allow'"},
    {"http_server_config: {headers: {X-XSS-Protection: \"a\\r\\nSet-Cookie: b\"}}",
     ":1:50: http_server_config.headers.X-XSS-Protection: contains a control character"},
    {"basic_auth_users:\n", ":1:1: basic_auth_users: has no user below it; expected NAME: BCRYPT_HASH"},
    {"basic_auth_users: {'a:b': " + kHash + "}",
     ":1:27: basic_auth_users: this cannot be a user name: it is empty, or contains a colon or a control character; "
     "expected NAME: BCRYPT_HASH"},
    {"basic_auth_users: {a: " + kHash + ", a: " + kHash + "}",
     ":1:85: duplicate key, first on line 1; expected each key once"},
    {"basic_auth_users: {a: secret}",
     ":1:23: basic_auth_users: 'a': expected a bcrypt hash, which begins with $2y$, $2b$ or $2a$ (htpasswd -nBC 10 "
     "USER makes one)"},
    {"basic_auth_users: {a: " + kHash.substr(0, 59) + "}",
     ":1:23: basic_auth_users: 'a': is not a complete bcrypt hash: expected 60 characters, as in $2y$10$ and 53 "
     "letters, "
     "digits, dots or slashes"},
    {"basic_auth_users: {a: $2y$31" + kHash.substr(6) + "}",
     ":1:23: basic_auth_users: 'a': a bcrypt cost of 31; expected 4 to 14: each step doubles the time of a login, and "
     "14 is a second"},
    {"basic_auth_users: {a: }", ":1:20: basic_auth_users: 'a': expected a bcrypt hash, got nothing"},
};

TEST(WebFile, NamesEveryFault) {
  for (const auto& [text, words] : kFaults) {
    EXPECT_EQ(errors_of(text), "/etc/x/web.yaml" + words + "\n") << text;
  }
}

TEST(WebFile, SaysAllFaultsAtOnce) {
  const auto errors =
      errors_of("tls_server_config: {min_version: 1, max_version: 2}\nbasic_auth_users: {a: b, a: c}\n");
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 5) << errors;
}

RC_GTEST_PROP(WebFile, NeverRepeatsASecret, (const std::string& noise)) {
  const std::string secret = "hunter2secret";
  const auto name = "  \"d:" + secret + "\": x\n";
  const auto errors =
      errors_of("basic_auth_users:\n  a: \"" + secret + "\"\n  b: [" + secret + "]\n  c: $2y$99$" + secret + "\n" +
                name + name + "tls_server_config:\n  key: " + secret + "\n  key_file: \"-----BEGIN\\n" + secret +
                "\"\n  cert_file: -----BEGIN " + secret + "\n  cipher_suites: [\"" + secret + "\\n\"]\n" + noise);
  RC_ASSERT(!errors.empty());
  RC_ASSERT(errors.find(secret) == std::string::npos);
}

RC_GTEST_PROP(WebFile, TakesAnyBytes, (const std::string& text)) { (void)parse_web_file(text, "f"); }

TEST(WebFile, TheExampleIsRight) {
  const auto example = load_web_file(std::string(SSDPULSE_SOURCE_DIR) + "/deploy/config/web.yaml");
  ASSERT_TRUE(example) << to_string(example.error());
  EXPECT_TRUE(example->tls);
  EXPECT_EQ(example->users.size(), 1U);
}

TEST(WebFile, LoadsAFileAndSaysWhyNot) {
  const auto path = std::filesystem::path(testing::TempDir()) / "ssdpulse_web_file_test.yaml";
  std::ofstream(path) << "basic_auth_users: {a: " << kHash << "}\n";
  EXPECT_TRUE(load_web_file(path.string()));
  std::filesystem::remove(path);
  const auto outcome = load_web_file(path.string());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(to_string(outcome.error()), path.string() + ": cannot be opened: No such file or directory\n");
}

}  // namespace
}  // namespace ssdpulse::config

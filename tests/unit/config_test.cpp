// SPDX-License-Identifier: Apache-2.0
// Does the parser report exactly what is wrong and where, does printed text parse again, are hostile bytes harmless?
#include "daemon/config/config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/config/accepted_file.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {
namespace {

std::string errors(const ParseOutcome& outcome) { return outcome ? "no error\n" : to_string(outcome.error()); }
std::string errors_of(std::string_view text) { return errors(parse(text, "f.yaml")); }

TEST(Parse, nothing_means_the_defaults) {
  for (const char* text :
       {"", "\n", "# words\n", "---\n", "---\n...\n", "{}", "~",
        "web:\ndevices:\nlatency:\nnvme:\ndiscard:\nhistory:\n", "\xef\xbb\xbf# with a byte order mark\r\nweb:\r\n"}) {
    EXPECT_EQ(errors_of(text), "no error\n") << text;
    EXPECT_TRUE(parse(text, "f") == Config{}) << text;
  }
}

TEST(Parse, groups_of_metrics_are_known_and_self_stays) {
  const ParseOutcome outcome = parse("metrics: {exclude: [tenants, tenant, self, {a: b}]}\n", "f");
  ASSERT_FALSE(outcome.has_value());
  ASSERT_EQ(outcome.error().size(), 3U) << errors(outcome);
  EXPECT_NE(outcome.error()[0].message.find("'tenant' is not a group of metrics; expected one of io "),
            std::string::npos)
      << errors(outcome);
  EXPECT_NE(outcome.error()[1].message.find("self cannot be left out"), std::string::npos) << errors(outcome);
  EXPECT_NE(parse("metrics: {exclude: tenants}\n", "f").error()[0].message.find("as in [tenants, nvme_logs]"),
            std::string::npos);
}

TEST(Parse, reads_every_key) {
  const ParseOutcome outcome = parse(
      "latency: {mode: completion-only}\n"
      "web:\n  listen_address: [':9090', \"[::1]:10936\", localhost:0]\n  config_file: /etc/ssdpulse/web.yaml\n"
      "devices:\n  include:\n  - nvme*\n  - sd[!a-c]\n  exclude: []\n"
      "metrics: {profile: fleet, exclude: [tenants, nvme_logs]}\n"
      "nvme:\n  poll_interval: 90s\n  reader_socket: /run/x.socket\n"
      "discard:\n  burst_gap: 5s\n"
      "writes:\n  page_hints: never\n"
      "spikes:\n  floor: 5ms\n"
      "attribution:\n  enabled: false\n  tenants: 200\n  names: hashed\n"
      "  patterns: [{match: /a/*, tenant: a}, {tenant: b.c/d, match: '*'}]\n"
      "volumes: {enabled: false}\n"
      "flash_model: {enabled: false, memory: 1GB, virtual_disks: true, sample: 1/8}\n"
      "limits: {cpu: 0.5%, after: 10s}\n"
      "history:\n  directory: /srv/a b\n  retention: 7d\n",
      "f");
  Config expected;
  expected.latency.mode = LatencyMode::completion_only;
  expected.web.listen_address = {":9090", "[::1]:10936", "localhost:0"};
  expected.web.config_file = "/etc/ssdpulse/web.yaml";
  expected.devices.include = {"nvme*", "sd[!a-c]"};
  expected.devices.exclude = {};
  expected.metrics.profile = MetricsProfile::fleet;
  expected.metrics.exclude = {"tenants", "nvme_logs"};
  expected.nvme = {std::chrono::seconds(90), "/run/x.socket"};
  expected.discard.burst_gap = std::chrono::seconds(5);
  expected.writes.page_hints = PageHints::never;
  expected.spikes.floor = std::chrono::milliseconds(5);
  expected.attribution = {false, 200, TenantNames::hashed, {{"/a/*", "a"}, {"*", "b.c/d"}}};
  expected.volumes = {false};
  expected.flash_model = {false, 1'000'000'000, true, 8};
  expected.limits = {0.005, std::chrono::seconds(10)};
  expected.history.directory = "/srv/a b";
  expected.history.retention = std::chrono::hours(7 * 24);
  ASSERT_TRUE(outcome.has_value()) << errors(outcome);
  EXPECT_EQ(*outcome, expected);

  const ParseOutcome single = parse("web: {listen_address: ':1'}", "f");
  ASSERT_TRUE(single.has_value()) << errors(single);
  EXPECT_EQ(single->web.listen_address, std::vector<std::string>{":1"});
  EXPECT_EQ(single->devices, Config{}.devices);
}

struct Golden {
  std::string text;
  std::string message;
};

const std::vector<Golden> kGolden{
    // structure
    {"- web\n",
     "f.yaml:1:1: expected sections (web, metrics, devices, latency, nvme, discard, writes, spikes, attribution, "
     "volumes, "
     "flash_model, limits, "
     "history), got a list"},
    {"\nfull\n",
     "f.yaml:2:1: expected sections (web, metrics, devices, latency, nvme, discard, writes, spikes, attribution, "
     "volumes, "
     "flash_model, limits, "
     "history), got a single "
     "value"},
    {"web: :9090\n",
     "f.yaml:1:6: web: expected keys below it (listen_address, config_file, socket, page, hosts), got a single value"},
    {"devices:\n- '*'\n", "f.yaml:2:1: devices: expected keys below it (include, exclude), got a list"},
    {"latency: ''\n", "f.yaml:1:10: latency: expected keys below it (mode), got a single value"},
    {"[a]: 1\n", "f.yaml:1:1: expected a word as key, got a list"},
    {"~: 1\n", "f.yaml:1:1: expected a word as key, got nothing"},
    // unknown and duplicate keys
    {"wep: 1\n",
     "f.yaml:1:1: unknown key 'wep' (did you mean 'web'?); expected one of web, metrics, devices, latency, nvme, "
     "discard, "
     "writes, "
     "spikes, attribution, volumes, flash_model, limits, history"},
    {"events:\n  retention: 90d\n",
     "f.yaml:1:1: unknown key 'events'; expected one of web, metrics, devices, latency, nvme, discard, writes, spikes, "
     "attribution, volumes, flash_model, limits, history"},
    {"latency:\n  mdoe: full\n", "f.yaml:2:3: unknown key 'mdoe' (did you mean 'mode'?); expected mode"},
    {"devices: {excludes: []}\n",
     "f.yaml:1:11: unknown key 'excludes' (did you mean 'exclude'?); expected one of include, exclude"},
    {"web:\n  listen-address: :1\n",
     "f.yaml:2:3: unknown key 'listen-address' (did you mean 'listen_address'?); expected one of listen_address, "
     "config_file, socket, page, hosts"},
    {"limits:\n  cpu: 2\n",
     "f.yaml:2:8: limits.cpu: expected a share from 0.0001% to 100%, or 0% for no limit, got '2'"},
    {"limits:\n  cpu: -1%\n",
     "f.yaml:2:8: limits.cpu: expected a share from 0.0001% to 100%, or 0% for no limit, got '-1%'"},
    {"limits:\n  cpu: 101%\n",
     "f.yaml:2:8: limits.cpu: expected a share from 0.0001% to 100%, or 0% for no limit, got '101%'"},
    {"limits:\n  cpu: [2%]\n",
     "f.yaml:2:8: limits.cpu: expected a share from 0.0001% to 100%, or 0% for no limit, got a list"},
    {"web:\n  page: yes\n", "f.yaml:2:9: web.page: expected true or false, got 'yes'"},
    {"web:\n  hosts: db1\n",
     "f.yaml:2:10: web.hosts: expected a list of host names, as in [\"db1.example.org\"], got a single value"},
    {"web:\n  hosts: [\"db1:80\"]\n",
     "f.yaml:2:11: web.hosts: 'db1:80' is not a host name; expected one without a port, as in \"db1.example.org\""},
    {"web:\n  <<: {}\n",
     "f.yaml:2:3: unknown key '<<'; expected one of listen_address, config_file, socket, page, hosts"},
    {"\"a\\nb\": 1\n",
     "f.yaml:1:1: unknown key 'a\\x0ab'; expected one of web, metrics, devices, latency, nvme, discard, writes, "
     "spikes, "
     "attribution, volumes, flash_model, limits, history"},
    {"web:\nlatency:\nweb:\n", "f.yaml:3:1: duplicate key 'web', first on line 1; expected each key once"},
    {"latency:\n  mode: full\n  'mode': full\n",
     "f.yaml:3:3: duplicate key 'mode', first on line 2; expected each key once"},
    // values
    {"web:\n  listen_address:\n",
     "f.yaml:2:3: web.listen_address: has no value; set one, or remove the line for the default"},
    {"web:\n  listen_address: []\n",
     "f.yaml:2:19: web.listen_address: expected an address (HOST:PORT, [IPV6]:PORT or "
     ":PORT) or a list of them, got an empty list"},
    {"web:\n  listen_address: {a: 1}\n",
     "f.yaml:2:19: web.listen_address: expected an address (HOST:PORT, [IPV6]:PORT "
     "or :PORT) or a list of them, got a mapping"},
    {"web:\n  listen_address: [':1', [':2']]\n",
     "f.yaml:2:26: web.listen_address: expected HOST:PORT, [IPV6]:PORT or :PORT, got a list"},
    {"web:\n  listen_address: localhost\n",
     "f.yaml:2:19: web.listen_address: 'localhost' has no port; expected HOST:PORT, [IPV6]:PORT or :PORT"},
    {"web:\n  listen_address:\n  - '[::1]:80'\n  - '[0::1]:80'\n",
     "f.yaml:4:5: web.listen_address: '[0::1]:80' is given twice, first on line 3; expected each address once"},
    {"devices:\n  include: nvme*\n",
     "f.yaml:2:12: devices.include: expected a list of patterns, as in [\"nvme*\", \"sd*\"], got a single value"},
    {"devices:\n  include: []\n",
     "f.yaml:2:12: devices.include: the list is empty; expected at least one pattern, "
     "\"*\" for every device"},
    {"devices:\n  exclude: ~\n",
     "f.yaml:2:3: devices.exclude: has no value; set one, or remove the line for the default"},
    {"devices:\n  exclude: [a, ~]\n", "f.yaml:2:16: devices.exclude: expected a pattern, as in \"nvme*\", got nothing"},
    {"devices:\n  exclude: ['']\n", "f.yaml:2:13: devices.exclude: '' is empty; expected a pattern, as in \"nvme*\""},
    {"devices:\n  exclude: [/dev/sda]\n",
     "f.yaml:2:13: devices.exclude: '/dev/sda' contains a slash: a pattern matches the kernel's name, such as nvme0n1, "
     "not a path below /dev; expected a pattern, as in \"nvme*\""},
    {"devices:\n  exclude: [\"sd a\"]\n",
     "f.yaml:2:13: devices.exclude: 'sd a' contains a character that no device name "
     "has; expected a pattern, as in \"nvme*\""},
    {"devices:\n  exclude: ['sd[!]']\n",
     "f.yaml:2:13: devices.exclude: 'sd[!]' has a [ without its ]; expected a pattern, as in \"nvme*\""},
    {"devices:\n  exclude: ['sd\\']\n",
     "f.yaml:2:13: devices.exclude: 'sd\\' ends with a backslash; expected a pattern, as in \"nvme*\""},
    {"latency:\n  mode: Full\n", "f.yaml:2:9: latency.mode: expected full or completion-only, got 'Full'"},
    {"latency:\n  mode: [full]\n", "f.yaml:2:9: latency.mode: expected full or completion-only, got a list"},
    {"nvme:\n  poll_interval: [30s]\n", "f.yaml:2:18: nvme.poll_interval: expected a duration, as in 10s, got a list"},
    {"nvme:\n  poll_interval: 30\n",
     "f.yaml:2:18: nvme.poll_interval: '30' has no unit; expected a whole number and a unit (d, h, m, s, ms, us, ns), "
     "for example 30s"},
    {"spikes:\n  floor: 99us\n", "f.yaml:2:10: spikes.floor: expected 100us to 10s, got '99us'"},
    {"nvme:\n  poll_interval: 9999ms\n", "f.yaml:2:18: nvme.poll_interval: expected 10s to 1h, got '9999ms'"},
    {"nvme:\n  poll_interval: 3601s\n", "f.yaml:2:18: nvme.poll_interval: expected 10s to 1h, got '3601s'"},
    {"discard:\n  burst_gap: 999ms\n", "f.yaml:2:14: discard.burst_gap: expected 1s to 1h, got '999ms'"},
    {"discard:\n  burst_gap: 3601s\n", "f.yaml:2:14: discard.burst_gap: expected 1s to 1h, got '3601s'"},
    {"attribution:\n  tenants: 0\n",
     "f.yaml:2:12: attribution.tenants: expected a whole number from 1 to 1024, got '0'"},
    {"attribution:\n  tenants: 1025\n",
     "f.yaml:2:12: attribution.tenants: expected a whole number from 1 to 1024, got '1025'"},
    {"attribution:\n  tenants: -1\n",
     "f.yaml:2:12: attribution.tenants: expected a whole number from 1 to 1024, got '-1'"},
    {"attribution:\n  tenants: 99999999999999999999\n",
     "f.yaml:2:12: attribution.tenants: expected a whole number from 1 to 1024, got '99999999999999999999'"},
    {"attribution:\n  tenants: []\n",
     "f.yaml:2:12: attribution.tenants: expected a whole number from 1 to 1024, got a list"},
    {"attribution:\n  names: hash\n", "f.yaml:2:10: attribution.names: expected full, hashed or off, got 'hash'"},
    {"attribution:\n  patterns: {}\n",
     "f.yaml:2:13: attribution.patterns: expected a list, as in [{match: \"/system.slice/mysql*\", tenant: db}], got a "
     "mapping"},
    {"attribution:\n  patterns: [a]\n",
     "f.yaml:2:14: attribution.patterns: expected match and tenant, as in {match: \"/batch.slice/*\", tenant: batch}, "
     "got a single value"},
    {"attribution:\n  patterns: [{match: /a, tenat: b}]\n",
     "f.yaml:2:26: unknown key 'tenat' (did you mean 'tenant'?); expected one of match, tenant\n"
     "f.yaml:2:14: attribution.patterns: tenant: '' is not a valid name; expected 1 to 128 printable characters "
     "without blanks, "
     "quotes and commas"},
    {"attribution:\n  patterns: [{match: a.service, tenant: a}]\n",
     "f.yaml:2:14: attribution.patterns: match: 'a.service' matches no path of a cgroup; expected a pattern that "
     "begins "
     "with / or *, as in \"/system.slice/mysql*\""},
    {"attribution:\n  patterns: [{match: /a, tenant: other}]\n",
     "f.yaml:2:14: attribution.patterns: tenant: 'other' is reserved; expected another name"},
    {"flash_model:\n  memory: 1MiB\n", "f.yaml:2:11: flash_model.memory: expected 4MiB to 4GiB, got '1MiB'"},
    {"flash_model:\n  sample: 1/3\n",
     "f.yaml:2:11: flash_model.sample: expected auto, 1/1, 1/2, 1/4, 1/8, 1/16, 1/32, 1/64 or 1/128, got '1/3'"},
    {"history:\n  retention: 86399s\n", "f.yaml:2:14: history.retention: expected 1d to 3650d, got '86399s'"},
    {"history:\n  size: 15MiB\n", "f.yaml:2:9: history.size: expected 16MiB to 1TiB, got '15MiB'"},
    {"history:\n  size: [1]\n", "f.yaml:2:9: history.size: expected a size, as in 16MiB, got a list"},
    {"history:\n  retention: 3651d\n", "f.yaml:2:14: history.retention: expected 1d to 3650d, got '3651d'"},
    {"history:\n  directory: ~\n",
     "f.yaml:2:3: history.directory: has no value; set one, or remove the line for the default"},
    {"history:\n  directory: {}\n",
     "f.yaml:2:14: history.directory: expected an absolute path, or \"\" for none, got a mapping"},
    {"history:\n  directory: var/lib\n",
     "f.yaml:2:14: history.directory: 'var/lib' is not absolute; expected an absolute path, or \"\" for none"},
    {"history:\n  directory: \"/a\\nb\"\n",
     "f.yaml:2:14: history.directory: '/a\\x0ab' contains a control character; expected an absolute path, or \"\" for "
     "none"},
    {"history:\n  directory: /" + std::string(4000, 'a') + "\n",
     "f.yaml:2:14: history.directory: '/" + std::string(59, 'a') + "...' is too long; expected at most 4000 bytes"},
    {"web:\n  socket: /" + std::string(107, 'a') + "\n",
     "f.yaml:2:11: web.socket: '/" + std::string(59, 'a') + "...' is too long; expected at most 107 bytes"},
    // YAML itself
    {"web:\n  listen_address: [::1]:10936\n",
     "f.yaml:2:24: invalid YAML: end of map not found; an [IPV6]:PORT address must be quoted"},
    {"devices:\n  include: [*]\n",
     "f.yaml:2:14: a value that begins with * must be quoted, as in \"*\"; unquoted it is "
     "a YAML alias, not supported here"},
    {"devices:\n  include:\n  - *loop\n",
     "f.yaml:3:5: a value that begins with * must be quoted, as in \"*\"; unquoted "
     "it is a YAML alias, not supported here"},
    {"web: &a\n  listen_address: :1\n",
     "f.yaml:1:6: YAML anchors and aliases are not supported; expected the value itself"},
    {"latency:\n  mode: !!str full\n", "f.yaml:2:9: YAML tags are not supported; expected the value alone"},
    {"latency:\n---\nweb:\n", "f.yaml:2:1: a second YAML document begins here; expected one document in a file"},
    {"latency:\n\tmode: full\n",
     "f.yaml:2:6: invalid YAML: illegal map value; expected spaces, not tabs, as indentation"},
    {"latency: mode: full\n", "f.yaml:1:14: invalid YAML: illegal map value"},
    {"latency:\n  mode: 'full\n",
     "f.yaml:4:1: a quote is still open at the end of the document; expected the closing quote"},
    {"latency: {mode: full\n", "f.yaml:3:1: invalid YAML: end of map flow not found"},
    {std::string("web:\n  \0", 8), "f.yaml:2:3: a NUL byte; expected YAML text in UTF-8"},
    {"web:\n  config_file: /a\x8f\n", "f.yaml:2:18: bytes that are not valid UTF-8; expected YAML text in UTF-8"},
    {"web:\n  config_file: /\xef\xbf\xbf\n",
     "f.yaml:2:17: bytes that are not valid UTF-8; expected YAML text in UTF-8"},
};

TEST(Parse, says_what_is_wrong_and_where) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(errors_of(golden.text), golden.message + "\n") << golden.text;
  }
}

TEST(Parse, names_every_problem_in_one_run) {
  const std::string path = std::string(SSDPULSE_SOURCE_DIR) + "/tests/fixtures/config/many_errors";
  std::ifstream file(path + ".expected");
  std::string expected{std::istreambuf_iterator<char>(file), {}};
  ParseOutcome outcome = load(path + ".yaml");
  ASSERT_FALSE(outcome.has_value());
  for (Problem& problem : outcome.error()) {
    EXPECT_EQ(problem.file, path + ".yaml");
    problem.file = "many_errors.yaml";
  }
  EXPECT_EQ(errors(outcome), expected);
}

// ---- load

class Load : public testing::Test {
 protected:
  Load() { std::filesystem::create_directory(folder_); }
  ~Load() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& content) {
    const std::string path = folder_ + "/file.yaml";
    std::ofstream(path) << content;
    return path;
  }
  std::string folder_ = testing::TempDir() + "ssdpulse-config-" + std::to_string(::getpid());
};

TEST_F(Load, reads_a_file) {
  const ParseOutcome outcome = load(write("latency: {mode: completion-only}"));
  ASSERT_TRUE(outcome.has_value()) << errors(outcome);
  EXPECT_EQ(outcome->latency.mode, LatencyMode::completion_only);
}

TEST_F(Load, refuses_an_unreadable_file_without_waiting) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(errors(load(pipe)), pipe + ": expected a regular file\n");
  EXPECT_EQ(errors(load(folder_)), folder_ + ": is a directory; expected a file\n");
  EXPECT_EQ(errors(load(folder_ + "/none")), folder_ + "/none: cannot be opened: No such file or directory\n");
  EXPECT_EQ(errors(load("")), ": cannot be opened: No such file or directory\n");
}

TEST_F(Load, bounds_the_size_exactly) {
  EXPECT_TRUE(load(write("#" + std::string(kMaxBytes - 1, '-'))) == Config{});
  const std::string text = "#" + std::string(kMaxBytes, '-');
  EXPECT_EQ(errors_of(text), "f.yaml: larger than 1048576 bytes; expected a configuration\n");
  const std::string path = write(text);
  EXPECT_EQ(errors(load(path)), path + ": is longer than 1048576 bytes\n");
}

// ---- print

std::string some_glob() {
  const auto part = rc::gen::elementOf(std::vector<std::string>{
      "*", "?", "sd", "nvme0n1", "[a-c]", "[!0-9]", "[]x]", "\\*", "~", "null", "yes", "0755", "1e3", ":",  "#",
      "-", "'", "\"", "{",       "}",     ",",      "&",    "!",   "|", ">",    "%",   "@",    "`",   "<<", "="});
  const auto parts = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(part));
  std::string glob;
  for (const std::string& text : parts) {
    glob += text;
  }
  return glob;
}

std::vector<std::string> some_globs(std::size_t at_least) {
  std::vector<std::string> globs(at_least + *rc::gen::inRange<std::size_t>(0, 5));
  for (std::string& glob : globs) {
    glob = some_glob();
  }
  return globs;
}

Config some_config() {
  Config config;
  config.web.listen_address.clear();
  const int first_port = *rc::gen::inRange(0, 65000);
  for (int i = 0, count = *rc::gen::inRange(1, 5); i < count; ++i) {
    config.web.listen_address.push_back(
        *rc::gen::elementOf(std::vector<std::string>{"", "127.0.0.1", "[::1]", "[2001:DB8::1]", "Host-1.example"}) +
        ":" + std::to_string(first_port + i));
  }
  config.web.config_file = *rc::gen::elementOf(std::vector<std::string>{"", "/w", "/a b/web.yaml"});
  config.devices.include = some_globs(1);
  config.devices.exclude = some_globs(0);
  config.metrics.profile = *rc::gen::element(MetricsProfile::full, MetricsProfile::fleet);
  config.latency.mode = *rc::gen::element(LatencyMode::full, LatencyMode::completion_only);
  config.nvme.poll_interval = std::chrono::milliseconds(*rc::gen::inRange(10'000, 3'600'001));
  config.nvme.reader_socket = *rc::gen::elementOf(std::vector<std::string>{"", "/run/x.socket", "/~#:'\"\\*"});
  config.discard.burst_gap = std::chrono::milliseconds(*rc::gen::inRange(1'000, 3'600'001));
  config.writes.page_hints = *rc::gen::element(PageHints::automatic, PageHints::always, PageHints::never);
  config.spikes.floor = std::chrono::microseconds(*rc::gen::inRange(100, 10'000'001));
  config.flash_model = {*rc::gen::arbitrary<bool>(), *rc::gen::inRange<std::uint64_t>(4 << 20, 1 << 30),
                        *rc::gen::arbitrary<bool>(), *rc::gen::element(0U, 1U, 2U, 64U, 128U)};
  config.web.page = *rc::gen::arbitrary<bool>();
  config.web.socket = *rc::gen::elementOf(std::vector<std::string>{"", "/run/x.socket"});
  config.web.hosts = *rc::gen::elementOf(std::vector<std::vector<std::string>>{{}, {"db1.example.org", "x"}});
  config.volumes.enabled = *rc::gen::arbitrary<bool>();
  config.attribution.tenants = *rc::gen::inRange<std::uint64_t>(1, 1025);
  config.attribution.names = *rc::gen::element(TenantNames::full, TenantNames::hashed, TenantNames::off);
  config.attribution.patterns =
      *rc::gen::elementOf(std::vector<std::vector<TenantPattern>>{{}, {{"/a b'\"*", "x"}, {"*", "#y:{}"}}});
  config.history.directory = *rc::gen::elementOf(std::vector<std::string>{"", "/", "/var/lib/x", "/a b", "/~#:'\"\\*"});
  config.history.retention = std::chrono::seconds(*rc::gen::inRange(86'400, 3650 * 86'400 + 1));
  config.history.size = *rc::gen::inRange<std::uint64_t>(16U << 20U, (std::uint64_t{1} << 40U) + 1);
  config.limits.cpu_ratio = *rc::gen::inRange(0, 10001) / 100.0 / 100;
  return config;
}

RC_GTEST_PROP(Print, parses_back_to_an_equal_config, ()) {
  const Config config = some_config();
  const ParseOutcome outcome = parse(print(config), "printed");
  RC_LOG() << print(config) << errors(outcome);
  RC_ASSERT(outcome == config);
}

TEST(Print, shows_the_defaults) {
  EXPECT_EQ(
      print(Config{}),
      "web:\n  listen_address: [\"127.0.0.1:10936\"]\n  config_file: \"\"\n  socket: \"\"\n  page: true\n  hosts: []\n"
      "metrics:\n  profile: full\n  exclude: []\n"
      "devices:\n  include: [\"*\"]\n  exclude: [\"loop*\", \"ram*\", \"zram*\"]\n"
      "latency:\n  mode: full\n"
      "nvme:\n  poll_interval: 30s\n  reader_socket: \"\"\n"
      "discard:\n  burst_gap: 1s\n"
      "writes:\n  page_hints: auto\n"
      "spikes:\n  floor: 2ms\n"
      "attribution:\n  enabled: true\n  tenants: 64\n  names: full\n  patterns: []\n"
      "volumes:\n  enabled: true\n"
      "flash_model:\n  enabled: true\n  memory: 128MiB\n  virtual_disks: false\n  sample: auto\n"
      "limits:\n  cpu: 2%\n  after: 1m\n"
      "history:\n  directory: \"/var/lib/ssdpulse\"\n  retention: 90d\n"
      "  size: 512MiB\n");
}

TEST(RequiresRestart, names_what_a_reload_cannot_apply) {
  Config wanted;
  EXPECT_TRUE(keys_requiring_restart(Config{}, wanted).empty());
  wanted.devices = {{"nvme*"}, {}};
  wanted.nvme.poll_interval = std::chrono::minutes(1);
  wanted.discard.burst_gap = std::chrono::minutes(1);
  wanted.limits = {0, std::chrono::minutes(5)};
  EXPECT_TRUE(keys_requiring_restart(Config{}, wanted).empty());
  wanted.latency.mode = LatencyMode::completion_only;
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted), std::vector<std::string>{"latency.mode"});
  wanted.web.listen_address = {":1"};
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted), (std::vector<std::string>{"web.listen_address", "latency.mode"}));
  wanted = {};
  wanted.nvme.reader_socket = "/run/x.socket";
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted), std::vector<std::string>{"nvme.reader_socket"});
  wanted.nvme.reader_socket.clear();
  wanted.web.config_file = "/w";
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted), std::vector<std::string>{"web.config_file"});
  wanted = {};
  wanted.web.page = false;
  wanted.web.socket = "/run/x.socket";
  wanted.web.hosts = {"db1"};
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted),
            (std::vector<std::string>{"web.socket", "web.page", "web.hosts"}));
  wanted = {};
  wanted.attribution = {false, 1, TenantNames::off, {{"*", "x"}}};
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted),
            (std::vector<std::string>{"attribution.enabled", "attribution.tenants", "attribution.names",
                                      "attribution.patterns"}));
  wanted = {};
  wanted.history.directory = "";
  wanted.history.retention = std::chrono::hours(24);
  EXPECT_EQ(keys_requiring_restart(Config{}, wanted),
            (std::vector<std::string>{"history.directory", "history.retention"}));
}

// ---- hostile input

/// Parses, and checks what must hold for any bytes: an end in time, positions within the text, one-line messages.
void must_be_harmless(const std::string& text) {
  SCOPED_TRACE(in_quotes(text) + ", " + std::to_string(text.size()) + " bytes");
  const std::clock_t begin = std::clock();  // CPU time: the host may be busy
  const ParseOutcome outcome = parse(text, "f");
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 10);  // 0.1 s, or 1 s under sanitizers
  if (outcome) {
    EXPECT_TRUE(parse(print(*outcome), "f") == outcome);
    return;
  }
  EXPECT_FALSE(outcome.error().empty());
  for (const Problem& problem : outcome.error()) {
    EXPECT_GE(problem.line, 0);
    EXPECT_EQ(problem.line == 0, problem.column == 0);
    EXPECT_LT(problem.message.size(), 1000U);
    EXPECT_EQ(problem.message.find('\n'), std::string::npos) << problem.message;
  }
}

std::string repeated(const std::string& text, std::size_t bytes) {
  std::string result;
  while (result.size() + text.size() <= bytes) {
    result += text;
  }
  return result;
}

TEST(Hostile, deep_nesting_is_refused) {
  for (const char* text : {"[", "{a: ", "- ", "? ", "a: [", "[{"}) {
    const std::string message = errors_of(repeated(text, 100'000));
    EXPECT_EQ(message.rfind("f.yaml:1:", 0), 0U) << text << message;
  }
  EXPECT_NE(errors_of(repeated("- ", 100'000)).find("nested too deeply; expected at most 16 levels"),
            std::string::npos);
  EXPECT_EQ(errors_of(repeated("[", 16) + repeated("]", 16)).find("nested"), std::string::npos);
  EXPECT_NE(errors_of(repeated("[", 17) + repeated("]", 17)).find("nested"), std::string::npos);
}

TEST(Hostile, alias_bombs_are_refused_at_the_first_anchor) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'k'; ++name) {
    const std::string before(1, static_cast<char>(name - 1));
    bomb += std::string(1, name) + ": &" + name + " [" + repeated("*" + before + ",", 27) + "]\n";
  }
  EXPECT_EQ(errors_of(bomb), "f.yaml:1:4: YAML anchors and aliases are not supported; expected the value itself\n");
}

TEST(Hostile, much_of_anything_ends_in_time) {
  constexpr std::size_t kQuadraticBytes = kMaxBytes / 5;  // enough for anything quadratic to show
  for (const char* text : {"a",     "[",     "{",  "{}", "{a,", "[a: 1,", "a: ",  "a: 1\n", "- a\n",
                           "? a\n", "'",     "\"", "\\", "|\n", "&a ",    "*a ",  "!a ",    "%a\n",
                           "---\n", "...\n", "\n", " ",  "\t",  "#",      "\xff", "web:\n", "\r"}) {
    must_be_harmless(repeated(text, kQuadraticBytes));
    must_be_harmless("devices:\n  include: [" + repeated(text, kQuadraticBytes));
  }
  EXPECT_NE(errors_of(repeated("a: 1\n", kMaxBytes)).find("too many values; expected at most 10000"),
            std::string::npos);
}

RC_GTEST_PROP(Hostile, random_bytes_are_harmless, (const std::string& bytes)) { must_be_harmless(bytes); }

RC_GTEST_PROP(Hostile, random_pieces_of_yaml_are_harmless, ()) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{"web",         ":",
                                                                 " ",           ": ",
                                                                 "\n",          "\n  ",
                                                                 "\n- ",        "devices:\n",
                                                                 "  include: ", "latency:\n",
                                                                 "  mode: ",    "full",
                                                                 "[",           "]",
                                                                 "{",           "}",
                                                                 ", ",          "'",
                                                                 "\"",          "*",
                                                                 "&a ",         "*a",
                                                                 "!!str ",      "|\n",
                                                                 ">-\n",        "---\n",
                                                                 "...",         "%YAML ",
                                                                 "\\",          "#",
                                                                 "~",           "\t",
                                                                 "\r\n",        "? ",
                                                                 "<<: ",        "@",
                                                                 "\xc3",        "\xff",
                                                                 "0",           "\x01",
                                                                 "exclude",     "listen_address: ",
                                                                 "history:\n",  "  retention: ",
                                                                 "30s",         ":9090",
                                                                 "[::1]:1"});
  const auto pieces = *rc::gen::container<std::vector<std::string>>(piece);
  std::string text;
  for (const std::string& next : pieces) {
    text += next;
  }
  must_be_harmless(text);
}

RC_GTEST_PROP(Hostile, a_damaged_default_file_is_harmless, ()) {
  std::string text = print(some_config());
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text.replace(at, *rc::gen::inRange<std::size_t>(0, 3), *rc::gen::string<std::string>());
  }
  must_be_harmless(text);
}

std::string accepted_errors(const std::string& expires) {
  const auto outcome =
      parse_accepted("accepted: [{id: F2, device: sda, reason: it is old, expires: " + expires + "}]", "f");
  return outcome ? "" : to_string(outcome.error());
}

TEST(Accepted, ends_on_a_day_of_the_calendar) {
  EXPECT_EQ(accepted_errors("2028-02-29"), "");
  for (const char* expires : {"2027-02-31", "2027-02-29", "2027-13-01", "2027-04-31", "2027-1-31", "tomorrow"}) {
    EXPECT_NE(accepted_errors(expires).find("expires: expected a date as in 2027-01-31, got '"), std::string::npos)
        << expires;
  }
}

TEST(Accepted, says_what_it_should_be) {
  const auto errors_in = [](const char* text) { return to_string(parse_accepted(text, "f").error()); };
  EXPECT_EQ(errors_in("- {id: F2}"), "f:1:1: expected a mapping with the key accepted, got a list\n");
  EXPECT_EQ(errors_in("accepted: [{id: [F2], device: a, expires: 2027-01-31}]"),
            "f:1:17: id: expected a text, got a list\nf:1:12: reason is missing; expected id, device, reason and "
            "expires\n");
}

TEST(Accepted, only_a_missing_file_accepts_nothing) {
  const std::string directory = testing::TempDir() + "accepted-" + std::to_string(::getpid());
  EXPECT_TRUE(load_accepted_if_present(directory + "/none").has_value());
  std::ofstream(directory) << "";
  EXPECT_FALSE(load_accepted_if_present(directory + "/below-a-file").has_value());
  std::filesystem::remove(directory);
}

}  // namespace
}  // namespace ssdpulse::config

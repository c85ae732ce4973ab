// SPDX-License-Identifier: Apache-2.0
// Config: the typed configuration, a field for each key; parse() and load() read it, print() writes it. What a key is,
// its default included, is in the table of keys.cpp, from which the schema, the commented defaults and the manual are
// made. ConfigurationReader: reloads it on a thread of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

/// full: two hooks per I/O. completion_only: one hook, total latency from the kernel's own start time, no device or
/// queue latency, no in-flight, no requeues.
enum class LatencyMode : std::uint8_t { full, completion_only };

/// Whether a page-cache write without a hint gets that of its file. automatic: on kernels whose bios lose it on the
/// way.
enum class PageHints : std::uint8_t { automatic, always, never };

/// Bytes: sockaddr_un has room for no more.
inline constexpr std::size_t kLongestSocketPath = 107;

struct Web {
  std::vector<std::string> listen_address;  // HOST:PORT, [IPV6]:PORT or :PORT (all addresses)
  std::string config_file;                  // absolute; empty: plain HTTP, open to anyone who can connect
  bool page{};                              // whether the page is served too, or only metrics
  std::vector<std::string> hosts;           // names other than localhost by which browsers may address this host
  std::string socket;                       // absolute path of a unix socket for commands of this host; empty: none
  bool systemd_socket = false;              // only from the command line: sockets come from systemd instead
  bool allow_less_protection = false;       // only from the command line: than in the last run
  bool operator==(const Web&) const = default;
};

struct Devices {
  std::vector<std::string> include;  // shell globs on the kernel's block name
  std::vector<std::string> exclude;  // wins over include
  bool operator==(const Devices&) const = default;
};

struct Latency {
  LatencyMode mode{};
  bool operator==(const Latency&) const = default;
};

struct Nvme {
  std::chrono::nanoseconds poll_interval{};  // between two readings of one drive
  std::string reader_socket;  // of a reader that runs as a separate service; empty: the daemon starts one
  bool operator==(const Nvme&) const = default;
};

struct Discard {
  std::chrono::nanoseconds burst_gap{};  // silence that ends a burst
  bool operator==(const Discard&) const = default;
};

struct Writes {
  PageHints page_hints{};
  bool operator==(const Writes&) const = default;
};

struct Spikes {
  std::chrono::nanoseconds floor{};  // anything faster is no spike, whatever is usual
  bool operator==(const Spikes&) const = default;
};

/// A shell glob on the path of a cgroup, and the name of its owner.
struct TenantPattern {
  std::string match;
  std::string tenant;
  bool operator==(const TenantPattern&) const = default;
};

/// Whether names of tenants are shown, hidden behind keyed hashes, or not shown at all.
enum class TenantNames : std::uint8_t { full, hashed, off };

struct Attribution {
  bool enabled{};           // whether the kernel side counts by cgroup and by path at all
  std::uint64_t tenants{};  // series per device and operation; the rest is `other`
  TenantNames names{};
  std::vector<TenantPattern> patterns;  // the first that matches wins over the name in the path
  bool operator==(const Attribution&) const = default;
};

struct Volumes {
  bool enabled{};
  bool operator==(const Volumes&) const = default;
};

struct FlashModel {
  bool enabled{};
  std::uint64_t memory_bytes{};  // of all drives' models
  bool virtual_disks{};          // also disks whose hardware is unknown
  std::uint32_t sample{};        // one of this many pages is followed, a power of two; 0: by the drive's size
  bool operator==(const FlashModel&) const = default;
};

struct History {
  std::string directory;  // absolute; empty: no history is kept
  std::chrono::nanoseconds retention{};
  std::uint64_t size{};  // bytes
  bool operator==(const History&) const = default;
};

/// The daemon's limits on itself.
struct Limits {
  double cpu_ratio{};                // of all CPUs' time, for the programs in the kernel; 0: none
  std::chrono::nanoseconds after{};  // time above it until something is left out
  bool operator==(const Limits&) const = default;
};

enum class MetricsProfile : std::uint8_t { full, fleet };

/// What /metrics leaves out unless it is requested.
struct Metrics {
  MetricsProfile profile{};          // fleet: only what critical and warning alerts read
  std::vector<std::string> exclude;  // from model::kMetricGroups, never self
  bool operator==(const Metrics&) const = default;
};

/// Made with every default.
struct Config {
  Config();

  Web web;
  Metrics metrics;
  Devices devices;
  Latency latency;
  Nvme nvme;
  Discard discard;
  Writes writes;
  Spikes spikes;
  Attribution attribution;
  Volumes volumes;
  FlashModel flash_model;
  Limits limits;
  History history;
  bool operator==(const Config&) const = default;
};

/// A whole Config, or every problem in the order of the text (invalid YAML is one problem: what comes after it has no
/// meaning yet). Never a partial Config. An empty document or section means the defaults. A key without a value is an
/// error: it could mean the default as well as "none".
using ParseOutcome = tl::expected<Config, std::vector<Problem>>;

/// `file_name` only appears in the problems. Any bytes are safe, in bounded time and memory.
ParseOutcome parse(std::string_view text, std::string_view file_name);

/// Reads a regular file of at most 1 MiB (never blocks on a pipe or a terminal) and parses it.
ParseOutcome load(const std::string& path);

/// Every key with its value, as YAML that parses back to an equal Config.
std::string print(const Config& config);

/// Full names such as "web.listen_address", in the order of print.
std::vector<std::string> known_keys();

/// Full names of the keys that differ and that a reload cannot apply.
std::vector<std::string> keys_requiring_restart(const Config& running, const Config& wanted);

using Configured = tl::expected<Config, std::vector<std::string>>;

/// Returns the effective configuration, from file and command line, at the start and again on SIGHUP; or every problem
/// with it, one line each. May outlive its caller: captures only values.
using Configure = std::function<Configured()>;

/// Reads the configuration again on a thread that lives only for that: users turn to the daemon when a disk hangs, and
/// a file on that disk must not hold up sampling.
class ConfigurationReader {
 public:
  explicit ConfigurationReader(Configure configure) : configure_(std::move(configure)) {}

  /// Begins a reading or, while one is under way, schedules another.
  void ask();

  /// What was read, once for each reading. Never waits.
  std::optional<Configured> answer();

 private:
  void begin();

  Configure configure_;
  std::future<Configured> reading_;  // invalid: not requested
  bool asked_again_ = false;
};

}  // namespace ssdpulse::config

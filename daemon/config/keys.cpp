// SPDX-License-Identifier: Apache-2.0
// The table of keys. Whatever lists keys or describes them is made from it.
#include "daemon/config/keys.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ssdpulse::config {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

constexpr std::array kSections{
    Section{"web", "The web server."},
    Section{"metrics", "What /metrics shows."},
    Section{"devices", "Which disks are measured."},
    Section{"latency", "How latency is measured."},
    Section{"nvme", "How NVMe drives are read."},
    Section{"discard", "How discards are grouped."},
    Section{"writes", "How writes are classified."},
    Section{"spikes", "When latency is a spike."},
    Section{"attribution", "Whose I/O it is, and how it entered the kernel."},
    Section{"volumes", "Volumes: device mapper, md and their like."},
    Section{"flash_model", "The model that estimates write amplification from what the host writes."},
    Section{"limits", "Limits that the daemon keeps itself to."},
    Section{"history", "The history, which is kept on disk."},
};

constexpr EnumName<LatencyMode> kLatencyModes{util::names<LatencyMode>({"full", "completion-only"})};
constexpr EnumName<MetricsProfile> kMetricsProfiles{util::names<MetricsProfile>({"full", "fleet"})};
constexpr EnumName<TenantNames> kTenantNames{util::names<TenantNames>({"full", "hashed", "off"})};
constexpr EnumName<PageHints> kPageHints{util::names<PageHints>({"auto", "always", "never"})};

/// What it takes for a change of a key to take effect.
enum class Takes : std::uint8_t { reload, restart };
using enum Takes;

/// Every part is required: an entry that lacks one does not compile.
template <typename SectionType, typename Held, typename Kind>
Key key(util::Text section, util::Text name, SectionType Config::*in, Held SectionType::*at, Kind kind,
        std::type_identity_t<Held> by_default, Takes takes, KeyTexts texts) {
  Value shown;
  if constexpr (requires { kind.shown(by_default); }) {
    shown = kind.shown(by_default);
  } else {
    shown = kind.write(by_default);
  }
  return {
      .section = section,
      .name = name,
      .needs_restart = takes == Takes::restart,
      .texts = texts,
      .form = kind.form(),
      .by_default = std::move(shown),
      .read = [=](const Value& value, const Field& field, Config& config) { kind.read(value, field, config.*in.*at); },
      .write = [=](const Config& config) { return kind.write(config.*in.*at); },
      .equal = [=](const Config& a, const Config& b) { return a.*in.*at == b.*in.*at; },
      .reset = [=](Config& config) { config.*in.*at = by_default; }};
}

std::vector<Key> make_keys() {
  return {
      key("web", "listen_address", &Config::web, &Web::listen_address, ListenAddresses{}, {"127.0.0.1:10936"}, restart,
          {.help = "Where to serve /metrics: HOST:PORT, [IPV6]:PORT or :PORT for all addresses of the host; one, or a "
                   "list. Quote an address in brackets: \"[::1]:10936\". Port 0 picks a free port.",
           .manual = R"(Where to serve metrics, one address or a list:
.Ar host : Ns Ar port ,
.Sm off
.Li \&[ Ar ipv6 Li \&]: Ar port ,
.Sm on
or
.Pf : Ar port
for all addresses of the host.
Port 0 picks a free port.
If another program listens on one of them, the daemon measures all the same, serves the others and the unix socket, says so
.Pq log , Pa /-/ready , Cm ssdpulse doctor , Li ssdpulse_source_up{source=\(dqweb\(dq}
and tries again every 5 seconds.
It exits with 5 if that program is another
.Nm ssdpulse
daemon, or the port is one that only root may take (below 1024).)",
           .examples = R"([":9090", "[::1]:10936", ["localhost:0", "192.0.2.1:65535"]])"}),
      key("web", "config_file", &Config::web, &Web::config_file, PathOrNone{}, "", restart,
          {.help = "Absolute path of a file with TLS and basic authentication, see ssdpulse-web(5). Changes to that "
                   "file itself are picked up. \"\" serves plain HTTP to anyone who can connect.",
           .manual = R"(Absolute path of a file with TLS and basic authentication, see
.Xr ssdpulse-web 5 .
Changes to that file are picked up; another path needs a restart.
Empty: plain HTTP without authentication.)",
           .examples = R"(["/etc/ssdpulse/web.yaml"])"}),
      key("web", "socket", &Config::web, &Web::socket, PathOrNone{kLongestSocketPath}, "", restart,
          {.help = "Absolute path of a unix socket that the commands on this host use. Members of the daemon's group "
                   "may connect, without TLS and users. \"\": none. The systemd units set this on the command line.",
           .manual = R"(Absolute path of a unix socket for commands on this host, without TLS and users.
It has mode 0660 and the daemon's group: whoever may connect may use it.
Its directory should let only root or the daemon's user make files, as another user could listen there first.
Empty: none.
The systemd units set this on the command line, to
.Pa /run/ssdpulse/web.socket ,
which overrides the file.
At most 107 bytes.)",
           .examples = R"(["/run/ssdpulse/web.socket"])"}),
      key("web", "page", &Config::web, &Web::page, YesOrNo{}, true, restart,
          {.help = "Whether a page for people is served at /, and /api/v1 behind it.",
           .manual = R"(Whether to serve a web page at
.Pa / ,
and
.Pa /api/v1
behind it.
If false,
.Cm why , top , what-if , history , mark , doctor --cost
and
.Cm devices --ladder
get no answer from this daemon, not even over the unix socket, and
.Cm doctor
examines the host instead.)",
           .examples = R"([false])"}),
      key("web", "hosts", &Config::web, &Web::hosts, host_names(), {}, restart,
          {.help =
               "Names that browsers may use for the page, besides localhost and IP addresses: [\"db1.example.org\"]. "
               "Others are refused, so that no web site can read the page by a name that it points at this host; "
               "so does /metrics on loopback addresses, and on all if there is a name here.",
           .manual = R"(Names under which browsers may request the page, besides localhost and IP addresses.
Others are refused, so that no web site can read the page through a name that it points at this host.
The same holds for
.Pa /metrics
on addresses of the loopback network, and on all if there are names in this list;
otherwise Prometheus may ask by any name.)",
           .examples = R"([["db1.example.org"]])"}),
      key("metrics", "profile", &Config::metrics, &Metrics::profile, kMetricsProfiles, MetricsProfile::full, restart,
          {.help = "full, or fleet: of each disk only what critical and warning alerts read, about 60 series, for a "
                   "Prometheus that scrapes thousands of disks. A scrape may still ask for more: "
                   "/metrics?collect[]=all.",
           .manual = R"(.Li full ,
or
.Li fleet :
for each disk only what critical and warning alerts read, about 60 series
.Pq 120 in the classic form .
Causes, errors and losses that no such alert distinguishes are added up under
.Li other
or
.Li io ,
and classic histograms have six bounds.
All metrics about the daemon itself remain.
A scrape that asks for
.Pa /metrics?collect[]=all
still gets everything, and
.Pa /metrics?collect[]=fleet
gets the profile from any daemon.)",
           .examples = R"(["fleet"])"}),
      key("metrics", "exclude", &Config::metrics, &Metrics::exclude, groups_to_leave_out(), {}, restart,
          {.help = "Groups of metrics that /metrics leaves out: {values}; `ssdpulse metrics` shows what each holds. "
                   "Alerts and panels that need them are silent. A scrape may still ask for them: "
                   "/metrics?collect[]=tenants, or collect[]=all. No effect with the profile fleet.",
           .manual = R"(Groups of metrics that
.Pa /metrics
leaves out:
{values} .
.Xr ssdpulse-metrics 7
shows what each holds.
Alerts and panels that need them are silent.
A scrape that asks for a group with
.Pa /metrics?collect[]=GROUP
still gets it;
.Li all
stands for every group.
This key has no effect with
.Cm metrics.profile
.Li fleet .)",
           .examples = R"([["tenants", "nvme_logs"]])"}),
      key("devices", "include", &Config::devices, &Devices::include, device_patterns(/*may_be_empty=*/false), {"*"},
          reload,
          {.help = "Which disks to measure: shell patterns on the kernel's names (nvme0n1, sda), not on paths or "
                   "partitions. Quote a pattern that starts with * or [.",
           .manual = R"(Which disks to measure: shell patterns on the kernel's names
.Pq Li nvme0n1 , sda ,
not on paths or partitions.)",
           .examples = R"([["nvme*", "sd[a-c]"]])"}),
      key("devices", "exclude", &Config::devices, &Devices::exclude, device_patterns(/*may_be_empty=*/true),
          {"loop*", "ram*", "zram*"}, reload,
          {.help = "Which of those to leave out. Exclude wins over include, but a plain name wins over a pattern: "
                   "include: [loop0] measures loop0 although loop* is excluded. [] excludes nothing.",
           .manual = R"(Which of those to leave out.
A plain name in
.Cm devices.include
wins over a pattern here; a plain name here always wins.)",
           .examples = R"([[], ["dm-?"]])"}),
      key("latency", "mode", &Config::latency, &Latency::mode, kLatencyModes, LatencyMode::full, restart,
          {.help = "full or completion-only. The latter costs one hook per I/O instead of two, and has total latency "
                   "alone: no device or queue latency, no I/Os in flight, no requeues.",
           .manual = R"(.Cm full
or
.Cm completion-only .
The latter costs one hook per I/O instead of two and measures only total latency, sizes, bytes and errors: no device or
queue latency, no I/Os in flight, no requeues.)",
           .examples = R"(["completion-only"])"}),
      key("nvme", "poll_interval", &Config::nvme, &Nvme::poll_interval, DurationWithin{10s, 1h}, 30s, reload,
          {.help = "How often to read the log pages of each NVMe drive: {min} to {max}.",
           .manual = R"(How often to read the log pages of each NVMe drive, from
.Li {min}
to
.Li {max} .)",
           .examples = R"(["10s", "1m", "1h"])"}),
      key("nvme", "reader_socket", &Config::nvme, &Nvme::reader_socket, PathOrNone{kLongestSocketPath}, "", restart,
          {.help =
               "Absolute path of the socket of a log reader that runs as a service. \"\": the daemon starts its own. "
               "The systemd units set this on the command line.",
           .manual = R"(Absolute path of the socket of a log reader that runs as a service.
Empty: the daemon starts its own.
The systemd units set this on the command line.)",
           .examples = R"(["/run/ssdpulse-nvme/reader.socket"])"}),
      key("discard", "burst_gap", &Config::discard, &Discard::burst_gap, DurationWithin{1s, 1h}, 1s, reload,
          {.help = "A burst ends when a disk completes no discard of that trigger for this long: {min} to {max}.",
           .manual = R"(A burst of discards ends when a disk completes no discard of that trigger for this long, from
.Li {min}
to
.Li {max} .)",
           .examples = R"(["2s", "10s", "1h"])"}),
      key("writes", "page_hints", &Config::writes, &Writes::page_hints, kPageHints, PageHints::automatic, restart,
          {.help = "Whether to look up the file's lifetime hint for a buffered write that carries none: {values}. "
                   "auto: on kernels that lose the hint on the way. never: there, the hint is unknown.",
           .manual = R"(Whether to look up the file's lifetime hint for a buffered write that carries none:
.Cm always , never
or
.Cm auto ,
which does so on kernels that lose the hint on the way.)",
           .examples = R"(["never"])"}),
      key("spikes", "floor", &Config::spikes, &Spikes::floor, DurationWithin{100us, 10s}, 2ms, reload,
          {.help = "An I/O faster than this is never part of a latency spike: {min} to {max}.",
           .manual = R"(An I/O faster than this is never part of a latency spike, from
.Li {min}
to
.Li {max} .)",
           .examples = R"(["500us", "20ms", "10s"])"}),
      key("attribution", "enabled", &Config::attribution, &Attribution::enabled, YesOrNo{}, true, restart,
          {.help = "Whether to count reads, writes and discards by who sends them and by how they enter the kernel.",
           .manual =
               R"(Whether to count reads, writes and discards by who sends them and by how they enter the kernel.)",
           .examples = R"([false])"}),
      key("attribution", "tenants", &Config::attribution, &Attribution::tenants, NumberWithin{1, 1024}, 64, restart,
          {.help = "How many tenants (units, containers, virtual machines, users) get series of their own for each "
                   "device and operation: {min} to {max}. The rest is counted as tenant \"other\".",
           .manual =
               R"(How many tenants (systemd units, containers, virtual machines, users) get series of their own for each device and
operation, from
.Li {min}
to
.Li {max} .
The rest is counted as tenant
.Li other .)",
           .examples = R"([1, 256, 1024])"}),
      key("attribution", "names", &Config::attribution, &Attribution::names, kTenantNames, TenantNames::full, restart,
          {.help = "How much of their names is shown, in metrics, logs and the history alike: {values}. hashed: with a "
                   "random key that is kept with the history. off: only paths are counted.",
           .manual = R"(How much of the tenants' names is shown, in metrics, logs and the history alike:
.Cm full ,
.Cm hashed
with a random key that is kept in
.Cm history.directory
.Pq without a history, it changes at each start ,
or
.Cm off ,
which counts only paths.)",
           .examples = R"(["hashed", "off"])"}),
      key("attribution", "patterns", &Config::attribution, &Attribution::patterns, TenantPatterns{}, {}, restart,
          {.help = "Which tenant a cgroup belongs to, where its path does not say so. The first pattern that matches "
                   "the path wins, and * matches slashes, too: [{match: \"/kubepods*/*-pod1c2d*\", tenant: checkout}]",
           .manual = R"(Which tenant a cgroup belongs to, where its path does not say so: a list of
.Cm match ,
a shell pattern on the path in which
.Li *
matches slashes, too, and
.Cm tenant ,
the name.
The first match wins.)",
           .examples = R"([[{"match": "/system.slice/mysql*", "tenant": "db"}]])"}),
      key("volumes", "enabled", &Config::volumes, &Volumes::enabled, YesOrNo{}, true, restart,
          {.help = "Whether to measure volumes, if there are any when the daemon starts: every bio of the host then "
                   "passes two more programs.",
           .manual =
               R"(Whether to measure volumes (device mapper, md and their like), if there are any when the daemon starts.
Every bio of the host then passes two more programs;
.Dl ssdpulse doctor --cost
shows what they cost.
Not done where
.Cm latency.mode
is
.Cm completion-only .)",
           .examples = R"([false])"}),
      key("flash_model", "enabled", &Config::flash_model, &FlashModel::enabled, YesOrNo{}, true, restart,
          {.help = "Whether write amplification is also estimated from what the host writes.",
           .manual = R"(Whether write amplification is also estimated from what the host writes, for each drive.)",
           .examples = R"([false])"}),
      key("flash_model", "memory", &Config::flash_model, &FlashModel::memory_bytes, SizeWithin{4 * kMiB, 4 * kGiB},
          128 * kMiB, restart,
          {.help = "Memory for the models of all drives: {min} to {max}. A drive takes up to 16 MB. If memory is "
                   "short, fewer what-ifs are modelled for each drive, then smaller samples are used, then some drives "
                   "have no model. The log and ssdpulse_model_scale_info report this.",
           .manual = R"(Memory for the models of all drives, from
.Li {min}
to
.Li {max} .
A drive takes up to 16 MB.
If memory is short, fewer what-ifs are modelled for each drive, then smaller samples are used, then some drives have no
model.)",
           .examples = R"(["32MiB", "1GB"])"}),
      key("flash_model", "virtual_disks", &Config::flash_model, &FlashModel::virtual_disks, YesOrNo{}, false, restart,
          {.help = "Whether to model virtual disks too (virtio, loop, a cloud's NVMe), although what is behind them is "
                   "unknown.",
           .manual = R"(Whether to model virtual disks too, although what is behind them is unknown.)",
           .examples = R"([true])"}),
      key("flash_model", "sample", &Config::flash_model, &FlashModel::sample, SampleShare{}, 0, restart,
          {.help = "What share of the pages to follow. auto: depends on the drive's size. Others, 1/1 to 1/128, are "
                   "for tests on small disks.",
           .manual = R"(What share of the pages to follow:
.Cm auto ,
depending on the size of the drive, or one of
.Cm 1/1
to
.Cm 1/128
for tests on small disks.)",
           .examples = R"(["1/1", "1/128"])"}),
      key("limits", "cpu", &Config::limits, &Limits::cpu_ratio, PercentOrNone{.min = 0.0001}, 0.02, reload,
          {.help = "How much of this host's total CPU time the programs in the kernel may take, by estimate: {min} "
                   "to {max}, 0% for no limit. Above it, the daemon turns off tenants, paths and samples for the "
                   "flash models, then everything that completion-only does without; finally it detaches its programs "
                   "until the next start. It turns the first two on again once there is room.",
           .manual =
               R"(How much of the host's total CPU time the programs in the kernel may take, according to the estimate
.Li ssdpulse_estimated_bpf_cpu_ratio :
.Cm {min}
to
.Cm {max} ,
or
.Cm 0%
for no limit.
Above it the daemon turns off tenants, paths, and samples for the flash models;
if it is still above, all that
.Cm latency.mode
.Cm completion-only
does without;
and finally it detaches its programs, until the next start.
Once the previous step would take less than 70 % of the limit, the daemon returns to that step.
Each step is logged and counted in
.Li ssdpulse_cpu_limit_steps_total .)",
           .examples = R"(["0.5%", "0%"])"}),
      key("limits", "after", &Config::limits, &Limits::after, DurationWithin{1s, 1h}, 1min, reload,
          {.help = "How long the mean must be above the limit before the next step: {min} to {max}. Before a step "
                   "back, it must be well below for five times as long.",
           .manual = R"(How long the mean must be above the limit before the next step,
.Cm {min}
to
.Cm {max} ;
before a step back, it must be well below for five times as long.)",
           .examples = R"(["30s", "10m"])"}),
      key("history", "directory", &Config::history, &History::directory, PathOrNone{}, "/var/lib/ssdpulse", restart,
          {.help = "Absolute path of the directory for the history, ssdpulse.db. Its parent must exist. \"\" keeps no "
                   "history.",
           .manual = R"(Absolute path of the directory for the history
.Pq Pa ssdpulse.db ;
its parent must exist.
Empty: no history.
The systemd unit may write only below
.Pa /var/lib/ssdpulse ;
for another place, set
.Ev ReadWritePaths
.Pq see Xr systemd.exec 5 .)",
           .examples = R"(["", "/srv/ssdpulse"])"}),
      key("history", "retention", &Config::history, &History::retention, DurationWithin{24h, 3650 * 24h}, 90 * 24h,
          restart,
          {.help = "How long to keep the history: {min} to {max}, of the time during which the daemon ran.",
           .manual = R"(How long to keep the history, from
.Li {min}
to
.Li {max} :
time during which the daemon ran, by a clock that nobody sets.
A wrong wall clock deletes nothing.)",
           .examples = R"(["24h", "365d", "3650d"])"}),
      key("history", "size", &Config::history, &History::size, SizeWithin{16 * kMiB, 1024 * kGiB}, 512 * kMiB, restart,
          {.help = "How large it may become: {min} to {max}. Hours of all devices come first, minutes as far as "
                   "there is room.",
           .manual = R"(How large the history may become, from
.Li {min}
to
.Li {max} .
Hours of all devices take precedence.
Minutes are kept for up to 14 days, space permitting, and are part of their hours afterwards;
.Li ssdpulse_history_begin_timestamp_seconds
shows how far both reach.)",
           .examples = R"(["16MiB", "2GiB", "1TiB"])"}),
  };
}

}  // namespace

std::span<const Section> sections() { return kSections; }

const std::vector<Key>& keys() {
  // Never destroyed: a thread that reads the configuration may outlast main.
  static const auto& table = *new std::vector<Key>(make_keys());
  return table;
}

Config::Config() {
  for (const Key& key : keys()) {
    key.reset(*this);
  }
}

}  // namespace ssdpulse::config

// SPDX-License-Identifier: Apache-2.0
// Overview, Volumes, Tenants, Seconds and others: the values that the screen shows, taken from the answers of /api/v1.
// Latencies are in seconds, times in seconds since the epoch; missing values are not known.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::terminal {

struct Tails {
  double ios_per_second = 0;
  double bytes_per_second = 0;
  std::optional<double> p50;
  std::optional<double> p99;
  std::optional<double> p999;
  std::optional<double> baseline_p99;
  std::optional<double> standstill_seconds;  // for so long none has completed while some wait
};

/// Reads during which a discard, or a flush, was in flight.
struct ReadsDuring {
  std::optional<double> p99;  // absent if there are too few
};

struct Drive {
  std::string name;
  std::string title;         // what is mounted from it, or its volume, then its name
  std::string use;           // the same without its name; empty: not known
  std::string where;         // model, and the mount points and arrays that the title lacks
  std::string state;         // slow, high, ok, idle, unknown, unseen
  std::string cause;         // of a spike that is going on, or was then, or what is high, in words; empty: none
  double spike_seconds = 0;  // seconds with a spike, as far as the daemon's memory reaches
  bool measured = false;     // the last seconds, or the past minute, are known
  Tails read;
  Tails write;
  Tails commit;
  std::optional<ReadsDuring> during_discard;  // nothing: not known, as for the past
  std::optional<ReadsDuring> during_flush;
  std::optional<double> queue_share;  // of the time of reads and writes, 0 to 1
  std::optional<double> in_flight;    // reads and writes
  std::optional<double> busy_ratio;   // share of the last seconds in which anything was in flight
  std::optional<double> write_amplification;
  std::optional<double> used_ratio;   // of the drive's rated life; may exceed 1
  std::optional<double> temperature;  // Celsius
};

struct Overview {
  double taken_at = 0;
  std::string verdict;             // ok, slow, unknown
  std::string sentence;            // what is slow, since when and why, or that nothing is
  std::string remarks;             // what else is so; empty: nothing
  std::string over;                // what was, and is over; empty: nothing
  std::string next;                // what to do; empty: nothing
  std::vector<Drive> drives = {};  // worst first
  bool past = false;               // shows the minute that contains `taken_at`, from the history
  double step_seconds = 60;        // the time that figures of the past cover: an hour if minutes are no longer kept
};

/// A line of the volumes: a volume (dm, md and the like, without requests of its own) or what it lies on.
struct Volume {
  std::string id;         // of the line: one drive may be below many volumes
  std::size_t stack = 0;  // lines of one stack follow each other: what is mounted, then what that lies on
  std::size_t depth = 0;
  std::string name;
  std::string use;     // what is mounted from it, or its title, or the drive's partition; empty: none
  std::string kind;    // lvm, crypt, raid1, partition, disk, ...
  std::string where;   // its title unless `use` has it, and what it lies on
  std::string state;   // of its health, in one word; empty: nothing is wrong, or nothing is known
  std::string health;  // the same in more words
  bool bad = false;    // somebody should look after it
  bool is_drive = false;
  bool measured = false;
  Tails read;  // of its bios in the last minute; only the first four are known. Of a drive's requests, as in Drive
  Tails write;
  std::optional<double> added_seconds;  // mean time that is spent in the volume itself, at least
};

struct Volumes {
  std::vector<Volume> volumes = {};  // the worst stack first
  std::string not_measured;          // why none is; empty: some are
  double left_out = 0;               // too many to list: volumes
};

/// Who does I/O: reads, writes and discards on all drives.
struct Tenant {
  std::string name;
  std::string title;  // for people
  std::string drive;  // where it does most
  std::size_t drives = 0;
  double ios_per_second = 0;
  double read_bytes_per_second = 0;
  double written_bytes_per_second = 0;
  double discarded_bytes_per_second = 0;
  double device_ratio = 0;             // time in the drives by time: so many were in flight
  std::optional<double> mean_seconds;  // of an I/O; not timed, if absent
};

struct Tenants {
  std::vector<Tenant> tenants = {};  // those that did any I/O; most data first
  double seconds = 0;                // that the figures cover
  std::string not_known;             // why; empty: they are known
};

struct Spike {
  double begin = 0;
  std::optional<double> end;  // nothing: it goes on
  std::string operation;
  std::string words;        // the cause
  double peak_seconds = 0;  // p99 of the worst second
  std::vector<std::string> evidence;
};

/// A drive's last minutes in columns of a second, newest last; for the past, from the history, in columns of a minute.
struct Seconds {
  std::string device;
  std::string heat;  // the operation that `levels` shows
  /// By bucket; 0: none, 1: one I/O, 2: two or three, 3: four to seven, and so on; nothing: no data.
  std::vector<std::optional<std::vector<unsigned>>> levels;
  std::vector<double> bounds;  // of buckets, in seconds
  std::vector<Spike> spikes;
  double column_seconds = 1;
  std::optional<double> until;  // end of the last column; only for the past
};

/// Something that is not measured.
struct Gap {
  std::string what;
  std::string why;
};

// From a malformed answer, these functions take what can be read; none of them throws.
Overview overview_from(const nlohmann::json& devices);
/// `overview`: for the figures of drives.
Volumes volumes_from(const nlohmann::json& stacks, const Overview& overview);
Seconds seconds_from(const nlohmann::json& live);

/// `at`: a time in the past. `devices`: as of now; `why`: as of then; `histories`: of that minute, by drive, null if
/// there is none. What is kept only for the present (usual latencies, health, depth) is not known.
Overview overview_at(double at, const nlohmann::json& devices, const nlohmann::json& why,
                     const std::map<std::string, nlohmann::json>& histories);

/// The `count` minutes up to the one that contains `at`. `live` has the bounds of buckets, `history` the spikes,
/// `minutes` the histograms.
Seconds minutes_at(double at, const std::string& heat, std::size_t count, const nlohmann::json& live,
                   const nlohmann::json& history, const nlohmann::json& minutes);
std::vector<Gap> gaps_from(const nlohmann::json& status);
std::string host_from(const nlohmann::json& status);

/// Answers about tenants, by drive.
using TenantAnswers = std::map<std::string, nlohmann::json>;

/// The I/O between two sets of answers, whose counts go up since the daemon began.
Tenants tenants_between(const TenantAnswers& before, const TenantAnswers& after);
/// Of the minute, or hour, that contains `at`; `histories` as for overview_at().
Tenants tenants_at(double at, const std::map<std::string, nlohmann::json>& histories);

// View: what the person at the terminal wants to see. All that keys change, and nothing that the daemon reports.

enum class Screen : std::uint8_t { overview, device, volumes, tenants, help };
/// worst: worst first; drives as the daemon sorts, tenants by data. read, write: by p99, tenants by data.
enum class Order : std::uint8_t { worst, name, read, write, ios, bytes };
enum class Heat : std::uint8_t { read, write, flush, discard, commit };

enum class Key : std::uint8_t {
  character,
  enter,
  escape,
  backspace,
  up,
  down,
  left,
  right,
  page_up,
  page_down,
  home,
  end
};
struct Press {
  Key key = Key::character;
  char character = 0;  // of Key::character
};

struct View {
  Screen screen = Screen::overview;
  Order order = Order::worst;
  bool reversed = false;
  Heat heat = Heat::read;
  std::string filter;
  bool typing = false;  // into the filter
  bool paused = false;
  std::optional<double> at;     // the time in the past that is shown, in seconds since the epoch; nothing: now
  std::string selected;         // name; empty: the first
  std::string selected_volume;  // its id
  std::string selected_tenant;
  bool over = false;  // the person wants to quit
};

/// The drives, lines of volumes, or tenants that the filter leaves, in the wanted order. They point into the first
/// argument. Of volumes, the filter and the order are of whole stacks; what lies below a place is there only once.
std::vector<const Drive*> shown(const Overview& overview, const View& view);
std::vector<const Volume*> shown(const Volumes& volumes, const View& view);
std::vector<const Tenant*> shown(const Tenants& tenants, const View& view);

/// The one that is selected; null if there is none to select.
const Drive* selected(const Overview& overview, const View& view);
const Volume* selected(const Volumes& volumes, const View& view);
const Tenant* selected(const Tenants& tenants, const View& view);

void press(View& view, const Press& press, const Overview& overview, const Volumes& volumes = {},
           const Tenants& tenants = {});

/// In words, with the key where it is reversed: "name (r)".
std::string order_text(const View& view);
std::string_view heat_name(Heat heat);

}  // namespace ssdpulse::terminal

// SPDX-License-Identifier: Apache-2.0
// What does the screen show? Values, taken from the answers of /api/v1; missing values are not known.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::top {

struct Tails {
  double ios_per_second = 0;
  double bytes_per_second = 0;
  std::optional<double> p50;
  std::optional<double> p99;
  std::optional<double> p999;
  std::optional<double> usual_p99;
};

/// For reads during which something else was in flight.
struct Beside {
  std::optional<double> p99;  // absent if there are too few
};

struct Drive {
  std::string name;
  std::string where;  // model, mount points, arrays
  std::string state;  // slow, usual, idle, unknown
  std::string cause;  // of a spike that is going on, in words; empty: none
  double spike_seconds = 0;
  bool measured = false;  // the last seconds are known
  Tails read;
  Tails write;
  Tails commit;
  std::optional<Beside> beside_discard;  // nothing: not known, as for the past
  std::optional<Beside> beside_flush;
  std::optional<double> queue_share;  // of the time of reads and writes
  std::optional<double> in_flight;
  std::optional<double> write_amplification;
  std::optional<double> used_ratio;
  std::optional<double> temperature;
};

struct Overview {
  double taken_at = 0;
  std::string verdict;
  std::string sentence;
  std::string next;
  std::vector<Drive> drives;  // worst first
  bool past = false;          // shows the minute that contains `taken_at`, from the history
  double step_seconds = 60;   // the time that figures of the past cover: an hour if minutes are no longer kept
};

struct Spike {
  double begin = 0;
  std::optional<double> end;
  std::string operation;
  std::string words;
  double peak_seconds = 0;
  std::vector<std::string> evidence;
};

/// A drive's last minutes, newest last; for the past, from the history, where a column is a minute.
struct Seconds {
  std::string device;
  std::string heat;                                          // the operation that `levels` shows
  std::vector<std::optional<std::vector<unsigned>>> levels;  // by word; nothing: no data
  std::vector<double> bounds;                                // of words, in seconds
  std::vector<Spike> spikes;
  double column_seconds = 1;
  std::optional<double> until;  // only for the past
};

struct Gap {
  std::string what;
  std::string why;
};

// From a malformed answer, these functions take what can be read; none of them throws.
Overview overview_from(const nlohmann::json& devices);
Seconds seconds_from(const nlohmann::json& live);

/// `at`: a time in the past, in seconds since the epoch. `devices`: as of now; `why`: as of then; `histories`: of that
/// minute, by drive, null if there is none. What is kept only for the present (usual latencies, health, depth) is not
/// known.
Overview overview_at(double at, const nlohmann::json& devices, const nlohmann::json& why,
                     const std::map<std::string, nlohmann::json>& histories);

/// The minutes up to `at`. `live` has the bounds of words, `history` the spikes, `minutes` the histograms.
Seconds minutes_at(double at, const std::string& heat, std::size_t count, const nlohmann::json& live,
                   const nlohmann::json& history, const nlohmann::json& minutes);
std::vector<Gap> gaps_from(const nlohmann::json& status);

}  // namespace ssdpulse::top

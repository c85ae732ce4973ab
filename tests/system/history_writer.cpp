// SPDX-License-Identifier: Apache-2.0
// ssdpulse_history_writer DIRECTORY [MINUTES]: writes a history as fast as the disk accepts it, and is meant to be
// killed. Each minute follows the one before at once. Lines on stdout, each in one write:
//   found M N     at the start: the newest minute on disk and the content of the saved state; 0 0 if there is none
//   committed M   that minute is on the disk
//   down REASON   / up
// Minute M has one row for each of three drives and of two devices, whose values are derived from M: see
// test_history_kill.py.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "daemon/history/history.h"
#include "daemon/util/log.h"

namespace {

using namespace std::chrono_literals;
using namespace ssdpulse::history;
using ssdpulse::model::ByteCounter;
using ssdpulse::model::Rounding;
using ssdpulse::model::Uint128;

constexpr std::int64_t kFirst = 29'000'000;
constexpr std::size_t kRowsOfOneMinute = 6;  // with the state and two devices

DriveKey drive(int number) { return {"serial " + std::to_string(number), "model", "firmware"}; }

void say(const std::string& text) {
  const std::string line = text + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    std::exit(1);
  }
}

Batch batch_of(std::int64_t minute) {
  Batch batch;
  for (int number = 0; number < 3; ++number) {
    DriveMinute row;
    row.drive = drive(number);
    row.minute = Minute(std::chrono::minutes(minute));
    row.boottime = std::chrono::minutes(minute);
    row.source = "fdp";
    const auto count = static_cast<Uint128>(minute);
    row.writes.host = ByteCounter{count << 64U | count, 512'000, Rounding::up};
    row.writes.media = ByteCounter{count << 96U | static_cast<Uint128>(number), 1, Rounding::exact};
    row.temperature_celsius = number;
    row.discard_bytes = static_cast<std::uint64_t>(minute);
    batch.minutes.push_back(std::move(row));
  }
  for (const char* name : {"sda", "sdb"}) {
    DeviceMinute row;
    row.device = {std::string("wwid of ") + name, name, "model", "serial"};
    row.minute = Minute(std::chrono::minutes(minute));
    row.load.measured_ms = 60'000;
    row.load.operations[0].ios = static_cast<std::uint64_t>(minute - kFirst + 1);
    row.load.latency(ssdpulse::model::Latency::read_total) = {{{100, static_cast<std::uint64_t>(minute - kFirst + 1)}},
                                                              7};
    batch.device_minutes.push_back(std::move(row));
  }
  const std::string state = std::to_string(minute);
  batch.states.push_back({drive(0), Bytes(state.begin(), state.end())});
  return batch;
}

/// Finds what an earlier run has written; returns the minute to continue with.
std::int64_t find(History& history) {
  while (true) {
    const auto recalled = history.recall(drive(0), Minute{}).get();
    if (!recalled) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    const auto& minutes = recalled->minutes;
    const std::int64_t last = minutes.empty() ? 0 : minutes.back().minute.time_since_epoch().count();
    const Bytes state = recalled->state ? recalled->state->bytes : Bytes{'0'};
    say("found " + std::to_string(last) + " " + std::string(state.begin(), state.end()));
    return std::max(last + 1, kFirst);
  }
}

void wait_until_written(const History& history, std::uint64_t rows, bool& up) {
  while (true) {
    const Status status = history.status();
    if (std::exchange(up, status.up) != status.up) {
      say(status.up ? "up" : "down " + status.reason);
    }
    if (status.rows_written() >= rows) {
      return;
    }
    std::this_thread::sleep_for(50us);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !ssdpulse::log::set_up("warning")) {
    say("usage: ssdpulse_history_writer DIRECTORY [MINUTES]");
    return 2;
  }
  const auto now = std::make_shared<std::atomic<std::int64_t>>(kFirst + 1'000'000);  // after all that may be stored
  Options options;
  options.directory = argv[1];
  options.limits.retention = std::chrono::hours(3650 * 24);
  options.retry_interval = 100ms;
  options.now = [now] { return Minute(std::chrono::minutes(now->load())); };
  auto history = History::open(std::move(options));
  if (!history) {
    say(history.error().message);
    return 1;
  }
  const std::int64_t begin = find(**history);
  const std::int64_t minutes = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1'000'000;
  std::uint64_t rows = 0;
  bool up = true;
  for (std::int64_t minute = begin; minute < begin + minutes; ++minute) {
    *now = minute;
    (*history)->add(batch_of(minute));
    rows += kRowsOfOneMinute;
    wait_until_written(**history, rows, up);
    say("committed " + std::to_string(minute));
  }
  return 0;
}

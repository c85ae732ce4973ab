// SPDX-License-Identifier: Apache-2.0
// ssdpulse_history_writer DIRECTORY [STEPS [RETENTION_MINUTES [BYTES]]]: writes a history as fast as the disk accepts
// it, and is meant to be disturbed. Each step is a minute of both clocks, and writes one batch with every kind of row;
// every seventh also keeps a mark. What is in them is derived from the step's number: see history_oracle.py.
// A step does not wait for a disk that is slow. A thread of its own keeps the state of a drive's flash model there all
// the time, as the daemon's does. Lines on stdout, each in one write:
//   found M N         at the start: the newest step in a drive's rows, and the one in its saved state; 0 0: none
//   sent N MS         a step, at this wall clock
//   committed N       it is on the disk
//   dropping M        of this step and those after it, some are dropped
//   dropped M N W     and now nothing waits: of these steps, W are on the disk and the others will never be
//   asked N MS        to keep the mark of this step; after a start once more, the last one of those before
//   kept N MS         it is on the disk, under this time
//   refused N REASON
//   up / down REASON
//   resumed YES REJECTED AT   whether the flash model goes on from a state, and how many it did not take; since AT
//   saving T          the flash model as it is now, in microseconds
//   saved T END       the flash model counted no failure; until then
//   unsaved T END     it did
//   given TABLE ... and rows TABLE ...   at the end: what the history says became of them, see Status
// Commands on stdin: clock SECONDS (sets the wall clock so far from the right one), hold MEGABYTES (of memory), end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/flash/model_set.h"
#include "daemon/history/history.h"

namespace {

using namespace std::chrono_literals;
using namespace ssdpulse::history;
using namespace ssdpulse::model;
using ssdpulse::util::Result;

constexpr std::int64_t kFirst = 29'000'000;
constexpr std::int64_t kStepsOfAGeneration = 100;  // then other devices, drives' firmware and tenants follow
constexpr std::int64_t kStepsOfAMark = 7;
constexpr auto kLongestStep = 50ms, kLongestWhileDropping = 500ms;  // so that a slow disk catches up

void say(const std::string& text) {
  const std::string line = text + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) {
    std::exit(1);
  }
}

std::int64_t milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// What the history is shown.
struct Clocks {
  std::atomic<std::int64_t> wall = (kFirst + 1'000'000) * 60;  // seconds; at first after all that may be stored
  std::atomic<std::int64_t> boottime = 0;                      // minutes
};

class Commands {
 public:
  void read() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (open_ && ::poll(&input, 1, 0) > 0) {
      std::array<char, 256> bytes{};
      const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      open_ = count > 0;
      left_.append(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    for (std::size_t end = left_.find('\n'); end != std::string::npos; end = left_.find('\n')) {
      obey(std::istringstream(left_.substr(0, end)));
      left_.erase(0, end + 1);
    }
  }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] std::int64_t clock() const { return clock_; }  // seconds ahead

 private:
  void obey(std::istringstream command) {
    std::string what;
    std::int64_t value = 0;
    command >> what >> value;
    ended_ = ended_ || what == "end";
    clock_ = what == "clock" ? value : clock_;
    held_.resize(held_.size() + (what == "hold" ? static_cast<std::size_t>(value) << 20U : 0), 'x');
  }

  bool open_ = true;
  bool ended_ = false;
  std::int64_t clock_ = 0;
  std::string left_;
  std::vector<char> held_;
};

DriveKey drive(int number, std::int64_t generation = 0) {
  return {fmt::format("serial {}", number), "model", fmt::format("firmware {}", generation)};
}

DeviceMinute device_minute(const std::string& name, WallTime at, std::int64_t number, std::int64_t generation) {
  DeviceMinute row;
  row.device = {fmt::format("wwid of {} {}", name, generation), name, "model", "serial"};
  row.minute = std::chrono::floor<std::chrono::minutes>(at);
  const auto ios = static_cast<std::uint64_t>(number - kFirst + 1);
  row.load.measured_ms = 60'000;
  row.load.operations[0].ios = ios;
  row.load.operations[0].bytes = ios * 4096;
  row.load.latency(Latency::read_total) = {{{100, ios}}, ios * 7};
  row.tenants = {{fmt::format("tenant {}", generation)}, {std::string(ssdpulse::model::kOtherTenants)}};
  row.tenants[0].totals[0] = {ios, ios * 4096, ios * 5};
  row.tenants[1].totals[1] = {1, 512, 3};
  return row;
}

Batch batch_of(std::int64_t number, WallTime at) {
  const std::int64_t generation = (number - kFirst) / kStepsOfAGeneration;
  const double value = static_cast<double>(number - kFirst);
  const std::string text = std::to_string(number);
  Batch batch;
  for (int i = 0; i < 3; ++i) {
    DriveMinute row;
    row.drive = drive(i, generation);
    row.minute = std::chrono::floor<std::chrono::minutes>(at);
    row.boottime = std::chrono::minutes(number);
    row.source = "fdp";
    const auto count = static_cast<Uint128>(number);
    row.writes.host = ByteCounter{count << 64U | count, 512'000, Rounding::up};
    row.writes.media = ByteCounter{count << 96U | static_cast<Uint128>(i), 1, Rounding::exact};
    row.temperature_celsius = i;
    row.discard_bytes = static_cast<std::uint64_t>(number);
    batch.minutes.push_back(std::move(row));
  }
  batch.states.push_back({drive(0, generation), Bytes(text.begin(), text.end())});
  for (const char* name : {"sda", "sdb"}) {
    batch.device_minutes.push_back(device_minute(name, at, number, generation));
  }
  ssdpulse::model::LatencySpike spike;
  spike.device = "sda";
  spike.begin = at;
  spike.duration = 1500ms;
  spike.peak_seconds = value;
  spike.baseline_seconds = 0.5;
  spike.excess_seconds = value / 2;
  spike.ios = static_cast<std::uint64_t>(number);
  spike.missing = {"step " + text};
  batch.spikes.push_back(std::move(spike));
  batch.bursts.push_back({at, "sdb", "fstrim", value, static_cast<std::uint64_t>(number)});
  batch.waits.push_back(
      {at, "frozen", "step " + text, "sda", fmt::format("tenant {}", generation), value, "step=" + text, "file"});
  const std::string seconds(static_cast<std::size_t>(number % 50) * 64, static_cast<char>('a' + number % 26));
  batch.spike_seconds.push_back({"sda", at, at + 1min, value, Bytes(seconds.begin(), seconds.end())});
  batch.settings.push_back({"", "step", text});
  batch.at = at;
  return batch;
}

/// The flash model of a small disk, which changes with each saved state.
class FlashKeeper {
 public:
  explicit FlashKeeper(std::string directory)
      : thread_([this, directory = std::move(directory)](const std::stop_token& stop) { work(directory, stop); }) {}

 private:
  static constexpr std::uint32_t kPages = 24576;  // 96 MiB, each page followed: a state of a megabyte

  void work(const std::string& directory, const std::stop_token& stop) {
    ssdpulse::flash::ModelSettings settings;
    settings.memory_bytes = 2 << 20;
    settings.rate_bits = 0;
    settings.directory = directory;
    settings.make_seed = [] { return 77U; };
    settings.evaluation_interval = 0s;
    const std::int64_t begin = now();
    ssdpulse::flash::ModelSet models(std::move(settings));
    observe(models);
    const auto first = models.figures();
    say(fmt::format("resumed {:d} {} {}", first->drives.at(0).resumed, first->states_rejected, begin));
    while (!stop.stop_requested()) {
      const std::int64_t at = now();
      say(fmt::format("saving {}", at));
      const std::uint64_t failures = models.figures()->state_failures;
      models.keep_all(WallTime(std::chrono::microseconds(at)));
      const std::int64_t end = now();
      observe(models);
      const bool failed = models.figures()->state_failures != failures;
      say(fmt::format("{} {} {}", failed ? "unsaved" : "saved", at, end));
      std::this_thread::sleep_for(20ms);
    }
  }

  static std::int64_t now() { return std::chrono::system_clock::now().time_since_epoch() / 1us; }

  void observe(ssdpulse::flash::ModelSet& models) {
    ssdpulse::flash::FlashInput input;
    input.at = std::chrono::microseconds(now());
    input.wall = WallTime(input.at);
    ssdpulse::flash::FlashDrive drive;
    drive.key = "serial 0";
    drive.namespaces = {{"sda", kPages * drive.page_bytes}};
    drive.facts.size_bytes = kPages * drive.page_bytes;
    input.drives = {drive};
    auto samples = std::make_shared<FlashSamples>();
    for (int i = 0; i < 1000; ++i) {
      samples->events.push_back({page_ = (page_ * 5 + 1) % kPages, 1, 0, FlashEventKind::write, 0});
    }
    written_.written[0] += samples->events.size();
    samples->devices = {written_};
    input.samples = std::move(samples);
    input.sampling = models.sampling();
    models.observe(input);
  }

  std::uint32_t page_ = 0;
  DeviceFlashSamples written_{"sda", 1, {}, {}};
  std::jthread thread_;
};

class Writer {
 public:
  Writer(History& history, Clocks& clocks) : history_(history), clocks_(clocks) {}

  /// Finds what an earlier run has written, and continues with the number after it.
  void find() {
    while (true) {
      report();
      const auto recalled = history_.recall(drive(0), Minute{}).get();
      if (recalled) {
        const std::uint64_t last = recalled->minutes.empty() ? 0 : recalled->minutes.back().discard_bytes;
        const Bytes state = recalled->state ? recalled->state->bytes : Bytes{'0'};
        const std::string number(state.begin(), state.end());
        say(fmt::format("found {} {}", last, number));
        next_ = unsettled_ = std::max({static_cast<std::int64_t>(last) + 1, std::stol(number) + 1, kFirst});
        if (const std::int64_t mark = (next_ - 1) / kStepsOfAMark * kStepsOfAMark; mark >= kFirst) {
          set_clock(next_ - 1);
          keep(mark);
        }
        return;
      }
      if (commands_.ended()) {
        return;
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  void write(std::int64_t steps) {
    for (; steps > 0 && !commands_.ended(); --steps, ++next_) {
      set_clock(next_);
      ++clocks_.boottime;
      say(fmt::format("sent {} {}", next_, milliseconds(wall())));
      history_.add(batch_of(next_, wall()));
      if (next_ % kStepsOfAMark == 0) {
        keep(next_);
      }
      const auto end = std::chrono::steady_clock::now() + (dropping_ ? kLongestWhileDropping : kLongestStep);
      while (!report() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(50us);
      }
    }
    while (!report() && history_.status().up) {
      std::this_thread::sleep_for(1ms);
    }
    const Status status = history_.status();
    for (const auto& [table, rows] : status.given) {
      say(fmt::format("given {} {} {} {} {} {} {}", table, rows.received, rows.waiting, rows.written, rows.replaced,
                      rows.refused, rows.surplus));
    }
    for (const auto& [table, rows] : status.rows.tables()) {
      say(fmt::format("rows {} {} {}", table, rows.inserted, fmt::join(rows.removed, " ")));
    }
  }

 private:
  [[nodiscard]] WallTime wall() const { return WallTime(std::chrono::seconds(clocks_.wall)); }
  void set_clock(std::int64_t number) { clocks_.wall = number * 60 + commands_.clock(); }

  void keep(std::int64_t number) {
    say(fmt::format("asked {} {}", number, milliseconds(wall())));
    asked_.emplace_back(number,
                        history_.keep({wall(), fmt::format("step {}", number), false, fmt::format("mark {}", number)}));
  }

  /// What has happened since the last time; whether nothing waits.
  bool report() {
    commands_.read();
    const Status status = history_.status();
    const std::string state = status.up                              ? "up"
                              : status.obstacle == Obstacle::opening ? state_
                                                                     : "down " + status.reason;
    if (std::exchange(state_, state) != state) {
      say(state);
    }
    const GivenRows& steps = status.given.at("setting");  // one in each step
    report_steps(steps.written, steps.surplus + steps.refused, steps.waiting == 0);
    std::erase_if(asked_, [](auto& one) {
      const bool answered = one.second.wait_for(0s) == std::future_status::ready;
      if (answered) {
        const Result<WallTime> at = one.second.get();
        say(at ? fmt::format("kept {} {}", one.first, milliseconds(*at))
               : fmt::format("refused {} {}", one.first, at.error().message));
      }
      return answered;
    });
    return steps.waiting == 0 && asked_.empty();
  }

  /// While some are dropped, nobody knows which ones: one may be on its way to the disk, and stays.
  void report_steps(std::uint64_t written, std::uint64_t gone, bool all_settled) {
    if (gone > gone_ && !std::exchange(dropping_, true)) {
      say(fmt::format("dropping {}", unsettled_));
    }
    if (dropping_ && !all_settled) {
      return;
    }
    const auto more = static_cast<std::int64_t>(written - std::exchange(written_, written));
    const auto less = static_cast<std::int64_t>(gone - std::exchange(gone_, gone));
    if (std::exchange(dropping_, false)) {
      say(fmt::format("dropped {} {} {}", unsettled_, unsettled_ + more + less - 1, more));
    } else {
      for (std::int64_t i = 0; i < more; ++i) {
        say(fmt::format("committed {}", unsettled_ + i));
      }
    }
    unsettled_ += more + less;
  }

  History& history_;
  Clocks& clocks_;
  Commands commands_;
  std::int64_t next_ = kFirst;
  std::int64_t unsettled_ = kFirst;  // the first that is neither written nor dropped
  std::uint64_t written_ = 0;
  std::uint64_t gone_ = 0;
  bool dropping_ = false;
  std::string state_;
  std::deque<std::pair<std::int64_t, std::future<Result<WallTime>>>> asked_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int place, std::int64_t otherwise) {
    return argc > place ? std::strtoll(argv[place], nullptr, 10) : otherwise;
  };
  if (argc < 2 || !ssdpulse::log::set_up("warning")) {
    say("usage: ssdpulse_history_writer DIRECTORY [STEPS [RETENTION_MINUTES [BYTES]]]");
    return 2;
  }
  Clocks clocks;
  const FlashKeeper keeper(argv[1]);
  Options options;
  options.directory = argv[1];
  options.limits.retention = std::chrono::minutes(number(3, 3650 * 24 * 60));
  options.limits.bytes = static_cast<std::uint64_t>(number(4, static_cast<std::int64_t>(options.limits.bytes)));
  options.max_pending_rows = 600;
  options.retry_interval = 100ms;
  options.now = [&clocks] { return WallTime(std::chrono::seconds(clocks.wall)); };
  options.boottime = [&clocks] { return std::chrono::minutes(clocks.boottime); };
  auto history = History::open(std::move(options));
  if (!history) {
    say(history.error().message);
    return 1;
  }
  Writer writer(**history, clocks);
  writer.find();
  writer.write(number(2, 1'000'000));
  return 0;
}

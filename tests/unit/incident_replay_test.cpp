// SPDX-License-Identifier: Apache-2.0
// Incidents that were recorded once (tests/ticks), fed through all analyses: is the first line right while they go on,
// and afterwards? What is right was written down from what was done to the drive, by NAME.expect next to the recording:
// see tests/README.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "daemon/history/recent_past.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/device_interval.h"
#include "daemon/runtime/all_stages.h"
#include "daemon/spikes/why.h"
#include "tests/ticks/tick_recording.h"

namespace ssdpulse {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kRecently{12};  // a spike is known to have ended a few seconds later
constexpr std::uintmax_t kLargestRecording = 200 << 10;
const std::filesystem::path kRecordings = std::filesystem::path(SSDPULSE_SOURCE_DIR) / "tests/fixtures/ticks";

/// What must be answered at one time.
struct Expectation {
  Seconds at{};                       // since the epoch
  std::string line;                   // as written
  std::optional<std::string> device;  // "none": none
  std::vector<std::string> contains;
  std::vector<std::string> lacks;
  std::vector<std::string> evidence_lacks;  // of any spike so far
  std::string spike;                        // an operation that had a spike in the last seconds; empty: not asked
};

/// What the daemon knows when it is asked.
struct Answer {
  spikes::Why why;
  std::vector<model::LatencySpike> spikes;  // all that it remembers
  model::WallTime at;
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(trimmed(part));
  }
  return parts;
}

/// at SECONDS | device=NAME | contains=TEXT or TEXT;TEXT | lacks=TEXT;TEXT | evidence_lacks=TEXT | spike=OPERATION
Expectation expectation_of(const std::string& line) {
  Expectation expected;
  expected.line = line;
  const std::vector<std::string> parts = split(line, '|');
  if (!parts.front().starts_with("at ")) {
    throw std::runtime_error("no time: " + line);
  }
  expected.at = Seconds(std::stod(parts.front().substr(3)));
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    const std::size_t equals = part->find('=');
    const std::string key = part->substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part->substr(equals + 1);
    if (key == "device") {
      expected.device = value;
    } else if (key == "contains") {
      const std::vector<std::string> texts = split(value, ';');
      expected.contains.insert(expected.contains.end(), texts.begin(), texts.end());
    } else if (key == "lacks") {
      expected.lacks = split(value, ';');
    } else if (key == "evidence_lacks") {
      expected.evidence_lacks = split(value, ';');
    } else if (key == "spike") {
      expected.spike = value;
    } else {
      throw std::runtime_error("unknown: " + line);
    }
  }
  return expected;
}

std::vector<Expectation> expectations_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<Expectation> expected;
  for (std::string line; std::getline(stream, line);) {
    if (!trimmed(line).empty() && line.front() != '#') {
      expected.push_back(expectation_of(line));
    }
  }
  return expected;
}

/// Is one of the texts, which " or " separates, in the sentence?
bool holds_one_of(const std::string& sentence, std::string texts) {
  const std::string_view separator = " or ";
  for (std::size_t end = 0; (end = texts.find(separator)) != std::string::npos;
       texts.erase(0, end + separator.size())) {
    if (sentence.find(texts.substr(0, end)) != std::string::npos) {
      return true;
    }
  }
  return sentence.find(texts) != std::string::npos;
}

bool has_spike(const Answer& answer, const std::string& operation) {
  return std::any_of(answer.spikes.begin(), answer.spikes.end(), [&](const model::LatencySpike& spike) {
    return name(spike.operation) == operation && spike.begin + spike.duration >= answer.at - kRecently;
  });
}

/// "none": no device is the slow one. Of an incident that is over, the sentence alone may name the device.
bool names(const spikes::Why& why, const std::string& device) {
  if (device == "none") {
    return why.device.empty();
  }
  return why.device == device || std::regex_search(why.sentence, std::regex("\\b" + device + "\\b"));
}

/// The one place that judges an answer: empty if it is as expected, else what is wrong.
std::string wrong_in(const Answer& answer, const Expectation& expected) {
  const spikes::Why& why = answer.why;
  std::string wrong;
  if (expected.device && !names(why, *expected.device)) {
    wrong += fmt::format("; device={}", why.device.empty() ? "none" : why.device);
  }
  for (const std::string& texts : expected.contains) {
    if (!holds_one_of(why.sentence, texts)) {
      wrong += fmt::format("; lacks \"{}\"", texts);
    }
  }
  for (const std::string& text : expected.lacks) {
    if (why.sentence.find(text) != std::string::npos) {
      wrong += fmt::format("; has \"{}\"", text);
    }
  }
  for (const model::LatencySpike& spike : answer.spikes) {
    for (const std::string& text : expected.evidence_lacks) {
      if (const std::string evidence = model::evidence_text(spike); evidence.find(text) != std::string::npos) {
        wrong += fmt::format("; evidence has \"{}\": {}", text, evidence);
      }
    }
  }
  if (!expected.spike.empty() && !has_spike(answer, expected.spike)) {
    wrong += fmt::format("; no spike of {}", expected.spike);
  }
  return wrong;
}

/// A daemon without a kernel: all its analyses, and what it remembers for the first line.
class Replay {
 public:
  void feed(model::Tick tick) {
    tick.keeps_history = false;
    tick.before = now_;
    keys_.set_history_keys(tick);
    intervals_.set_intervals(tick);
    auto snapshot = std::make_shared<model::Snapshot>();
    snapshot->number = ++number_;
    snapshot->taken_at = tick.wall;
    snapshot->memberships = tick.inventory->memberships;
    snapshot->filesystems = tick.inventory->filesystems;
    for (const model::DeviceTick& entry : tick.devices) {
      model::DeviceSnapshot device{entry.block.device, entry.block.io, {}, {}, {}};
      device.kernel_in_flight = entry.kernel_in_flight;
      device.interval = entry.interval;
      snapshot->devices.push_back(std::move(device));
    }
    for (const auto& stage : stages_) {
      if (const auto values = stage->observe(tick).values) {
        values(*snapshot);
      }
    }
    past_.observe(*snapshot, tick.at);
    now_ = std::move(snapshot);
  }
  [[nodiscard]] Answer ask() const {
    std::vector<model::LatencySpike> spikes = past_.ended_spikes();
    const spikes::Why why = spikes::why({now_.get(), spikes, past_.bursts(), past_.since(), past_.remembered_since()});
    for (const auto* more : {&now_->spikes_going_on, &now_->spikes_unjudged}) {
      spikes.insert(spikes.end(), more->begin(), more->end());
    }
    return {why, std::move(spikes), now_->taken_at};
  }

 private:
  model::HistoryKeys keys_;
  model::Intervals intervals_;
  std::vector<std::unique_ptr<model::Stage>> stages_ = runtime::all_stages();
  history::RecentPast past_;
  std::shared_ptr<const model::Snapshot> now_;
  std::uint64_t number_ = 0;
};

std::vector<std::string> recordings() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRecordings)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".ticks.gz")) {
      names.push_back(name.substr(0, name.size() - std::string_view(".ticks.gz").size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class IncidentReplay : public testing::TestWithParam<std::string> {};

TEST_P(IncidentReplay, first_line) {
  const auto recording = kRecordings / (GetParam() + ".ticks.gz");
  EXPECT_LE(std::filesystem::file_size(recording), kLargestRecording);
  const auto expected = expectations_of(kRecordings / (GetParam() + ".expect"));
  ASSERT_FALSE(expected.empty());
  std::vector<model::Tick> ticks = ticks::read(recording);
  ASSERT_FALSE(ticks.empty());
  const bool shows = std::getenv("SSDPULSE_SHOW_ANSWERS") != nullptr;  // NOLINT: before any thread
  Replay replay;
  auto next = expected.begin();
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    replay.feed(std::move(ticks[i]));
    const bool last = i + 1 == ticks.size();
    while (next != expected.end() && !last && Seconds(ticks[i + 1].wall.time_since_epoch()) > next->at) {
      const Answer answer = replay.ask();
      const std::string wrong = wrong_in(answer, *next);
      EXPECT_EQ(wrong, "") << next->line << "\n  sentence: " << answer.why.sentence << "\n  next: " << answer.why.next;
      if (shows) {
        fmt::print("{} {}\n  {}\n", wrong.empty() ? "right" : "WRONG", next->line, answer.why.sentence);
      }
      ++next;
    }
  }
  EXPECT_EQ(next, expected.end()) << "asked after the end of the recording, or not in the order of time";
}

/// A cgroup that departs must not be counted twice; everything else comes back as it was.
TEST(TickRecording, returns_what_was_written) {
  const auto file = std::filesystem::path(testing::TempDir()) / "returns_what_was_written.ticks.gz";
  auto inventory = std::make_shared<model::Inventory>();
  model::Device device;
  device.name = "sda";
  inventory->devices.push_back(device);
  inventory->filesystems.push_back({"sda", "/srv/a b", "ext4"});
  model::DeviceIo io;
  io.since = model::WallTime(std::chrono::seconds(1'700'000'000));
  io.operations[0].issues = io.operations[0].completions = 3;
  io.operations[0].in_flight = 2;
  io.operations[1].requeues[0] = 7;
  io.operations[0].device_latency[1].words.assign(LATENCY_OVER_WORD + 1, 0);
  io.operations[0].device_latency[1].words[40] = 3;
  io.operations[0].device_latency[1].sum_ns = 9'000;
  model::DeviceAttribution attribution;
  attribution.cgroups[11][0] = {3, 12'288, 9'000};
  attribution.commits[12] = 5;
  const auto tick_of = [&](int second) {
    model::Tick tick;
    tick.wall = io.since + std::chrono::seconds(second);
    tick.at = model::SteadyTime(std::chrono::seconds(50 + second));
    tick.inventory = inventory;
    model::Tenants tenants;
    tenants[11].name = "a.service";
    tenants[12].name = "b.service";
    tick.tenants = std::make_shared<const model::Tenants>(tenants);
    tick.discards["sda"][0] = {1, 4096, 1'000, 2'000, "a b"};
    model::DeviceTick entry;
    entry.block.device = std::shared_ptr<const model::Device>(inventory, &inventory->devices.front());
    entry.block.io = std::make_shared<const model::DeviceIo>(io);
    entry.block.attribution = std::make_shared<const model::DeviceAttribution>(attribution);
    if (second == 1) {
      entry.kernel_in_flight = {1, 1};
    }
    tick.devices.push_back(std::move(entry));
    return tick;
  };
  {
    ticks::Writer writer(file);
    writer.add(tick_of(0));
    io.operations[0].in_flight = 0;
    attribution.departed = attribution.cgroups[11];
    attribution.cgroups.erase(11);
    writer.add(tick_of(1));
  }
  const std::vector<model::Tick> ticks = ticks::read(file);
  ASSERT_EQ(ticks.size(), 2U);
  const model::DeviceIo& first = *ticks[0].devices.at(0).block.io;
  EXPECT_EQ(first.operations[0].in_flight, 2);
  EXPECT_EQ(first.operations[1].requeues[0], 7U);
  EXPECT_EQ(first.operations[0].device_latency[1].words, io.operations[0].device_latency[1].words);
  EXPECT_EQ(first.operations[0].device_latency[1].sum_ns, 9'000U);
  EXPECT_TRUE(first.operations[0].queue_latency.empty());
  EXPECT_EQ(first.since, io.since);
  EXPECT_EQ(ticks[0].devices[0].block.attribution->cgroups.at(11)[0].bytes, 12'288U);
  EXPECT_FALSE(ticks[0].devices[0].kernel_in_flight);
  EXPECT_EQ(ticks[0].discards.at("sda")[0].submitter, "a b");
  EXPECT_EQ(ticks[0].inventory->filesystems.at(0).mountpoint, "/srv/a b");
  EXPECT_EQ(ticks[0].tenants->at(12).name, "b.service");
  const model::DeviceAttribution& then = *ticks[1].devices[0].block.attribution;
  EXPECT_FALSE(then.cgroups.contains(11));
  EXPECT_EQ(then.departed[0].bytes, 12'288U);
  EXPECT_EQ(then.commits.at(12), 5U);
  EXPECT_EQ(ticks[1].devices[0].block.io->operations[0].in_flight, 0);
  EXPECT_EQ(ticks[1].devices[0].kernel_in_flight->writes, 1);
  EXPECT_EQ(ticks[1].wall - ticks[0].wall, std::chrono::seconds(1));
  std::filesystem::remove(file);
}

INSTANTIATE_TEST_SUITE_P(recorded, IncidentReplay, testing::ValuesIn(recordings()), [](const auto& one) {
  std::string name = one.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace ssdpulse

// SPDX-License-Identifier: Apache-2.0
// ssdpulse_simulated_history DIRECTORY HOURS RATIO LOAD: writes a history that ends now: HOURS before a change and as
// many after it (plus some minutes of settling), made by simulated_minutes.h. After the change every latency of nvme0n1
// is RATIO times what it was, and the load LOAD times; sda stays as it was. nvme0n1's scheduler and a mark record the
// change.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "daemon/base/log.h"
#include "daemon/history/history.h"
#include "tests/unit/simulated_minutes.h"

namespace {

using namespace std::chrono_literals;
using namespace ssdpulse;

constexpr auto kSettling = 11min;
const model::DeviceKey kDrive{"wwid-1", "nvme0n1", "<b>Model</b>\x1b[31m", "S1"};
const model::DeviceKey kDisk{"wwid-2", "sda", "Disk", "S2"};

struct Plan {
  model::DeviceKey device;
  test::SimulatedDisk disk;
  std::uint64_t seed = 1;
};

/// Writes are like reads, at half the rate; some of the reads overlapped a discard and took three times as long.
model::DeviceInterval completed(const model::DeviceInterval& reads, const model::DeviceInterval& writes) {
  model::DeviceInterval load = reads;
  const auto& total = reads.latency(model::Latency::read_total);
  load.latency(model::Latency::read_device_none) = total;
  load.latency(model::Latency::read_queue) = {{{40, total.count()}}, total.sum_ns / 10};
  for (const auto& [word, count] : total.words) {
    if (count >= 20) {
      const auto slower = static_cast<std::uint8_t>(std::min(209, word + 13));
      load.latency(model::Latency::read_device_discard).words.emplace_back(slower, count / 20);
    }
  }
  load.latency(model::Latency::write_total) = writes.latency(model::Latency::read_total);
  load.operations[index(model::Operation::write)] = writes.operations[index(model::Operation::read)];
  return load;
}

void add_minutes(history::History& past, const Plan& plan, std::size_t count, model::Minute start) {
  const auto begin = start.time_since_epoch().count();
  test::SimulatedDisk half = plan.disk;
  half.ios /= 2;
  const auto reads = test::simulate_minutes(plan.disk, count, plan.seed, begin);
  const auto writes = test::simulate_minutes(half, count, plan.seed + 1, begin);
  for (std::size_t i = 0; i < count; ++i) {
    model::Batch batch;
    batch.device_minutes.push_back({plan.device, reads[i].start, completed(reads[i].load, writes[i].load)});
    past.add(std::move(batch));
    std::this_thread::sleep_for(i % 64 == 0 ? 20ms : 0ms);  // few enough wait that none are dropped
  }
}

model::Batch scheduler(const std::string& value, std::chrono::system_clock::time_point at) {
  model::Batch batch;
  batch.settings.push_back({kDrive.identity, "queue.scheduler", value});
  batch.at = at;
  return batch;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || !log::set_up("warning")) {
    return 2;
  }
  const auto minutes = static_cast<std::size_t>(60 * std::atoi(argv[2]));
  history::Options options;
  options.directory = argv[1];
  auto past = history::History::open(options);
  if (!past) {
    std::cerr << past.error().message << '\n';
    return 1;
  }
  const auto now = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
  const auto length = std::chrono::minutes(minutes);
  const model::Minute after = now - length;
  const model::Minute change = after - kSettling;
  test::SimulatedDisk disk{.day_swing = 0};
  Plan drive{kDrive, disk, 11};
  Plan other{kDisk, disk, 21};
  (*past)->add(scheduler("mq-deadline", change - length - 1min));
  add_minutes(**past, drive, minutes, change - length);
  add_minutes(**past, other, minutes, change - length);
  (*past)->add(scheduler("none", change));
  model::Batch mark;
  mark.marks.push_back({change, "scheduler <none> | try"});
  (*past)->add(std::move(mark));
  drive.disk.ratio = std::atof(argv[3]);
  drive.disk.load = std::atof(argv[4]);
  drive.seed = 41;  // fixed: of any hundred seeds, four or five put the truth outside the interval
  add_minutes(**past, drive, minutes, after);
  add_minutes(**past, other, minutes, after);
  const std::size_t expected = 4 * minutes;
  for (int i = 0; i < 1800 && (*past)->status().rows_written() < expected; ++i) {
    std::this_thread::sleep_for(100ms);
  }
  const history::Status status = (*past)->status();
  std::cout << status.rows_written() << " rows, " << status.rows_dropped() << " dropped " << status.reason << '\n';
  return status.rows_dropped() == 0 && status.rows_written() >= expected ? 0 : 1;
}

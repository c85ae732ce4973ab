// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/first_line.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cause_words.h"

namespace ssdpulse::test {

spikes::Why first_line(const Simulation& simulation, double at) {
  model::Device disk;
  disk.name = "nvme0n1";
  disk.iostats = true;
  model::DeviceSnapshot entry;
  entry.device = std::make_shared<const model::Device>(disk);
  model::Snapshot snapshot;
  snapshot.devices = {entry};
  snapshot.taken_at = simulation.wall_now();
  snapshot.spikes_going_on = simulation.subject.going_on();
  return spikes::why({&snapshot, simulation.spikes, {}, Simulation::wall(0)}, Simulation::wall(at));
}

void expect_first_line(const Simulation& simulation, double at, model::SpikeCause cause) {
  const CauseWords& words = kCauseWords.at(index(cause));
  const spikes::Why said = first_line(simulation, at);
  EXPECT_EQ(said.verdict, spikes::Verdict::slow) << said.sentence;
  EXPECT_EQ(said.device, "nvme0n1");
  EXPECT_EQ(said.sentence.rfind("nvme0n1: ", 0), 0U) << said.sentence;
  EXPECT_TRUE(said.sentence.find("times longer than usual") != std::string::npos ||
              said.sentence.find(" completed for ") != std::string::npos)
      << said.sentence;
  const bool drive_alone = cause == model::SpikeCause::unknown && said.sentence.find(words.usual) != std::string::npos;
  EXPECT_TRUE(drive_alone || said.sentence.find(words.more) != std::string::npos) << said.sentence;
  EXPECT_FALSE(said.next.empty());
}

void expect_usual_first_line(const Simulation& simulation, double at) {
  const spikes::Why said = first_line(simulation, at);
  EXPECT_EQ(said.verdict, spikes::Verdict::ok) << said.sentence;
  EXPECT_EQ(said.sentence.rfind("No drive was slower than usual", 0), 0U) << said.sentence;
}

}  // namespace ssdpulse::test

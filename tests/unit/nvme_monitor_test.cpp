// SPDX-License-Identifier: Apache-2.0
// Does the monitor cope with a reader that dies, lies or loses an answer?
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <set>
#include <thread>
#include <vector>

#include "daemon/nvme/drive_monitor.h"
#include "tests/fixtures/fake_nvme_drive.h"
#include "tests/fixtures/nvme_drives.h"
#include "tests/fixtures/nvme_sysfs.h"
#include "tests/unit/nvme_drive_rig.h"

namespace ssdpulse::nvme {
namespace {

constexpr auto kReconnectPause = 100ms;

class MonitorRig {
 public:
  MonitorRig() {
    sysfs.controller(3, 3);
    sysfs.disk_of_controller(3, "nvme3n1", "1");
    auto [ours, theirs] = tests::socket_pair();
    reader = std::move(theirs);
    monitor.emplace(std::make_unique<ReaderClient>(std::move(ours)), kInterval, sysfs.root());
    fake.serial = "S3";
  }

  /// What the monitor asks for now, if anything.
  std::optional<Request> asked() {
    monitor->advance(block);
    Request request;
    const auto reception = nvme_reader::receive_message(reader.get(), request, MSG_DONTWAIT);
    return reception == nvme_reader::Reception::message ? std::optional(request) : std::nullopt;
  }

  void answer(const Request& request) {
    Response response = fake.answer(request);
    response.id = request.id;
    EXPECT_EQ(nvme_reader::send_message(reader.get(), response, 0), 0);
  }

  [[nodiscard]] model::SourceStatus status() const { return monitor->status(); }
  [[nodiscard]] std::vector<model::DriveTick> drives() { return monitor->sample(std::chrono::steady_clock::now()); }

  tests::NvmeSysfs sysfs;
  FakeDrive fake;
  FakeBlockLayer block;
  util::UniqueFd reader;
  std::optional<DriveMonitor> monitor;
};

TEST(Monitor, AsksAndListens) {
  MonitorRig rig;
  std::size_t commands = 0;
  while (const auto request = rig.asked()) {
    ++commands;
    rig.answer(*request);
  }
  EXPECT_GE(commands, 3U);
  const auto drives = rig.drives();
  ASSERT_EQ(drives.size(), 1U);
  EXPECT_TRUE(drives[0].drive->polling.up);
  EXPECT_EQ(drives[0].drive->identity->serial, "S3");
  EXPECT_TRUE(rig.monitor->deadline()) << "the I/Os near the log read are to be counted";
}

TEST(Monitor, DrivesOfOneSubsystemNameAndSerialNumberAreKeptApart) {
  MonitorRig rig;
  rig.sysfs.controller(4, 4, "live", "serial = S3\nsubsysnqn = nqn.2014.08.org:S3");
  rig.sysfs.controller(5, 5, "live", "serial = S3\nsubsysnqn = nqn.2014.08.org:S3\naddress = 0000:04:00.0");
  rig.monitor->refresh_drives();
  std::vector<std::string> names;
  std::set<std::string> keys;
  for (const model::DriveTick& one : rig.drives()) {
    names.push_back(one.drive->identity->controller);
    keys.insert(one.key);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"nvme3", "nvme4", "nvme5"}));
  EXPECT_EQ(keys, (std::set<std::string>{"nqn.2014.08.org:S3 | at 0000:03:00.0\nS3",
                                         "nqn.2014.08.org:S3 | at 0000:04:00.0\nS3",
                                         "nqn.2014.08.org:S3 | at 0000:04:00.0 | name nvme5\nS3"}));
}

TEST(Monitor, AReaderThatDiesLeavesNoDeadline) {
  MonitorRig rig;
  ASSERT_TRUE(rig.asked());
  rig.reader.reset();
  rig.monitor->advance(rig.block);
  EXPECT_FALSE(rig.status().up);
  EXPECT_EQ(rig.monitor->descriptor(), -1);
  EXPECT_FALSE(rig.monitor->deadline()) << "the daemon would never sleep again";
}

/// If nobody has connected, accept() fails at once.
util::UniqueFd listen_at(const std::string& path) {
  util::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.copy(address.sun_path, sizeof address.sun_path - 1), sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  return listener;
}

TEST(Monitor, AReaderThatAcceptsButNeverAnswersIsNotUp) {
  const tests::TemporaryTree tree;
  const util::UniqueFd listener = listen_at(tree.path("reader.socket"));
  MonitorRig rig;
  auto client = ReaderClient::at(tree.path("reader.socket"));
  ASSERT_TRUE(client);
  rig.monitor.emplace(std::move(client), kInterval, rig.sysfs.root());
  EXPECT_FALSE(rig.asked());
  EXPECT_FALSE(rig.status().up);
  EXPECT_NE(rig.status().reason.find("nothing has answered"), std::string::npos) << rig.status().reason;
  rig.reader = util::UniqueFd(::accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(rig.reader.valid());
  const auto request = rig.asked();
  ASSERT_TRUE(request) << "the connection that nobody had taken yet was not used";
  EXPECT_FALSE(rig.status().up);
  rig.answer(*request);
  EXPECT_TRUE(rig.asked());
  EXPECT_TRUE(rig.status().up) << rig.status().reason;
  EXPECT_EQ(rig.status().reason, "");
}

TEST(Monitor, AReaderThatServesAnotherDaemonIsNeverUp) {
  const tests::TemporaryTree tree;
  const util::UniqueFd listener = listen_at(tree.path("reader.socket"));
  MonitorRig rig;
  auto client = ReaderClient::at(tree.path("reader.socket"));
  ASSERT_TRUE(client);
  rig.monitor.emplace(std::move(client), kInterval, rig.sysfs.root(), kReconnectPause);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t turned_away = 0;
  while (turned_away < 2 && std::chrono::steady_clock::now() - begin < 20s) {
    rig.asked();
    EXPECT_FALSE(rig.status().up);
    const util::UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
    std::this_thread::sleep_for(20ms);
    turned_away = rig.status().errors["reader_gone"];
  }
  EXPECT_EQ(turned_away, 2U);
}

TEST(Monitor, AReaderElsewhereIsFoundWheneverItComes) {
  const tests::TemporaryTree tree;
  const std::string path = tree.path("reader.socket");
  DriveMonitor monitor(ReaderClient::at(path), kInterval, tree.path(), kReconnectPause);  // with no drives there
  FakeBlockLayer block;
  const auto status = [&] { return monitor.status(); };
  monitor.advance(block);
  EXPECT_FALSE(status().up);
  EXPECT_NE(status().reason.find(path), std::string::npos) << status().reason;

  const util::UniqueFd listener = listen_at(path);
  const auto until = [&](bool up) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (status().up != up && std::chrono::steady_clock::now() < deadline) {
      monitor.advance(block);
      std::this_thread::sleep_for(20ms);
    }
    return status().up == up;
  };
  ASSERT_TRUE(until(true)) << status().reason;
  util::UniqueFd reader(::accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(reader.valid());
  EXPECT_EQ(::fcntl(monitor.descriptor(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  reader.reset();
  ASSERT_TRUE(until(false));
  EXPECT_EQ(status().errors["reader_gone"], 1U);
  ASSERT_TRUE(until(true)) << "it was not looked for again";
}

TEST(Monitor, AReaderOfAnotherVersionIsAskedNothingMore) {
  MonitorRig rig;
  const auto request = rig.asked();
  ASSERT_TRUE(request);
  Response response;
  response.id = request->id;
  response.bytes = 512;
  response.version ^= 1;
  ASSERT_EQ(nvme_reader::send_message(rig.reader.get(), response, 0), 0);
  EXPECT_FALSE(rig.asked());
  EXPECT_FALSE(rig.status().up);
  EXPECT_NE(rig.status().reason.find("restart ssdpulse-nvme.service"), std::string::npos) << rig.status().reason;
  EXPECT_EQ(rig.status().errors["reader_version"], 1U);
  EXPECT_FALSE(rig.monitor->deadline());
  EXPECT_FALSE(rig.drives().at(0).drive->polling.up);
  EXPECT_TRUE(rig.drives().at(0).drive->values.empty());
}

TEST(Monitor, GarbageIsCounted) {
  MonitorRig rig;
  ASSERT_TRUE(rig.asked());
  ASSERT_EQ(::send(rig.reader.get(), "nonsense", 8, 0), 8);
  rig.monitor->advance(rig.block);
  EXPECT_EQ(rig.status().errors["garbage"], 1U);
}

}  // namespace
}  // namespace ssdpulse::nvme

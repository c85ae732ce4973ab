// SPDX-License-Identifier: Apache-2.0
// Does the reader continue when it dies, and end when the daemon does? Supervisor and workers run here unchanged, in
// processes of their own; only the drives are ours.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "daemon/base/log.h"
#include "daemon/base/system_calls.h"
#include "daemon/nvme/reader_client.h"
#include "daemon/nvme_reader/reader_process.h"
#include "daemon/nvme_reader/reader_worker.h"
#include "tests/fixtures/nvme_drives.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::nvme_reader {
namespace {

using namespace std::chrono_literals;
using namespace tests;
using Clock = std::chrono::steady_clock;

/// A supervisor and its workers, in separate processes, with drives of which number 0 hangs and number 13 kills.
class SupervisedReader {
 public:
  SupervisedReader() {
    auto [daemon_end, reader_end] = socket_pair();
    const int socket = reader_end.get();
    const pid_t pid = ::fork();
    if (pid == 0) {
      daemon_end.reset();
      CommandBudget* budget = CommandBudget::shared();
      const auto work = [socket, budget] {
        class Deadly final : public DriveCommands {
         public:
          util::Result<util::UniqueFd> open(std::uint32_t controller) override {
            if (controller == 13) {
              ::raise(SIGKILL);
            }
            return drives.open(controller);
          }
          int execute(int fd, const Command& command, std::span<std::uint8_t> data) override {
            return drives.execute(fd, command, data);
          }
          Drives drives;
        } drives;
        drives.drives.hang(0);
        ReaderWorker worker(socket, drives, kPages, *budget);
        worker.serve();
        ::_exit(0);
      };
      ::_exit(supervise(socket, work, 50ms) ? 7 : 8);
    }
    supervisor = pid;
    client = std::make_unique<ReaderClient>(std::move(daemon_end));
  }

  /// Its exit code after the daemon's end is closed.
  int end() {
    client.reset();
    int status = 0;
    ::waitpid(supervisor, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t supervisor = 0;
  std::unique_ptr<ReaderClient> client;
};

TEST(NvmeSupervisor, ANewWorkerHasNoNewBudget) {
  SupervisedReader reader;
  const auto begin = Clock::now();
  std::uint64_t read = 0;
  for (int i = 0; i < 1000; ++i) {
    read += result_of(*reader.client, read_page(1)) == 0 ? 1 : 0;
  }
  EXPECT_EQ(result_of(*reader.client, read_page(13)), -ECONNRESET);
  for (int i = 0; i < 1000; ++i) {
    read += result_of(*reader.client, read_page(1)) == 0 ? 1 : 0;
  }
  const auto seconds =
      static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(Clock::now() - begin).count());
  EXPECT_LE(read, CommandBudget::kOfDrive.burst + CommandBudget::kOfDrive.per_second * seconds);
}

TEST(NvmeSupervisor, ADeadWorkerIsReplacedAndItsRequestsAnswered) {
  SupervisedReader reader;
  ASSERT_EQ(result_of(*reader.client, read_page(1)), 0);
  for (int death = 0; death < 3; ++death) {
    std::set<std::uint64_t> lost{reader.client->send(read_page(0)).value(), reader.client->send(read_page(0)).value(),
                                 reader.client->send(read_page(13)).value()};
    for (const Response& response : answers(*reader.client, 3)) {
      EXPECT_EQ(response.result, -ECONNRESET);
      EXPECT_EQ(lost.erase(response.id), 1U);
    }
    EXPECT_TRUE(lost.empty());
    EXPECT_EQ(result_of(*reader.client, read_page(2)), 0) << "the next one works";
  }
  EXPECT_FALSE(reader.client->ended());
  EXPECT_EQ(reader.client->garbage(), 0U);
  EXPECT_EQ(reader.end(), 7);
}

TEST(NvmeSupervisor, EndsWithTheDaemonWhateverIsUnderWay) {
  SupervisedReader reader;
  ASSERT_TRUE(reader.client->send(read_page(0)));
  ASSERT_EQ(result_of(*reader.client, read_page(1)), 0);
  const auto began = Clock::now();
  EXPECT_EQ(reader.end(), 7);
  EXPECT_LT(Clock::now() - began, 5s);
}

TEST(NvmeSupervisor, EndsAlthoughItsWorkerDoesNot) {
  auto [daemon_end, reader_end] = socket_pair();
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    daemon_end.reset();
    const auto stuck = [] {
      while (true) {
        ::pause();
      }
    };
    ::_exit(supervise(reader_end.get(), stuck, 50ms) ? 7 : 8);
  }
  std::this_thread::sleep_for(50ms);
  daemon_end.reset();
  const auto deadline = Clock::now() + 10s;
  int status = 0;
  while (::waitpid(supervisor, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ::kill(supervisor, SIGKILL);
    }
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(NvmeSupervisor, EndsWhileItPauses) {
  SupervisedReader reader;
  ASSERT_TRUE(reader.client->send(read_page(13)));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(reader.end(), 7);
}

TEST(NvmeSupervisor, TheWorkerDiesWithIt) {
  SupervisedReader reader;
  ASSERT_EQ(result_of(*reader.client, read_page(1)), 0);
  const auto hangs = reader.client->send(read_page(0));
  ASSERT_TRUE(hangs);
  ::kill(reader.supervisor, SIGKILL);
  const auto all = answers(*reader.client, 1);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].id, *hangs);
  EXPECT_EQ(all[0].result, -EPIPE) << "the last one that held the socket is gone";
  EXPECT_TRUE(reader.client->ended());
  EXPECT_EQ(reader.end(), -1);
}

TEST(NvmeSupervisor, AClientThatComesAndGoesFillsNoLog) {
  const TemporaryTree tree;
  const std::string path = tree.path("socket");
  const util::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const pid_t service = ::fork();
  if (service == 0) {
    ::dup2(::open(tree.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    log::set_up("info", log::InJournal::lines);
    const auto work = [](int client) {
      Drives drives;
      AmpleBudget budget;
      ReaderWorker worker(client, drives, kPages, budget);
      worker.serve();
      ::_exit(0);
    };
    serve_clients(listener.get(), work, 50ms);
    ::_exit(8);
  }
  const auto deadline = Clock::now() + 20s;
  for (int served = 0; served < 5 && Clock::now() < deadline;) {
    auto client = ReaderClient::at(path);
    // A client is turned away if the reader does not know yet that the previous one has gone.
    served += client->reconnect() && client->send(read_page(1)) && answers(*client, 1).at(0).result == 0 ? 1 : 0;
  }
  EXPECT_LT(Clock::now(), deadline);
  ::kill(service, SIGKILL);
  ::waitpid(service, nullptr, 0);
  std::ifstream log(tree.path("log"));
  int came = 0;
  int went = 0;
  for (std::string line; std::getline(log, line);) {
    came += line.find("has a client") != std::string::npos ? 1 : 0;
    went += line.find("disconnected") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(came, 1);
  EXPECT_EQ(went, 1);
}

/// What a supervisor logs that may not make this system call, and its exit code: 7 after the daemon's end was closed, 8
/// if it gave up.
std::pair<std::string, int> without_system_call(const char* name) {
  const TemporaryTree tree;
  auto [daemon_end, reader_end] = socket_pair();
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    daemon_end.reset();
    ::dup2(::open(tree.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
    log::set_up("info", log::InJournal::lines);
    const util::SystemCall refused[] = {{name}};
    if (!util::refuse_system_calls(refused)) {
      ::_exit(9);
    }
    const auto work = [] { ::pause(); };
    ::_exit(supervise(reader_end.get(), work, 50ms) ? 7 : 8);
  }
  std::this_thread::sleep_for(120ms);
  daemon_end.reset();
  int status = 0;
  ::waitpid(supervisor, &status, 0);
  std::ifstream log(tree.path("log"));
  return {{std::istreambuf_iterator<char>(log), {}}, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST(NvmeSupervisor, SaysWhatItCannotDo) {
  const auto [not_started, went_on] = without_system_call("clone");
  EXPECT_NE(not_started.find("cannot start the NVMe reader, trying again: Operation not permitted"), std::string::npos)
      << not_started;
  EXPECT_EQ(not_started.find("died"), std::string::npos) << not_started;
  EXPECT_EQ(went_on, 7);
  const auto [not_watched, gave_up] = without_system_call("pidfd_open");
  EXPECT_NE(not_watched.find("cannot watch the NVMe reader: Operation not permitted"), std::string::npos)
      << not_watched;
  EXPECT_EQ(gave_up, 8);
}

TEST(NvmeSupervisor, StartedByHandItSaysWhatItIs) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_nvme_reader(-1), util::ExitCode::usage);
  const util::UniqueFd file(::open("/dev/null", O_RDONLY));
  EXPECT_EQ(run_nvme_reader(file.get()), util::ExitCode::usage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ssdpulse run"), std::string::npos);
}

}  // namespace
}  // namespace ssdpulse::nvme_reader

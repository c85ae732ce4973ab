// SPDX-License-Identifier: Apache-2.0
// Does every request get exactly one answer, whatever drives, messages and processes do? The reader's threads run here
// unchanged; only the drives are ours.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/nvme/reader_client.h"
#include "daemon/nvme_reader/reader_worker.h"
#include "tests/fixtures/nvme_drives.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::nvme_reader {
namespace {

using namespace std::chrono_literals;
using namespace tests;
using Clock = std::chrono::steady_clock;

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

template <typename True>
bool wait_until(True holds) {
  const auto deadline = Clock::now() + 20s;
  while (!holds()) {
    if (Clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// A worker in a thread of this process, and the daemon's end.
template <typename Budget = AmpleBudget>
class ReaderWith {
 public:
  ReaderWith() : ReaderWith(socket_pair()) {}
  ~ReaderWith() {
    client.reset();
    drives.release();
    thread_.join();
  }
  ReaderWith(const ReaderWith&) = delete;
  ReaderWith& operator=(const ReaderWith&) = delete;

  Drives drives;
  std::unique_ptr<nvme::ReaderClient> client;

 private:
  explicit ReaderWith(std::pair<util::UniqueFd, util::UniqueFd> ends)
      : client(std::make_unique<nvme::ReaderClient>(std::move(ends.first))),
        socket_(std::move(ends.second)),
        worker_(socket_.get(), drives, kPages, budget_),
        thread_([this] { worker_.serve(); }) {}

  util::UniqueFd socket_;
  Budget budget_;
  ReaderWorker worker_;
  std::thread thread_;
};
using Reader = ReaderWith<>;

TEST(NvmeReader, AnAnswerIsTheDrivesBytesAndItsTime) {
  Reader reader;
  const auto before = static_cast<std::uint64_t>(Clock::now().time_since_epoch() / 1ns);
  const auto id = reader.client->send(read_page(7, 0));
  const auto all = answers(*reader.client, 1);
  const auto after = static_cast<std::uint64_t>(Clock::now().time_since_epoch() / 1ns);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].id, id.value());
  EXPECT_EQ(all[0].result, 0);
  ASSERT_EQ(all[0].content().size(), 512U);
  EXPECT_TRUE(std::all_of(all[0].content().begin(), all[0].content().end(), [](auto byte) { return byte == 7; }));
  EXPECT_LE(before, all[0].began_ns);
  EXPECT_LE(all[0].began_ns, all[0].ended_ns);
  EXPECT_LE(all[0].ended_ns, after);
  EXPECT_EQ(reader.client->outstanding(), 0U);
}

TEST(NvmeReader, FailuresAreReportedAsTheyAre) {
  Reader reader;
  reader.drives.gone = {3};
  reader.drives.statuses = {{4, 0x4002}, {5, -EACCES}};
  EXPECT_EQ(result_of(*reader.client, read_page(3)), -ENODEV);
  EXPECT_EQ(result_of(*reader.client, read_page(4)), 0x4002);
  EXPECT_EQ(result_of(*reader.client, read_page(5)), -EACCES);
  EXPECT_EQ(result_of(*reader.client, read_page(6, 2)), -EINVAL) << "no such page";
  ASSERT_TRUE(reader.client->send(read_page(4)));
  const auto refused = answers(*reader.client, 1);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_TRUE(refused[0].content().empty());
  EXPECT_EQ(refused[0].data, Response{}.data) << "nothing of a refused page";
  EXPECT_NE(refused[0].began_ns, 0U);
}

TEST(NvmeReader, ADriveThatHangsKeepsOnlyItsOwnWaiting) {
  Reader reader;
  reader.drives.hang(0);
  ASSERT_TRUE(reader.client->send(read_page(0)));
  ASSERT_TRUE(wait_until([&] { return reader.drives.begun == 1; }));
  for (std::size_t i = 0; i < CommandQueue::kMaxWaiting; ++i) {
    ASSERT_TRUE(reader.client->send(read_page(0)));
  }
  EXPECT_EQ(result_of(*reader.client, read_page(0)), -EBUSY) << "its queue is full";
  for (std::uint32_t other = 1; other < 20; ++other) {
    EXPECT_EQ(result_of(*reader.client, read_page(other)), 0);
  }
  EXPECT_EQ(reader.client->outstanding(), CommandQueue::kMaxWaiting + 1);
  reader.drives.release();
  const auto late = answers(*reader.client, CommandQueue::kMaxWaiting + 1);
  ASSERT_EQ(late.size(), CommandQueue::kMaxWaiting + 1);
  EXPECT_TRUE(std::is_sorted(late.begin(), late.end(), [](const auto& a, const auto& b) { return a.id < b.id; }));
  EXPECT_TRUE(std::all_of(late.begin(), late.end(), [](const auto& one) { return one.result == 0; }));
}

TEST(NvmeReader, ThreadsAreBounded) {
  Reader reader;
  for (std::uint32_t controller = 0; controller < ReaderWorker::kMaxControllers; ++controller) {
    ASSERT_EQ(result_of(*reader.client, read_page(1000 * controller)), 0);
  }
  EXPECT_EQ(result_of(*reader.client, read_page(1)), -EBUSY);
  EXPECT_EQ(result_of(*reader.client, read_page(1000)), 0) << "the known ones go on";
}

TEST(NvmeReader, NoDescriptorIsLeft) {
  const std::size_t before = open_files();
  {
    Reader reader;
    reader.drives.statuses = {{1, 2}};
    const std::size_t running = open_files();
    for (int i = 0; i < 200; ++i) {
      result_of(*reader.client, read_page(static_cast<std::uint32_t>(i % 3), static_cast<std::uint16_t>(i % 3)));
    }
    EXPECT_EQ(open_files(), running);
  }
  EXPECT_EQ(open_files(), before);
}

RC_GTEST_PROP(NvmeReader, AWorkerOutlivesAnyMessage, (std::vector<std::vector<std::uint8_t>> messages)) {
  Drives drives;
  auto [daemon_end, reader_end] = socket_pair();
  AmpleBudget budget;
  ReaderWorker worker(reader_end.get(), drives, kPages, budget);
  std::thread thread([&worker] { worker.serve(); });
  std::size_t answerable = 0;
  for (std::vector<std::uint8_t>& message : messages) {
    // As it is; with our mark, but too short or too long; or complete: that must be answered at least with an error.
    const auto size = *rc::gen::element<std::size_t>(0, 31, 33, 5000, sizeof(Request), sizeof(Request));
    if (size != 0) {
      message.resize(size);
      std::memcpy(message.data(), &Request::kMark, sizeof Request::kMark);
      if (size == sizeof(Request) && *rc::gen::arbitrary<bool>()) {
        const std::uint32_t version = protocol_version();
        std::memcpy(message.data() + offsetof(Request, version), &version, sizeof version);
      }
      answerable += size == sizeof(Request) ? 1 : 0;
    }
    RC_ASSERT(::send(daemon_end.get(), message.data(), message.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(message.size()));
  }
  Request last = read_page(3);
  last.id = 0xfeed;
  RC_ASSERT(send_message(daemon_end.get(), last, 0) == 0);
  bool answered = false;
  for (std::size_t i = 0; i <= answerable; ++i) {
    Response response;
    RC_ASSERT(readable(daemon_end.get(), 20s));
    RC_ASSERT(receive_message(daemon_end.get(), response, 0) == Reception::message);
    RC_ASSERT(well_formed(response));
    answered = answered || (response.id == 0xfeed && response.result == 0);
  }
  RC_ASSERT(answered);
  daemon_end.reset();
  thread.join();
}

RC_GTEST_PROP(NvmeReader, AClientTakesOnlyWhatWasAsked, (std::vector<std::vector<std::uint8_t>> messages)) {
  auto [daemon_end, reader_end] = socket_pair();
  nvme::ReaderClient client(std::move(daemon_end));
  std::set<std::uint64_t> asked;
  for (int i = 0; i < 5; ++i) {
    asked.insert(client.send(read_page(0)).value());
  }
  std::set<std::uint64_t> given;
  const auto take = [&] {
    for (const Response& response : client.receive()) {
      RC_ASSERT(asked.count(response.id) == 1);
      RC_ASSERT(given.insert(response.id).second);
      RC_ASSERT(response.bytes <= nvme::kMaxPageBytes && (response.result == 0) == (response.bytes > 0));
    }
  };
  std::uint64_t garbage = 0;
  for (std::vector<std::uint8_t>& bytes : messages) {
    if (*rc::gen::arbitrary<bool>()) {  // a whole response, with a partly sensible header
      Response response;
      response.id = *rc::gen::inRange<std::uint64_t>(0, 8);
      response.result = *rc::gen::element(0, 0, 2, -5);
      response.bytes = *rc::gen::element<std::uint32_t>(0, 512, 4096, 4097, 0xffffffff);
      response.ended_ns = *rc::gen::element<std::uint64_t>(0, 7);
      response.began_ns = *rc::gen::element<std::uint64_t>(0, 9);
      response.mark = *rc::gen::element(Response::kMark, Response::kMark, Request::kMark);
      bytes.resize(sizeof response + 1);
      std::memcpy(bytes.data(), &response, sizeof response);
      const std::size_t whole = sizeof response;
      bytes.resize(*rc::gen::elementOf(std::vector<std::size_t>{whole, whole, whole, whole - 1, whole + 1, 64}));
      garbage += well_formed(response) && bytes.size() == whole ? 0 : 1;
    } else {
      garbage += 1;
    }
    RC_ASSERT(::send(reader_end.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    take();
  }
  RC_ASSERT(client.garbage() == garbage);
  RC_ASSERT(client.outstanding() == asked.size() - given.size());
  RC_ASSERT(!client.ended());
  reader_end.reset();
  take();
  RC_ASSERT(given == asked);
  RC_ASSERT(client.ended());
}

TEST(CommandBudget, HasABurstAndARateForEachDriveAndForAll) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kStart = 5 * kSecond;
  CommandBudget budget({3, 2}, {5, 1});
  const auto taken = [&](std::uint32_t controller, std::uint64_t at, int wanted) {
    int got = 0;
    for (int i = 0; i < wanted; ++i) {
      got += budget.take(controller, at) ? 1 : 0;
    }
    return got;
  };
  EXPECT_EQ(taken(0, kStart, 10), 3) << "the burst of a drive";
  EXPECT_EQ(taken(1, kStart, 10), 2) << "the rest of the burst of all";
  EXPECT_EQ(taken(0, kStart + kSecond, 10), 1) << "all: one a second";
  EXPECT_EQ(taken(0, kStart + 100 * kSecond, 10), 3) << "never more than the burst";
  EXPECT_EQ(taken(0, kStart, 10), 0) << "a clock that is behind gives nothing";
}

TEST(CommandBudget, SufficesForTheScheduleOfTheGreediestDrives) {
  // As DrivePoller asks: each kind of identification, 32 namespaces, SMART twice, and pages of 8 endurance groups.
  std::uint64_t of_poll = 1;
  for (const nvme::LogPage& page : nvme::log_pages()) {
    of_poll += page.per_endurance_group ? 8 : 1;
  }
  const std::uint64_t of_first_poll = 3 + 32 + of_poll;
  constexpr std::uint64_t kDrives = 64;
  constexpr std::uint64_t kSecondsApart = 10;
  // A reader or a daemon that is gone and back lets the first polls happen twice.
  EXPECT_LE(of_first_poll * 2, CommandBudget::kOfDrive.burst);
  EXPECT_LE(of_poll, CommandBudget::kOfDrive.per_second * kSecondsApart);
  EXPECT_LE(of_first_poll * kDrives, CommandBudget::kOfAll.burst);
  EXPECT_LE(of_poll * kDrives, CommandBudget::kOfAll.per_second * kSecondsApart);
}

TEST(NvmeReader, AFloodDoesNotReachADrive) {
  ReaderWith<CommandBudget> reader;
  const auto begin = Clock::now();
  int limited = 0;
  for (int i = 0; i < 2000; ++i) {
    const int result = result_of(*reader.client, read_page(7));
    ASSERT_TRUE(result == 0 || result == -EDQUOT) << result;
    limited += result == 0 ? 0 : 1;
  }
  const auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double most = static_cast<double>(CommandBudget::kOfDrive.burst) + 1 +
                      static_cast<double>(CommandBudget::kOfDrive.per_second) * seconds;
  EXPECT_LE(reader.drives.begun, most);
  EXPECT_EQ(reader.drives.begun + limited, 2000);
  EXPECT_EQ(result_of(*reader.client, read_page(8)), 0) << "another drive is read";
}

TEST(NvmeReader, AVersionIsWhatPageNumbersStandFor) {
  const auto version = version_with(kPages);
  EXPECT_NE(version, 0U);
  EXPECT_EQ(version_with(nvme::log_pages()), protocol_version());
  const auto version_after = [](const auto& change) {
    auto pages = kPages;
    change(pages);
    return version_with(pages);
  };
  EXPECT_EQ(version_after([](auto& pages) { pages[1].name = "renamed"; }), version);
  const std::set<std::uint32_t> others{version,
                                       version_with(std::span(kPages).first(1)),
                                       version_after([](auto& pages) { std::swap(pages[0], pages[1]); }),
                                       version_after([](auto& pages) { pages[1].lid = 0xc2; }),
                                       version_after([](auto& pages) { pages[1].lsp = 1; }),
                                       version_after([](auto& pages) { pages[1].bytes = 512; }),
                                       version_after([](auto& pages) { pages[1].scope = nvme::Scope::no_namespace; }),
                                       version_after([](auto& pages) { pages[1].per_endurance_group = true; })};
  EXPECT_EQ(others.size(), 8U);
}

TEST(NvmeReader, AClientOfAnotherVersionGetsNothing) {
  Drives drives;
  auto [daemon_end, reader_end] = socket_pair();
  AmpleBudget budget;
  ReaderWorker worker(reader_end.get(), drives, kPages, budget);
  std::thread thread([&worker] { worker.serve(); });
  Request request = read_page(3);
  request.id = 5;
  request.version ^= 1;
  EXPECT_EQ(send_message(daemon_end.get(), request, 0), 0);
  Response response;
  EXPECT_EQ(receive_message(daemon_end.get(), response, 0), Reception::message);
  EXPECT_EQ(response.result, -EPROTO);
  EXPECT_EQ(response.version, protocol_version());
  daemon_end.reset();
  thread.join();
  EXPECT_EQ(drives.begun, 0U);
}

TEST(NvmeReader, AReaderOfAnotherVersionIsRefused) {
  auto [daemon_end, reader_end] = socket_pair();
  nvme::ReaderClient client(std::move(daemon_end));
  Response response;
  response.id = client.send(read_page(0)).value();
  const auto other = client.send(read_page(1)).value();
  response.bytes = 512;  // of a page, but which one?
  response.version ^= 1;
  ASSERT_EQ(send_message(reader_end.get(), response, 0), 0);
  std::map<std::uint64_t, int> results;
  for (const Response& answer : client.receive()) {
    results[answer.id] = answer.result;
  }
  EXPECT_EQ(results, (std::map<std::uint64_t, int>{{response.id, -EPROTO}, {other, -EPROTO}}));
  EXPECT_TRUE(client.misunderstood());
  EXPECT_EQ(client.garbage(), 0U);
  EXPECT_EQ(client.send(read_page(0)).error().error_number, EPROTO);
  EXPECT_FALSE(client.ended());
}

TEST(NvmeReader, SendingNeverWaits) {
  auto [daemon_end, reader_end] = socket_pair();
  nvme::ReaderClient client(std::move(daemon_end));
  std::size_t sent = 0;
  while (client.send(read_page(0))) {
    ++sent;
  }
  EXPECT_EQ(sent, nvme::ReaderClient::kMaxOutstanding);
  EXPECT_EQ(client.send(read_page(0)).error().error_number, EAGAIN);

  auto [other_end, full_end] = socket_pair();
  nvme::ReaderClient cramped(std::move(other_end));
  const int least = 1;
  ASSERT_EQ(::setsockopt(cramped.descriptor(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
  sent = 0;
  while (cramped.send(read_page(0))) {
    ++sent;
  }
  EXPECT_LT(sent, nvme::ReaderClient::kMaxOutstanding) << "the socket is full before";
  EXPECT_EQ(cramped.send(read_page(0)).error().error_number, EAGAIN);
  EXPECT_EQ(cramped.outstanding(), sent);
  full_end.reset();
  EXPECT_EQ(cramped.receive().size(), sent);
  EXPECT_EQ(cramped.send(read_page(0)).error().error_number, EPIPE);
}

TEST(NvmeReader, NothingOfAReaderThatCannotBeStarted) {
  const std::size_t before = open_files();
  EXPECT_FALSE(nvme::ReaderClient::spawn("/nowhere/ssdpulse"));
  EXPECT_EQ(open_files(), before);
}

TEST(NvmeReader, AProgramThatEndsAtOnceIsSeen) {
  auto client = nvme::ReaderClient::spawn("/bin/true");
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE(readable((*client)->descriptor(), 20s));
  EXPECT_TRUE((*client)->receive().empty());
  EXPECT_TRUE((*client)->ended());
  EXPECT_EQ((*client)->send(read_page(0)).error().error_number, EPIPE);
}

TEST(NvmeReader, AReaderThatStaysIsNotWaitedFor) {
  const TemporaryTree tree;
  tree.file("stays", "#!/bin/sh\nexec sleep 600\n");
  ASSERT_EQ(::chmod(tree.path("stays").c_str(), 0700), 0);
  auto client = nvme::ReaderClient::spawn(tree.path("stays"));
  ASSERT_TRUE(client) << client.error().message;
  const auto began = Clock::now();
  client->reset();
  EXPECT_LT(Clock::now() - began, 5s);
}

}  // namespace
}  // namespace ssdpulse::nvme_reader

// SPDX-License-Identifier: Apache-2.0
// Does a log line reach the journal in full, with separate fields, and does a journal that is gone or full delay
// nobody?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "daemon/base/log_output.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse {
namespace {

TEST(Journal, AnEntryHasTheLineAndItsFieldsApart) {
  EXPECT_EQ(log::journal_entry('4', "device=nvme0n1 went a=b",
                               {log::field("device", "nvme0n1"), log::quoted("p99_reason", "no \"answer\"=gone")}),
            "MESSAGE=device=nvme0n1 went a=b\nPRIORITY=4\nSYSLOG_IDENTIFIER=ssdpulse\n"
            "SSDPULSE_DEVICE=nvme0n1\nSSDPULSE_P99_REASON=no \"answer\"=gone\n");
  const std::string length("\3\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(log::journal_entry('6', "a\nb", {log::field("x", "c\nd")}),
            "MESSAGE\n" + length + "a\nb\nPRIORITY=6\nSYSLOG_IDENTIFIER=ssdpulse\nSSDPULSE_X\n" + length + "c\nd\n");
}

// As the journal reads it: a name, and a value up to the end of the line or with a length. No line can forge a field.
std::optional<std::map<std::string, std::string>> fields_of(const std::string& entry) {
  std::map<std::string, std::string> fields;
  for (std::size_t at = 0; at < entry.size();) {
    const auto name_end = entry.find_first_of("=\n", at);
    if (name_end == std::string::npos) {
      return std::nullopt;
    }
    const auto name = entry.substr(at, name_end - at);
    std::size_t begin = name_end + 1;
    std::size_t size = entry.find('\n', begin) - begin;
    if (entry[name_end] == '\n') {
      std::uint64_t length = 0;
      std::memcpy(&length, entry.data() + begin, sizeof(length));
      begin += sizeof(length);
      size = length;
    }
    if (begin + size >= entry.size() || entry[begin + size] != '\n' ||
        !fields.emplace(name, entry.substr(begin, size)).second) {
      return std::nullopt;
    }
    at = begin + size + 1;
  }
  return fields;
}

RC_GTEST_PROP(Journal, TakesAnyLine, ()) {
  const auto any = rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::elementOf(std::string("ab_1=\"\n M")), rc::gen::arbitrary<char>()));
  const std::string line = *any;
  const std::string value = *any;
  const auto fields = fields_of(log::journal_entry('3', line, {log::field("one", value)}));
  RC_ASSERT(fields ==
            (std::map<std::string, std::string>{
                {"MESSAGE", line}, {"PRIORITY", "3"}, {"SYSLOG_IDENTIFIER", "ssdpulse"}, {"SSDPULSE_ONE", value}}));
}

TEST(Journal, SendsToWhoeverListensThereNow) {
  const tests::TemporaryTree tree;
  const auto path = tree.path("socket");
  EXPECT_FALSE(log::Journal::open(path));
  const auto listen = [&] {
    util::UniqueFd listener(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ::unlink(path.c_str());
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return listener;
  };
  const auto received = [](const util::UniqueFd& listener) {
    std::string text(4096, '\0');
    ssize_t size = 0;
    do {
      size = ::recv(listener.get(), text.data(), text.size(), 0);
    } while (size == 0);
    return size < 0 ? std::string() : text.substr(0, static_cast<std::size_t>(size));
  };
  auto listener = listen();
  const auto journal = log::Journal::open(path);
  ASSERT_TRUE(journal);
  EXPECT_TRUE(journal->send("A=1\n"));
  EXPECT_EQ(received(listener), "A=1\n");
  listener.reset();
  EXPECT_FALSE(journal->send("A=2\n"));
  listener = listen();
  EXPECT_TRUE(journal->send("A=3\n"));
  EXPECT_EQ(received(listener), "A=3\n");
  while (journal->send("A=4\n")) {  // until its queue is full: never waits
  }
  EXPECT_FALSE(journal->send(std::string(64U << 20U, 'x')));
}

}  // namespace
}  // namespace ssdpulse

// SPDX-License-Identifier: Apache-2.0
// Are listen addresses bound correctly, and failures reported in words?
#include "exporters/http/http_listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/http_client.h"

namespace ssdpulse::http {
namespace {

TEST(ListenOn, PortZeroGivesTheRealPort) {
  const auto listeners = listen_on({{"127.0.0.1", 0}, {"127.0.0.1", 0}});
  ASSERT_TRUE(listeners);
  ASSERT_EQ(listeners->size(), 2U);
  const auto first = test::port_of((*listeners)[0].address);
  const auto second = test::port_of((*listeners)[1].address);
  EXPECT_NE(first, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ((*listeners)[0].address, "127.0.0.1:" + std::to_string(first));
  EXPECT_TRUE(test::Client(first).connected());
}

TEST(ListenOn, ATakenPortIsSaidAndNothingStaysBound) {
  const auto taken = listen_on({{"127.0.0.1", 0}});
  ASSERT_TRUE(taken);
  const auto port = test::port_of((*taken)[0].address);
  const auto fds = test::open_fds();
  const auto again = listen_on({{"127.0.0.1", 0}, {"127.0.0.1", port}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().error_number, EADDRINUSE);
  EXPECT_EQ(again.error().message, "cannot listen on 127.0.0.1:" + std::to_string(port) +
                                       ": the port is taken; stop the program that listens there (ss -ltnp) or choose "
                                       "another");
  EXPECT_EQ(test::open_fds(), fds);
}

TEST(ListenOn, ATakenPortCanBeTakenOverLater) {
  for (const char* host : {"127.0.0.1", "::1", ""}) {
    auto taken = listen_on({{host, 0}});
    ASSERT_TRUE(taken) << host;
    const auto port = test::port_of((*taken)[0].address);
    auto waiting = listen_on({{"127.0.0.1", 0}, {host, port}}, Taken::waits);
    ASSERT_TRUE(waiting) << host << ": " << waiting.error().message;
    EXPECT_FALSE((*waiting)[0].taken) << "the other one is served";
    Listener& later = (*waiting)[1];
    EXPECT_TRUE(later.taken) << host;
    EXPECT_EQ(later.address, (*taken)[0].address);
    EXPECT_EQ(port_of(later), port);
    EXPECT_FALSE(listen_again(later)) << host;
    taken->clear();
    EXPECT_TRUE(listen_again(later)) << host << ": " << std::strerror(errno);
    EXPECT_FALSE(later.taken);
    if (std::string(host) != "::1") {
      EXPECT_TRUE(test::Client(port).connected()) << host;
    }
  }
}

TEST(ListenOn, ATakenPortThatIsOnlyBoundIsTakenOverOnceNobodyListens) {
  auto other = listen_on({{"127.0.0.1", 0}});
  ASSERT_TRUE(other);
  const auto port = test::port_of((*other)[0].address);
  auto waiting = listen_on({{"127.0.0.1", port}}, Taken::waits);
  ASSERT_TRUE(waiting);
  Listener& later = (*waiting)[0];
  ::shutdown((*other)[0].socket.get(), SHUT_RDWR);  // it no longer listens, and is still bound
  EXPECT_TRUE(listen_again(later)) << "two may be bound, and one listens";
  EXPECT_TRUE(test::Client(port).connected());
}

TEST(ListenOn, AnAddressOfAnotherHostIsReported) {
  const auto listeners = listen_on({{"192.0.2.1", 0}});  // TEST-NET-1, assigned to nobody
  ASSERT_FALSE(listeners);
  EXPECT_NE(listeners.error().message.find("this host does not have that address"), std::string::npos);
}

TEST(ListenOn, AnInvalidNameIsReported) {
  const auto listeners = listen_on({{"no such name", 1}});
  ASSERT_FALSE(listeners);
  EXPECT_EQ(listeners.error().message.rfind("cannot listen on no such name:1: ", 0), 0U);
}

TEST(ListenOn, WithoutAHostServesAllAddresses) {
  const auto listeners = listen_on({{"", 0}});
  ASSERT_TRUE(listeners) << listeners.error().message;
  EXPECT_TRUE(test::Client(test::port_of((*listeners)[0].address)).connected());  // over IPv4
}

TEST(ListenOn, Ipv6) {
  const auto listeners = listen_on({{"::1", 0}});
  if (!listeners) {
    GTEST_SKIP() << "no IPv6 here: " << listeners.error().message;
  }
  const auto& address = (*listeners)[0].address;
  EXPECT_EQ(address.rfind("[::1]:", 0), 0U);
  EXPECT_FALSE(test::Client(test::port_of(address)).connected());  // no IPv4 was requested
}

class UnixSocket : public ::testing::Test {
 protected:
  UnixSocket() {
    std::string name = ::testing::TempDir() + "listenerXXXXXX";
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/socket";
  }
  ~UnixSocket() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] unsigned mode() const {
    struct stat found {};
    return ::stat(path_.c_str(), &found) == 0 ? found.st_mode & 0777U : 0;
  }

  std::string directory_;
  std::string path_;
};

TEST_F(UnixSocket, IsForOwnerAndGroup) {
  const auto old_mask = ::umask(0);
  const auto listener = listen_on_unix(path_);
  ::umask(old_mask);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(listener->address, "unix:" + path_);
  EXPECT_EQ(mode(), 0660U);
}

TEST_F(UnixSocket, OneThatWasLeftBehindIsReplaced) {
  ASSERT_TRUE(listen_on_unix(path_));  // and closed again
  ASSERT_EQ(mode(), 0660U);
  EXPECT_TRUE(listen_on_unix(path_));
}

TEST_F(UnixSocket, OneThatIsInUseStays) {
  const auto first = listen_on_unix(path_);
  ASSERT_TRUE(first);
  const auto second = listen_on_unix(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "cannot listen on unix:" + path_ +
                                        ": another program listens there (ss -lxp); stop it, or choose another path");
  EXPECT_EQ(mode(), 0660U);
}

TEST_F(UnixSocket, AFileThatIsNotASocketStays) {
  std::ofstream(path_) << "precious";
  const auto listener = listen_on_unix(path_);
  ASSERT_FALSE(listener);
  EXPECT_NE(listener.error().message.find("is not a socket; remove it"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

TEST_F(UnixSocket, APathThatIsTooLongIsSaid) {
  const auto listener = listen_on_unix("/" + std::string(108, 'x'));
  ASSERT_FALSE(listener);
  EXPECT_NE(listener.error().message.find("the path is longer than 107 bytes"), std::string::npos);
}

}  // namespace
}  // namespace ssdpulse::http

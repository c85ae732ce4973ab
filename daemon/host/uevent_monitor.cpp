// SPDX-License-Identifier: Apache-2.0
// Netlink, multicast group 1: what lib/kobject_uevent.c sends. Any process with CAP_NET_ADMIN could send to our
// socket too; only port 0, which no process can have, is the kernel.
#include "daemon/host/uevent_monitor.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace ssdpulse::host {
namespace {

constexpr unsigned kKernelGroup = 1;
constexpr std::size_t kMessageBytes = 8192;  // at most UEVENT_BUFFER_SIZE (2 KiB) of variables, and the path
constexpr int kMaxMessagesPerDrain = 4096;   // so that no flood of messages holds up the caller

}  // namespace

bool concerns_disks(std::string_view message) {
  const std::size_t header = message.find('\0');
  if (header == std::string_view::npos || message.substr(0, header).find('@') == std::string_view::npos) {
    return false;
  }
  message.remove_prefix(header + 1);
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\0'), message.size());
    const std::string_view variable = message.substr(0, end);
    if (variable == "SUBSYSTEM=block" || variable == "SUBSYSTEM=nvme") {
      return true;
    }
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return false;
}

UeventMonitor::UeventMonitor(util::UniqueFd fd) : fd_(std::move(fd)) {}

util::Result<UeventMonitor> UeventMonitor::open() {
  util::UniqueFd fd(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  if (!fd.valid()) {
    return util::fail_errno("cannot open a socket for uevents");
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return util::fail_errno("cannot listen to uevents");
  }
  return UeventMonitor(std::move(fd));
}

bool UeventMonitor::drain() const {
  bool changed = false;
  for (int received = 0; received < kMaxMessagesPerDrain; ++received) {
    std::array<char, kMessageBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by the kernel
    sockaddr_nl sender{};
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = &sender;
    message.msg_namelen = sizeof sender;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t length = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) {
      continue;
    }
    if (length < 0 && errno == ENOBUFS) {
      changed = true;  // the socket overflowed: something was lost, perhaps about disks
      continue;
    }
    if (length < 0) {  // nothing is left, or the socket failed and messages may be lost
      return changed || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
    const bool from_kernel = message.msg_namelen == sizeof sender && sender.nl_pid == 0 && sender.nl_groups != 0;
    if (from_kernel && ((message.msg_flags & MSG_TRUNC) != 0 ||
                        concerns_disks(std::string_view(buffer.data(), static_cast<std::size_t>(length))))) {
      changed = true;
    }
  }
  return true;  // messages are still waiting, unread: some may concern disks
}

}  // namespace ssdpulse::host

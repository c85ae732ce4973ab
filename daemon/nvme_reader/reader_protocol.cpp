// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_reader/reader_protocol.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ssdpulse::nvme_reader {

template <typename Message>
Reception receive_message(int socket, Message& message, int flags) {
  while (true) {
    // MSG_TRUNC: the true length, even of a message that is too long. Descriptors sent with it are not taken.
    const ssize_t length = ::recv(socket, &message, sizeof message, flags | MSG_TRUNC);
    if (length == static_cast<ssize_t>(sizeof message)) {
      return message.mark == Message::kMark ? Reception::message : Reception::garbage;
    }
    if (length == 0) {
      return hung_up(socket) ? Reception::ended : Reception::garbage;  // an empty message looks like the end
    }
    if (length > 0) {
      return Reception::garbage;
    }
    if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK ? Reception::nothing : Reception::ended;
    }
  }
}

template <typename Message>
int send_message(int socket, const Message& message, int flags) {
  while (::send(socket, &message, sizeof message, flags | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

template Reception receive_message(int socket, Request& request, int flags);
template Reception receive_message(int socket, Response& response, int flags);
template int send_message(int socket, const Request& request, int flags);
template int send_message(int socket, const Response& response, int flags);

// FNV-1a hash of what the page numbers stand for.
std::uint32_t version_with(std::span<const nvme::LogPage> pages) {
  constexpr std::uint32_t kMeaningOfMessages = 1;  // to be incremented when the meaning of their fields changes
  std::uint32_t hash = 2166136261U;
  const auto fold = [&hash](std::uint32_t number) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (number >> shift & 0xffU)) * 16777619U;
    }
  };
  fold(kMeaningOfMessages);
  for (const nvme::LogPage& page : pages) {
    fold(page.lid);
    fold(page.lsp);
    fold(page.bytes);
    fold(static_cast<std::uint32_t>(page.scope));
    fold(page.per_endurance_group ? 1 : 0);
    fold(page.uuid == nullptr ? 0 : 1);
  }
  return std::max(hash, 1U);
}

std::uint32_t protocol_version() {
  static const std::uint32_t version = version_with(nvme::log_pages());
  return version;
}

bool well_formed(const Response& response) {
  return response.mark == Response::kMark && response.bytes <= response.data.size() &&
         (response.result == 0) == (response.bytes != 0) && response.began_ns <= response.ended_ns;
}

bool hung_up(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) != 0;
}

}  // namespace ssdpulse::nvme_reader

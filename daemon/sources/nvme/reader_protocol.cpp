// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/reader_protocol.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace ssdpulse::nvme {
namespace {

template <typename Message>
Reception receive(int socket, Message& message, int flags) {
  while (true) {
    // MSG_TRUNC: the true length, also of a message that is too long. Descriptors that come with it are not taken.
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
int send(int socket, const Message& message, int flags) {
  while (::send(socket, &message, sizeof message, flags | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

bool well_formed(const Response& response) {
  return response.mark == Response::kMark && response.bytes <= response.data.size() &&
         (response.result == 0) == (response.bytes != 0) && response.began_ns <= response.ended_ns;
}

Reception receive_message(int socket, Request& request, int flags) { return receive(socket, request, flags); }
Reception receive_message(int socket, Response& response, int flags) { return receive(socket, response, flags); }

int send_message(int socket, const Request& request, int flags) { return send(socket, request, flags); }
int send_message(int socket, const Response& response, int flags) { return send(socket, response, flags); }

bool hung_up(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) != 0;
}

}  // namespace ssdpulse::nvme

// SPDX-License-Identifier: Apache-2.0
// Which connections are open, and until when may each keep us waiting?
#include "exporters/http/connections.h"

#include <sys/socket.h>

#include <algorithm>

namespace ssdpulse::http {
namespace {

// A reset instead of an orderly close: the kernel drops unsent bytes at once instead of waiting for the client.
void reset(int fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

Connections::Connection& Connections::add(int fd, Clock::time_point deadline) {
  auto& connection = *(open_[fd] = std::make_unique<Connection>(Connection{fd, deadline}));
  earliest_ = std::min(earliest_, deadline);
  return connection;
}

void Connections::remove(const Connection& connection) { open_.erase(connection.fd); }

void Connections::set_deadline(Connection& connection, Clock::time_point deadline) {
  connection.deadline = deadline;
  earliest_ = std::min(earliest_, deadline);
}

std::size_t Connections::cut_overdue(Clock::time_point now) {
  if (now < earliest_) {
    return 0;
  }
  std::size_t cut = 0;
  earliest_ = Clock::time_point::max();
  for (auto& [fd, connection] : open_) {
    if (connection->deadline <= now) {
      reset(fd);
      connection->deadline = Clock::time_point::max();
      ++cut;
    }
    earliest_ = std::min(earliest_, connection->deadline);
  }
  return cut;
}

std::optional<Connections::Clock::time_point> Connections::next_deadline() const {
  return open_.empty() || earliest_ == Clock::time_point::max() ? std::nullopt : std::optional(earliest_);
}

}  // namespace ssdpulse::http

// SPDX-License-Identifier: Apache-2.0
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

Connections::Connection& Connections::add(int fd, Clock::time_point deadline, Clock::time_point pressed_deadline) {
  auto& connection = *(open_[fd] = std::make_unique<Connection>());
  connection.fd = fd;
  set_deadline(connection, deadline, pressed_deadline);
  return connection;
}

void Connections::remove(const Connection& connection) { open_.erase(connection.fd); }

void Connections::set_deadline(Connection& connection, Clock::time_point deadline, Clock::time_point pressed_deadline) {
  if (connection.cut) {
    return;
  }
  connection.deadline = connection.hung_up ? std::min(deadline, connection.deadline) : deadline;
  connection.pressed_deadline = std::min(pressed_deadline, connection.deadline);
  earliest_ = std::min(earliest_, connection.deadline);
  earliest_pressed_ = std::min(earliest_pressed_, connection.pressed_deadline);
}

void Connections::hang_up(int fd, Clock::time_point deadline) {
  if (const auto found = open_.find(fd); found != open_.end()) {
    auto& connection = *found->second;
    connection.hung_up = true;
    set_deadline(connection, deadline, connection.pressed_deadline);
  }
}

std::size_t Connections::cut_overdue(Clock::time_point now, bool pressed) {
  if (now < (pressed ? earliest_pressed_ : earliest_)) {
    return 0;
  }
  std::size_t cut = 0;
  earliest_ = earliest_pressed_ = Clock::time_point::max();
  for (auto& [fd, connection] : open_) {
    if ((pressed ? connection->pressed_deadline : connection->deadline) <= now) {
      reset(fd);
      connection->cut = true;
      connection->deadline = connection->pressed_deadline = Clock::time_point::max();
      ++cut;
    }
    earliest_ = std::min(earliest_, connection->deadline);
    earliest_pressed_ = std::min(earliest_pressed_, connection->pressed_deadline);
  }
  return cut;
}

std::optional<Connections::Clock::time_point> Connections::next_deadline(bool pressed) const {
  const auto next = pressed ? earliest_pressed_ : earliest_;
  return open_.empty() || next == Clock::time_point::max() ? std::nullopt : std::optional(next);
}

}  // namespace ssdpulse::http

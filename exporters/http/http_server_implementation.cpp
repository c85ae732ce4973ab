// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_server_implementation.h"

#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

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

void Connections::remove(Connection& connection) {
  drop_unread(connection);
  open_.erase(connection.fd);
}

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
  for (const auto& [fd, connection] : open_) {
    if ((pressed ? connection->pressed_deadline : connection->deadline) <= now) {
      Connections::cut(*connection);
      ++cut;
    }
    earliest_ = std::min(earliest_, connection->deadline);
    earliest_pressed_ = std::min(earliest_pressed_, connection->pressed_deadline);
  }
  return cut;
}

void Connections::cut(Connection& connection) {
  reset(connection.fd);
  connection.cut = true;
  connection.deadline = connection.pressed_deadline = Clock::time_point::max();
}

void Connections::set_unread(Connection& connection, std::shared_ptr<const std::string> body, Clock::time_point now) {
  drop_unread(connection);
  if (body && !connection.cut && unread_[body.get()]++ == 0) {
    unread_bytes_ += body->size();
  }
  if (!connection.cut) {
    connection.unread = std::move(body);
    connection.answered_at = now;
  }
}

void Connections::drop_unread(Connection& connection) {
  const auto found = unread_.find(connection.unread.get());
  if (found != unread_.end() && --found->second == 0) {
    unread_bytes_ -= connection.unread->size();
    unread_.erase(found);
  }
  connection.unread.reset();
}

std::size_t Connections::unread_bytes_with(const std::string& body) const {
  return unread_bytes_ + (unread_.contains(&body) ? 0 : body.size());
}

std::size_t Connections::cut_unread(const std::string& body, std::size_t limit, Clock::time_point before) {
  if (unread_bytes_with(body) <= limit) {
    return 0;
  }
  std::vector<Connection*> waiting;
  for (const auto& [fd, connection] : open_) {
    if (connection->unread && connection->answered_at < before) {
      waiting.push_back(connection.get());
    }
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Connection* a, const Connection* b) { return a->answered_at < b->answered_at; });
  std::size_t cut = 0;
  for (; cut < waiting.size() && unread_bytes_with(body) > limit; ++cut) {
    Connections::cut(*waiting[cut]);
    drop_unread(*waiting[cut]);
  }
  return cut;
}

std::optional<Connections::Clock::time_point> Connections::next_deadline(bool pressed) const {
  const auto next = pressed ? earliest_pressed_ : earliest_;
  return open_.empty() || next == Clock::time_point::max() ? std::nullopt : std::optional(next);
}

Workers::Workers(unsigned threads, const char* name) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      ::pthread_setname_np(::pthread_self(), name);
      run();
    });
  }
}

Workers::~Workers() { finish(); }

void Workers::submit(std::function<void()> job) noexcept {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Workers::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void Workers::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finishing_ || !jobs_.empty(); });
    if (jobs_.empty()) {
      return;
    }
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
  }
}

Logins::~Logins() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
}

void Logins::submit(std::function<bool()> check) noexcept {
  worker_.submit([this, check = std::move(check)] {
    const auto begin = std::chrono::steady_clock::now();
    if (!check()) {
      constexpr int kPausePerWork = 3;
      pause(kPausePerWork * (std::chrono::steady_clock::now() - begin));
    }
  });
}

void Logins::pause(std::chrono::steady_clock::duration time) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace ssdpulse::http

// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_reader/reader_worker.h"

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace ssdpulse::nvme_reader {
namespace {

/// CLOCK_MONOTONIC, the clock of the kernel side.
std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace

CommandQueue::CommandQueue(std::uint32_t controller, std::function<void(const Job&)> work)
    : work_(std::move(work)), thread_([this, controller] { run(controller); }) {}

CommandQueue::~CommandQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool CommandQueue::offer(const Job& job) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxWaiting) {
      return false;
    }
    waiting_.push_back(job);
  }
  changed_.notify_one();
  return true;
}

void CommandQueue::run(std::uint32_t controller) {
  ::pthread_setname_np(::pthread_self(), ("nvme" + std::to_string(controller)).c_str());
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) {
      return;
    }
    const Job job = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    work_(job);
    lock.lock();
  }
}

ReaderWorker::ReaderWorker(int socket, DriveCommands& commands, std::span<const nvme::LogPage> pages,
                           CommandBudget& budget)
    : socket_(socket), commands_(commands), pages_(pages), budget_(budget) {}

void ReaderWorker::serve() {
  while (true) {
    Request request;
    switch (receive_message(socket_, request, 0)) {
      case Reception::message:
        take(request);
        break;
      case Reception::garbage:
      case Reception::nothing:
        break;  // there is no request to answer
      case Reception::ended:
        return;
    }
  }
}

void ReaderWorker::take(const Request& request) {
  if (request.version != protocol_version()) {
    refuse(request, EPROTO);
    return;
  }
  const auto command = command_of(request, pages_);
  if (!command) {
    refuse(request, EINVAL);
    return;
  }
  if (!budget_.take(request.controller, now_ns())) {
    refuse(request, EDQUOT);
    return;
  }
  CommandQueue* queue = queue_of(request.controller);
  if (queue == nullptr || !queue->offer({request, *command})) {
    refuse(request, EBUSY);
  }
}

CommandQueue* ReaderWorker::queue_of(std::uint32_t controller) {
  const auto known = queues_.find(controller);
  if (known != queues_.end()) {
    return known->second.get();
  }
  if (queues_.size() >= kMaxControllers) {
    return nullptr;
  }
  try {
    auto queue = std::make_unique<CommandQueue>(controller, [this](const CommandQueue::Job& job) { perform(job); });
    return queues_.emplace(controller, std::move(queue)).first->second.get();
  } catch (const std::system_error&) {
    return nullptr;  // no more threads available
  }
}

void ReaderWorker::refuse(const Request& request, int error) const {
  Response response;
  response.id = request.id;
  response.result = -error;
  send_message(socket_, response, 0);
}

void ReaderWorker::perform(const CommandQueue::Job& job) const {
  auto fd = commands_.open(job.request.controller);
  if (!fd) {
    refuse(job.request, fd.error().error_number);
    return;
  }
  Response response;
  response.id = job.request.id;
  const auto data = std::span(response.data).first(job.command.bytes);
  response.began_ns = now_ns();
  response.result = commands_.execute(fd->get(), job.command, data);
  response.ended_ns = now_ns();
  fd->reset();  // the daemon may keep us waiting below
  if (response.result == 0) {
    response.bytes = job.command.bytes;
  } else {
    response.data.fill(0);
  }
  send_message(socket_, response, 0);  // fails only if the other end is gone
}

}  // namespace ssdpulse::nvme_reader

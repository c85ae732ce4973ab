// SPDX-License-Identifier: Apache-2.0
// ReaderWorker: waits for the drives. One thread per controller, with a short queue, so that a drive that takes minutes
// delays only its own requests. Answers go straight to the socket, in the order in which the drives give them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "daemon/nvme_reader/drive_commands.h"
#include "daemon/nvme_reader/reader_protocol.h"

namespace ssdpulse::nvme_reader {

/// The commands of one controller, one after the other.
class CommandQueue {
 public:
  static constexpr std::size_t kMaxWaiting = 64;

  struct Job {
    Request request;
    Command command;
  };

  CommandQueue(std::uint32_t controller, std::function<void(const Job&)> work);
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;
  /// Waits for the command under way.
  ~CommandQueue();

  /// False: the queue is full.
  bool offer(const Job& job);

 private:
  void run(std::uint32_t controller);

  std::function<void(const Job&)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

class ReaderWorker {
 public:
  static constexpr std::size_t kMaxControllers = 256;

  /// Owns none of these; all must outlive the worker.
  ReaderWorker(int socket, DriveCommands& commands, std::span<const nvme::LogPage> pages, CommandBudget& budget);

  /// Runs until the other end is gone. Commands may still be under way then: destroying the worker waits for them,
  /// ending the process does not.
  void serve();

 private:
  void take(const Request& request);
  void refuse(const Request& request, int error) const;
  void perform(const CommandQueue::Job& job) const;
  /// Null if there are enough already, or no thread can be started.
  CommandQueue* queue_of(std::uint32_t controller);

  int socket_;
  DriveCommands& commands_;
  std::span<const nvme::LogPage> pages_;
  CommandBudget& budget_;
  std::map<std::uint32_t, std::unique_ptr<CommandQueue>> queues_;
};

}  // namespace ssdpulse::nvme_reader

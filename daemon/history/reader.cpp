// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/reader.h"

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/history/past_reader.h"

namespace ssdpulse::history {

using Clock = std::chrono::steady_clock;

struct Reader::Implementation {
  explicit Implementation(std::string of) : path(std::move(of)) {}

  const std::string path;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> questions;
  std::size_t asked = 0;  // waiting or being answered
  bool stop = false;
  std::thread thread;

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stop || !questions.empty(); });
      if (questions.empty()) {
        return;
      }
      const auto question = std::move(questions.front());
      questions.pop_front();
      lock.unlock();
      question();
      lock.lock();
      --asked;
    }
  }

  template <typename T>
  util::Result<T> answer(const std::function<Outcome<T>(PastReader&)>& question, Deadline deadline) const {
    if (Clock::now() >= deadline) {
      return util::fail("the history is busy: try again later");
    }
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return util::fail("there is no history at " + path + (error ? ": " + error.message() : ""));
    }
    auto opened = PastReader::open(path, kSlice, deadline);
    if (!opened) {
      return util::fail(path + ": " + opened.error().message);
    }
    auto outcome = question(*opened);
    if (!outcome) {
      return util::fail(outcome.error().message, outcome.error().message == kNoSuchDevice ? ENOENT : 0);
    }
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(*outcome);
    }
  }

  template <typename T>
  util::Result<T> ask(std::function<Outcome<T>(PastReader&)> question) {
    std::promise<util::Result<T>> promise;
    auto future = promise.get_future();
    {
      const std::lock_guard lock(mutex);
      if (asked >= kMostQuestions) {
        return util::fail("the history is busy: try again later");
      }
      ++asked;
      questions.emplace_back([this, &promise, &question, deadline = Clock::now() + kDeadline] {
        try {
          promise.set_value(answer<T>(question, deadline));
        } catch (...) {  // out of memory, or what `each` throws
          promise.set_exception(std::current_exception());
        }
      });
    }
    wake.notify_one();
    return future.get();
  }
};

util::Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  auto implementation = std::make_unique<Implementation>(path);
  try {
    implementation->thread = std::thread([raw = implementation.get()] {
      ::pthread_setname_np(::pthread_self(), "history-reader");
      raw->work();
    });
  } catch (const std::system_error& error) {
    return util::fail(std::string("cannot start a thread: ") + error.what(), error.code().value());
  }
  return std::unique_ptr<Reader>(new Reader(std::move(implementation)));
}

Reader::Reader(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}

Reader::~Reader() {
  {
    const std::lock_guard lock(implementation_->mutex);
    implementation_->stop = true;
  }
  implementation_->wake.notify_one();
  implementation_->thread.join();
}

util::Result<std::vector<model::PastDevice>> Reader::devices() {
  return implementation_->ask<std::vector<model::PastDevice>>([](PastReader& past) { return past.devices(); });
}

util::Result<void> Reader::minutes(const Which& device, const model::Window& window,
                                   const std::function<void(model::MinuteOf&&)>& each) {
  return implementation_->ask<void>([&](PastReader& past) { return past.minutes(device, window, each); });
}

util::Result<std::vector<model::MinuteOf>> Reader::minutes(const Which& device, const model::Window& window) {
  std::vector<model::MinuteOf> all;
  return minutes(device, window, [&](model::MinuteOf&& one) { all.push_back(std::move(one)); }).map([&] {
    return std::move(all);
  });
}

util::Result<model::DeviceLoad> Reader::load(const Which& device, const model::Window& window) {
  model::DeviceLoad sum;
  return minutes(device, window, [&](const model::MinuteOf& one) { model::add(sum, one.load); }).map([&] {
    return std::move(sum);
  });
}

util::Result<model::Series> Reader::series(const Which& device, const model::Window& window, std::size_t points) {
  return implementation_->ask<model::Series>([&](PastReader& past) { return past.series(device, window, points); });
}

util::Result<std::vector<std::vector<std::uint8_t>>> Reader::seconds(const Which& device, const model::Window& window) {
  return implementation_->ask<std::vector<Bytes>>([&](PastReader& past) { return past.seconds(device, window); });
}

util::Result<model::PastMoment> Reader::moment(model::PastTime at) {
  return implementation_->ask<model::PastMoment>([&](PastReader& past) { return past.moment(at); });
}

util::Result<model::PastDay> Reader::day(model::PastTime at) {
  return implementation_->ask<model::PastDay>([&](PastReader& past) { return past.day(at); });
}

util::Result<std::vector<model::Mark>> Reader::marks(const model::Window& window) {
  return implementation_->ask<std::vector<model::Mark>>([&](PastReader& past) { return past.marks(window); });
}

util::Result<std::vector<model::SettingChange>> Reader::settings(const model::Window& window) {
  return implementation_->ask<std::vector<model::SettingChange>>(
      [&](PastReader& past) { return past.settings(window); });
}

}  // namespace ssdpulse::history

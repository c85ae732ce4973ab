// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history_reader.h"

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "daemon/history/past_reader.h"

namespace ssdpulse::history {

using Clock = std::chrono::steady_clock;

/// A question without an answer so long after its deadline is abandoned: only a disk that hangs explains that.
constexpr std::chrono::milliseconds kGrace{500};
constexpr const char* kStuck = "the history does not answer: does its disk hang? Try again later";

struct Reader::Implementation {
  Implementation(std::string of, std::function<void()> when_damaged)
      : path(std::move(of)), on_damage(std::move(when_damaged)) {}

  const std::string path;
  const std::function<void()> on_damage;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::pair<Clock::time_point, std::function<void()>>> questions;  // with their deadlines
  std::size_t asked = 0;                                                      // waiting or being answered
  std::optional<Clock::time_point> answer_by;  // the deadline of the question that is being answered
  bool stop = false;
  std::thread thread;

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stop || !questions.empty(); });
      if (questions.empty()) {
        return;
      }
      {
        const auto [deadline, question] = std::move(questions.front());
        questions.pop_front();
        answer_by = deadline;
        lock.unlock();
        question();
      }
      lock.lock();
      answer_by.reset();
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
    const auto note = [this](const Failure& failure) {
      if (failure.damaged && on_damage) {
        on_damage();
      }
    };
    auto opened = PastReader::open(path, kSlice, deadline);
    if (!opened) {
      note(opened.error());
      return util::fail(path + ": " + opened.error().message);
    }
    auto outcome = question(*opened);
    if (!outcome) {
      note(outcome.error());
      return util::fail(outcome.error().message, outcome.error().message == kNoSuchDevice ? ENOENT : 0);
    }
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(*outcome);
    }
  }

  [[nodiscard]] bool is_stuck() const { return answer_by && Clock::now() >= *answer_by + kGrace; }

  /// `question` must own what it needs: it may outlive the call, which ends by the deadline whatever the disk does.
  template <typename T>
  util::Result<T> ask(std::function<Outcome<T>(PastReader&)> question) {
    const auto deadline = Clock::now() + kDeadline;
    const auto promise = std::make_shared<std::promise<util::Result<T>>>();
    auto future = promise->get_future();
    {
      const std::lock_guard lock(mutex);
      if (is_stuck()) {
        return util::fail(kStuck);
      }
      if (asked >= kMaxQuestions) {
        return util::fail("the history is busy: try again later");
      }
      ++asked;
      questions.emplace_back(deadline, [this, promise, question = std::move(question), deadline] {
        try {
          promise->set_value(answer<T>(question, deadline));
        } catch (...) {  // out of memory, or what `each` throws
          promise->set_exception(std::current_exception());
        }
      });
    }
    wake.notify_one();
    return future.wait_until(deadline + kGrace) == std::future_status::ready ? future.get() : util::fail(kStuck);
  }
};

util::Result<std::unique_ptr<Reader>> Reader::open(const std::string& path, std::function<void()> on_damage) {
  auto implementation = std::make_unique<Implementation>(path, std::move(on_damage));
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

bool Reader::is_stuck() const {
  const std::lock_guard lock(implementation_->mutex);
  return implementation_->is_stuck();
}

util::Result<std::vector<model::PastDevice>> Reader::devices(std::uint64_t* left_out) {
  using Listed = std::pair<std::vector<model::PastDevice>, std::uint64_t>;
  return implementation_
      ->ask<Listed>([](PastReader& past) {
        std::uint64_t others = 0;
        return past.devices(&others).map(
            [&](std::vector<model::PastDevice> devices) { return Listed(std::move(devices), others); });
      })
      .map([&](Listed listed) {
        if (left_out != nullptr) {
          *left_out = listed.second;
        }
        return std::move(listed.first);
      });
}

util::Result<std::vector<model::PastDevice>> Reader::devices_called(std::set<std::string> names) {
  return implementation_->ask<std::vector<model::PastDevice>>(
      [names = std::move(names)](PastReader& past) { return past.devices_called(names); });
}

util::Result<void> Reader::minutes(const Which& device, const model::Window& window,
                                   const std::function<void(model::MinuteOf&&)>& each) {
  // Until this call ends; see Implementation::ask().
  struct Receiver {
    std::mutex mutex;
    const std::function<void(model::MinuteOf&&)>* each;
  };
  const auto receiver = std::make_shared<Receiver>();
  receiver->each = &each;
  auto result = implementation_->ask<void>([device, window, receiver](PastReader& past) {
    return past.minutes(device, window, [&receiver](model::MinuteOf&& minute) {
      const std::lock_guard lock(receiver->mutex);
      if (receiver->each != nullptr) {
        (*receiver->each)(std::move(minute));
      }
    });
  });
  const std::lock_guard lock(receiver->mutex);
  receiver->each = nullptr;
  return result;
}

util::Result<std::vector<model::MinuteOf>> Reader::minutes(const Which& device, const model::Window& window) {
  std::vector<model::MinuteOf> all;
  return minutes(device, window, [&](model::MinuteOf&& one) { all.push_back(std::move(one)); }).map([&] {
    return std::move(all);
  });
}

util::Result<model::DeviceInterval> Reader::load(const Which& device, const model::Window& window) {
  model::DeviceInterval sum;
  return minutes(device, window, [&](const model::MinuteOf& one) { model::add(sum, one.load); }).map([&] {
    return std::move(sum);
  });
}

util::Result<model::Series> Reader::series(const Which& device, const model::Window& window, std::size_t points) {
  return implementation_->ask<model::Series>([=](PastReader& past) { return past.series(device, window, points); });
}

util::Result<model::PastLadder> Reader::ladder(const model::Window& window) {
  return implementation_->ask<model::PastLadder>([=](PastReader& past) { return past.ladder(window); });
}

util::Result<std::vector<std::vector<std::uint8_t>>> Reader::seconds(const Which& device, const model::Window& window) {
  return implementation_->ask<std::vector<model::Bytes>>(
      [=](PastReader& past) { return past.seconds(device, window); });
}

util::Result<model::PastMoment> Reader::moment(model::PastTime at) {
  return implementation_->ask<model::PastMoment>([=](PastReader& past) { return past.moment(at); });
}

util::Result<model::PastDay> Reader::day(model::PastTime at) {
  return implementation_->ask<model::PastDay>([=](PastReader& past) { return past.day(at); });
}

util::Result<std::vector<model::Mark>> Reader::marks(const model::Window& window) {
  return implementation_->ask<std::vector<model::Mark>>([=](PastReader& past) { return past.marks(window); });
}

util::Result<std::vector<model::SettingChange>> Reader::settings(const model::Window& window) {
  return implementation_->ask<std::vector<model::SettingChange>>(
      [=](PastReader& past) { return past.settings(window); });
}

std::size_t minutes_kept(Reader& history, const model::Window& window) {
  std::size_t most = 0;
  if (const auto devices = history.devices()) {
    for (const model::PastDevice& device : *devices) {
      if (device.last >= window.from) {
        const auto kept = history.minutes(device, window);
        most = std::max(most, kept ? kept->size() : 0);
      }
    }
  }
  return most;
}

}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/events.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <array>

namespace ssdpulse::runtime {
namespace {

std::chrono::nanoseconds monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

timespec to_timespec(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), (time - seconds).count()};
}

util::Result<util::UniqueFd> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return util::fail_errno("cannot block signals", error);
  }
  signal(SIGPIPE, SIG_IGN);
  util::UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  return fd.valid() ? util::Result<util::UniqueFd>(std::move(fd)) : util::fail_errno("cannot wait for signals");
}

/// For poll(2): rounded up, so that the deadline has passed afterwards; -1 without one.
int milliseconds_until(std::optional<std::chrono::steady_clock::time_point> deadline) {
  if (!deadline) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

Events::Events(util::UniqueFd signals, util::UniqueFd timer, util::UniqueFd mounts,
               std::optional<inventory::UeventMonitor> uevents, std::chrono::nanoseconds tick)
    : signals_(std::move(signals)),
      timer_(std::move(timer)),
      mounts_(std::move(mounts)),
      uevents_(std::move(uevents)),
      tick_(tick),
      next_due_(monotonic_now() + tick) {
  itimerspec schedule{};
  schedule.it_interval = to_timespec(tick_);
  schedule.it_value = to_timespec(next_due_);
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &schedule, nullptr);
}

util::Result<Events> Events::open(std::chrono::nanoseconds tick) {
  auto signals = open_signals();
  if (!signals) {
    return tl::make_unexpected(signals.error());
  }
  util::UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) {
    return util::fail_errno("cannot create a timer");
  }
  util::UniqueFd mounts(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  std::optional<inventory::UeventMonitor> uevents;
  if (auto monitor = inventory::UeventMonitor::open()) {
    uevents = std::move(*monitor);
  }
  return Events(std::move(*signals), std::move(timer), std::move(mounts), std::move(uevents), tick);
}

Wakeup Events::wait(int watched, std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::array<pollfd, 5> waits{{{signals_.get(), POLLIN, 0},
                               {timer_.get(), POLLIN, 0},
                               {mounts_.get(), POLLPRI, 0},
                               {uevents_ ? uevents_->fd() : -1, POLLIN, 0},
                               {watched, POLLIN, 0}}};
  Wakeup wakeup;
  if (poll(waits.data(), waits.size(), milliseconds_until(deadline)) < 0) {
    return wakeup;  // EINTR: the caller just waits again
  }
  signalfd_siginfo received{};
  while (read(signals_.get(), &received, sizeof(received)) == sizeof(received)) {
    wakeup.reload = wakeup.reload || received.ssi_signo == SIGHUP;
    wakeup.stop = wakeup.stop || received.ssi_signo != SIGHUP;
  }
  std::uint64_t expirations = 0;
  if (read(timer_.get(), &expirations, sizeof(expirations)) == sizeof(expirations)) {
    wakeup.ticks = expirations;
    next_due_ += tick_ * static_cast<std::int64_t>(expirations);
    wakeup.late = monotonic_now() - (next_due_ - tick_) > tick_ / 2;
  }
  wakeup.mounts_changed = (waits[2].revents & (POLLPRI | POLLERR)) != 0;
  wakeup.disks_changed = uevents_ && (waits[3].revents & POLLIN) != 0 && uevents_->drain();
  wakeup.answered = (waits[4].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  return wakeup;
}

}  // namespace ssdpulse::runtime

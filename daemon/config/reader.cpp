// SPDX-License-Identifier: Apache-2.0
// The thread is detached: stopping the daemon must not wait for a disk that hangs.
#include "daemon/config/reader.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace ssdpulse::config {

void ConfigurationReader::begin() {
  std::packaged_task<Configured()> task(configure_);
  reading_ = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error& error) {
    std::promise<Configured> failed;
    reading_ = failed.get_future();
    failed.set_value(
        tl::make_unexpected(std::vector<std::string>{std::string("cannot start a thread: ") + error.what()}));
  }
}

void ConfigurationReader::ask() {
  if (reading_.valid()) {
    asked_again_ = true;
  } else {
    begin();
  }
}

std::optional<Configured> ConfigurationReader::answer() {
  if (!reading_.valid() || reading_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return std::nullopt;
  }
  try {
    auto configured = reading_.get();
    if (!std::exchange(asked_again_, false)) {
      return configured;
    }
    begin();  // the file may have changed by now
    return std::nullopt;
  } catch (const std::exception& error) {  // out of memory, mostly
    return tl::make_unexpected(std::vector<std::string>{error.what()});
  }
}

}  // namespace ssdpulse::config

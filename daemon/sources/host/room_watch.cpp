// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/host/room_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ssdpulse::host {

struct RoomWatch::Answers {
  std::mutex mutex;
  struct Answer {
    model::FilesystemRoom room;
    model::SteadyTime at;
  };
  std::map<std::string, Answer> rooms;
  std::map<std::string, model::SteadyTime> waiting;  // asked then, and not answered yet
  std::size_t threads = 0;
};

std::optional<model::FilesystemRoom> room_of(const std::string& mountpoint) {
  struct statx status {};
  // Known without asking the file system.
  if (::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) != 0 ||
      ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)) {
    return std::nullopt;
  }
  struct statvfs space {};
  if (::statvfs(mountpoint.c_str(), &space) != 0 || space.f_blocks == 0 || (space.f_flag & ST_RDONLY) != 0) {
    return std::nullopt;
  }
  return model::FilesystemRoom{
      mountpoint,     space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize, space.f_files,
      space.f_favail, space.f_bfree * space.f_frsize};
}

RoomWatch::RoomWatch(Ask ask) : ask_(ask), answers_(std::make_shared<Answers>()) {}

std::vector<model::FilesystemRoom> RoomWatch::latest(const std::vector<std::string>& mountpoints,
                                                     model::SteadyTime now) {
  const std::lock_guard lock(answers_->mutex);
  std::erase_if(answers_->rooms, [&](const auto& one) {
    return std::find(mountpoints.begin(), mountpoints.end(), one.first) == mountpoints.end();
  });
  if ((!asked_at_ || now - *asked_at_ >= kInterval) && answers_->threads < kMaxThreads) {
    asked_at_ = now;
    std::vector<std::string> due;
    std::copy_if(mountpoints.begin(), mountpoints.end(), std::back_inserter(due),
                 [&](const std::string& one) { return !answers_->waiting.contains(one) && due.size() < kMaxMounts; });
    const auto begin = std::chrono::steady_clock::now();
    const auto work = [answers = answers_, ask = ask_, due = std::move(due), now, begin] {
      for (const std::string& mountpoint : due) {
        {
          const std::lock_guard own(answers->mutex);
          if (!answers->waiting.emplace(mountpoint, now + (std::chrono::steady_clock::now() - begin)).second) {
            continue;  // a later thread was quicker
          }
        }
        const auto room = ask(mountpoint);
        const std::lock_guard own(answers->mutex);
        answers->waiting.erase(mountpoint);
        if (room) {
          answers->rooms[mountpoint] = {*room, now + (std::chrono::steady_clock::now() - begin)};
        } else {
          answers->rooms.erase(mountpoint);
        }
      }
      const std::lock_guard own(answers->mutex);
      --answers->threads;
    };
    try {
      std::thread(work).detach();
      ++answers_->threads;
    } catch (const std::system_error&) {
      // No thread now: another try in kInterval.
    }
  }
  std::vector<model::FilesystemRoom> rooms;
  for (const std::string& mountpoint : mountpoints) {
    const auto found = answers_->rooms.find(mountpoint);
    const auto waiting = answers_->waiting.find(mountpoint);
    const bool stuck = waiting != answers_->waiting.end() && now - waiting->second >= kInterval;
    if (found != answers_->rooms.end() && !stuck && now - found->second.at < kLongestAge) {
      rooms.push_back(found->second.room);
    }
  }
  return rooms;
}

}  // namespace ssdpulse::host

// SPDX-License-Identifier: Apache-2.0
// SpawnSettings: what posix_spawn() is to do in the child, for one call. Owns both objects; holds no descriptor.
#pragma once

#include <spawn.h>

namespace ssdpulse::util {

struct SpawnSettings {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace ssdpulse::util

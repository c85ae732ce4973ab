// SPDX-License-Identifier: Apache-2.0
// Obstacle: what keeps a history from being read or written, so far as it decides what helps.
#pragma once

#include <cerrno>
#include <string_view>

namespace ssdpulse::history {

enum class Obstacle {
  unknown,
  opening,     // none: the file is being checked, which takes seconds if it is large
  room,        // the file system, or a quota, is full
  permission,  // the daemon may not, or the file system is read-only
  missing,     // the directory, and its parent
  kind,        // something that is no directory, or no regular file, has the name
  daemon,      // another one keeps its history there
  reader,      // another program locks the file
  disk,        // it does not read or write
  file_size,   // neither the file system nor RLIMIT_FSIZE allows a larger one
  open_files,
  memory,
  damaged,  // and the file could not be set aside
};

/// By the error number of a call.
constexpr Obstacle obstacle_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return Obstacle::room;
    case EACCES:
    case EPERM:
    case EROFS:
      return Obstacle::permission;
    case ENOENT:
      return Obstacle::missing;
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return Obstacle::kind;
    case EIO:
    case ESTALE:
    case ENXIO:
    case ENODEV:
      return Obstacle::disk;
    case EFBIG:
      return Obstacle::file_size;
    case EMFILE:
    case ENFILE:
      return Obstacle::open_files;
    case ENOMEM:
      return Obstacle::memory;
    default:
      return Obstacle::unknown;
  }
}

/// What to do about it. The daemon tries again every minute.
constexpr std::string_view way_out(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::opening:
      return "";
    case Obstacle::room:
      return "make room on the file system of history.directory, or raise its quota";
    case Obstacle::permission:
      return "make the directory writable: for the daemon's user (chown, chmod), and its file system (mount)";
    case Obstacle::missing:  // by now the daemon can open no directory but the one that existed when it started
      return "make it and restart the daemon";
    case Obstacle::kind:
      return "name a directory in history.directory, and move away what has the name of the file";
    case Obstacle::daemon:
      return "stop one of them, or give each a history.directory of its own";
    case Obstacle::reader:
      return "end the program that holds the file (fuser ssdpulse.db), and query a copy";
    case Obstacle::disk:
      return "look for errors of its drive in the kernel's log (journalctl -k), or move history.directory to another";
    case Obstacle::file_size:
      return "raise LimitFSIZE= of the service and restart the daemon, or lower history.size";
    case Obstacle::open_files:
      return "raise LimitNOFILE= of the service and restart the daemon";
    case Obstacle::memory:
      return "allow the service more memory (MemoryMax)";
    case Obstacle::damaged:
      return "move the file away: a new one is started";
    case Obstacle::unknown:
      break;
  }
  return "see the runbook SsdpulseSourceDown";
}

}  // namespace ssdpulse::history

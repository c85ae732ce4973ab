// SPDX-License-Identifier: Apache-2.0
// Obstacle: why a history cannot be read or written, as far as the remedies differ, and the remedy for each.
#pragma once

#include <cerrno>
#include <string_view>

namespace ssdpulse::history {

enum class Obstacle {
  unknown,
  opening,              // not an obstacle: the file is being checked, which takes seconds if it is large
  no_space,             // the file system, or a quota, is full
  no_permission,        // the daemon may not write there, or the file system is read-only
  missing,              // neither the directory nor its parent exists
  wrong_file_type,      // what has the name is not a directory, or not a regular file
  another_daemon,       // keeps its history there
  locked,               // by another program, which reads the file
  io_error,             // of the drive
  file_too_large,       // for the file system or for RLIMIT_FSIZE
  too_many_open_files,  // of the process or of the host
  no_memory,
  damaged,  // and the file could not be set aside
};

/// What an errno value of open(), read(), write(), ... stands for.
constexpr Obstacle obstacle_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return Obstacle::no_space;
    case EACCES:
    case EPERM:
    case EROFS:
      return Obstacle::no_permission;
    case ENOENT:
      return Obstacle::missing;
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return Obstacle::wrong_file_type;
    case EIO:
    case ESTALE:
    case ENXIO:
    case ENODEV:
      return Obstacle::io_error;
    case EFBIG:
      return Obstacle::file_too_large;
    case EMFILE:
    case ENFILE:
      return Obstacle::too_many_open_files;
    case ENOMEM:
      return Obstacle::no_memory;
    default:
      return Obstacle::unknown;
  }
}

/// What the operator can do about it; empty for `opening`. The daemon tries again every minute.
constexpr std::string_view remedy(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::opening:
      return "";
    case Obstacle::no_space:
      return "make room on the file system of history.directory, or raise its quota";
    case Obstacle::no_permission:
      return "make the directory writable: for the daemon's user (chown, chmod), and its file system (mount)";
    case Obstacle::missing:  // by now the daemon can open no directory but the one that existed when it started
      return "create it and restart the daemon";
    case Obstacle::wrong_file_type:
      return "set history.directory to a directory, and move away whatever has the name of the history file";
    case Obstacle::another_daemon:
      return "stop one of the two daemons, or give each a history.directory of its own";
    case Obstacle::locked:
      return "end the program that holds the file (fuser ssdpulse.db), and query a copy";
    case Obstacle::io_error:
      return "look for errors of its drive in the kernel's log (journalctl -k), or move history.directory to another";
    case Obstacle::file_too_large:
      return "raise LimitFSIZE= of the service and restart the daemon, or lower history.size";
    case Obstacle::too_many_open_files:
      return "raise LimitNOFILE= of the service and restart the daemon";
    case Obstacle::no_memory:
      return "allow the service more memory (MemoryMax)";
    case Obstacle::damaged:
      return "move the file away: a new one is started";
    case Obstacle::unknown:
      break;
  }
  return "see the runbook SsdpulseSourceDown";
}

}  // namespace ssdpulse::history

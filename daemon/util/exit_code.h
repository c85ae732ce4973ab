// SPDX-License-Identifier: Apache-2.0
// ExitCode: the exit statuses of ssdpulse(1).
#pragma once

#include <cerrno>

namespace ssdpulse::util {

enum class ExitCode : int {
  success = 0,        // stopped on request
  failure = 1,        // something broke that should not have, or that may work again a moment later
  usage = 2,          // command line or configuration is wrong
  not_permitted = 3,  // a privilege is missing, or the kernel is locked down
  kernel = 4,         // the kernel lacks a required feature (BTF, BPF, a known block layer)
  address = 5,        // cannot listen on the address
  no_data = 6,        // what was asked for was not measured, or is not known yet; the answer says why
  open_files = 7,     // too few files may be open (RLIMIT_NOFILE): no restart raises a limit
};

/// For an error at the start: a refusal stays a refusal; a resource that was short may be available a moment later.
constexpr ExitCode exit_code_of(int error_number) {
  switch (error_number) {
    case EPERM:
    case EACCES:
      return ExitCode::not_permitted;
    case EMFILE:
      return ExitCode::open_files;
    case EAGAIN:
    case EINTR:
    case ENFILE:
    case ENOMEM:
      return ExitCode::failure;
    default:
      return ExitCode::kernel;
  }
}

}  // namespace ssdpulse::util

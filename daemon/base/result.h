// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error with its text. Lower layers return errors; only the code that decides logs them.
// ExitCode: the exit statuses of ssdpulse(1).
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace ssdpulse::util {

struct Error {
  std::string message;   // one line: what is wrong and what to do
  int error_number = 0;  // errno, where there is one

  /// The same failure, seen from one layer up: "context: message".
  [[nodiscard]] Error within(const std::string& context) const { return {context + ": " + message, error_number}; }
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message, int error_number = 0) {
  return tl::unexpected<Error>(Error{std::move(message), error_number});
}

/// For a failed system call: appends the text of errno.
inline tl::unexpected<Error> fail_errno(const std::string& message, int error_number = errno) {
  return fail(message + ": " + std::strerror(error_number), error_number);
}

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

/// For an error of opening the programs in the kernel: one that is not listed is the kernel's. A refusal stays a
/// refusal; a resource that was short may be available a moment later.
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

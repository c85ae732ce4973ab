// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error in words. Lower layers return errors; only the place that decides logs them.
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

}  // namespace ssdpulse::util

// SPDX-License-Identifier: Apache-2.0
// WebSecurityWatch: keeps the pages' protection in step with web.config_file, and loses none of its kinds unnoticed,
// neither by a reload nor by a restart: a web file that was cut short still parses, and would open the pages to
// everybody.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "exporters/http/http_security.h"

namespace ssdpulse::serve {

enum class ProtectionKind : std::uint8_t { tls, users, client_certificates };
using ProtectionKinds = std::set<ProtectionKind>;

/// Null: none.
ProtectionKinds kinds_of(const http::Protection* protection);

/// What `before` has and `now` lacks, in words: "TLS and users"; empty: nothing.
std::string lost_protection(const ProtectionKinds& before, const ProtectionKinds& now);

/// For the log: "tls=yes users=listed client_certificates=not_required".
std::array<log::Field, 3> fields_of(const ProtectionKinds& kinds);

inline constexpr const char* kProtectionFileName = "web-protection";

/// What keep_protection() wrote last; none if there is no such file. Kinds that this version does not know are ignored.
util::Result<ProtectionKinds> kept_protection(const std::string& directory);

/// Whole or not at all. Does nothing if the same is kept already.
util::Result<void> keep_protection(const std::string& directory, const ProtectionKinds& kinds);

/// Read with only the privileges of the daemon's user, at the start and later, so that whatever starts can also be
/// reloaded.
struct LoadedWebSecurity {
  tl::expected<std::shared_ptr<const http::Protection>, std::vector<std::string>> outcome;  // or every problem
  std::vector<std::string> files = {};  // all that were, or would have to be, read
  std::string stamps = {};              // of these files, from before each was read: a change meanwhile is noticed
  bool file_is_right = false;           // the web file itself: the files it names may be about to be replaced
};

struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};

/// `path`: of web.config_file, which must belong to root, to whoever asks, or to `service`: the user that a service
/// will read it as, where root asks for it. `previous`: as for make_protection().
LoadedWebSecurity load_web_security(const std::string& path, const http::Protection* previous = nullptr,
                                    const std::optional<FileOwner>& service = std::nullopt);

/// Checks every few seconds whether one of the files has changed, on a thread of its own: a file system that hangs
/// delays no sample. A change takes effect once the files have been left alone for a second, as certificate and key are
/// not replaced in one step. Problems are logged once per change, and the protection in force stays. Thread-safe.
class WebSecurityWatch {
 public:
  /// Puts a Protection into force; false if that needs a restart. Called on the watch's thread.
  using Use = std::function<bool(std::shared_ptr<const http::Protection>)>;

  /// `in_force` must not be an error.
  WebSecurityWatch(std::string path, LoadedWebSecurity in_force, Use use);
  ~WebSecurityWatch();

  void reload();  // now, changed or not; returns at once

  [[nodiscard]] bool good() const { return good_; }  // the content of the files is in force
  [[nodiscard]] std::uint64_t failures() const { return failures_; }

 private:
  void run();
  void load();
  bool wait_for(std::chrono::milliseconds time);  // false: stopping

  const std::string path_;
  const Use use_;
  std::shared_ptr<const http::Protection> in_force_;
  std::vector<std::string> files_;
  std::string stamps_;  // of the files when they were last read
  std::atomic<bool> good_{true};
  std::atomic<std::uint64_t> failures_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool reload_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ssdpulse::serve

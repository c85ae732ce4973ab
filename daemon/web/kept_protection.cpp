// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/kept_protection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <utility>

#include "daemon/util/read_file.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::web {
namespace {

constexpr std::size_t kMaxBytes = 4096;  // three words are written
constexpr mode_t kMode = 0640;

struct KindWords {
  ProtectionKind kind;
  log::FieldName key;  // in the file, and in the log
  const char* words;
  const char* on;
  const char* off;
};
constexpr auto kKinds = std::to_array<KindWords>({
    {ProtectionKind::tls, "tls", "TLS", "yes", "no"},
    {ProtectionKind::users, "users", "users", "listed", "all"},
    {ProtectionKind::client_certificates, "client_certificates", "client certificates", "required", "not_required"},
});

}  // namespace

ProtectionKinds kinds_of(const http::Protection* protection) {
  ProtectionKinds kinds;
  if (protection != nullptr && protection->tls != nullptr) {
    kinds.insert(ProtectionKind::tls);
  }
  if (protection != nullptr && protection->users != nullptr) {
    kinds.insert(ProtectionKind::users);
  }
  if (protection != nullptr && protection->requires_client_certificates) {
    kinds.insert(ProtectionKind::client_certificates);
  }
  return kinds;
}

std::string lost_words(const ProtectionKinds& before, const ProtectionKinds& now) {
  std::string words;
  for (const KindWords& one : kKinds) {
    if (before.contains(one.kind) && !now.contains(one.kind)) {
      words += (words.empty() ? "" : " and ") + std::string(one.words);
    }
  }
  return words;
}

std::array<log::Field, 3> fields_of(const ProtectionKinds& kinds) {
  std::array<log::Field, kKinds.size()> fields;
  std::transform(kKinds.begin(), kKinds.end(), fields.begin(), [&](const KindWords& one) {
    return log::field(one.key, kinds.contains(one.kind) ? one.on : one.off);
  });
  return fields;
}

util::Result<ProtectionKinds> kept_protection(const std::string& directory) {
  const auto text = util::read_file(directory + "/" + kProtectionFileName, kMaxBytes);
  if (!text) {
    return text.error().error_number == ENOENT ? util::Result<ProtectionKinds>(ProtectionKinds{})
                                               : tl::make_unexpected(text.error());
  }
  ProtectionKinds kinds;
  std::istringstream words(*text);
  for (std::string word; words >> word;) {
    const auto found =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) { return word == one.key.text; });
    if (found != kKinds.end()) {
      kinds.insert(found->kind);
    }
  }
  return kinds;
}

util::Result<void> keep_protection(const std::string& directory, const ProtectionKinds& kinds) {
  if (const auto kept = kept_protection(directory); kept && *kept == kinds) {
    return {};
  }
  std::string text;
  for (const KindWords& one : kKinds) {
    text += kinds.contains(one.kind) ? std::string(one.key.text) + "\n" : "";
  }
  const std::string path = directory + "/" + kProtectionFileName;
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const util::UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    return util::fail_errno("cannot write " + path);
  }
  return {};
}

}  // namespace ssdpulse::web

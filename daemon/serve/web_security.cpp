// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/web_security.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/config/web_file.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::serve {
namespace {

constexpr std::size_t kMaxBytes = 4096;  // three names are written
constexpr mode_t kMode = 0640;

struct KindText {
  ProtectionKind kind;
  log::FieldName key;  // in the file, and in the log
  const char* title;
  const char* on;
  const char* off;
};
constexpr auto kKinds = std::to_array<KindText>({
    {ProtectionKind::tls, "tls", "TLS", "yes", "no"},
    {ProtectionKind::users, "users", "users", "listed", "all"},
    {ProtectionKind::client_certificates, "client_certificates", "client certificates", "required", "not_required"},
});

constexpr std::chrono::seconds kCheckInterval{5};
constexpr std::chrono::seconds kRest{1};

void refuse_if_others_write(const std::string& file, std::vector<std::string>& problems) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0) {
    problems.push_back(file + ": everybody may write it; needed: chmod o-w");
  }
}

/// Whoever may write the file, or put another in its place, decides who may read the pages.
void refuse_if_others_decide(const std::string& file, const std::optional<FileOwner>& service,
                             std::vector<std::string>& problems) {
  refuse_if_others_write(file, problems);
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0) {
    if (status.st_uid != 0 && status.st_uid != ::geteuid() && !(service && service->user == status.st_uid)) {
      problems.push_back(file + ": belongs to user " + std::to_string(status.st_uid) + "; needed: chown root");
    }
    if ((status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 && status.st_gid != ::getegid() &&
        !(service && service->group == status.st_gid)) {
      problems.push_back(file + ": group " + std::to_string(status.st_gid) + " may write it; needed: chmod g-w");
    }
  }
  const std::string directory = std::filesystem::absolute(file).parent_path().string();
  if (::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
    problems.push_back(directory + ": everybody may replace what is in it; needed: chmod o-w");
  }
}

/// The text, or the content of the file.
std::string pem_of(const std::string& text, const std::string& file, std::vector<std::string>& problems) {
  if (file.empty()) {
    return text;
  }
  refuse_if_others_write(file, problems);
  auto read = config::read_regular_file(file);
  if (!read) {
    problems.push_back(file + ": " + read.error().message + "; needed: PEM that the user of the daemon may read");
    return {};
  }
  // A rotation is half done. Without its authority the page would be closed to everybody.
  if (read->empty()) {
    problems.push_back(file + ": is empty; needed: PEM");
  }
  return std::move(*read);
}

http::TlsSettings tls_of(const config::WebFile::Tls& file, std::vector<std::string>& problems) {
  http::TlsSettings tls;
  tls.certificate = pem_of(file.cert, file.cert_file, problems);
  tls.key = pem_of(file.key, file.key_file, problems);
  tls.client_ca = pem_of(file.client_ca, file.client_ca_file, problems);
  const auto& type = file.client_auth_type;
  tls.ask_client = type != "NoClientCert";
  tls.require_client = type.rfind("Require", 0) == 0;
  tls.verify_client = type.find("Verify") != std::string::npos;
  tls.client_allowed_sans = file.client_allowed_sans;
  tls.min_version = file.min_version;
  tls.max_version = file.max_version;
  tls.cipher_suites = file.cipher_suites;
  tls.curve_preferences = file.curve_preferences;
  tls.prefer_server_cipher_suites = file.prefer_server_cipher_suites;
  return tls;
}

/// What distinguishes one state of the files from another: replaced, rewritten, gone, readable again.
std::string stamps_of(const std::vector<std::string>& files) {
  std::string stamps;
  for (const auto& file : files) {
    struct stat status {};
    const int error = ::stat(file.c_str(), &status) == 0 ? 0 : errno;
    for (const auto number :
         {static_cast<long>(error), static_cast<long>(status.st_dev), static_cast<long>(status.st_ino),
          static_cast<long>(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
          status.st_ctim.tv_nsec}) {
      stamps += std::to_string(number) + ' ';
    }
  }
  return stamps;
}

}  // namespace

ProtectionKinds kinds_of(const http::Protection* protection) {
  if (protection == nullptr) {
    return {};
  }
  ProtectionKinds kinds;
  if (protection->tls != nullptr) {
    kinds.insert(ProtectionKind::tls);
  }
  if (protection->users != nullptr) {
    kinds.insert(ProtectionKind::users);
  }
  if (protection->requires_client_certificates) {
    kinds.insert(ProtectionKind::client_certificates);
  }
  return kinds;
}

std::string lost_protection(const ProtectionKinds& before, const ProtectionKinds& now) {
  std::string titles;
  for (const KindText& text : kKinds) {
    if (before.contains(text.kind) && !now.contains(text.kind)) {
      titles += (titles.empty() ? "" : " and ") + std::string(text.title);
    }
  }
  return titles;
}

std::array<log::Field, 3> fields_of(const ProtectionKinds& kinds) {
  std::array<log::Field, kKinds.size()> fields;
  std::transform(kKinds.begin(), kKinds.end(), fields.begin(), [&](const KindText& text) {
    return log::field(text.key, kinds.contains(text.kind) ? text.on : text.off);
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
  std::istringstream names(*text);
  for (std::string name; names >> name;) {
    const auto found =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const KindText& known) { return name == known.key.text; });
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
  for (const auto& kind : kKinds) {
    text += kinds.contains(kind.kind) ? std::string(kind.key.text) + "\n" : "";
  }
  const std::string path = directory + "/" + kProtectionFileName;
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const util::UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    return util::fail_errno("cannot write " + path);
  }
  return util::sync_names(directory);
}

LoadedWebSecurity load_web_security(const std::string& path, const http::Protection* previous,
                                    const std::optional<FileOwner>& service) {
  LoadedWebSecurity loaded{nullptr, {path}, stamps_of({path}), false};
  std::vector<std::string> problems;
  refuse_if_others_decide(path, service, problems);
  const auto file = config::load_web_file(path);
  if (!file) {
    for (const auto& problem : file.error()) {
      problems.push_back(to_string(problem));
    }
    loaded.outcome = tl::make_unexpected(std::move(problems));
    return loaded;
  }
  loaded.file_is_right = true;
  http::Security security;
  security.headers = file->headers;
  security.users = file->users;
  if (file->tls) {
    for (const auto& name : {file->tls->cert_file, file->tls->key_file, file->tls->client_ca_file}) {
      if (!name.empty()) {
        loaded.files.push_back(name);
        loaded.stamps += stamps_of({name});
      }
    }
    security.tls = tls_of(*file->tls, problems);
  }
  if (problems.empty()) {
    auto protection = http::make_protection(security, previous);
    if (protection) {
      loaded.outcome = std::move(*protection);
      return loaded;
    }
    problems.push_back(path + ": tls_server_config: " + protection.error().message);
    loaded.file_is_right = protection.error().error_number != EINVAL;
  }
  loaded.outcome = tl::make_unexpected(std::move(problems));
  return loaded;
}

WebSecurityWatch::WebSecurityWatch(std::string path, LoadedWebSecurity in_force, Use use)
    : path_(std::move(path)),
      use_(std::move(use)),
      in_force_(*in_force.outcome),
      files_(std::move(in_force.files)),
      stamps_(std::move(in_force.stamps)),
      thread_([this] {
        ::pthread_setname_np(::pthread_self(), "web-security");
        run();
      }) {}

WebSecurityWatch::~WebSecurityWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WebSecurityWatch::reload() {
  {
    const std::lock_guard lock(mutex_);
    reload_ = true;
  }
  changed_.notify_all();
}

bool WebSecurityWatch::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return stopping_ || reload_; });
  return !stopping_;
}

void WebSecurityWatch::run() {
  std::string seen = stamps_;
  while (wait_for(seen == stamps_ ? kCheckInterval : kRest)) {
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      asked = std::exchange(reload_, false);
    }
    auto now = stamps_of(files_);
    if (asked || (now != stamps_ && now == seen)) {
      load();
      now = stamps_;
    }
    seen = std::move(now);
  }
}

void WebSecurityWatch::load() {
  auto loaded = load_web_security(path_, in_force_.get());
  if (const auto lost =
          loaded.outcome ? lost_protection(kinds_of(in_force_.get()), kinds_of(loaded.outcome->get())) : "";
      !lost.empty()) {
    loaded.outcome = tl::make_unexpected(std::vector<std::string>{
        path_ + ": " + lost + " would be turned off: that takes a restart with --web.allow-less-protection"});
  }
  if (loaded.outcome && !use_(*loaded.outcome)) {
    loaded.outcome = tl::make_unexpected(
        std::vector<std::string>{path_ + ": tls_server_config: TLS is turned on or off by a restart only"});
  }
  files_ = loaded.files;
  stamps_ = loaded.stamps;
  good_ = loaded.outcome.has_value();
  if (loaded.outcome) {
    in_force_ = *loaded.outcome;
    const auto [tls, users, certificates] = fields_of(kinds_of(in_force_.get()));
    log::info("web configuration reloaded", log::field("file", path_), tls, users, certificates);
    return;
  }
  ++failures_;
  for (const auto& problem : loaded.outcome.error()) {
    log::error("{}", problem);
  }
  log::warning("web configuration not reloaded: the current certificates and users stay in force");
}

}  // namespace ssdpulse::serve

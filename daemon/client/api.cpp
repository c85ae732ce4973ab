// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/api.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "daemon/client/server_text.h"
#include "daemon/client/trust.h"
#include "daemon/config/listen_address.h"
#include "daemon/config/web_file.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::client {

namespace {

/// The file may have only users. If this user may not read it, TLS is used: passwords never go out in clear by mistake.
bool has_tls(const std::string& web_file) {
  if (web_file.empty()) {
    return false;
  }
  const auto loaded = config::load_web_file(web_file);
  return !loaded || loaded->tls.has_value();
}

/// The unix socket if this user may connect to it, because that takes neither TLS nor a password.
std::string address_of(const config::Web& web) {
  return somebody_listens_on(web.socket) ? "unix:" + web.socket : url_of(web);
}

/// Invalid, and errno, if that is not possible.
util::UniqueFd connected_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    errno = ENOENT;
    return {};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  util::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.valid() && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error_number = errno;
    fd.reset();
    errno = error_number;
  }
  return fd;
}

}  // namespace

bool somebody_listens_on(const std::string& path) {
  const util::UniqueFd connected = connected_to(path);
  // EAGAIN: too many are waiting to be accepted. A busy daemon is there nevertheless.
  return connected.valid() || errno == EAGAIN;
}

std::optional<std::uint32_t> listening_user(const std::string& path) {
  const util::UniqueFd connected = connected_to(path);
  struct stat file {};
  if (!connected.valid()) {  // too busy: who made its file
    return errno == EAGAIN && ::stat(path.c_str(), &file) == 0 ? std::optional<std::uint32_t>(file.st_uid)
                                                               : std::nullopt;
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(connected.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0
             ? std::optional<std::uint32_t>(peer.uid)
             : std::nullopt;
}

std::string url_of(const config::Web& web) {
  const char* scheme = has_tls(web.config_file) ? "https://" : "http://";
  auto address =
      config::parse_listen_address(web.listen_address.empty() ? "127.0.0.1:10936" : web.listen_address.front());
  if (!address) {
    return std::string(scheme) + "127.0.0.1:10936";
  }
  if (address->host.empty() || address->host == "0.0.0.0") {
    address->host = "127.0.0.1";
  } else if (address->host == "::") {
    address->host = "::1";
  }
  return scheme + to_string(*address);
}

constexpr const char* kHowToTrust =
    "; ask as root or as a member of the group ssdpulse, by the service's unix socket, or name the address with "
    "--address to ask there all the same";

std::string Api::distrust() const {
  return unix_socket_.empty() ? distrust_of_url(url_, chosen_ ? Checked::of_loopback : Checked::of_this_host)
                              : distrust_of_socket(unix_socket_);
}

util::Result<Api> Api::open(const Where& where, const config::Web& web) {
  Api api;
  api.address_ = where.address.empty() ? address_of(web) : where.address;
  constexpr std::string_view kUnix = "unix:";
  if (api.address_.substr(0, kUnix.size()) == kUnix) {
    api.unix_socket_ = api.address_.substr(kUnix.size());
    api.url_ = "http://localhost";
  } else {
    api.url_ = api.address_.find("://") == std::string::npos ? "http://" + api.address_ : api.address_;
    while (!api.url_.empty() && api.url_.back() == '/') {
      api.url_.pop_back();
    }
  }
  api.chosen_ = !where.address.empty();
  const std::string distrust = api.distrust();
  if (!distrust.empty() && !api.chosen_) {
    return util::fail(distrust + kHowToTrust, kNotTrusted);
  }
  if (!distrust.empty()) {
    std::cerr << "warning: " << distrust << '\n';
  }
  auto fetcher = Fetcher::open(where.ca_file);
  if (!fetcher) {
    return tl::make_unexpected(fetcher.error());
  }
  api.fetcher_ = std::move(*fetcher);
  return api;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                       std::string_view("-._~").find(letter) != std::string_view::npos;
    out += plain ? std::string(1, letter) : std::string{'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return out;
}

bool Api::nobody_is_there() {
  if (!unix_socket_.empty()) {
    return !somebody_listens_on(unix_socket_);
  }
  const auto fetched = fetcher_->get(url_ + "/-/healthy", "");
  return !fetched && fetched.error().error_number == ECONNREFUSED;
}

util::Result<std::string> Api::page(const std::string& path) { return asked(path, false); }

util::Result<nlohmann::json> Api::get(const std::string& path) {
  const std::string below = "/api/v1/" + path;
  return parsed(asked(below, false));
}

util::Result<nlohmann::json> Api::post(const std::string& path) {
  const std::string below = "/api/v1/" + path;
  return parsed(asked(below, true));
}

/// Whoever listens may change at any time: a daemon that restarts leaves its port free for a while.
util::Result<std::string> Api::asked(const std::string& path, bool post) {
  const auto checked = [this] { return chosen_ ? std::string() : distrust(); };
  if (const std::string words = checked(); !words.empty()) {
    return util::fail(words + kHowToTrust, kNotTrusted);
  }
  auto body =
      body_of(path, post ? fetcher_->post(url_ + path, unix_socket_) : fetcher_->get(url_ + path, unix_socket_));
  if (const std::string words = checked(); !words.empty()) {
    return util::fail(words + kHowToTrust, kNotTrusted);
  }
  return body;
}

util::Result<std::string> Api::body_of(const std::string& path, util::Result<Fetched> fetched) const {
  if (!fetched && fetched.error().error_number == EPROTO) {
    return util::fail("the server at " + address_ + " is not trusted (" + fetched.error().message + "): see --cacert");
  }
  if (!fetched) {
    return util::fail("no daemon answers at " + address_ + " (" + fetched.error().message +
                          "); is it running, and is this its address? See --address",
                      kNobodyAnswers);
  }
  if (fetched->status == 401) {
    return util::fail(
        address_ + " requires a user and a password: put them into ~/.netrc, or ask as a member of the daemon's group",
        401);
  }
  if (fetched->status >= 400 && fetched->body != "no such page\n" && !fetched->body.empty()) {
    return util::fail(address_ + ": " + first_line_of(fetched->body), static_cast<int>(fetched->status));
  }
  if (fetched->status == 404) {
    return util::fail(address_ + " has no " + path + ": web.page is false there, or it is a different version", 404);
  }
  if (fetched->status != 200) {
    return util::fail(address_ + " answered " + std::to_string(fetched->status) + ": " + first_line_of(fetched->body),
                      static_cast<int>(fetched->status));
  }
  return std::move(fetched->body);
}

std::optional<nlohmann::json> parse_answer(std::string_view body) {
  constexpr int kMaxDepth = 32;  // of ours: 10. To print what is much deeper takes more stack than there is
  bool too_deep = false;
  const auto keep = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  auto answer = nlohmann::json::parse(body, keep, false);
  return too_deep || answer.is_discarded() ? std::nullopt : std::optional(std::move(answer));
}

util::Result<nlohmann::json> Api::parsed(const util::Result<std::string>& body) const {
  if (!body) {
    return tl::make_unexpected(body.error());
  }
  auto answer = parse_answer(*body);
  if (!answer) {
    return util::fail(address_ + " answered something other than JSON: " + first_line_of(*body));
  }
  clean_strings(*answer);
  return std::move(*answer);
}

}  // namespace ssdpulse::client

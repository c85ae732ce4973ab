// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/api.h"

#include <utility>

#include "daemon/config/listen_address.h"
#include "daemon/config/web_file.h"

namespace ssdpulse::client {

namespace {

/// The file may have users alone. Whoever may not read it is sent by TLS: passwords never go out in clear by mistake.
bool has_tls(const std::string& web_file) {
  if (web_file.empty()) {
    return false;
  }
  const auto loaded = config::load_web_file(web_file);
  return !loaded || loaded->tls.has_value();
}

}  // namespace

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

util::Result<Api> Api::open(const Where& where, const config::Web& web) {
  Api api;
  api.address_ = where.address.empty() ? url_of(web) : where.address;
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
  auto fetcher = Fetcher::open(where.ca_file);
  if (!fetcher) {
    return tl::make_unexpected(fetcher.error());
  }
  api.fetcher_ = std::move(*fetcher);
  return api;
}

util::Result<nlohmann::json> Api::get(const std::string& path) {
  const auto fetched = fetcher_->get(url_ + "/api/v1/" + path, unix_socket_);
  if (!fetched) {
    return util::fail("no daemon answers at " + address_ + " (" + fetched.error().message +
                      "); is it running, and is this its address? See --address");
  }
  if (fetched->status == 401) {
    return util::fail(address_ + " wants a user and a password: put them into ~/.netrc");
  }
  if (fetched->status == 404) {
    return util::fail(address_ + " has no /api/v1/" + path + ": web.page is false there, or it is another version",
                      404);
  }
  auto answer = nlohmann::json::parse(fetched->body, nullptr, false);
  if (fetched->status != 200 || answer.is_discarded()) {
    return util::fail(address_ + " answered " + std::to_string(fetched->status) + ": " + fetched->body.substr(0, 200));
  }
  return answer;
}

}  // namespace ssdpulse::client

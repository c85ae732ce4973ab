// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/api_client.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <new>
#include <utility>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/outside_text.h"
#include "daemon/base/tcp_listeners.h"
#include "daemon/config/value_text.h"
#include "daemon/config/web_file.h"

namespace ssdpulse::cli {
namespace {

constexpr std::size_t kMaxPageBytes = 16U << 20;

/// The functions that are used, with their own types.
struct Library {
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_setopt) set;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) info;
  decltype(&::curl_easy_strerror) error_text;
  decltype(&::curl_slist_append) append_header;
  decltype(&::curl_slist_free_all) free_headers;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

util::Result<Library> load() {
  void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);  // for the rest of this process
  Library curl{};
  if (library == nullptr || !find(library, "curl_easy_init", curl.init) ||
      !find(library, "curl_easy_cleanup", curl.cleanup) || !find(library, "curl_easy_setopt", curl.set) ||
      !find(library, "curl_easy_perform", curl.perform) || !find(library, "curl_easy_getinfo", curl.info) ||
      !find(library, "curl_easy_strerror", curl.error_text) ||
      !find(library, "curl_slist_append", curl.append_header) ||
      !find(library, "curl_slist_free_all", curl.free_headers)) {
    return util::fail("cannot load libcurl.so.4: install the package libcurl4");
  }
  return curl;
}

std::size_t append(char* bytes, std::size_t size, std::size_t count, void* body) {
  auto& text = *static_cast<std::string*>(body);
  if (text.size() + size * count > kMaxPageBytes) {
    return 0;
  }
  try {
    text.append(bytes, size * count);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size * count;
}

struct Fetched {
  long status = 0;  // of HTTP
  std::string body;
};

}  // namespace

/// Fetches pages with libcurl.
class Fetcher {
 public:
  /// `ca_file`: of trusted certificates; empty: the system's.
  static util::Result<std::unique_ptr<Fetcher>> open(const std::string& ca_file);

  Fetcher(const Library& curl, CURL* handle, const std::string& ca_file) : curl_(curl), handle_(handle) {
    curl_.set(handle_, CURLOPT_TIMEOUT, 10L);
    curl_.set(handle_, CURLOPT_NOSIGNAL, 1L);
    curl_.set(handle_, CURLOPT_ACCEPT_ENCODING, "");
    curl_.set(handle_, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    curl_.set(handle_, CURLOPT_PROXY, "");
    curl_.set(handle_, CURLOPT_WRITEFUNCTION, append);
    if (!ca_file.empty()) {
      curl_.set(handle_, CURLOPT_CAINFO, ca_file.c_str());
    }
  }
  ~Fetcher() {
    curl_.cleanup(handle_);
    curl_.free_headers(headers_);
  }
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  /// Without a body, and with the header X-Ssdpulse.
  util::Result<Fetched> post(const std::string& url, const std::string& unix_socket) {
    headers_ = headers_ != nullptr ? headers_ : curl_.append_header(nullptr, "X-Ssdpulse: command");
    curl_.set(handle_, CURLOPT_HTTPHEADER, headers_);
    curl_.set(handle_, CURLOPT_POSTFIELDSIZE, 0L);
    curl_.set(handle_, CURLOPT_POSTFIELDS, "");
    auto fetched = get(url, unix_socket);
    curl_.set(handle_, CURLOPT_HTTPGET, 1L);
    return fetched;
  }

  /// `unix_socket`: connect there, whatever the URL's host; empty: to the host. Error::error_number: EPROTO if somebody
  /// answered, but not with trusted TLS; ECONNREFUSED if no connection could be made; else 0, as when the answer took
  /// too long.
  util::Result<Fetched> get(const std::string& url, const std::string& unix_socket) {
    Fetched fetched;
    curl_.set(handle_, CURLOPT_URL, url.c_str());
    curl_.set(handle_, CURLOPT_UNIX_SOCKET_PATH, unix_socket.empty() ? nullptr : unix_socket.c_str());
    curl_.set(handle_, CURLOPT_WRITEDATA, &fetched.body);
    if (const CURLcode code = curl_.perform(handle_); code != CURLE_OK) {
      const bool answered = code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
      return util::fail(curl_.error_text(code), answered ? EPROTO : code == CURLE_COULDNT_CONNECT ? ECONNREFUSED : 0);
    }
    curl_.info(handle_, CURLINFO_RESPONSE_CODE, &fetched.status);
    return fetched;
  }

 private:
  Library curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
};

util::Result<std::unique_ptr<Fetcher>> Fetcher::open(const std::string& ca_file) {
  const auto curl = load();
  if (!curl) {
    return tl::make_unexpected(curl.error());
  }
  CURL* handle = curl->init();
  if (handle == nullptr) {
    return util::fail("cannot start libcurl");
  }
  return std::make_unique<Fetcher>(*curl, handle, ca_file);
}

std::optional<ServiceUser> service_user() {
  std::array<char, 4096> text{};
  passwd entry{};
  passwd* found = nullptr;
  const bool exists = ::getpwnam_r("ssdpulse", &entry, text.data(), text.size(), &found) == 0 && found != nullptr;
  return exists ? std::optional(ServiceUser{found->pw_uid, found->pw_gid}) : std::nullopt;
}

namespace {

using Json = nlohmann::json;

/// Names of fields that are not as they should be are replaced; of two that become the same, one is kept.
void clean_names(Json& object) {
  std::vector<std::string> hostile;
  for (const auto& [name, value] : object.items()) {
    if (util::for_json(name, util::kLongestSentence) != name) {
      hostile.push_back(name);
    }
  }
  for (const std::string& name : hostile) {
    Json value = std::move(object[name]);
    object.erase(name);
    object[util::for_json(name, util::kLongestSentence)] = std::move(value);
  }
}

// Whether a daemon that answers on this host can be trusted: any local user can listen on a port that is free, and
// answer what they like. Only root, the service's user and this user can be a daemon's.

constexpr const char* kServiceDirectory = "/run/ssdpulse";  // only root can make it: it belongs to the unit's user

bool is_user_of_service(std::uint32_t user) {
  struct stat directory {};
  if (::lstat(kServiceDirectory, &directory) == 0 && directory.st_uid == user) {
    return true;
  }
  const auto service = service_user();
  return service && service->user == user;
}

/// Empty if this user may be a daemon's.
std::string distrust_of(std::uint32_t user, const std::string& where) {
  if (user == 0 || user == ::geteuid() || is_user_of_service(user)) {
    return "";
  }
  return "user " + util::user_text(user) + " listens on " + where +
         ", who is neither root, nor the service's user, nor you: what answers there can be forged";
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

/// Why not, in words; empty: it can be, or nobody listens there.
std::string distrust_of_socket(const std::string& path) {
  const auto user = listening_user(path);
  return user ? distrust_of(*user, path) : "";
}

enum class Checked { of_this_host, of_loopback };

/// `url`: http://HOST:PORT. Judges the addresses of this host, or only those of loopback; any other is not known here.
/// https proves itself.
std::string distrust_of_url(const std::string& url, Checked checked) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return "";
  }
  const std::string_view authority =
      std::string_view(url).substr(kScheme.size(), url.find('/', kScheme.size()) - kScheme.size());
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  std::string host(authority.substr(authority.find('@') + 1, std::string_view::npos));
  host = host.substr(0, has_port ? host.rfind(':') : std::string::npos);
  if (host.size() > 1 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string port(has_port ? authority.substr(colon + 1) : "80");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (checked == Checked::of_loopback && host != "localhost") {
    hints.ai_flags = AI_NUMERICHOST;  // asks no name server about another host
  }
  addrinfo* found = nullptr;
  const auto listeners = util::tcp_listeners();
  if (!listeners || ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return "";
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (checked == Checked::of_loopback && !is_loopback(*one->ai_addr)) {
      continue;
    }
    for (const util::TcpListener& listener : util::listeners_at(*listeners, *one->ai_addr)) {
      if (std::string problem = distrust_of(listener.user, url); !problem.empty()) {
        return problem;
      }
    }
  }
  return "";
}

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

util::Result<std::string> body_of(const std::string& address, const std::string& path, util::Result<Fetched> fetched) {
  if (!fetched && fetched.error().error_number == EPROTO) {
    return util::fail("the server at " + address + " is not trusted (" + fetched.error().message + "): see --cacert");
  }
  if (!fetched) {
    return util::fail("no daemon answers at " + address + " (" + fetched.error().message +
                          "); is it running, and is this its address? See --address",
                      kNobodyAnswers);
  }
  if (fetched->status == 401) {
    return util::fail(
        address + " requires a user and a password: put them into ~/.netrc, or ask as a member of the daemon's group",
        401);
  }
  if (fetched->status >= 400 && fetched->body != "no such page\n" && !fetched->body.empty()) {
    return util::fail(address + ": " + first_line_of(fetched->body), static_cast<int>(fetched->status));
  }
  if (fetched->status == 404) {
    return util::fail(address + " has no " + path + ": web.page is false there, or it is a different version", 404);
  }
  if (fetched->status != 200) {
    return util::fail(address + " answered " + std::to_string(fetched->status) + ": " + first_line_of(fetched->body),
                      static_cast<int>(fetched->status));
  }
  return std::move(fetched->body);
}

}  // namespace

std::string first_line_of(std::string_view body) {
  constexpr std::size_t kMaxLineBytes = 300;
  return util::for_json(body.substr(0, body.find('\n')).substr(0, kMaxLineBytes), util::kLongestSentence);
}

void clean_strings(Json& answer) {
  std::vector<Json*> left{&answer};  // no recursion: a server chooses how deep an answer is
  while (!left.empty()) {
    Json& one = *left.back();
    left.pop_back();
    if (one.is_string()) {
      one = util::for_json(one.get_ref<const std::string&>(), util::kLongestSentence);
      continue;
    }
    if (one.is_object()) {
      clean_names(one);
    }
    if (one.is_structured()) {
      for (Json& part : one) {
        left.push_back(&part);
      }
    }
  }
}

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

Api::Api() = default;
Api::Api(Api&& other) noexcept = default;
Api::~Api() = default;

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
  if (const std::string problem = checked(); !problem.empty()) {
    return util::fail(problem + kHowToTrust, kNotTrusted);
  }
  auto body = body_of(address_, path,
                      post ? fetcher_->post(url_ + path, unix_socket_) : fetcher_->get(url_ + path, unix_socket_));
  if (const std::string problem = checked(); !problem.empty()) {
    return util::fail(problem + kHowToTrust, kNotTrusted);
  }
  return body;
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

}  // namespace ssdpulse::cli

// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/curl.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <cerrno>
#include <new>

namespace ssdpulse::client {
namespace {

constexpr std::size_t kMaxPageBytes = 16U << 20;

/// The functions that are used, with their own types.
struct Library {
  decltype(&::curl_easy_init) init;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_easy_setopt) set;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) info;
  decltype(&::curl_easy_strerror) words;
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
      !find(library, "curl_easy_strerror", curl.words) || !find(library, "curl_slist_append", curl.append_header) ||
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

class CurlFetcher final : public Fetcher {
 public:
  CurlFetcher(const Library& curl, CURL* handle, const std::string& ca_file) : curl_(curl), handle_(handle) {
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
  ~CurlFetcher() override {
    curl_.cleanup(handle_);
    curl_.free_headers(headers_);
  }
  CurlFetcher(const CurlFetcher&) = delete;
  CurlFetcher& operator=(const CurlFetcher&) = delete;

  util::Result<Fetched> post(const std::string& url, const std::string& unix_socket) override {
    headers_ = headers_ != nullptr ? headers_ : curl_.append_header(nullptr, "X-Ssdpulse: command");
    curl_.set(handle_, CURLOPT_HTTPHEADER, headers_);
    curl_.set(handle_, CURLOPT_POSTFIELDSIZE, 0L);
    curl_.set(handle_, CURLOPT_POSTFIELDS, "");
    auto fetched = get(url, unix_socket);
    curl_.set(handle_, CURLOPT_HTTPGET, 1L);
    return fetched;
  }

  util::Result<Fetched> get(const std::string& url, const std::string& unix_socket) override {
    Fetched fetched;
    curl_.set(handle_, CURLOPT_URL, url.c_str());
    curl_.set(handle_, CURLOPT_UNIX_SOCKET_PATH, unix_socket.empty() ? nullptr : unix_socket.c_str());
    curl_.set(handle_, CURLOPT_WRITEDATA, &fetched.body);
    if (const CURLcode code = curl_.perform(handle_); code != CURLE_OK) {
      const bool answered = code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
      return util::fail(curl_.words(code), answered ? EPROTO : code == CURLE_COULDNT_CONNECT ? ECONNREFUSED : 0);
    }
    curl_.info(handle_, CURLINFO_RESPONSE_CODE, &fetched.status);
    return fetched;
  }

 private:
  Library curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
};

}  // namespace

util::Result<std::unique_ptr<Fetcher>> Fetcher::open(const std::string& ca_file) {
  const auto curl = load();
  if (!curl) {
    return tl::make_unexpected(curl.error());
  }
  CURL* handle = curl->init();
  if (handle == nullptr) {
    return util::fail("cannot start libcurl");
  }
  return std::make_unique<CurlFetcher>(*curl, handle, ca_file);
}

}  // namespace ssdpulse::client

// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/page_routes.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "daemon/advice/measured.h"
#include "exporters/coding/content_coding.h"
#include "exporters/http/http_security.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::serve {
namespace {

page::Question question_of(const http::Request& request) {
  return {request.path, [&request](std::string_view name) { return request.parameter(name); }, request.accept_encoding,
          request.if_none_match};
}

http::Response response_of(const std::shared_ptr<const page::Answer>& answer) {
  http::Response response{answer->status, answer->content_type, answer->content_encoding, page_headers(),
                          std::shared_ptr<const std::string>(answer, &answer->bytes)};
  if (!answer->etag.empty()) {
    response.headers.emplace_back("ETag", answer->etag);
  }
  return response;
}

http::Response plain(unsigned status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", "", {}, std::make_shared<const std::string>(text)};
}

/// The groups that were requested by name; nothing if one of them does not exist.
std::optional<model::MetricGroups> groups_named(const std::vector<std::string>& names) {
  model::MetricGroups groups;
  for (const std::string& name : names) {
    const auto group = model::metric_group(name);
    if (name == "all") {
      groups |= model::all_metric_groups();
    } else if (name == model::kFleetProfile) {
      groups |= model::fleet_metric_groups();
    } else if (group) {
      groups.set(*group);
    } else {
      return std::nullopt;
    }
  }
  return groups;
}

/// What cannot be answered now, although the daemon is ready.
std::vector<std::string> missing_of(const CurrentSnapshot& current, const history::Reader* reader) {
  std::vector<std::string> missing;
  if (const auto snapshot = current.get()) {
    for (const model::SourceStatus& source : snapshot->sources) {
      if (!source.up) {
        missing.push_back(source.name + ": " + (source.reason.empty() ? "down" : source.reason));
      }
    }
  }
  if (reader != nullptr && reader->is_stuck()) {
    missing.emplace_back("history: reading the file does not end; does its disk answer?");
  }
  return missing;
}

}  // namespace

const http::Headers& page_headers() {
  static const auto& headers = *new http::Headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
      {"Vary", "Accept-Encoding"},
  };
  return headers;
}

http::Response text_response(unsigned status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", "", page_headers(), std::make_shared<const std::string>(text + "\n")};
}

http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler, GuardedListeners guarded) {
  return [hosts = std::move(hosts), handler = std::move(handler),
          guarded](const http::Request& request) -> http::Response {
    const bool guards = guarded == GuardedListeners::all || request.loopback || !hosts.empty();
    if (!guards || http::is_own_host(request.host, hosts)) {
      return handler(request);
    }
    return text_response(421, "this name is not known here: ask by IP address or localhost, or list it in web.hosts");
  };
}

http::Routes daemon_routes(const CurrentSnapshot& current, exposition::MetricsPage& page, model::MetricGroups shown,
                           std::vector<std::string> hosts, const history::Reader* reader) {
  auto metrics = [&current, &page, shown](const http::Request& request) -> http::Response {
    const bool native_alone = request.parameter("histograms") == "native";
    if (!native_alone && !request.parameter("histograms").empty()) {
      return plain(400, "histograms=: expected native, or nothing for native and classic buckets\n");
    }
    const auto wanted = request.parameters("collect[]");
    const auto groups = wanted.empty() ? shown : groups_named(wanted);
    if (!groups) {
      return plain(
          400, fmt::format("collect[]=: expected all, fleet, or one of {}\n", fmt::join(model::kMetricGroups, " ")));
    }
    const auto snapshot = current.get();
    if (!snapshot) {
      return plain(503, "no sample was taken yet\n");
    }
    const auto body = page.get(snapshot, request.accept, request.accept_encoding, native_alone, *groups);
    if (!body) {
      return plain(503, "too many different selections by collect[]= within a second\n");
    }
    return {
        200, body->content_type, body->content_encoding, {}, std::shared_ptr<const std::string>(body, &body->bytes)};
  };
  return http::daemon_pages(for_own_hosts(std::move(hosts), std::move(metrics), GuardedListeners::loopback),
                            [&current, reader] {
                              return http::Readiness{current.fresh(), missing_of(current, reader)};
                            });
}

namespace {

/// What each metric means, as `ssdpulse metrics --json` prints it: the page shows it next to its figures.
http::Response metric_list(const http::Request& request) {
  std::string text = exposition::metric_list_json();
  http::Response response{200, "application/json", "", page_headers(), nullptr};
  if (coding::prefers_gzip(request.accept_encoding)) {
    if (auto coded = coding::gzip(text, coding::Effort::usual)) {
      text = std::move(*coded);
      response.content_encoding = "gzip";
    }
  }
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

}  // namespace

void add_page(http::Routes& routes, const CurrentSnapshot& current, page::Site& site, std::vector<std::string> hosts) {
  for (const page::EmbeddedFile& file : page::embedded_files()) {
    routes[std::string(file.path)] = for_own_hosts(
        hosts, [&site](const http::Request& request) { return response_of(site.file(question_of(request))); });
  }
  routes["/api/v1/metrics"] = {for_own_hosts(hosts, metric_list), http::Lane::page};
  const auto api = for_own_hosts(std::move(hosts), [&current, &site](const http::Request& request) {
    return response_of(site.api(current.get(), question_of(request)));
  });
  routes["/api/v1/*"] = {api, http::Lane::page};
  // From the history.
  routes["/api/v1/day"] = {api, http::Lane::slow};
  routes["/api/v1/why"] = {api, http::Lane::page,
                           [](const http::Request& request) { return !request.parameter("at").empty(); }};
}

void add_measured(http::Routes& routes, const CurrentSnapshot& current, std::vector<std::string> hosts) {
  const auto answer = [&current](const http::Request&) -> http::Response {
    const auto snapshot = current.get();
    if (!snapshot) {
      return text_response(503, "no sample was taken yet");
    }
    return {200, "application/json", "", page_headers(),
            std::make_shared<const std::string>(advice::measured_json(advice::measure(*snapshot)))};
  };
  routes["/api/v1/measured"] = {for_own_hosts(std::move(hosts), answer, GuardedListeners::loopback), http::Lane::page};
}

}  // namespace ssdpulse::serve

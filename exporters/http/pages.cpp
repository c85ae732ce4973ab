// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/pages.h"

#include <utility>

namespace ssdpulse::http {
namespace {

constexpr const char* kLandingPage = R"(<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>ssdpulse</title></head>
<body>
<h1>ssdpulse</h1>
<p>What this host's drives did with every I/O: latency, sizes, errors.</p>
<ul>
<li><a href="/metrics">/metrics</a>: for Prometheus; text, or protobuf with native histograms</li>
<li><a href="/-/healthy">/-/healthy</a>: the server answers</li>
<li><a href="/-/ready">/-/ready</a>: its figures are fresh</li>
</ul>
</body>
</html>
)";

Response text(unsigned status, const char* words) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(words);
  return response;
}

Response landing_page() {
  auto response = text(200, kLandingPage);
  response.content_type = "text/html; charset=utf-8";
  return response;
}

}  // namespace

Routes daemon_pages(Handler metrics, std::function<bool()> ready) {
  return {
      {"/metrics", std::move(metrics)},
      {"/", [](const Request&) { return landing_page(); }},
      {"/-/healthy", [](const Request&) { return text(200, "healthy\n"); }},
      {"/-/ready",
       [ready = std::move(ready)](const Request&) {
         return ready() ? text(200, "ready\n") : text(503, "not ready: no sample was taken lately\n");
       }},
  };
}

}  // namespace ssdpulse::http

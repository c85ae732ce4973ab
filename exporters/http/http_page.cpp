// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_page.h"

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

Response text(unsigned status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(body));
  return response;
}

}  // namespace

Routes daemon_pages(Handler metrics, std::function<Readiness()> readiness) {
  return {
      {"/metrics", {std::move(metrics), Lane::scrape}},
      {"/", {[](const Request&) {
         auto response = text(200, kLandingPage);
         response.content_type = "text/html; charset=utf-8";
         return response;
       }}},
      {"/-/healthy", {[](const Request&) { return text(200, "healthy\n"); }, Lane::instant}},
      {"/-/ready",
       {[readiness = std::move(readiness)](const Request&) {
          const Readiness now = readiness();
          std::string body = now.ready ? "ready\n" : "not ready: no sample was taken lately\n";
          for (const std::string& missing : now.missing) {
            body += missing + '\n';
          }
          return text(now.ready ? 200 : 503, std::move(body));
        },
        Lane::instant}},
  };
}

}  // namespace ssdpulse::http

// SPDX-License-Identifier: Apache-2.0
// Requests to the web server, and those that it turned away.
#include <utility>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;
using model::WebFigures;

template <std::uint64_t WebFigures::*Figure>
void counter(const Snapshot& snapshot, Samples& out) {
  if (snapshot.web) {
    out.add({}, to_double((*snapshot.web).*Figure), daemon_start(snapshot));
  }
}

void connections(const Snapshot& snapshot, Samples& out) {
  if (snapshot.web) {
    out.add({}, to_double(snapshot.web->connections));
  }
}

void refusals(const Snapshot& snapshot, Samples& out) {
  if (!snapshot.web) {
    return;
  }
  const auto& web = *snapshot.web;
  for (const auto& [reason, count] : {std::pair("requests", web.refused_requests),
                                      {"logins", web.refused_logins},
                                      {"unread", web.refused_unread},
                                      {"users", web.refused_users}}) {
    out.add({{"reason", reason}}, to_double(count), daemon_start(snapshot));
  }
}

constexpr auto kRefusalReasons = std::to_array<std::string_view>({"requests", "logins", "unread", "users"});
constexpr LabelDescription kRefusalLabels[] = {
    {"reason",
     "requests: too many pages were being rendered, overall or for one address (503); logins: too many passwords were "
     "waiting to be checked, likewise (503); unread: too many bytes of answers were waiting to be read (503); users: "
     "no or wrong user and password (401)",
     kRefusalReasons}};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_web_answers_total", "Answers that were sent completely, whatever their status.",
     counter<&WebFigures::answers>},
    {"ssdpulse_web_refusals_total", "Requests that were turned away.", refusals, kRefusalLabels},
    {"ssdpulse_web_connections_cut_total",
     "Connections reset because the client took too long, also if it delayed its answer while memory was short.",
     counter<&WebFigures::cut_connections>},
    {"ssdpulse_web_accept_errors_total",
     "Connections that could not be accepted at once, for lack of file descriptors or memory.",
     counter<&WebFigures::accept_errors>},
    {"ssdpulse_web_failed_handshakes_total",
     "Connections that ended before their TLS handshake did: clients that sent nothing, did not speak TLS, had no "
     "accepted certificate, or did not accept ours. The log reports one a minute for each reason.",
     counter<&WebFigures::failed_handshakes>},
    {"ssdpulse_web_connections", "Open connections.", connections},
};

}  // namespace

std::span<const FamilyDescription> web_families() { return kFamilies; }

}  // namespace ssdpulse::exposition

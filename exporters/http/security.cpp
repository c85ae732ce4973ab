// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/security.h"

#include "exporters/http/tls.h"
#include "exporters/http/users.h"

namespace ssdpulse::http {

util::Result<std::shared_ptr<const Protection>> make_protection(const Security& security, const Protection* previous) {
  auto protection = std::make_shared<Protection>();
  protection->headers = security.headers;
  if (security.tls) {
    auto tls = Tls::make(*security.tls);
    if (!tls) {
      return tl::unexpected(std::move(tls.error()));
    }
    protection->tls = std::move(*tls);
    protection->requires_client_certificates = security.tls->require_client && security.tls->verify_client;
  }
  if (!security.users.empty()) {
    protection->users = std::make_shared<Users>(security.users, previous != nullptr ? previous->users.get() : nullptr);
  }
  return protection;
}

}  // namespace ssdpulse::http

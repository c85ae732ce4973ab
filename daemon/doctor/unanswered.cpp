// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "daemon/doctor/doctor.h"

namespace ssdpulse::doctor {
namespace {

struct Words {
  const char* found;
  const char* change;
};

Words words_of(int status) {
  switch (status) {
    case EPERM:  // instead of a status: see client::kNotTrusted
      return {"another user listens on the daemon's address",
              "ss -ltnp  # shows who; stop it, or ask by the unix socket"};
    case 401:
      return {"the daemon requires a user and a password", "put them into ~/.netrc"};
    case 403:
      return {"the daemon does not show this to everyone", "ask on its own host, or as a user with a password"};
    case 404:
      return {"the daemon does not show what it measures", "set web.page to true and restart the daemon"};
    case 421:
      return {"the daemon does not know the name it was addressed by",
              "ask by its IP address, or list the name in web.hosts"};
    case 503:
      return {"the daemon is starting or busy", "ask again in a few seconds"};
    default:
      return {"it is not known whether anything is measured", ""};
  }
}

}  // namespace

model::Finding unanswered(std::optional<int> status, const std::string& why) {
  const Words words = status ? words_of(*status) : Words{"nothing is measured", "systemctl enable --now ssdpulse"};
  model::Finding finding;
  finding.id = "daemon";
  // A daemon that answers may well be measuring.
  finding.verdict = status && status != EPERM ? model::Verdict::unknown : model::Verdict::danger;
  finding.found = words.found;
  finding.why = why;
  finding.change = words.change;
  return finding;
}

}  // namespace ssdpulse::doctor

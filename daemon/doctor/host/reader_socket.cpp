// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings reader_socket(const Start& start) {
  const auto& place = start.host.reader_socket;
  if (!place || place->socket) {
    return {};
  }
  return {finding(model::Verdict::advise, "", "no log page could be read: the reader does not listen",
                  place->path + (place->exists ? " is not a socket" : " is not there"),
                  "systemctl enable --now ssdpulse-nvme.socket  # or set nvme.reader_socket to ''")};
}

}  // namespace

const HostCheck kReaderSocket{"reader-socket", "the reader of NVMe logs listens, or the daemon starts its own",
                              reader_socket};

}  // namespace ssdpulse::doctor

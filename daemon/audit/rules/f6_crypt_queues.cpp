// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding crypt_queues(const Facts&, const DiskSettings& array) {
  if (array.files.text("dm/uuid").rfind("CRYPT-", 0) != 0) {
    return not_applicable("it is not encrypted by dm-crypt");
  }
  const auto name = shell_word(array.files.text("dm/name"));
  return unknown("whether dm-crypt hands each I/O to a thread",
                 fmt::format("only root may ask: dmsetup table{} shows no_read_workqueue and no_write_workqueue",
                             name ? " " + *name : ""));
}

}  // namespace

const Rule kF6{.id = "F6",
               .title = "Work queues of dm-crypt",
               .limit = "never: its table is not read",
               .source = "Linux commit 39d42fa96ba1",
               .of_array = crypt_queues};

}  // namespace ssdpulse::audit

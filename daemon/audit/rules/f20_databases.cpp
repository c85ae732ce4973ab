// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

struct Hint {
  const char* program;
  const char* words;
};
constexpr Hint kHints[] = {
    {"mysqld",
     "innodb_flush_neighbors=0 and innodb_flush_method=O_DIRECT suit SSDs; before MySQL 8.0 the former was 1"},
    {"mariadbd", "innodb_flush_neighbors=0 suits SSDs"},
    {"postgres", "checkpoint_completion_target spreads checkpoints; full_page_writes stays on"},
    {"mongod", "its journal and its data on one drive share its queue; readahead between 4 and 16 KiB"},
};

Finding databases(const Facts& facts) {
  for (const Hint& hint : kHints) {
    if (facts.settings.programs.count(hint.program) > 0) {
      return info(fmt::format("{} runs here", hint.program),
                  fmt::format("its files are not read; in general: {}", hint.words));
    }
  }
  return not_applicable("no database runs that is known here");
}

}  // namespace

const Rule kF20{.id = "F20",
                .title = "Settings of databases",
                .limit = "never: their files are not read",
                .source = "MySQL, Optimizing InnoDB disk I/O; PostgreSQL, WAL configuration",
                .of_host = databases};

}  // namespace ssdpulse::audit

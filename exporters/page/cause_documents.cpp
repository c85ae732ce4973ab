// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/cause_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "daemon/model/host_wait_cause.h"
#include "daemon/model/spike_cause.h"

namespace ssdpulse::page {
namespace {

/// Each once, in the order of its sentences: [TailLiftedByFlush](../runbooks/SsdpulseTailLiftedByFlush.md).
std::string links_to_runbooks(const model::SpikeCauseInfo& cause) {
  constexpr std::string_view kPrefix = "Ssdpulse";
  std::vector<std::string_view> named;
  std::string links;
  for (std::size_t i = 0; i < cause.sentences.size(); ++i) {
    const std::string_view runbook = cause.sentences[i].runbook;
    if (std::find(named.begin(), named.end(), runbook) == named.end()) {
      named.push_back(runbook);
      links +=
          fmt::format("{}[{}](../runbooks/{}.md)", links.empty() ? "" : ", ", runbook.substr(kPrefix.size()), runbook);
    }
  }
  return links;
}

}  // namespace

std::string causes_script() {
  std::string script =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// What is said of each cause of a spike. Made from daemon/model/spike_cause.h: SSDPULSE_TEST_GOLDEN=write\n"
      "// cause_documents_test writes it.\n\n"
      "export const CAUSES = {";
  for (const model::SpikeCauseInfo& cause : model::kSpikeCauseTable) {
    const nlohmann::ordered_json members{{"letter", cause.letter.view()},
                                         {"noun", cause.noun.view()},
                                         {"legend", cause.legend.view()},
                                         {"colour", cause.colour.view()}};
    script += fmt::format("{}\n  \"{}\": {}", script.back() == '{' ? "" : ",", cause.name.view(), members.dump());
  }
  return script + "\n};\n";
}

std::string spike_cause_rows() {
  std::string rows;
  for (const model::SpikeCauseInfo& cause : model::kSpikeCauseTable) {
    rows += fmt::format("| `{}` | {} | {} |\n", cause.name.view(), cause.shown_by.view(), links_to_runbooks(cause));
  }
  return rows;
}

std::string host_wait_rows() {
  std::string rows;
  for (const model::HostWaitCauseInfo& cause : model::kHostWaitCauseTable) {
    rows += fmt::format("| `{}` | {} |\n", cause.name.view(), cause.shown_by.view());
  }
  return rows;
}

}  // namespace ssdpulse::page

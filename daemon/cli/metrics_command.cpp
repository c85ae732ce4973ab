// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/cli/commands.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::cli {
namespace {

struct MetricsOptions {
  bool json = false;
  bool as_manual = false;
};

ExitCode list_metrics(const MetricsOptions& options) {
  std::cout << (options.json        ? exposition::metric_list_json()
                : options.as_manual ? exposition::metric_list_manual()
                                    : exposition::metric_list_text());
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

}  // namespace

void add_metrics(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("metrics", "List every metric: name, type, unit, labels, meaning");
  const auto options = std::make_shared<MetricsOptions>();
  CLI::Option* as_json = command->add_flag("--json", options->json, "As JSON");
  command->add_flag("--man", options->as_manual, "As the manual page ssdpulse-metrics(7)")->excludes(as_json);
  command->callback([options, &exit_code] { exit_code = list_metrics(*options); });
}

}  // namespace ssdpulse::cli

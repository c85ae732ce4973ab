// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/commands.h"
#include "daemon/nvme_reader/reader_process.h"

namespace ssdpulse::cli {
namespace {

constexpr int kNvmeReaderSocket = 3;  // where ReaderClient and service managers put the socket

}  // namespace

void add_nvme_reader(CLI::App& app, ExitCode& exit_code) {
  // Started by the daemon or a service manager, not by people: not in --help.
  CLI::App* command = app.add_subcommand("nvme-reader", "Read NVMe log pages for the daemon")->group("");
  command->callback([&exit_code] { exit_code = nvme_reader::run_nvme_reader(kNvmeReaderSocket); });
}

}  // namespace ssdpulse::cli

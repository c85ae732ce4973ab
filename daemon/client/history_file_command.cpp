// SPDX-License-Identifier: Apache-2.0
// What a command does with a history file as a whole. No daemon is asked: one may be writing to it.
#include <fmt/format.h>

#include <iostream>
#include <string_view>

#include "daemon/client/commands.h"
#include "daemon/client/progress_line.h"
#include "daemon/history/file_tools.h"

namespace ssdpulse::client {
namespace {

bool failed(const util::Error& error) {
  std::cerr << error.message << '\n';
  return false;
}

void print(const std::string& path, const history::FileReport& report) {
  constexpr double kMebibyte = 1 << 20U;
  std::cout << fmt::format("{}: {:.1f} MiB\n", path, static_cast<double>(report.bytes) / kMebibyte);
  for (const auto& [table, rows] : report.rows) {
    std::cout << fmt::format("  {:<14} {:>10} rows\n", table, rows);
  }
  std::cout << (report.undone
                    ? "  without a transaction in which its writer was killed: a daemon that starts undoes it, too\n"
                    : "");
  for (const std::string& problem : report.problems) {
    std::cout << "  problem: " << problem << '\n';
  }
  std::cout << (report.problems.empty()
                    ? "  whole: every page in use is as it was written, and every row is accounted for\n"
                    : "  save what is readable: ssdpulse history --salvage NEW_FILE --file " + path + '\n');
}

}  // namespace

bool check_history_file(const std::string& path) {
  std::cerr << (::isatty(STDERR_FILENO) == 0 ? "" : "reading the whole file; a daemon's rows wait meanwhile\n");
  const auto report = history::check_file(path);
  if (!report) {
    return failed(report.error());
  }
  print(path, *report);
  return static_cast<bool>(std::cout.flush()) && report->problems.empty();
}

bool back_up_history_file(const std::string& path, const std::string& to) {
  ProgressLine progress;
  const auto done = history::back_up(path, to, [&](double share) { progress.show("copying " + path, share); });
  return done ? true : failed(done.error());
}

bool salvage_history_file(const std::string& path, const std::string& to) {
  const auto lost = history::salvage_file(path, to);
  if (!lost) {
    return failed(lost.error());
  }
  std::cout << to << ": everything that is readable in " << path << "; rows lost: " << *lost << '\n';
  return static_cast<bool>(std::cout.flush());
}

}  // namespace ssdpulse::client

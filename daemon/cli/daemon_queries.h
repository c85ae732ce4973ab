// SPDX-License-Identifier: Apache-2.0
// The commands that query a running daemon or its history. Each returns whether it got its answer; errors go to stderr.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "daemon/base/result.h"
#include "daemon/cli/api_client.h"
#include "daemon/cli/asked_times.h"
#include "exporters/terminal/finding_text.h"

namespace ssdpulse::cli {

struct WhyOptions {
  std::string at;        // see time_text.h; empty: now
  bool json = false;     // the answer itself
  bool verbose = false;  // also what speaks for it
};

/// Prints the first line, and what to do next, for now or for the minute that holds `at`. `usage`: `at` is not a time;
/// `no_data`: nothing is known about it, and the answer explains why.
util::ExitCode why(const Where& where, const config::Web& web, const WhyOptions& options);

/// The evidence of the answer's incident, for people; empty if it has none.
std::string evidence_text(const nlohmann::json& answer);

struct TopOptions {
  std::string at;     // see time_text.h; empty: now
  bool once = false;  // one screen as text, without a terminal
  bool json = false;  // the answer itself
};

struct HistoryOptions {
  std::string device;  // name, serial number or WWID; empty: lists the devices
  std::string from;    // see time_text.h; empty: a day before `to`
  std::string to;      // empty: now
  std::size_t points = 48;
  bool json = false;
  bool csv = false;
  bool by_tenant = false;  // of one device: what each tenant did
};

/// The past of one device, or the list of known ones; from the daemon, else from its history file.
bool history(const Where& where, const config::Config& config, const HistoryOptions& options);

/// Checks a history file in full, and prints what is in it and what is wrong; true: nothing is.
bool check_history_file(const std::string& path);
/// Makes a consistent copy of it, also while a daemon writes to it. `to` must not exist.
bool back_up_history_file(const std::string& path, const std::string& to);
/// Writes what is readable in a damaged file to a new one, and prints how many rows are lost.
bool salvage_history_file(const std::string& path, const std::string& to);

/// Makes the daemon record that something was done now; true once that is on the disk. `text`: 1 to 128 printable
/// characters. `id`: sent again with it, it makes no second mark; empty: a random one.
bool mark(const Where& where, const config::Web& web, const std::string& text, std::string id);

/// Shows the present, or the time `at`. For the present, if no address is given and no daemon is there, root runs an
/// OwnDaemon with this `config` until top() ends. `usage`: `at` is not a time, or is combined with `json`.
util::ExitCode top(const Where& where, const config::Config& config, const TopOptions& options);

struct FindingsOptions {
  terminal::FindingStyle style;
  bool json = false;
  bool markdown = false;
  std::string root;  // of a tree other than this host's, for tests; empty: this host
};

void print(const terminal::Findings& all, const FindingsOptions& options, std::ostream& out);

/// Reports what is not measured here. `success`: all that can be measured is; `failure`: something is not.
util::ExitCode doctor(const Where& where, const config::Config& config, const FindingsOptions& options);
struct WhatIfOptions {
  std::string device;                           // empty: every drive
  std::string overprovisioning = "7,12,28,50";  // percent, separated by commas
  std::string window;                           // 24h, 7d or drive_write; empty: the shortest that is known
  bool json = false;
};

/// `no_data`: the daemon answered, but nothing is known about any drive yet; the answer explains why.
util::ExitCode what_if(const Where& where, const config::Web& web, const WhatIfOptions& options);

/// Prints an answer of devices/NAME/what-if for people.
void print_what_if(const nlohmann::json& answer, std::ostream& out);

/// Prints what the daemon models for each drive, in words, one line each.
void print_modelled(const Where& where, const config::Web& web, std::ostream& out);

struct AuditOptions {
  FindingsOptions findings;
  std::string accepted_file;                             // empty: that of the service, if it exists
  std::chrono::seconds enough = std::chrono::hours(24);  // of measuring, before something is advised
  std::string history_file = {};                         // empty: none is read
  double time_scale = 1;                                 // see EvidenceSums: other than 1 in tests
};

/// Reports what should be changed. `success`: nothing; `failure`: something; `usage`: a wrong file, or devices that
/// cannot be listed.
util::ExitCode audit(const Where& where, const config::Config& config, const AuditOptions& options);

/// Every rule, with its limit and its source, as a Markdown table.
void print_rules(std::ostream& out);
struct ReportOptions {
  AskedWindows windows;
  std::string device;  // name or serial number; empty: all that were measured in both windows
  bool json = false;   // at most one of these two; else text
  bool markdown = false;
  std::string html_file;  // empty: none
  bool fail_on_worse = false;
  double time_scale = 1;  // see EvidenceSums: other than 1 in tests
};

/// Reports what differs between two windows of the history, and how certain that is. `failure` also if a row is worse
/// and that was asked for; `no_data`: nothing was measured in a window; `usage`: the windows are not valid.
util::ExitCode report(const std::string& history_file, const ReportOptions& options);

}  // namespace ssdpulse::cli

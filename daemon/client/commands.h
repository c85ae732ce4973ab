// SPDX-License-Identifier: Apache-2.0
// What do the commands do that ask a running daemon? Each returns whether it got its answer; trouble goes to stderr.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "daemon/client/api.h"
#include "daemon/client/past_windows.h"
#include "daemon/util/exit_code.h"
#include "exporters/findings/findings.h"

namespace ssdpulse::client {

/// The first line, and what to do next; of now, or of the minute that holds `at` (see time_text.h). `usage`: that is no
/// time; `no_data`: nothing is known of it, and the answer says why.
util::ExitCode why(const Where& where, const config::Web& web, const std::string& at, bool json);

struct TopOptions {
  std::string at;     // see time_text.h; empty: now
  bool once = false;  // one screen as text, without a terminal
  bool json = false;  // the answer itself
};

struct HistoryOptions {
  std::string device;  // name, serial number or WWID; empty: which there are
  std::string from;    // see time_text.h; empty: a day before `to`
  std::string to;      // empty: now
  std::size_t points = 48;
  bool json = false;
  bool csv = false;
};

/// The past of one device, or which are known; from the daemon, else from the file of its history.
bool history(const Where& where, const config::Config& config, const HistoryOptions& options);

/// Has the daemon note that something was done now.
bool mark(const Where& where, const config::Web& web, const std::string& text);

/// Where nobody named an address and no daemon is there, root measures meanwhile, as `config` says what. `usage`: its
/// time is none, or cannot be asked for so.
util::ExitCode top(const Where& where, const config::Config& config, const TopOptions& options);

struct FindingsOptions {
  findings::Style style;
  bool json = false;
  bool markdown = false;
  std::string root;  // of another tree than this host's, for tests; empty: this host
};

void print(const findings::Findings& all, const FindingsOptions& options, std::ostream& out);

/// What is not measured here. Success: all that could be is; failure: something is not.
util::ExitCode doctor(const Where& where, const config::Config& config, const FindingsOptions& options);
struct WhatIfOptions {
  std::string device;                           // empty: every drive
  std::string overprovisioning = "7,12,28,50";  // percents
  std::string window;                           // 24h, 7d or drive_write; empty: the shortest that is known
  bool json = false;
};

/// `no_data`: the daemon answered, but nothing is known of any drive yet; the answer says why.
util::ExitCode what_if(const Where& where, const config::Web& web, const WhatIfOptions& options);

/// An answer of devices/NAME/what-if, for a person.
void print_what_if(const nlohmann::json& answer, std::ostream& out);

/// What the daemon models of each drive, in words, a line each.
void print_modelled(const Where& where, const config::Web& web, std::ostream& out);

struct AuditOptions {
  FindingsOptions findings;
  std::string accepted_file;                             // empty: that of the service, if it is there
  std::chrono::seconds enough = std::chrono::hours(24);  // of measuring, before something is advised
  std::string history_file = {};                         // empty: none is read
  double time_scale = 1;                                 // see PastSums: other than 1 in tests
};

/// What should be changed. Success: nothing; failure: something; usage: a file that is wrong.
util::ExitCode audit(const Where& where, const config::Config& config, const AuditOptions& options);

/// Every rule, with its limit and its source, as a table of Markdown.
void print_rules(std::ostream& out);
struct ReportOptions {
  AskedWindows windows;
  std::string device;  // name or serial number; empty: all that were measured in both windows
  bool json = false;   // at most one of these two; else text
  bool markdown = false;
  std::string html_file;  // empty: none
  bool fail_on_worse = false;
  double time_scale = 1;  // see PastSums: other than 1 in tests
};

/// What is different between two windows of the history, and how sure that is. `failure` too where a row is worse and
/// that was asked for; `no_data` where nothing was measured in a window.
util::ExitCode report(const std::string& history_file, const ReportOptions& options);

}  // namespace ssdpulse::client

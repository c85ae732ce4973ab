// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "daemon/base/text_table.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/flash/flash_what_if.h"

namespace ssdpulse::cli {
namespace {

using nlohmann::json;

constexpr double kYear = 365.25 * 24 * 3600;

std::string number(const json& of, const char* key, double scale = 1, int digits = 2) {
  return of.is_object() && of.contains(key) && of[key].is_number()
             ? fmt::format("{:.{}f}", of[key].get<double>() / scale, digits)
             : "";
}

std::string kept_apart(const std::string& placement) {
  return placement == "none" ? "nothing" : placement == "hints" ? "hints" : "lifetimes";
}

void print_rows(const json& rows, std::ostream& out) {
  std::vector<std::vector<std::string>> table{
      {"SPARE %", "DISCARDS", "KEPT APART", "POLICY", "WAF", "LOWER", "UPPER", "YEARS", "AT LEAST", "AT MOST"}};
  bool between = false;
  for (const json& row : rows) {
    const json waf = row.value("write_amplification", json());
    const json life = row.value("life", json());
    const bool interpolated = row.value("interpolated", false);
    between = between || interpolated;
    table.push_back({fmt::format("{:.4g}{}", row.value("overprovisioning", 0.0) * 100, interpolated ? "*" : ""),
                     row.value("discards", ""), kept_apart(row.value("placement", "")), row.value("policy", ""),
                     number(waf, "ratio"), number(waf, "lower"), number(waf, "upper"),
                     number(life, "seconds", kYear, 1), number(life, "lower", kYear, 1),
                     number(life, "upper", kYear, 1)});
  }
  util::print_table(table, out);
  if (between) {
    out << "* between what was modelled: the bounds are 2 % wider\n";
  }
}

}  // namespace

void print_what_if(const json& answer, std::ostream& out) {
  out << util::for_terminal(answer.value("drive", answer.value("device", "")), util::kLongestSentence) << ": "
      << util::for_terminal(answer.value("words", ""), util::kLongestSentence);
  if (!answer.value("drive_writes", json()).is_null()) {  // else the drive has no model, whatever the window
    out << " (window " << util::for_terminal(answer.value("window", ""), util::kLongestSentence) << ')';
  }
  out << '\n';
  if (const json measured = answer.value("measured", json()); measured.is_object()) {
    out << fmt::format("measured {} ({} to {}) by the drive's own counter (window {})\n", number(measured, "ratio"),
                       number(measured, "lower"), number(measured, "upper"),
                       util::for_terminal(measured.value("window", ""), util::kLongestSentence));
  }
  if (const std::string years = number(answer, "life_seconds", kYear, 1); !years.empty()) {
    out << "life remaining at this wear: " << years << " years\n";
  }
  const json rows = answer.value("rows", json::array());
  if (rows.empty()) {
    return;
  }
  out << '\n';
  print_rows(rows, out);
  for (const json& share : answer.value("beyond", json::array())) {
    out << fmt::format("{:.4g} % is beyond what is modelled\n", share.get<double>() * 100);
  }
  if (answer.value("life_seconds", json()).is_null()) {
    out << "years: the drive does not report its wear, or it has not changed yet\n";
  }
  out << "assumed:\n";
  for (const json& assumption : answer.value("assumptions", json::array())) {
    out << "- " << util::for_terminal(assumption.get<std::string>(), util::kLongestSentence) << '\n';
  }
}

void print_modelled(const config::Web& web, std::ostream& out) {
  auto api = Api::open({}, web);
  const auto all = api ? api->get("devices") : tl::make_unexpected(api.error());
  if (!all) {
    const bool nobody = all.error().error_number == kNobodyAnswers;
    out << "\nmodelled write amplification: known only to a running daemon, and "
        << (nobody ? "none answers" : all.error().message) << '\n';
    return;
  }
  out << "\nmodelled write amplification, by the daemon at " << api->address() << '\n';
  for (const json& device : all->value("devices", json::array())) {
    const json modelled = device.value("modelled", json());
    out << "  " << util::for_terminal(device.value("name", ""), util::kLongestSentence) << ": "
        << (device.value("state", "") == "unseen" ? "none: no request of it is seen, so nothing of it is measured"
            : modelled.is_string() ? util::for_terminal(modelled.get<std::string>(), util::kLongestSentence)
                                   : "none: models are turned off")
        << '\n';
  }
}

namespace {

struct WhatIfOptions {
  ClientOptions client;
  std::string device;                           // empty: every drive
  std::string overprovisioning = "7,12,28,50";  // percent, separated by commas
  std::string window;                           // 24h, 7d or drive_write; empty: the shortest that is known
};

/// The answers for one of each drive's namespaces, or for the device that was asked for.
util::Result<std::vector<json>> ask(Api& api, const WhatIfOptions& options) {
  std::string query = "/what-if?op=" + escaped(options.overprovisioning);
  query += options.window.empty() ? "" : "&window=" + escaped(options.window);
  std::vector<std::string> devices{options.device};
  if (options.device.empty()) {
    const auto all = api.get("devices");
    if (!all) {
      return tl::make_unexpected(all.error());
    }
    devices.clear();
    for (const json& device : all->value("devices", json::array())) {
      devices.push_back(device.value("name", ""));
    }
  }
  std::vector<json> answers;
  std::set<std::string> seen;
  for (const std::string& device : devices) {
    const auto answer = api.get("devices/" + escaped(device) + query);
    if (!answer) {
      return answer.error().error_number == 404
                 ? util::Result<std::vector<json>>(util::fail("no such device is measured: " + device +
                                                              " ('ssdpulse devices' lists them), or web.page is false"))
                 : tl::make_unexpected(answer.error());
    }
    if (seen.insert(answer->value("drive", device)).second) {
      answers.push_back(*answer);
    }
  }
  return answers;
}

/// `no_data`: the daemon answered, but nothing is known about any drive yet; the answer explains why.
ExitCode what_if(const WhatIfOptions& options) {
  const config::Config config = config_of(options.client);
  auto api = Api::open(options.client.where, config.web);
  const auto answers = api ? ask(*api, options) : tl::make_unexpected(api.error());
  if (!answers) {
    return fail(answers.error());
  }
  const bool known = std::any_of(answers->begin(), answers->end(),
                                 [](const json& answer) { return !answer.value("rows", json::array()).empty(); });
  if (options.client.json) {
    print_json(json{{"drives", *answers}}, std::cout);
  } else {
    const char* separator = "";
    for (const json& answer : *answers) {
      std::cout << std::exchange(separator, "\n");
      print_what_if(answer, std::cout);
    }
  }
  std::cout.flush();
  return known ? ExitCode::success : ExitCode::no_data;
}

/// Accepts only these characters, which go into a URL unescaped.
CLI::Validator made_of(std::string characters, const std::string& name) {
  return CLI::Validator(
      [characters = std::move(characters)](const std::string& text) {
        return text.empty() || text.find_first_not_of(characters) != std::string::npos
                   ? "expected characters of " + characters + ", found '" + text + "'"
                   : std::string();
      },
      name);
}

}  // namespace

void add_what_if(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "what-if", "What each drive would write, and how long it would live, with more spare flash, or without discards");
  const auto options = std::make_shared<WhatIfOptions>();
  add_client_options(*command, options->client);
  command->add_option("--device", options->device, "A disk, as the kernel names it (default: all)")
      ->check(made_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!", "NAME"));
  command
      ->add_option("--op", options->overprovisioning,
                   "Spare flash in percent, several with commas (default 7,12,28,50)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return flash::percents_in(text)
                       ? std::string()
                       : "expected percents of 0.1 to 1000, 16 at most, such as 7,12,28, found '" + text + "'";
          },
          "PERCENTS"));
  command->add_option("--window", options->window, "24h, 7d or drive_write (default: the shortest that is known)")
      ->check(CLI::IsMember({"24h", "7d", "drive_write"}));
  command->callback([options, &exit_code] { exit_code = what_if(*options); });
}

}  // namespace ssdpulse::cli

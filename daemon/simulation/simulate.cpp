// SPDX-License-Identifier: Apache-2.0
#include "daemon/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "daemon/simulation/load_log.h"
#include "daemon/simulation/results_text.h"
#include "daemon/util/in_time.h"

namespace ssdpulse::simulation {
namespace {

using analysis::OfflineModel;
using analysis::OfflineSettings;

constexpr std::uint64_t kMinPages = 1024;  // with fewer a drive has no block to spare
constexpr std::uint64_t kMaxMemory = std::uint64_t{4} << 30;
constexpr double kSettled = 2;  // drive writes until a model is steady

template <typename Enum, std::size_t Size>
std::optional<Enum> value_of(std::string_view text, const std::array<std::string_view, Size>& names) {
  const auto* const found = std::find(names.begin(), names.end(), text);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

template <std::size_t Size>
std::string list(const std::array<std::string_view, Size>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// FROM-TO in percent, 0 <= from < to <= 100.
std::optional<OfflineModel::Window> window_of(std::string_view text) {
  const auto percent = [](std::string_view part) {
    double value = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && end == part.data() + part.size() ? value / 100 : -1;
  };
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const OfflineModel::Window window{percent(text.substr(0, dash)), percent(text.substr(dash + 1))};
  return window.from >= 0 && window.from < window.to && window.to <= 1 ? std::optional(window) : std::nullopt;
}

util::Result<std::vector<model::WhatIf>> what_ifs_of(const SimulateArguments& arguments) {
  std::vector<model::WhatIf> result;
  const auto discards = value_of<model::Discards>(arguments.discards, model::kDiscardsNames);
  if (!discards) {
    return util::fail("--discards: expected one of " + list(model::kDiscardsNames) + ", found '" + arguments.discards +
                      "'");
  }
  for (const double percent : arguments.overprovisioning) {
    if (!(percent >= 1 && percent <= 400)) {
      return util::fail(fmt::format("--op: expected percent from 1 to 400, found {}", percent));
    }
    for (const std::string& policy_name : arguments.policies) {
      const auto policy = value_of<model::CollectionPolicy>(policy_name, model::kCollectionPolicyNames);
      if (!policy) {
        return util::fail("--policy: expected some of " + list(model::kCollectionPolicyNames) + ", found '" +
                          policy_name + "'");
      }
      for (const std::string& placement_name : arguments.placements) {
        const auto placement = value_of<model::Placement>(placement_name, model::kPlacementNames);
        if (!placement) {
          return util::fail("--placement: expected some of " + list(model::kPlacementNames) + ", found '" +
                            placement_name + "'");
        }
        result.push_back({percent / 100, *policy, *discards, *placement});
      }
    }
  }
  return result;
}

/// Shows once a second how much is done, after two seconds of silence.
class Progress {
 public:
  Progress(std::ostream& err, std::uint64_t input_bytes) : err_(err), input_bytes_(input_bytes) {}
  void show(const LoadLog& log, const OfflineModel& model) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::seconds(shown_ == began_ ? 2 : 1)) {
      return;
    }
    shown_ = now;
    const std::string share = input_bytes_ > 0
                                  ? fmt::format("{:.0f} %, ", 100.0 * static_cast<double>(log.bytes_read()) /
                                                                  static_cast<double>(input_bytes_))
                                  : "";
    err_ << fmt::format("simulate: {}{} lines, {:.2f} drive writes\n", share, log.lines(),
                        static_cast<double>(model.written_pages()) / static_cast<double>(model.drive_pages()))
         << std::flush;
  }

 private:
  std::ostream& err_;
  std::uint64_t input_bytes_;  // 0: not known
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = began_;
};

util::Result<void> feed(LoadLog& log, OfflineModel& model, Progress progress) {
  constexpr std::uint64_t kLinesBetweenChecks = 4096;
  for (std::uint64_t i = 1;; ++i) {
    const auto line = log.next();
    if (!line) {
      return tl::make_unexpected(line.error());
    }
    if (!*line) {
      return {};
    }
    if ((*line)->discard) {
      model.discard((*line)->offset, (*line)->bytes);
    } else {
      model.write((*line)->offset, (*line)->bytes, (*line)->hint);
    }
    if (i % kLinesBetweenChecks == 0) {
      progress.show(log, model);
    }
  }
}

util::ExitCode run(const SimulateArguments& arguments, const SimulatePlan& plan, std::istream& input, std::ostream& out,
                   std::ostream& err) {
  const bool standard_input = arguments.input == "-";
  std::error_code no_size;
  const auto input_bytes = standard_input ? 0 : std::filesystem::file_size(arguments.input, no_size);
  const std::string name = standard_input ? "standard input" : arguments.input;
  LoadLog log(input, name, plan.settings.size_bytes);
  OfflineModel model(plan.settings);
  if (const auto fed = feed(log, model, Progress(err, no_size ? 0 : input_bytes)); !fed) {
    err << fed.error().message << '\n';
    return util::ExitCode::usage;
  }
  if (model.written_pages() == 0) {
    err << name << ": no writes\n";
    return util::ExitCode::usage;
  }
  const double drive_writes = static_cast<double>(model.written_pages()) / static_cast<double>(model.drive_pages());
  if (drive_writes < kSettled) {
    err << fmt::format("note: {:.2f} drive writes; a drive is steady after 1 to {:.0f}\n", drive_writes, kSettled);
  }
  const auto estimates = model.estimates(plan.window);
  std::vector<SimulationResult> results;
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    results.push_back({model.runs()[i].what(), estimates[i]});
  }
  arguments.json ? print_json(results, out) : print_rows(results, out);
  out.flush();
  if (!out) {
    return util::ExitCode::failure;
  }
  if (std::none_of(estimates.begin(), estimates.end(), [](const auto& estimate) { return estimate.has_value(); })) {
    err << fmt::format("{}: too little is written in the window of {} % for an estimate\n", name, arguments.window);
    return util::ExitCode::no_data;
  }
  return util::ExitCode::success;
}

}  // namespace

util::Result<std::uint64_t> size_in_bytes(std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgtpe";
  constexpr double kTooMuch = 18446744073709551616.0;  // 2^64
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; });
  if (!unit.empty() && unit.back() == 'b') {
    unit.pop_back();
  }
  const bool binary = unit.size() == 2 && unit.back() == 'i';
  const std::size_t prefix = unit.empty() ? 0 : kPrefixes.find(unit.front());
  if (error == std::errc{} && value >= 0 && unit.size() <= (binary ? 2U : 1U) && prefix != std::string_view::npos) {
    const double power = unit.empty() ? 0 : static_cast<double>(prefix + 1);
    const double bytes = std::round(value * std::pow(binary ? 1024.0 : 1000.0, power));
    if (bytes < kTooMuch) {
      return static_cast<std::uint64_t>(bytes);
    }
  }
  return util::fail("expected bytes or a size such as 1.92TB or 894GiB, found '" + std::string(text) + "'");
}

util::Result<SimulatePlan> plan_simulation(const SimulateArguments& arguments) {
  const auto window = window_of(arguments.window);
  if (!window) {
    return util::fail("--window: expected FROM-TO in percent of what is written, as in 50-100, found '" +
                      arguments.window + "'");
  }
  if (arguments.start != "full" && arguments.start != "empty") {
    return util::fail("--start: expected full or empty, found '" + arguments.start + "'");
  }
  if (arguments.page_bytes < 512 || arguments.page_bytes > (1U << 20) || !std::has_single_bit(arguments.page_bytes)) {
    return util::fail(
        fmt::format("--page-size: expected a power of two from 512 to 1048576, found {}", arguments.page_bytes));
  }
  const std::uint64_t pages = arguments.size_bytes / arguments.page_bytes;
  if (pages < kMinPages || arguments.size_bytes > (std::uint64_t{1} << 58)) {
    return util::fail(fmt::format("--size: expected {} to 2^58 bytes, found {}", kMinPages * arguments.page_bytes,
                                  arguments.size_bytes));
  }
  if (arguments.sample_pages && *arguments.sample_pages < OfflineModel::kMinSample) {
    return util::fail(fmt::format("--sample: expected at least {} pages, found {}", OfflineModel::kMinSample,
                                  *arguments.sample_pages));
  }
  auto what_ifs = what_ifs_of(arguments);
  if (!what_ifs) {
    return tl::make_unexpected(what_ifs.error());
  }
  OfflineSettings settings{arguments.size_bytes,      arguments.page_bytes, std::nullopt,
                           arguments.start == "full", arguments.seed,       std::move(*what_ifs)};
  if (!arguments.full) {
    settings.sample_pages = arguments.sample_pages.value_or(analysis::PageSample::kUsualPages);
  }
  const std::uint64_t memory = OfflineModel::memory_bytes(settings);
  if (memory > kMaxMemory || (arguments.full && pages > analysis::MiniatureDrive::kMaxPages)) {
    return util::fail(
        fmt::format("this would take more than {} GiB of memory: follow fewer pages (--sample), or ask for "
                    "less at a time (--op, --policy)",
                    kMaxMemory >> 30));
  }
  return SimulatePlan{std::move(settings), *window};
}

util::ExitCode simulate(const SimulateArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto plan = plan_simulation(arguments);
  if (!plan) {
    err << plan.error().message << '\n';
    return util::ExitCode::usage;
  }
  if (arguments.input == "-") {
    return run(arguments, *plan, std::cin, out, err);
  }
  if (const auto answers = util::file_answers(arguments.input); !answers) {
    err << answers.error().message << '\n';
    return util::ExitCode::usage;
  }
  std::ifstream file(arguments.input, std::ios::binary);
  if (!file || std::filesystem::is_directory(arguments.input)) {
    err << arguments.input << ": cannot be opened: " << std::strerror(file ? EISDIR : errno) << '\n';
    return util::ExitCode::usage;
  }
  return run(arguments, *plan, file, out, err);
}

}  // namespace ssdpulse::simulation

// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/load_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "daemon/base/child_process.h"
#include "daemon/base/text_table.h"
#include "daemon/model/block_io.h"
#include "daemon/model/flash_values.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::flash {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kMaxShown = 60;  // characters of a wrong line

constexpr std::uint64_t kMinPages = 1024;  // with fewer a drive has no block to spare
constexpr std::uint64_t kMaxMemory = std::uint64_t{4} << 30;
constexpr double kSteadyDriveWrites = 2;  // until a model is steady

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// As shown in a message: printable, and not too long.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, kMaxShown));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + result + (text.size() > kMaxShown ? "...'" : "'");
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint8_t> hint_of(std::string_view text) {
  constexpr std::size_t kDeclarable = 6;
  if (const auto value = number(text)) {
    return *value < kDeclarable ? std::optional(static_cast<std::uint8_t>(*value)) : std::nullopt;
  }
  const auto* const found =
      std::find(model::kWriteHintNames.begin(), model::kWriteHintNames.begin() + kDeclarable, text);
  return found == model::kWriteHintNames.begin() + kDeclarable
             ? std::nullopt
             : std::optional(static_cast<std::uint8_t>(found - model::kWriteHintNames.begin()));
}

struct SimulationResult {
  model::WhatIf what_if;
  std::optional<model::Estimate> estimate;  // absent: nothing was written in the window
};

/// Percent as requested: 7, 12.5.
std::string percent_number(double share) { return fmt::format("{:.6g}", std::round(share * 1e8) / 1e6); }

std::string ratio_text(const std::optional<model::Estimate>& estimate, double model::Estimate::*which,
                       const char* otherwise) {
  return estimate ? fmt::format("{:.4f}", (*estimate).*which) : otherwise;
}

void print_json(const std::vector<SimulationResult>& results, std::ostream& out) {
  out << "{\"results\":[";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [what, estimate] = results[i];
    out << (i == 0 ? "\n" : ",\n")
        << fmt::format(R"({{"op":{},"policy":"{}","placement":"{}","discards":"{}",)",
                       percent_number(what.overprovisioning), name(what.policy, model::kCollectionPolicyNames),
                       name(what.placement, model::kPlacementNames), name(what.discards, model::kDiscardsNames))
        << fmt::format(R"("write_amplification":{},"lower":{},"upper":{}}})",
                       ratio_text(estimate, &model::Estimate::ratio, "null"),
                       ratio_text(estimate, &model::Estimate::lower, "null"),
                       ratio_text(estimate, &model::Estimate::upper, "null"));
  }
  out << "\n]}\n";
}

void print_rows(const std::vector<SimulationResult>& results, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"OP %", "POLICY", "PLACEMENT", "DISCARDS", "WAF", "LOWER", "UPPER"}};
  for (const auto& [what, estimate] : results) {
    rows.push_back(
        {percent_number(what.overprovisioning), std::string(name(what.policy, model::kCollectionPolicyNames)),
         std::string(name(what.placement, model::kPlacementNames)),
         std::string(name(what.discards, model::kDiscardsNames)), ratio_text(estimate, &model::Estimate::ratio, ""),
         ratio_text(estimate, &model::Estimate::lower, ""), ratio_text(estimate, &model::Estimate::upper, "")});
  }
  util::print_table(rows, out);
}

/// `expected`: as in "one of", before the names.
template <typename Enum, std::size_t Size>
util::Result<Enum> value_of(std::string_view option, std::string_view text, std::string_view expected,
                            const std::array<std::string_view, Size>& names) {
  const auto* const found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    return util::fail(fmt::format("{}: expected {} {}, found '{}'", option, expected, fmt::join(names, ", "), text));
  }
  return static_cast<Enum>(found - names.begin());
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
  const auto discards = value_of<model::Discards>("--discards", arguments.discards, "one of", model::kDiscardsNames);
  if (!discards) {
    return tl::make_unexpected(discards.error());
  }
  for (const double percent : arguments.overprovisioning) {
    if (!(percent >= 1 && percent <= 400)) {
      return util::fail(fmt::format("--op: expected percent from 1 to 400, found {}", percent));
    }
    for (const std::string& policy_name : arguments.policies) {
      const auto policy =
          value_of<model::CollectionPolicy>("--policy", policy_name, "some of", model::kCollectionPolicyNames);
      if (!policy) {
        return tl::make_unexpected(policy.error());
      }
      for (const std::string& placement_name : arguments.placements) {
        const auto placement =
            value_of<model::Placement>("--placement", placement_name, "some of", model::kPlacementNames);
        if (!placement) {
          return tl::make_unexpected(placement.error());
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
  if (drive_writes < kSteadyDriveWrites) {
    err << fmt::format("note: {:.2f} drive writes; a drive is steady after 1 to {:.0f}\n", drive_writes,
                       kSteadyDriveWrites);
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

util::Result<std::optional<LoadLine>> parse_load_line(std::string_view line, std::uint64_t size_bytes) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') {
    return std::nullopt;
  }
  std::array<std::string_view, 5> fields;
  std::size_t count = 0;
  for (std::string_view rest = line; count < fields.size();) {
    const std::size_t comma = rest.find(',');
    fields[count++] = trimmed(rest.substr(0, comma));
    if (comma == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(comma + 1);
  }
  const bool discard = fields[0] == "D";
  if ((!discard && fields[0] != "W") || count < 3 || count > (discard ? 3U : 4U)) {
    return util::fail("expected W,OFFSET,BYTES[,HINT] or D,OFFSET,BYTES, found " + shown(line));
  }
  const auto offset = number(fields[1]);
  const auto bytes = number(fields[2]);
  const auto hint = count == 4 ? hint_of(fields[3]) : std::uint8_t{0};
  if (!offset || !bytes) {
    return util::fail(std::string(offset ? "the size " : "the offset ") + shown(fields[offset ? 2 : 1]) +
                      " is not a number of bytes");
  }
  if (!hint) {
    return util::fail("the hint " + shown(fields[3]) +
                      " is not one of not_set, none, short, medium, long, extreme, 0 to 5");
  }
  if (*bytes > size_bytes || *offset > size_bytes - *bytes) {
    return util::fail(fmt::format("{} bytes at {} are beyond the {} bytes of the drive", *bytes, *offset, size_bytes));
  }
  return *bytes == 0 ? std::nullopt : std::optional(LoadLine{discard, *offset, *bytes, *hint});
}

bool LoadLog::refill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  input_.read(buffer_.data() + kept, kChunk);
  const auto read = static_cast<std::size_t>(input_.gcount());
  buffer_.resize(kept + read);
  bytes_read_ += read;
  return read > 0;
}

util::Result<std::optional<std::string_view>> LoadLog::next_line() {
  std::size_t end = buffer_.find('\n', at_);
  if (end == std::string::npos && !ended_) {
    ended_ = !refill();
    end = buffer_.find('\n', at_);
    if (input_.bad()) {
      return util::fail(name_ + ": cannot be read");
    }
  }
  if (end == std::string::npos && at_ == buffer_.size()) {
    return std::nullopt;
  }
  ++lines_;
  const std::size_t length = std::min(end, buffer_.size()) - at_;
  if (length > kLongestLine) {
    return util::fail(fmt::format("{}: longer than {} characters", position(), kLongestLine));
  }
  const std::string_view line(buffer_.data() + at_, length);
  at_ = std::min(at_ + length + 1, buffer_.size());
  return line;
}

util::Result<std::optional<LoadLine>> LoadLog::next() {
  while (true) {
    const auto line = next_line();
    if (!line) {
      return tl::make_unexpected(line.error());
    }
    if (!*line) {
      return std::nullopt;
    }
    auto parsed = parse_load_line(**line, size_bytes_);
    if (!parsed) {
      return tl::make_unexpected(parsed.error().within(position()));
    }
    if (*parsed) {
      return parsed;
    }
  }
}

util::Result<std::uint64_t> size_in_bytes(std::string_view text) {
  constexpr std::string_view kPrefixes = "kmgtpe";
  constexpr double kTwoToThe64 = 18446744073709551616.0;
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
    if (bytes < kTwoToThe64) {
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
  OfflineSettings settings{.size_bytes = arguments.size_bytes,
                           .page_bytes = arguments.page_bytes,
                           .starts_full = arguments.start == "full",
                           .seed = arguments.seed,
                           .what_ifs = std::move(*what_ifs)};
  if (!arguments.full) {
    settings.sample_pages = arguments.sample_pages.value_or(PageSample::kUsualPages);
  }
  const std::uint64_t memory = OfflineModel::memory_bytes(settings);
  if (memory > kMaxMemory || (arguments.full && pages > MiniatureDrive::kMaxPages)) {
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

}  // namespace ssdpulse::flash

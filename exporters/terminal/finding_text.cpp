// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/finding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <ctime>
#include <tuple>

#include "daemon/base/number_text.h"
#include "daemon/base/text_table.h"
#include "daemon/model/block_io.h"  // name()
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

/// The same finding, on one or more devices.
struct Group {
  std::vector<const model::Finding*> members;
  [[nodiscard]] const model::Finding& first() const { return *members.front(); }
  [[nodiscard]] std::string devices() const {
    std::string names;
    for (const model::Finding* member : members) {
      names += (names.empty() ? "" : ", ") + member->who();
    }
    return names;
  }
};

std::string_view verdict(const model::Finding& one) { return model::name(one.verdict, model::kVerdictNames); }

bool is_quiet(const model::Finding& one) {
  return one.verdict == model::Verdict::ok || one.verdict == model::Verdict::not_applicable;
}

auto group_key(const model::Finding& one) { return std::tie(one.id, one.verdict, one.found, one.why); }

std::vector<Group> grouped(const Findings& findings, bool all) {
  std::vector<Group> groups;
  for (const model::Finding& one : findings) {
    if (is_quiet(one) && !all) {
      continue;
    }
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group_key(group.first()) == group_key(one); });
    if (known == groups.end()) {
      groups.push_back({{&one}});
    } else {
      known->members.push_back(&one);
    }
  }
  return groups;
}

std::string local_time(std::chrono::system_clock::time_point at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string bytes_text(double bytes) {
  return bytes >= 1e12  ? util::number_text(bytes / 1e12) + " TB"
         : bytes >= 1e9 ? util::number_text(bytes / 1e9) + " GB"
         : bytes >= 1e6 ? util::number_text(bytes / 1e6) + " MB"
         : bytes >= 1e3 ? util::number_text(bytes / 1e3) + " kB"
                        : util::number_text(bytes) + " B";
}

/// Findings have rates per day. What a day brings is known only if a day was observed: of less, `share` of a rate is
/// what was measured.
struct Period {
  double share = 1;
  std::string text = words::terminal::kADay;
};

Period period_of(const model::Finding& one) {
  constexpr double kDay = 86400;
  return one.observed_seconds && *one.observed_seconds < kDay
             ? Period{*one.observed_seconds / kDay,
                      fmt::format(words::terminal::kInMeasured, util::duration_text(*one.observed_seconds))}
             : Period{};
}

std::string without_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// Name and value as people write them: the name carries the unit.
std::string evidence_text(const std::string& name, double value, const Period& period) {
  struct Unit {
    std::string_view suffix;
    std::string (*text)(double);
    bool per_day = false;
  };
  static constexpr auto kSeconds = [](double seconds) {
    return seconds >= 10 || seconds <= 0 ? util::duration_text(seconds)
           : seconds >= 1                ? util::number_text(seconds) + " s"
           : seconds >= 1e-3             ? util::number_text(seconds * 1e3) + " ms"
                                         : util::number_text(seconds * 1e6) + " us";
  };
  static constexpr auto kUnits = std::to_array<Unit>({
      {"_seconds_per_day", [](double one) { return kSeconds(one); }, true},
      {"_bytes_per_day", [](double one) { return bytes_text(one); }, true},
      {"_per_day", [](double one) { return util::number_text(one); }, true},
      {"_seconds", [](double one) { return kSeconds(one); }},
      {"_bytes", [](double one) { return bytes_text(one); }},
      {"_share", [](double one) { return util::number_text(100 * one) + " %"; }},
      {"_lower_ratio", [](double one) { return fmt::format(words::shared::kAtLeast, util::number_text(one)); }},
      {"_ratio", [](double one) { return util::number_text(one); }},
      {"_celsius", [](double one) { return util::number_text(one) + " C"; }},
  });
  for (const auto& [suffix, text, per_day] : kUnits) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      const std::string what = without_underscores(name.substr(0, name.size() - suffix.size()));
      return what + " " + (per_day ? text(value * period.share) + " " + period.text : text(value));
    }
  }
  return without_underscores(name) + " " + util::number_text(value);
}

std::string evidence_of(const model::Finding& one) {
  std::string text;
  for (const auto& [name, value] : one.evidence) {
    text += (text.empty() ? "" : ", ") + evidence_text(name, value, period_of(one));
  }
  return text;
}

/// Over which time the evidence was measured.
std::string observed_of(const model::Finding& one) {
  if (!one.observed_seconds || one.evidence.empty()) {
    return "";
  }
  const std::string time = util::duration_text(*one.observed_seconds);
  return one.observer == model::Observer::daemon    ? fmt::format(words::terminal::kByDaemon, time)
         : one.observer == model::Observer::history ? fmt::format(words::terminal::kByHistory, time)
                                                    : fmt::format(words::terminal::kByKernel, time);
}

std::string cost_of(const model::Finding& one) {
  const auto [share, period] = period_of(one);
  std::string text;
  if (one.excess_seconds_per_day.value_or(0) > 0) {
    text =
        fmt::format(words::terminal::kCostOfWaiting, util::duration_text(share * *one.excess_seconds_per_day), period);
  }
  if (one.wear_bytes_per_day.value_or(0) > 0) {
    text += (text.empty() ? "" : ", ") +
            fmt::format(words::terminal::kCostOfWear, bytes_text(share * *one.wear_bytes_per_day), period);
  }
  return text;
}

/// The details of one finding, in the order in which they are read.
std::vector<std::pair<std::string_view, std::string>> details(const model::Finding& one) {
  std::vector<std::pair<std::string_view, std::string>> lines{
      {words::terminal::kWhy, one.why},
      {words::terminal::kSince, one.since ? local_time(*one.since) : ""},
      {words::terminal::kEvidence, evidence_of(one)},
      {words::shared::kMeasured, observed_of(one)},
      {words::terminal::kCosts, cost_of(one)},
      {words::terminal::kChange, one.change},
      {words::terminal::kForGood, one.persistent},
      {words::terminal::kUndo, one.undo},
      {words::terminal::kRisk, one.risk},
      {words::terminal::kProof, one.proof},
      {words::terminal::kSource, one.source}};
  std::erase_if(lines, [](const auto& line) { return line.second.empty(); });
  return lines;
}

/// As Markdown code, whatever backticks are in it: the fence is longer than the longest run of them.
std::string code(const std::string& text) {
  std::size_t run = 0;
  std::size_t longest = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const char* space = longest > 0 ? " " : "";
  return fence + space + text + space + fence;
}

/// What the finding costs, and over which time that was measured.
std::string measured_of(const model::Finding& one) {
  if (cost_of(one).empty()) {
    return "";
  }
  const std::string time = observed_of(one);
  return " (" + cost_of(one) + (time.empty() ? "" : "; " + fmt::format(words::terminal::kMeasuredOver, time)) + ")";
}

std::string sentence(const Group& group) {
  const model::Finding& one = group.first();
  std::string text = one.found;
  if (!is_quiet(one)) {
    text += one.why.empty() ? "" : ": " + one.why;
    text += measured_of(one);
    // A finding that is only worth knowing is not advice: its change is among the details.
    text += one.change.empty() || one.verdict == model::Verdict::info
                ? ""
                : fmt::format("; {}: {}", words::terminal::kChange, one.change);
  } else if (one.verdict == model::Verdict::not_applicable && !one.why.empty()) {
    text += ": " + one.why;
  }
  return text;
}

std::string count(const Findings& findings) {
  std::array<std::size_t, model::kVerdicts> of{};
  for (const model::Finding& one : findings) {
    ++of[static_cast<std::size_t>(one.verdict)];
  }
  std::string text;
  for (std::size_t i = 0; i < of.size(); ++i) {
    text += of[i] == 0 ? "" : fmt::format("{}{} {}", text.empty() ? "" : ", ", of[i], model::kVerdictNames[i]);
  }
  return text.empty() ? words::terminal::kNothingLookedAt : text;
}

}  // namespace

std::string evidence_sentence(const model::Finding& one) {
  if (one.evidence.empty()) {
    return "";
  }
  const std::string cost = cost_of(one);
  const std::string time = observed_of(one);
  std::string text = cost.empty() ? "" : cost + (time.empty() ? "" : ", ");
  text += time.empty() ? "" : fmt::format(words::terminal::kMeasuredOver, time);
  text += (text.empty() ? "" : ": ") + evidence_of(one);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

void print_findings(const Findings& findings, const FindingStyle& style, std::ostream& out) {
  const auto groups = grouped(findings, style.all);
  std::vector<std::vector<std::string>> rows{{words::terminal::kListVerdict, words::terminal::kListId,
                                              words::terminal::kListDevice, words::terminal::kListFound}};
  for (const Group& group : groups) {
    const model::Finding& one = group.first();
    rows.push_back({std::string(verdict(one)), one.id, util::for_terminal(group.devices(), util::kLongestSentence),
                    util::for_terminal(style.verbose ? one.found : sentence(group), util::kLongestSentence)});
  }
  if (style.verbose) {
    for (const Group& group : groups) {
      for (const model::Finding* one : group.members) {
        out << util::for_terminal(fmt::format("{} {} {}: {}", verdict(*one), one->id,
                                              one->device.empty() ? words::shared::kHost : one->who(), one->found),
                                  util::kLongestSentence)
            << '\n';
        for (const auto& [name, text] : details(*one)) {
          out << fmt::format("    {:9} ", name) << util::for_terminal(text, util::kLongestSentence) << '\n';
        }
      }
    }
  } else if (!groups.empty()) {
    util::print_table(rows, out);
  }
  out << (style.all ? count(findings) : fmt::format(words::terminal::kAllShowsMore, count(findings))) << '\n';
}

void print_findings_markdown(const Findings& findings, const FindingStyle& style, std::ostream& out) {
  const auto groups = grouped(findings, style.all);
  for (const Group& group : groups) {
    for (const model::Finding* one : group.members) {
      out << "### "
          << fmt::format(words::terminal::kFindingOn, verdict(*one), one->id,
                         one->device.empty() ? words::terminal::kTheHost
                                             : util::for_markdown(one->who(), util::kLongestSentence),
                         util::for_markdown(one->found, util::kLongestSentence))
          << "\n\n";
      for (const auto& [name, text] : details(*one)) {
        const bool command = name == words::terminal::kChange || name == words::terminal::kForGood ||
                             name == words::terminal::kUndo || name == words::terminal::kProof;
        out << fmt::format("- {}: {}\n", name,
                           command ? code(util::for_terminal(text, util::kLongestSentence))
                                   : util::for_markdown(text, util::kLongestSentence));
      }
      out << '\n';
    }
  }
  out << count(findings) << '\n';
}

}  // namespace ssdpulse::terminal

// SPDX-License-Identifier: Apache-2.0
// What a report says first, and what it says once: the answer in sentences of at most twenty words, the order of rows
// and devices by how much they matter, and notes by kind.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>

#include "daemon/base/number_text.h"
#include "exporters/report/report_forms.h"
#include "exporters/words/report.h"
#include "exporters/words/shared.h"

namespace ssdpulse::report {
namespace {

using compare::Verdict;

constexpr Verdict kUnjudged = Verdict::same;  // one window alone: all rows count alike

/// Answers first; what is open counts like what is the same, so that a p99 comes before a p50.
int order_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::worse:
      return 0;
    case Verdict::better:
      return 1;
    case Verdict::same:
    case Verdict::cannot_tell:
      return 2;
    case Verdict::not_comparable:
      return 3;
    case Verdict::too_few:
      return 4;
    case Verdict::no_data:
      break;
  }
  return 5;
}

/// What people feel first: the p99 of all that they wait for.
int tier_of(const Row& row) {
  constexpr auto kTails = std::to_array<std::string_view>({".p99", ".p50", ".p99.9"});
  const std::string_view tail = std::string_view(row.id).substr(std::min(row.id.find('.'), row.id.size()));
  return static_cast<int>(std::find(kTails.begin(), kTails.end(), tail) - kTails.begin());
}

/// Seconds waited, roughly: tells apart the operations of one device, and devices.
double weight_of(const Row& row) {
  const double value = std::max(row.before.value_or(0), row.after.value_or(0));
  return row.unit == Unit::seconds ? value * std::max(row.n_before, row.n_after) : 0;
}

auto key_of(const Row& row) {
  return std::tuple(order_of(row.verdict.value_or(kUnjudged)), tier_of(row), -weight_of(row));
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMaxNames ? fmt::format(words::shared::kAndMore, text, names.size() - kMaxNames) : text;
}

/// "54 % (95 %: 47 to 61)", "to 3.6 times (95 %: 2.8 to 4.7)"
std::string amount_text(const Change& change) {
  if (is_in_times(change)) {
    return fmt::format(words::report::kToTimes, times_text(change.ratio), times_text(change.lower),
                       times_text(change.upper));
  }
  const bool up = change.ratio >= 1;
  const auto size = [up](double ratio) { return std::lround(100 * (up ? ratio - 1 : 1 - ratio)); };
  return fmt::format(words::report::kByPercent, size(change.ratio), size(up ? change.lower : change.upper),
                     size(up ? change.upper : change.lower));
}

std::string changed_text(const Comparison& comparison, const Row& row, bool brief = false) {
  const Change& change = *row.answer();
  std::string amount = amount_text(change);
  // The measured values belong to the measured change alone, and long names leave no room.
  constexpr std::size_t kLongName = 20;
  if (!brief && !row.adjusted && row.before && row.after && row.what.size() < kLongName) {
    amount =
        fmt::format(words::report::kFromTo, amount, value_text(row.before, row.unit), value_text(row.after, row.unit));
  }
  return change.ratio >= 1 ? fmt::format(words::report::kRose, row.what, comparison.device.name, amount)
                           : fmt::format(words::report::kFell, row.what, comparison.device.name, amount);
}

std::string unchanged_text(const Comparison& comparison, const Row& row) {
  if (!row.answer()) {
    return fmt::format(words::report::kNotComparableOn, row.what, comparison.device.name);
  }
  if (row.answer()->lower == 1 && row.answer()->upper == 1) {
    return fmt::format(words::report::kExactlyTheSame, row.what, comparison.device.name);
  }
  const bool decided = row.verdict == Verdict::same || !row.corrected;
  const compare::Interval within =
      decided ? compare::Interval{row.answer()->lower, row.answer()->upper} : *row.corrected;
  std::string text =
      fmt::format(words::report::kNoDifferenceWithin, row.what, comparison.device.name, interval_text(within));
  if (row.verdict == Verdict::cannot_tell && row.hours_needed) {
    std::string wish = length_text(*row.hours_needed);
    wish[0] = static_cast<char>(std::toupper(wish[0]));
    text += " " + wish + ".";
  }
  return text;
}

std::string incomparable_text(const Comparison& comparison, const Row& row) {
  if (row.verdict == Verdict::not_comparable) {
    return fmt::format(words::report::kNotComparableBecause, row.what, comparison.device.name, row.reason);
  }
  return row.verdict == Verdict::no_data ? fmt::format(words::report::kNoIo, comparison.device.name)
                                         : fmt::format(words::report::kTooFewOn, comparison.device.name, row.reason);
}

std::string alone_text(const Comparison& comparison, const Row& row) {
  if (!row.after) {
    return fmt::format(words::report::kAloneTooFew, comparison.device.name,
                       util::duration_text(3600 * comparison.hours_after));
  }
  return fmt::format(words::report::kAlone, row.what, comparison.device.name, value_text(row.after, row.unit),
                     util::duration_text(3600 * comparison.hours_after));
}

/// Of the row that matters most.
Verdict first_verdict(const Comparison& comparison) {
  const auto rows = by_weight(comparison);
  return rows.empty() ? Verdict::no_data : rows[0]->verdict.value_or(kUnjudged);
}

std::string during_text(const DeviceReport& device) {
  const Comparison& during = device.during->comparison;
  const auto rows = by_weight(during);
  if (rows.empty()) {
    return fmt::format(words::report::kRanNothing, during.device.name);
  }
  return order_of(first_verdict(during)) < 2
             ? fmt::format(words::report::kRanChanged, changed_text(during, *rows[0], true))
             : fmt::format(words::report::kRanNoDifference, during.device.name);
}

/// For devices that are not named first.
constexpr auto kShort =
    std::to_array<const char*>({words::shared::kWorse, words::shared::kBetter, "", words::report::kNotComparable,
                                words::report::kTooFewIos, words::report::kNothingKnown});

/// The kinds of notes, in the order in which they are read; what has no kind comes last.
struct Kind {
  const char* title;
  std::vector<std::string_view> ids;
};
const std::vector<Kind>& kinds() {
  static const auto& kinds = *new std::vector<Kind>{
      {words::report::kNoteCause, {"several-settings", "one-setting", "no-setting", "changed-inside", "one-switch"}},
      {words::report::kNoteCertainty,
       {"last-day", "no-last-day", "missing-before", "missing-after", "hours-only", "scaled-time", "command"}},
      {words::report::kNoteLoad, {"other-load", "less-load", "more-load", "adjusted", "this-load"}},
      {words::report::kNoteWear, {"fresh-drive", "no-life", "not-settled"}},
      {words::report::kNoteAlso, {}}};
  return kinds;
}

constexpr std::size_t kCertainty = 1;

std::size_t kind_of(const std::string& id) {
  const auto has = [&id](const Kind& kind) {
    return std::find(kind.ids.begin(), kind.ids.end(), id) != kind.ids.end();
  };
  return std::min<std::size_t>(
      static_cast<std::size_t>(std::find_if(kinds().begin(), kinds().end(), has) - kinds().begin()),
      kinds().size() - 1);
}

/// How many figures are open, and what would decide: once, not for each.
std::string undecided_text(const Report& report) {
  std::size_t count = 0;
  double shortest = HUGE_VAL;
  for (const DeviceReport& device : report.devices) {
    for (const Row& row : device.comparison.rows) {
      const bool open = row.verdict == Verdict::cannot_tell;
      count += open ? 1 : 0;
      shortest = open ? std::min(shortest, row.hours_needed.value_or(HUGE_VAL)) : shortest;
    }
  }
  if (count == 0) {
    return "";
  }
  const std::string figures = util::count_text(count, words::report::kFigure);
  if (!std::isfinite(shortest)) {
    return count == 1 ? fmt::format(words::report::kOneUndecided, figures)
                      : fmt::format(words::report::kUndecided, figures);
  }
  return count == 1 ? fmt::format(words::report::kOneUndecidedUntil, figures, length_text(shortest))
                    : fmt::format(words::report::kUndecidedUntil, figures, length_text(shortest));
}

}  // namespace

std::vector<const Row*> by_weight(const Comparison& comparison) {
  std::vector<const Row*> rows;
  for (const Row& row : comparison.rows) {
    rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return key_of(*a) < key_of(*b); });
  return rows;
}

std::vector<const DeviceReport*> by_weight(const Report& report) {
  std::vector<const DeviceReport*> devices;
  for (const DeviceReport& device : report.devices) {
    devices.push_back(&device);
  }
  // Where nothing decides, the device whose setting was changed is what people ask about.
  const auto key = [](const DeviceReport* device) {
    const Comparison& comparison = device->comparison;
    const bool untouched = std::none_of(comparison.differing.begin(), comparison.differing.end(),
                                        [](const model::SettingChange& change) { return !change.device.empty(); });
    const auto rows = by_weight(comparison);
    return std::tuple(order_of(first_verdict(comparison)), untouched, rows.empty() ? 0.0 : -weight_of(*rows[0]));
  };
  std::stable_sort(devices.begin(), devices.end(), [&](const auto* a, const auto* b) { return key(a) < key(b); });
  return devices;
}

std::vector<std::string> answer_of(const Comparison& comparison) {
  const auto rows = by_weight(comparison);
  if (rows.empty()) {
    return {fmt::format(words::report::kNothingMeasured, comparison.device.name)};
  }
  const Row& first = *rows[0];
  if (!comparison.before) {
    return {alone_text(comparison, first)};
  }
  const int order = order_of(first.verdict.value_or(Verdict::cannot_tell));
  if (order >= 2) {
    return {order == 2 ? unchanged_text(comparison, first) : incomparable_text(comparison, first)};
  }
  std::vector<std::string> sentences;
  for (const Verdict verdict : {Verdict::worse, Verdict::better}) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row* one) { return one->verdict == verdict; });
    if (row != rows.end()) {
      const char* word = verdict == Verdict::worse ? words::shared::kWorse : words::shared::kBetter;
      sentences.push_back(fmt::format("{}: {}", word, changed_text(comparison, **row)));
    }
  }
  return sentences;
}

std::vector<std::string> answer_of(const Report& report) {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<std::string> sentences;
  std::map<std::pair<int, std::string>, std::vector<std::string>> others;
  std::size_t named = 0;
  for (const DeviceReport* device : by_weight(report)) {
    const Comparison& comparison = device->comparison;
    const Verdict verdict = first_verdict(comparison);
    const int order = order_of(verdict);
    if (named == 0 || (order < 2 && named < kMaxNamed)) {
      const auto more = answer_of(comparison);
      sentences.insert(sentences.end(), more.begin(), more.end());
      if (named++ == 0 && device->during) {
        sentences.push_back(during_text(*device));
      }
      continue;
    }
    const char* word = order != 2                 ? kShort[static_cast<std::size_t>(order)]
                       : !comparison.before       ? words::report::kAlsoMeasured
                       : verdict == Verdict::same ? words::report::kSameWithin
                                                  : words::report::kNoDifferenceShown;
    others[{order, word}].push_back(comparison.device.name);
  }
  for (const auto& [key, names] : others) {
    sentences.push_back(key.second + ": " + names_text(names) + ".");
  }
  return sentences;
}

std::vector<NoteGroup> notes_of(const Report& report) {
  struct Said {
    std::string text;
    std::vector<std::string> devices;
  };
  std::vector<std::vector<Said>> said(kinds().size());
  const auto say = [&](std::size_t kind, const std::string& text, const std::string& device) {
    auto& notes = said[kind];
    auto note = std::find_if(notes.begin(), notes.end(), [&](const Said& one) { return one.text == text; });
    note = note == notes.end() ? notes.insert(note, {text, {}}) : note;
    note->devices.push_back(device);
  };
  for (const DeviceReport& device : report.devices) {
    const Comparison& comparison = device.comparison;
    for (const auto& note : comparison.notes) {
      // Where nothing changed, nothing needs a cause.
      if ((note.id != "no-setting" && note.id != "one-switch") || order_of(first_verdict(comparison)) < 2) {
        say(kind_of(note.id), note.text, comparison.device.name);
      }
    }
  }
  std::vector<NoteGroup> groups;
  for (std::size_t kind = 0; kind < said.size(); ++kind) {
    NoteGroup group{kinds()[kind].title, {}};
    for (const Said& note : said[kind]) {
      const bool all = note.devices.size() == report.devices.size();
      group.sentences.push_back(all ? note.text : names_text(note.devices) + ": " + note.text);
    }
    if (std::string text = undecided_text(report); kind == kCertainty && !text.empty()) {
      group.sentences.insert(group.sentences.begin(), std::move(text));
    }
    if (!group.sentences.empty()) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace ssdpulse::report

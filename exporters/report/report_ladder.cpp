// SPDX-License-Identifier: Apache-2.0
// The write ladder of a report: what was written on each rung in both windows, by the whole host, and how often each
// rung wrote what the one above had sent.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/base/number_text.h"
#include "daemon/model/block_io.h"  // name()
#include "exporters/report/report_forms.h"
#include "exporters/words/report.h"
#include "exporters/words/shared.h"

namespace ssdpulse::report {
namespace {

using Json = nlohmann::ordered_json;
using model::PastLadder;
using model::Rung;

constexpr double kMaxLackingShare = 0.02;  // of the measured time: more, and a ratio is not shown

struct Step {
  std::string what;
  std::optional<double> bytes = {};
  std::optional<double> ratio = {};  // for each byte of the rung above, or of the volume
};

double bytes_of(const PastLadder& ladder, Rung rung) {
  double sum = 0;
  for (const auto& [key, bytes] : ladder.bytes) {
    sum += key.first == rung ? bytes : 0;
  }
  return sum;
}

bool is_whole(const PastLadder& ladder, std::initializer_list<Rung> rungs) {
  return std::none_of(ladder.gap_hours.begin(), ladder.gap_hours.end(), [&](const auto& gap) {
    return std::find(rungs.begin(), rungs.end(), gap.first.first) != rungs.end() &&
           gap.second > kMaxLackingShare * ladder.hours;
  });
}

std::optional<double> ratio_of(double above, double below, bool whole) {
  return whole && above > 0 ? std::optional(below / above) : std::nullopt;
}

/// Of one rung to the one above.
std::optional<double> ratio_at(const PastLadder& ladder, Rung rung) {
  const auto between = [&](Rung above) {
    return ratio_of(bytes_of(ladder, above), bytes_of(ladder, rung), is_whole(ladder, {above, rung}));
  };
  switch (rung) {
    case Rung::file_system:
      return between(Rung::application);
    case Rung::drive:
      return between(Rung::file_system);
    case Rung::media:  // of the drives that count it, whatever the others lack
      return ratio_of(bytes_of(ladder, Rung::reported), bytes_of(ladder, Rung::media), true);
    case Rung::application:
    case Rung::reported:
      break;
  }
  return std::nullopt;
}

/// From file systems to media.
std::optional<double> together(const PastLadder& ladder) {
  const auto volumes = ratio_at(ladder, Rung::drive), drives = ratio_at(ladder, Rung::media);
  return volumes && drives && is_whole(ladder, {Rung::media}) ? std::optional(*volumes * *drives) : std::nullopt;
}

std::string words_of(model::RungClass rung_class) {
  std::string words(name(rung_class, model::kRungClassNames));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::vector<Step> steps_of(const PastLadder& ladder) {
  std::vector<Step> steps;
  const auto add_rung = [&](Rung rung, const char* what) {
    steps.push_back({what, bytes_of(ladder, rung), ratio_at(ladder, rung)});
    for (const auto& [key, bytes] : ladder.bytes) {
      if (key.first == rung && key.second) {
        steps.push_back({"- " + words_of(*key.second), bytes, {}});
      }
    }
  };
  add_rung(Rung::application, words::shared::kApplications);
  add_rung(Rung::file_system, words::shared::kFileSystems);
  for (const auto& [volume, passed] : ladder.volumes) {
    steps.push_back({fmt::format(words::report::kMembersOf, volume), passed.members_written_bytes,
                     ratio_of(passed.written_bytes, passed.members_written_bytes, true)});
    if (passed.members_read_bytes > passed.read_bytes) {
      steps.push_back(
          {fmt::format("- {}", words::report::kExtraReads), passed.members_read_bytes - passed.read_bytes, {}});
    }
  }
  add_rung(Rung::drive, words::shared::kDrives);
  if (bytes_of(ladder, Rung::reported) > 0) {
    add_rung(Rung::reported, words::report::kByCounters);
    add_rung(Rung::media, words::report::kMedia);
  }
  if (const auto all = together(ladder)) {
    steps.push_back({words::report::kFileSystemsToMedia, {}, all});
  }
  return steps;
}

const Step* step_called(const std::vector<Step>& steps, const std::string& what, const std::string& part) {
  bool inside = part.empty();
  for (const Step& step : steps) {
    const bool is_part = step.what.starts_with("- ");
    inside = is_part ? inside : part.empty() || step.what == part;
    if (inside && step.what == what) {
      return &step;
    }
  }
  return nullptr;
}

/// Those of both, in their order; a part of a rung ("- journal") follows its rung.
std::vector<std::pair<std::string, std::string>> names_of(const std::vector<Step>& before,
                                                          const std::vector<Step>& after) {
  std::vector<std::pair<std::string, std::string>> names;  // {rung or volume, the step}
  for (const auto* steps : {&before, &after}) {
    std::string part;
    auto at = names.begin();
    for (const Step& step : *steps) {
      part = step.what.starts_with("- ") ? part : step.what;
      const auto known = std::find(names.begin(), names.end(), std::pair(part, step.what));
      at = known == names.end() ? names.insert(at, {part, step.what}) : known;
      ++at;
    }
  }
  return names;
}

Json side_json(const std::optional<PastLadder>& ladder) {
  if (!ladder) {
    return {};
  }
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json json{{"hours", ladder->hours}, {"rungs", Json::object()}, {"volumes", Json::object()}, {"gaps", Json::array()}};
  for (std::size_t i = 0; i < model::kRungNames.size(); ++i) {
    const auto rung = static_cast<Rung>(i);
    Json& own = json["rungs"][std::string(model::kRungNames[i])];
    own = {
        {"bytes", bytes_of(*ladder, rung)}, {"ratio", or_null(ratio_at(*ladder, rung))}, {"classes", Json::object()}};
    for (const auto& [key, bytes] : ladder->bytes) {
      if (key.first == rung && key.second) {
        own["classes"][std::string(name(*key.second, model::kRungClassNames))] = bytes;
      }
    }
  }
  json["ratio"] = or_null(together(*ladder));
  for (const auto& [volume, passed] : ladder->volumes) {
    json["volumes"][util::for_json(volume)] = {
        {"written_bytes", passed.written_bytes},
        {"read_bytes", passed.read_bytes},
        {"members_written_bytes", passed.members_written_bytes},
        {"members_read_bytes", passed.members_read_bytes},
        {"ratio", or_null(ratio_of(passed.written_bytes, passed.members_written_bytes, true))}};
  }
  for (const auto& [gap, hours] : ladder->gap_hours) {
    json["gaps"].push_back({{"rung", std::string(name(gap.first, model::kRungNames))},
                            {"reason", std::string(name(gap.second, model::kRungGapReasonNames))},
                            {"hours", hours}});
  }
  return json;
}

}  // namespace

Table ladder_table(const Report& report) {
  if (!report.ladder_after) {
    return {};
  }
  const bool compared = report.ladder_before.has_value();
  const auto before = compared ? steps_of(*report.ladder_before) : std::vector<Step>();
  const auto after = steps_of(*report.ladder_after);
  Table table{
      compared ? std::vector<std::string>{words::report::kWrittenByHost, words::report::kBefore, words::report::kRatio,
                                          words::report::kAfter, words::report::kRatio}
               : std::vector<std::string>{words::report::kWrittenByHost, words::report::kBytes, words::report::kRatio}};
  // Two windows are seldom as long as each other, and less may be measured of one.
  const auto much_text = [&](const std::optional<double>& bytes, double hours) {
    return !bytes || (compared && hours <= 0) ? ""
           : compared                         ? value_text(*bytes / (3600 * hours), Unit::bytes_per_second)
                                              : value_text(bytes, Unit::bytes);
  };
  for (const auto& [part, what] : names_of(before, after)) {
    table.push_back({what});
    for (const auto* steps : {&before, &after}) {
      if (steps == &before && !compared) {
        continue;
      }
      const Step* const step = step_called(*steps, what, part);
      const double hours = (steps == &before ? report.ladder_before : report.ladder_after)->hours;
      table.back().push_back(step != nullptr ? much_text(step->bytes, hours) : "");
      table.back().push_back(step != nullptr && step->ratio ? "x " + util::number_text(*step->ratio) : "");
    }
  }
  return table;
}

std::vector<std::string> ladder_remarks(const Report& report) {
  std::vector<std::string> remarks;
  for (const auto& [ladder, window] : {std::pair(&report.ladder_before, words::report::kBefore),
                                       std::pair(&report.ladder_after, words::report::kAfter)}) {
    for (const auto& [gap, hours] : *ladder ? (*ladder)->gap_hours : decltype(PastLadder::gap_hours)()) {
      if (hours > kMaxLackingShare * (*ladder)->hours) {
        std::string rung(name(gap.first, model::kRungNames)), reason(name(gap.second, model::kRungGapReasonNames));
        std::replace(reason.begin(), reason.end(), '_', ' ');
        std::replace(rung.begin(), rung.end(), '_', ' ');
        remarks.push_back(fmt::format(words::report::kRungLacks, window, util::duration_text(3600 * hours),
                                      util::duration_text(3600 * (*ladder)->hours), rung, reason));
      }
    }
  }
  return remarks;
}

std::string ladder_json(const Report& report) {
  return Json{{"before", side_json(report.ladder_before)}, {"after", side_json(report.ladder_after)}}.dump();
}

}  // namespace ssdpulse::report

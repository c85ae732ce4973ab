// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/ladder_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/number_text.h"
#include "daemon/base/outside_text.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

using Json = nlohmann::json;

const Json kNothing;

const Json& at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() ? *found : kNothing;
}

void print_row(std::ostream& out, const std::string& rung, std::optional<double> written, std::optional<double> times,
               const std::string& words) {
  const std::string line = fmt::format("  {:<24} {:>7}  {:<8} {}", rung, written ? bytes_text(written) : "",
                                       times ? "x " + util::number_text(*times) : "", words);
  out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
}

std::string text(const Json& json) {
  return json.is_string() ? util::for_terminal(json.get<std::string>(), util::kLongestSentence) : "";
}

std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

/// Bytes written since the first answer, by rung, device and class.
struct Written {
  std::string rung;
  std::string device;
  std::string write_class;
  double bytes = 0;
};

std::vector<Written> written_between(const Json& before, const Json& rungs) {
  const auto key = [](const Json& one) {
    return text(at(one, "rung")) + " " + text(at(one, "device")) + " " + text(at(one, "class"));
  };
  std::map<std::string, Json> earlier;
  const auto take = [&](const Json& list) {
    for (const Json& one : list) {
      earlier[key(one)] = one;
    }
  };
  take(at(before, "host_rungs"));
  for (const Json& ladder : at(before, "ladders")) {
    take(at(ladder, "rungs"));
  }
  std::vector<Written> all;
  for (const Json& one : rungs) {
    const Json& then = earlier[key(one)];
    const auto since = number(at(one, "counts_since")), first = number(at(before, "taken_at"));
    const bool goes_on = !then.is_null() && since == number(at(then, "counts_since"));
    const double bytes = number(at(one, "bytes")).value_or(0) - (goes_on ? number(at(then, "bytes")).value_or(0) : 0);
    if ((goes_on || (since && first && *since >= *first)) && bytes >= 0) {
      all.push_back({text(at(one, "rung")), text(at(one, "device")), text(at(one, "class")), bytes});
    }
  }
  return all;
}

double sum(const std::vector<Written>& all, const std::string& rung, const std::string& device = "") {
  double bytes = 0;
  for (const Written& one : all) {
    bytes += one.rung == rung && (device.empty() || one.device == device) ? one.bytes : 0;
  }
  return bytes;
}

std::optional<double> ratio(double above, double below) {
  return above > 0 ? std::optional(below / above) : std::nullopt;
}

/// "journal 1.0M, writeback 11M"
std::string classes_text(const std::vector<Written>& all, const std::string& rung) {
  std::map<std::string, double> by_class;
  for (const Written& one : all) {
    if (one.rung == rung) {
      by_class[one.write_class] += one.bytes;
    }
  }
  std::string words;
  for (const auto& [name, bytes] : by_class) {
    if (bytes > 0) {
      words += (words.empty() ? "" : ", ") + name + " " + bytes_text(bytes);
    }
  }
  return words;
}

std::string gaps_text(const Json& gaps, const std::string& rung) {
  std::string lacking;
  for (const Json& gap : gaps) {
    if (text(at(gap, "rung")) == rung) {
      const std::string device = text(at(gap, "device")), reason = text(at(gap, "reason"));
      lacking += lacking.empty() ? fmt::format(words::terminal::kWithout, device, reason)
                                 : fmt::format(", {} ({})", device, reason);
    }
  }
  return lacking;
}

const Json& named(const Json& list, const std::string& name) {
  for (const Json& one : list) {
    if (text(at(one, "name")) == name) {
      return one;
    }
  }
  return kNothing;
}

void print_volume(const Json& before, const Json& now, std::ostream& out) {
  const auto grown = [&](const char* field) -> std::optional<double> {
    const auto earlier = number(at(before, field)), later = number(at(now, field));
    const bool goes_on = number(at(before, "counts_since")) == number(at(now, "counts_since"));
    return goes_on && earlier && later && *earlier <= *later ? std::optional(*later - *earlier) : std::nullopt;
  };
  const auto written = grown("written_bytes"), below = grown("members_written_bytes");
  const auto read = grown("read_bytes"), read_below = grown("members_read_bytes");
  if (!written || !below || (*written <= 0 && *below <= 0)) {
    return;
  }
  print_row(out, text(at(now, "name")) + " " + text(at(now, "kind")), below, ratio(*written, *below),
            fmt::format(words::terminal::kToMembers, bytes_text(written)));
  if (read && read_below && *read_below > *read) {
    print_row(out, "", *read_below - *read, {}, words::terminal::kExtraReads);
  }
}

/// The second answer, with what was lacking at the first and with what has gone since: only part of their bytes is
/// known.
Json with_gaps_of(const Json& before, Json now) {
  const auto has = [](const Json& list, const Json& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  const auto add = [&](Json& gaps, const Json& gap) {
    if ((gaps.is_array() || gaps.is_null()) && !has(gaps, gap)) {
      gaps.push_back(gap);
    }
  };
  if (!now.is_object()) {
    return now;
  }
  for (const Json& gap : at(before, "host_gaps")) {
    add(now["host_gaps"], gap);
  }
  for (const Json& then : at(before, "ladders")) {
    for (Json& own : now["ladders"]) {
      const Json& drives = at(own, "drives");
      if (std::none_of(drives.begin(), drives.end(),
                       [&](const Json& drive) { return has(at(then, "drives"), drive); })) {
        continue;
      }
      for (const Json& gap : at(then, "gaps")) {
        if (has(drives, at(gap, "device")) || has(at(own, "volumes"), at(gap, "device"))) {
          add(own["gaps"], gap);
        }
      }
      // What has gone, or was made again, may have been sent more meanwhile, which the drives below it counted.
      const auto incarnation = [](const Json& rung) {
        return Json::array({at(rung, "rung"), at(rung, "device"), at(rung, "class"), at(rung, "counts_since")}).dump();
      };
      std::set<std::string> go_on, drives_then;
      for (const Json& rung : at(own, "rungs")) {
        go_on.insert(incarnation(rung));
      }
      for (const Json& rung : at(then, "rungs")) {
        if (at(rung, "rung") == "drive") {
          drives_then.insert(text(at(rung, "device")));
        }
      }
      for (const Json& rung : at(then, "rungs")) {
        const bool is_drive = at(rung, "rung") == "drive";
        const bool of_volume = at(rung, "rung") == "file_system" && !drives_then.contains(text(at(rung, "device")));
        if ((is_drive || of_volume) && !go_on.contains(incarnation(rung))) {
          add(own["gaps"], {{"rung", at(rung, "rung")},
                            {"device", at(rung, "device")},
                            {"reason", is_drive ? "drive_not_measured" : "volume_not_measured"}});
        }
      }
    }
  }
  return now;
}

/// What each drive adds, and that all rungs add together.
void print_media(const Json& ladder, const std::vector<Written>& written, const Json& devices, bool complete,
                 std::ostream& out) {
  double media = 0;
  for (const Json& drive : at(ladder, "drives")) {
    const std::string name = text(drive);
    const Json& device = named(at(devices, "devices"), name);
    const Json& waf = at(at(device, "nvme"), "write_amplification");
    const auto own = number(at(waf, "ratio"));
    const double bytes = sum(written, "drive", name);
    complete = complete && (own || bytes <= 0);
    media += bytes * own.value_or(0);
    const std::string modelled = text(at(device, "modelled"));
    print_row(out, fmt::format(words::terminal::kMediaOf, name), {}, own,
              own ? fmt::format(words::terminal::kByOwnCounters, text(at(waf, "window")), text(at(waf, "source")))
              : modelled.empty() ? words::shared::kNotKnownHere
                                 : modelled);
  }
  const double above = sum(written, "file_system");
  if (complete && above > 0 && media > 0) {
    print_row(out, words::terminal::kTogether, media, ratio(above, media), words::terminal::kFileSystemsToMedia);
  }
}

/// Of the whole host, as what becomes dirty is not counted for each drive.
void print_host(const Json& before, const Json& now, std::ostream& out) {
  std::vector<Written> written = written_between(before, at(now, "host_rungs"));
  std::string lacking = gaps_text(at(now, "host_gaps"), "application");
  bool complete = lacking.empty();
  for (const Json& ladder : at(now, "ladders")) {
    const auto more = written_between(before, at(ladder, "rungs"));
    written.insert(written.end(), more.begin(), more.end());
    const std::string unknown = gaps_text(at(ladder, "gaps"), "application");
    lacking += (lacking.empty() || unknown.empty() ? "" : ", ") + unknown;
    complete = complete && unknown.empty() && gaps_text(at(ladder, "gaps"), "file_system").empty();
  }
  const double above = sum(written, "application"), below = sum(written, "file_system");
  const std::string classes = classes_text(written, "application");
  out << words::terminal::kAllOfHost << '\n';
  print_row(out, words::shared::kApplications, above, {},
            classes + (classes.empty() || lacking.empty() ? "" : "; ") + lacking);
  print_row(out, words::shared::kFileSystems, below, complete ? ratio(above, below) : std::nullopt, "");
}

}  // namespace

void print_ladders(const Json& before, const Json& latest, const Json& devices, std::ostream& out) {
  const Json now = with_gaps_of(before, latest);
  if (!at(now, "ladders").empty()) {
    print_host(before, now, out);
  }
  for (const Json& ladder : at(now, "ladders")) {
    std::string drives;
    for (const Json& drive : at(ladder, "drives")) {
      drives += (drives.empty() ? "" : " ") + text(drive);
    }
    out << drives << '\n';
    const auto written = written_between(before, at(ladder, "rungs"));
    const double above = sum(written, "file_system"), below = sum(written, "drive");
    const std::string lacking = gaps_text(at(ladder, "gaps"), "file_system");
    const std::string unmeasured = gaps_text(at(ladder, "gaps"), "drive");
    const bool complete = lacking.empty() && unmeasured.empty();
    print_row(out, words::shared::kFileSystems, above, {},
              lacking.empty() ? classes_text(written, "file_system") : lacking);
    for (const Json& volume : at(ladder, "volumes")) {
      const std::string name = text(volume);
      print_volume(named(at(before, "layers"), name), named(at(now, "layers"), name), out);
    }
    print_row(out, words::shared::kDrives, below, complete ? ratio(above, below) : std::nullopt, unmeasured);
    print_media(ladder, written, devices, complete, out);
  }
  if (at(now, "ladders").empty()) {
    out << words::terminal::kNoDriveMeasured << '\n';
  }
}

}  // namespace ssdpulse::terminal

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

constexpr std::size_t kColumns = 100;

constexpr std::string_view kManualHead = R"(.\" SPDX-License-Identifier: Apache-2.0
.\" Written by ssdpulse metrics --man.
.Dd November 27, 2026
.Dt SSDPULSE-METRICS 7
.Os
.Sh NAME
.Nm ssdpulse-metrics
.Nd the metrics that ssdpulse exports
.Sh DESCRIPTION
.Xr ssdpulse 1
serves these metrics under
.Pa /metrics .
.Li ssdpulse metrics --json
prints the same list for programs.
.Pp
Names, types and labels are a contract: the changelog lists every change to them as breaking.
A value that is not known is absent, never 0.
Each topic is a group:
.Cm metrics.exclude
of
.Xr ssdpulse.yaml 5
leaves groups out, and
.Pa /metrics?collect[]=GROUP ,
which may be repeated, asks for some alone, or with
.Cm all
for every one.
.Cm fleet
stands for what critical and warning alerts read, of every group;
.Cm metrics.profile
makes that the usual answer.
.Pp
Identity (model, serial, firmware) is on the
.Li _info
metrics alone, which are joined by
.Li device
or
.Li controller .
In
.Li device ,
an NVMe multipath head stands for its paths, and a member of an md or dm device for itself.
.Pp
Latencies are native histograms of schema 3: a quantile is off by at most 4.4 %.
They reach from 1 us to 64 s; what is shorter or longer is in the bucket below or above.
A server that does not scrape native histograms gets classic buckets at powers of two of a second, without loss.
Sizes are native histograms of schema 0.
Sums are exact.
)";

constexpr std::string_view kManualTail = R"(.Sh SEE ALSO
.Xr ssdpulse 1 ,
.Xr ssdpulse.yaml 5
)";

std::string_view name_of(Type type) {
  switch (type) {
    case Type::counter:
      return "counter";
    case Type::gauge:
      return "gauge";
    case Type::histogram:
      return "histogram";
  }
  return "";
}

/// A phrase; empty: never.
std::string absent_when(const FamilyDescription& family) {
  constexpr std::string_view kMode = "latency.mode is completion-only";
  if (family.modes == Modes::all) {
    return std::string(family.absent);
  }
  return family.absent.empty() ? std::string(kMode) : fmt::format("{}, or {}", family.absent, kMode);
}

std::string kind_of(const FamilyDescription& family) {
  return family.unit.empty() ? std::string(name_of(family.type))
                             : fmt::format("{}, {}", name_of(family.type), family.unit);
}

std::string text_of(const LabelDescription& label) {
  return label.values.empty() ? std::string(label.meaning)
                              : fmt::format("{} ({})", label.meaning, fmt::join(label.values, ", "));
}

/// Lines of at most kColumns, each indented, the first one separately.
std::string wrapped(std::string_view text, std::size_t first_indent, std::size_t indent) {
  std::string result(first_indent, ' ');
  std::size_t column = first_indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + word.size() > kColumns) {
      result.back() = '\n';
      result.append(indent, ' ');
      column = indent;
    }
    result.append(word) += ' ';
    column += word.size() + 1;
  }
  result.back() = '\n';
  return result;
}

/// As mdoc expects it: each sentence on a line of its own.
std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends_sentence = i > 0 && text[i] == ' ' && text[i - 1] == '.';
    result += text[i] == '\\' ? "\\e" : ends_sentence ? "\n" : std::string(1, text[i]);
  }
  return result;
}

void add_manual_entry(std::string& page, const FamilyDescription& family) {
  page += fmt::format(".It Sy {}\n.Pq {}\n{}\n", family.name, kind_of(family), escaped(family.help));
  if (const std::string absent = absent_when(family); !absent.empty()) {
    page += fmt::format("Absent when {}.\n", escaped(absent));
  }
  if (!family.labels.empty()) {
    page += ".Bl -tag -width Ds -compact\n";
    for (const LabelDescription& label : family.labels) {
      page += fmt::format(".It Va {}\n{}\n", label.name, escaped(text_of(label)));
    }
    page += ".El\n";
  }
}

}  // namespace

std::string metric_list_text() {
  std::string text;
  for (const Topic& topic : topics()) {
    text += fmt::format("{}{}  (group {})\n", text.empty() ? "" : "\n", topic.title, topic.group);
    for (const FamilyDescription& family : topic.families()) {
      text += fmt::format("\n  {}  ({})\n", family.name, kind_of(family));
      text += wrapped(family.help, 6, 6);
      for (const LabelDescription& label : family.labels) {
        text += wrapped(fmt::format("{}: {}", label.name, text_of(label)), 8, 10);
      }
      if (const std::string absent = absent_when(family); !absent.empty()) {
        text += wrapped(fmt::format("Absent when {}.", absent), 6, 6);
      }
    }
  }
  return text;
}

std::string metric_list_json() {
  using Json = nlohmann::ordered_json;
  Json metrics = Json::array();
  for (const Topic& topic : topics()) {
    for (const FamilyDescription& family : topic.families()) {
      Json labels = Json::array();
      for (const LabelDescription& label : family.labels) {
        labels.push_back(
            {{"name", label.name},
             {"values", label.values.empty() ? Json() : Json(std::vector(label.values.begin(), label.values.end()))},
             {"meaning", label.meaning}});
      }
      const std::string absent = absent_when(family);
      metrics.push_back({{"name", family.name},
                         {"topic", topic.title},
                         {"group", topic.group},
                         {"type", name_of(family.type)},
                         {"unit", family.unit},
                         {"labels", std::move(labels)},
                         {"help", family.help},
                         {"absent_when", absent.empty() ? Json() : Json(absent)}});
    }
  }
  return Json{{"metrics", std::move(metrics)}}.dump(2) + "\n";
}

std::string metric_list_manual() {
  std::string page(kManualHead);
  for (const Topic& topic : topics()) {
    page += fmt::format(".Ss {}\nGroup\n.Cm {} .\n.Bl -tag -width Ds\n", topic.title, topic.group);
    for (const FamilyDescription& family : topic.families()) {
      add_manual_entry(page, family);
    }
    page += ".El\n";
  }
  return page.append(kManualTail);
}

}  // namespace ssdpulse::exposition

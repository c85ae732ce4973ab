// SPDX-License-Identifier: Apache-2.0
// The HTML page of a report.
#include <fmt/format.h>

#include <utility>

#include "exporters/report/report_forms.h"
#include "exporters/report/report_heatmap.h"

namespace ssdpulse::report {
namespace {

using compare::Verdict;

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>ssdpulse report</title>
<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:1rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;margin:1rem 0}
th,td{padding:.2rem .7rem;border-bottom:1px solid #ccc;text-align:right}
th:first-child,td:first-child{text-align:left}
.maps{display:flex;flex-wrap:wrap;gap:1rem}.maps figure{flex:1 1 24rem;margin:0}
svg{width:100%;height:auto}svg.key{max-width:26rem}
.better{color:#00539c;font-weight:bold}.worse{color:#a63600;font-weight:bold}
</style></head><body>
)";

/// A shape in addition to the colour.
std::string cell_html(const std::string& field) {
  if (field == name(Verdict::better)) {
    return "<td class=\"better\">&#9660; better</td>";
  }
  if (field == name(Verdict::worse)) {
    return "<td class=\"worse\">&#9650; worse</td>";
  }
  return "<td>" + util::for_html(field, util::kLongestSentence) + "</td>";
}

std::string table_html(const Table& table) {
  std::string html = "<table>\n<tr>";
  for (const std::string& field : table[0]) {
    html += "<th>" + util::for_html(field, util::kLongestSentence) + "</th>";
  }
  html += "</tr>\n";
  for (std::size_t row = 1; row < table.size(); ++row) {
    html += "<tr>";
    for (const std::string& field : table[row]) {
      html += cell_html(field);
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string maps_html(const DeviceReport& device, model::Latency latency, const std::string& what) {
  std::vector<const compare::Side*> sides;
  if (device.question.before) {
    sides.push_back(&*device.question.before);
  }
  sides.push_back(&device.question.after);
  const auto scale = heat_scale(sides, latency);
  if (!scale) {
    return "";
  }
  std::string html = "<h3>" + what + "</h3>\n<div class=\"maps\">";
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::string label = sides.size() == 1 ? what : i == 0 ? "before" : "after";
    html +=
        "<figure><figcaption>" + label + "</figcaption>" + heatmap_svg(*sides[i], latency, *scale, label) + "</figure>";
  }
  return html + "</div>\n" + heat_key_svg(*scale);
}

std::string list_html(const Comparison& comparison) {
  std::string html = "<ul>\n";
  const auto add = [&](const std::string& text) { html += "<li>" + text + "</li>\n"; };
  for (const std::string& remark : row_remarks(comparison)) {
    add(util::for_html(remark, util::kLongestSentence));
  }
  for (const model::SettingChange& change : comparison.differing) {
    add("changed: " + util::for_html(setting_text(change), util::kLongestSentence));
  }
  for (const auto& note : comparison.notes) {
    add(util::for_html(note.text, util::kLongestSentence));
  }
  return html + "</ul>\n";
}

std::string head_html(const Comparison& comparison) {
  std::string html = "<h2>" + util::for_html(device_text(comparison.device), util::kLongestSentence) + "</h2>\n<p>";
  const std::string after = measured_text(comparison.after, comparison.hours_after);
  if (!comparison.before) {
    return html + after + "</p>\n";
  }
  return html + fmt::format("before: {}<br>\nafter: {}</p>\n<p><strong>{}</strong></p>\n",
                            measured_text(*comparison.before, comparison.hours_before), after,
                            summary_text(comparison));
}

std::string body_html(const Comparison& comparison) {
  if (comparison.rows.empty()) {
    return "<p>Nothing was measured of this device in these windows.</p>\n";
  }
  return table_html(verdict_table(comparison)) + list_html(comparison) + table_html(load_table(comparison));
}

std::string pictures_html(const DeviceReport& device) {
  const std::string maps = maps_html(device, model::Latency::read_total, "Reads, total latency") +
                           maps_html(device, model::Latency::write_total, "Writes, total latency");
  return maps.empty()
             ? maps
             : maps + "<p>Lines: p99, and p50 dashed. One scale for both windows. Hatched: not measured.</p>\n";
}

/// At most a few lines for each volume: beyond a quarter of the page it is left out.
std::string ladder_html(const Report& report) {
  const Table table = ladder_table(report);
  if (table.empty()) {
    return "";
  }
  std::string html = "<h2>Write ladder</h2>\n" + table_html(table) + "<ul>\n";
  for (const std::string& remark : ladder_remarks(report)) {
    html += "<li>" + util::for_html(remark, util::kLongestSentence) + "</li>\n";
  }
  return html.size() > kMaxHtmlBytes / 4 ? "" : html + "</ul>\n";
}

}  // namespace

void print_html(const Report& report, std::ostream& out) {
  constexpr const char* kLeftOut =
      "<p>(Left out, as this page would be larger than 300 KB: ask for this device alone.)</p>\n";
  constexpr std::size_t kForTheEnd = 1000;
  std::string html = kHead;
  html += "<h1>ssdpulse report: " + util::for_html(report.host) + "</h1>\n<p>made " + minute_text(report.made_at) +
          "</p>\n";
  if (!report.change.empty()) {
    html += "<p>Change: <strong>" + util::for_html(report.change, util::kLongestSentence) + "</strong></p>\n";
  }
  for (const model::Mark& mark : report.marks) {
    if (html.size() < kMaxHtmlBytes / 4) {
      html += "<p>mark " + minute_text(mark.at) + ": " + util::for_html(mark.text) + "</p>\n";
    }
  }
  // Tables first: they are small. The remaining room is for pictures.
  std::vector<std::pair<std::string, std::string>> parts;
  const std::string ladder = ladder_html(report);
  std::size_t size = html.size() + ladder.size() + kForTheEnd;
  for (const DeviceReport& device : report.devices) {
    std::string part = head_html(device.comparison) + body_html(device.comparison);
    if (size + part.size() > kMaxHtmlBytes - kForTheEnd) {
      part = kLeftOut;
    }
    size += part.size();
    if (size > kMaxHtmlBytes - kForTheEnd) {
      break;
    }
    parts.emplace_back(std::move(part), "");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string pictures = pictures_html(report.devices[i]);
    if (size + pictures.size() > kMaxHtmlBytes) {
      pictures.clear();
    }
    size += pictures.size();
    parts[i].second = std::move(pictures);
  }
  for (const auto& [part, pictures] : parts) {
    html += part + pictures;
  }
  html += ladder;
  out << html << "</body></html>\n";
}

}  // namespace ssdpulse::report

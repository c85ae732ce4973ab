// SPDX-License-Identifier: Apache-2.0
// The HTML page of a report.
#include <fmt/format.h>

#include <utility>

#include "exporters/report/report_forms.h"
#include "exporters/report/report_heatmap.h"
#include "exporters/words/report.h"

namespace ssdpulse::report {
namespace {

using compare::Verdict;

constexpr const char* kBeforeTitle = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>)";
constexpr const char* kAfterTitle = R"(</title>
<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.5rem;line-height:1.25;text-wrap:balance}h1 span{display:block}h1 span~span{font-size:1.1rem}.faint{color:#555}
table{border-collapse:collapse;margin:1rem 0}
th,td{padding:.2rem .7rem;border-bottom:1px solid #ccc;text-align:right}
th:first-child,td:first-child{text-align:left}th+th,td+td{white-space:nowrap}dt{font-weight:bold}dd{margin-left:1rem}
.maps{display:flex;flex-wrap:wrap;gap:1rem}.maps figure{flex:1 1 24rem;margin:0}
svg{width:100%;height:auto}svg.key{max-width:26rem}summary{cursor:pointer;margin:.6rem 0}
.picture{margin:1rem 0}.picture svg{font:12px system-ui,sans-serif}.picture .tick{stroke:#ccc}
path.before,path.all{fill:#ccc;stroke:#888}path.during{fill:none;stroke:#555;stroke-dasharray:2 3}
path.after{fill:none;stroke:#00539c;stroke-width:2}
line.before{stroke:#666;stroke-dasharray:5 3}line.after{stroke:#00539c;stroke-width:1.5}
.better{color:#00539c;font-weight:bold}.worse{color:#a63600;font-weight:bold}
@page{margin:15mm}
@media print{
body{font-size:9pt;max-width:none;margin:0;padding:0;color:#000}.faint,.better,.worse{color:#000}
h1{font-size:14pt}h1 span~span{font-size:10pt}h2,h3{margin:.4rem 0 .1rem}svg.key{max-width:17rem}table,.picture,p{margin:.5rem 0}.picture svg{max-height:5cm}
th,td{padding:.1rem .3rem}thead{display:table-header-group}table{font-size:8pt}
tr,figure,li,dd,p,svg{break-inside:avoid}h1,h2,h3,dt,summary,figcaption,.maps{break-after:avoid}
details{break-before:page}summary{list-style:none;font-weight:bold}.maps figure{flex:1 1 40%}
details::details-content{content-visibility:visible;display:block}
}
</style></head><body>
)";

/// A shape in addition to the colour.
std::string cell_html(const std::string& field) {
  if (field == name(Verdict::better)) {
    return fmt::format("<td class=\"better\">&#9660; {}</td>", field);
  }
  if (field == name(Verdict::worse)) {
    return fmt::format("<td class=\"worse\">&#9650; {}</td>", field);
  }
  return "<td>" + util::for_html(field, util::kLongestSentence) + "</td>";
}

std::string table_html(const Table& table) {
  std::string html = "<table>\n<thead><tr>";
  for (const std::string& field : table[0]) {
    html += "<th>" + util::for_html(field, util::kLongestSentence) + "</th>";
  }
  html += "</tr></thead>\n";
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
    const std::string label = sides.size() == 1 ? what : i == 0 ? words::report::kBefore : words::report::kAfter;
    html +=
        "<figure><figcaption>" + label + "</figcaption>" + heatmap_svg(*sides[i], latency, *scale, label) + "</figure>";
  }
  return html + "</div>\n" + heat_key_svg(*scale);
}

std::string lines_html(const std::vector<std::string>& lines, const char* tag) {
  std::string html;
  for (const std::string& line : lines) {
    html += fmt::format("<{0}>{1}</{0}>\n", tag, util::for_html(line, util::kLongestSentence));
  }
  return html;
}

/// No line ends between a number and its percent sign.
std::string unbroken(std::string html) {
  for (std::size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at)) {
    html.replace(at, 1, "&nbsp;");
  }
  return html;
}

/// One device in full.
std::string body_html(const DeviceReport& device) {
  std::string html = lines_html(answer_of(device.comparison), "p");
  if (!device.comparison.rows.empty()) {
    const auto remarks = row_remarks(device.comparison);
    html += table_html(verdict_table(device, device.comparison.rows.size(), true));
    html += (remarks.empty() ? "" : "<ul>\n" + lines_html(remarks, "li") + "</ul>\n") +
            table_html(load_table(device, false));
  }
  return html;
}

/// The answer, the picture, the rows that matter most, and notes: on paper, the first page.
std::string first_html(const Report& report, const DeviceReport& open) {
  std::string html = "<h1>" + unbroken(lines_html(answer_of(report), "span")) + "</h1>\n" + picture_svg(open);
  if (!open.comparison.rows.empty()) {
    html += table_html(verdict_table(open, kMaxShown, false));
    const Table load = load_table(open, true);
    html += load.size() > 1 ? table_html(load) : "";
  }
  html += "<p>";
  for (const auto& [name, window] : windows_of(open)) {
    html += name + ": " + window + "<br>\n";
  }
  for (const util::OutsideText& change : changes_of(report)) {
    if (html.size() < kMaxHtmlBytes / 4) {
      html += fmt::format("{}: {}<br>\n", words::report::kChanged, util::for_html(change, util::kLongestSentence));
    }
  }
  html += "</p>\n<dl>\n";
  for (const NoteGroup& group : notes_of(report)) {
    html += "<dt>" + group.title + "</dt>\n" + lines_html(group.sentences, "dd");
  }
  return html + "</dl>\n";
}

std::string pictures_html(const DeviceReport& device) {
  const std::string maps = maps_html(device, model::Latency::read_total, words::report::kReadLatencies) +
                           maps_html(device, model::Latency::write_total, words::report::kWriteLatencies);
  return maps.empty() ? maps : maps + fmt::format("<p>{}</p>\n", words::report::kLinesMean);
}

/// At most a few lines for each volume: beyond a quarter of the page it is left out.
std::string ladder_html(const Report& report) {
  const Table table = ladder_table(report);
  if (table.empty()) {
    return "";
  }
  std::string html = fmt::format("<h2>{}</h2>\n{}<ul>\n", words::report::kWriteLadder, table_html(table));
  for (const std::string& remark : ladder_remarks(report)) {
    html += "<li>" + util::for_html(remark, util::kLongestSentence) + "</li>\n";
  }
  return html.size() > kMaxHtmlBytes / 4 ? "" : html + "</ul>\n";
}

}  // namespace

void print_html(const Report& report, std::ostream& out) {
  const std::string left_out = fmt::format("<p>{}</p>\n", words::report::kLeftOut);
  constexpr std::size_t kForTheEnd = 1000;
  std::string html = fmt::format("{}{}{}", kBeforeTitle, words::report::kTitle, kAfterTitle);
  html += "<p class=\"faint\">" +
          fmt::format(words::report::kTitleMade, util::for_html(report.host), minute_text(report.made_at)) + "</p>\n";
  const auto devices = by_weight(report);
  html += devices.empty() ? "" : first_html(report, *devices[0]);
  // Tables first: they are small. The remaining room is for pictures.
  std::vector<std::pair<std::string, std::string>> parts;
  const std::string ladder = ladder_html(report);
  std::size_t size = html.size() + ladder.size() + kForTheEnd;
  for (const DeviceReport* device : devices) {
    std::string part = "<details><summary>" +
                       fmt::format(words::report::kAllOf,
                                   util::for_html(device_text(device->comparison.device), util::kLongestSentence)) +
                       "</summary>\n" + body_html(*device);
    if (size + part.size() > kMaxHtmlBytes - kForTheEnd) {
      part = left_out;
    }
    size += part.size();
    if (size > kMaxHtmlBytes - kForTheEnd) {
      break;
    }
    parts.emplace_back(std::move(part), "");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string pictures = parts[i].first == left_out ? "" : pictures_html(*devices[i]) + "</details>\n";
    if (size + pictures.size() > kMaxHtmlBytes) {
      pictures = "</details>\n";
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

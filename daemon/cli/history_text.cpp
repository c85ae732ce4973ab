// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/history_text.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "daemon/base/number_text.h"
#include "daemon/base/text_table.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::cli {
namespace {

using Json = nlohmann::json;

std::string local_time(const Json& seconds) {
  if (!seconds.is_number()) {
    return "-";
  }
  const auto time = static_cast<time_t>(seconds.get<double>());
  tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

/// Three digits, and the unit that fits.
std::string latency(const Json& seconds) {
  if (!seconds.is_number()) {
    return "-";
  }
  const double value = seconds.get<double>();
  return value < 1e-3 ? util::number_text(value * 1e6) + "us"
         : value < 1  ? util::number_text(value * 1e3) + "ms"
                      : util::number_text(value) + "s";
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& at(const Json& points, const char* kind, const char* field, std::size_t i) {
  static const auto& nothing = *new Json;
  const auto of = points.find(kind);
  if (of == points.end() || !of->is_object()) {
    return nothing;
  }
  const auto array = of->find(field);
  return array == of->end() || !array->is_array() || i >= array->size() ? nothing : (*array)[i];
}

std::string per_second(const Json& count, double seconds, double unit) {
  return count.is_number() && seconds > 0 ? util::number_text(count.get<double>() / seconds / unit) : "-";
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:19}", cells[0]);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    line += fmt::format(" {:>8}", cells[i]);
  }
  return line + "\n";
}

std::string points_text(const Json& points, bool with_seconds) {
  constexpr double kMega = 1e6;
  std::string out = row({"TIME", "READ/s", "MB/s", "p50", "p99", "p99.9", "WRITE/s", "MB/s", "p50", "p99", "p99.9",
                         "COMMIT", "p99", "DISCARD"});
  const Json& starts = points.at("start");
  const Json& measured = points.value("measured_seconds", Json::array());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const double seconds = i < measured.size() ? measured[i].get<double>() : 0;
    std::vector<std::string> cells{local_time(starts[i]).substr(0, with_seconds ? 19 : 16)};
    for (const char* kind : {"read", "write"}) {
      cells.push_back(per_second(at(points, kind, "ios", i), seconds, 1));
      cells.push_back(per_second(at(points, kind, "bytes", i), seconds, kMega));
      for (const char* quantile : {"p50", "p99", "p999"}) {
        cells.push_back(latency(at(points, kind, quantile, i)));
      }
    }
    cells.push_back(per_second(at(points, "commit", "ios", i), seconds, 1));
    cells.push_back(latency(at(points, "commit", "p99", i)));
    cells.push_back(per_second(at(points, "discard", "bytes", i), seconds, kMega));
    out += row(cells);
  }
  return out;
}

/// Of an event that was stamped by a clock that went back to an earlier time since.
std::string_view format_clock(const Json& event) {
  return event.value("clock_ahead", false) ? " (stamped by a clock that was ahead)" : "";
}

std::string changes_text(const Json& answer) {
  std::string out;
  for (const Json& change : answer.value("settings", Json::array())) {
    if (change.value("before", Json()).is_string()) {
      const std::string device = text_of(change, "device");
      out += fmt::format("{}  setting  {} {}: {} -> {}{}\n", local_time(change["at"]), device.empty() ? "host" : device,
                         text_of(change, "name"), text_of(change, "before"), text_of(change, "value"),
                         format_clock(change));
    }
  }
  for (const Json& mark : answer.value("marks", Json::array())) {
    out += fmt::format("{}  mark     {}{}\n", local_time(mark["at"]), text_of(mark, "text"), format_clock(mark));
  }
  return out;
}

std::string sorted_lines(const std::string& lines) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = lines.find('\n', begin);
    all.push_back(lines.substr(begin, end - begin + 1));
    begin = end + 1;
  }
  std::sort(all.begin(), all.end());
  std::string out;
  for (const std::string& line : all) {
    out += line;
  }
  return out;
}

std::string events_text(const Json& answer) {
  std::string out = changes_text(answer);
  for (const Json& spike : answer.value("spikes", Json::array())) {
    out += fmt::format("{}  spike    {} for {:.1f} s, p99 of its worst second {} (usual {}), cause {}{}\n",
                       local_time(spike["begin"]),
                       util::count_text(spike.value("ios", std::uint64_t{0}), "slow " + text_of(spike, "operation")),
                       spike.value("seconds", 0.0), latency(spike["peak_seconds"]), latency(spike["baseline_seconds"]),
                       text_of(spike, "cause"), format_clock(spike));
  }
  for (const Json& burst : answer.value("bursts", Json::array())) {
    out += fmt::format("{}  discards {} for {:.1f} s, {:.1f} MB{}\n", local_time(burst["begin"]),
                       text_of(burst, "trigger"), burst.value("seconds", 0.0), burst.value("bytes", 0.0) / 1e6,
                       format_clock(burst));
  }
  for (const Json& wait : answer.value("waits", Json::array())) {
    out += fmt::format("{}  held up  {}, for {:.1f} s{}\n", local_time(wait["begin"]), text_of(wait, "words"),
                       wait.value("seconds", 0.0), format_clock(wait));
  }
  for (const Json& window : answer.value("clock_ahead", Json::array())) {
    out += fmt::format("{}  clock    until {} it was ahead: what was recorded by it is left out\n",
                       local_time(window["from"]), local_time(window["to"]));
  }
  return sorted_lines(out);
}

std::string wear_text(const Json& answer) {
  const Json wear = answer.value("wear", Json::array());
  double host = 0;
  double media = 0;
  Json used;
  for (const Json& one : wear) {
    host += one.value("host_bytes", Json()).is_number() ? one["host_bytes"].get<double>() : 0;
    media += one.value("media_bytes", Json()).is_number() ? one["media_bytes"].get<double>() : 0;
    used = one.value("percentage_used", Json()).is_number() ? one["percentage_used"] : used;
  }
  std::string out;
  if (host > 0) {
    out += fmt::format("wear: {} GB written by the host, {} GB to the media: write amplification {}{}\n",
                       util::number_text(host / 1e9), util::number_text(media / 1e9), util::number_text(media / host),
                       media < host ? ", which only a drive that compresses can have" : "");
  }
  if (used.is_number()) {
    out += fmt::format("wear: {:.0f} % of the drive's life used\n", used.get<double>() * 100);
  }
  return out;
}

/// What one tenant did between two points of time.
struct TenantRow {
  double start = 0;
  double seconds = 0;  // that were measured of it
  const Json* tenant = nullptr;
};

double figure_of(const Json& tenant, const char* operation, const char* figure) {
  return tenant.value(operation, Json::object()).value(figure, 0.0);
}

double device_seconds_of(const Json& tenant) {
  double seconds = 0;
  for (const char* operation : {"read", "write", "discard"}) {
    seconds += figure_of(tenant, operation, "device_seconds");
  }
  return seconds;
}

double bytes_of(const Json& tenant) { return figure_of(tenant, "read", "bytes") + figure_of(tenant, "write", "bytes"); }

/// In the order of time; of one time, the one with the most device time first, or bytes where that is not measured.
std::vector<TenantRow> tenant_rows(const Json& answer) {
  static const auto& none = *new Json(Json::array());
  const auto list = answer.find("tenants");
  const Json points = answer.value("points", Json::object());
  const Json starts = points.value("start", Json::array());
  const Json measured = points.value("measured_seconds", Json::array());
  std::vector<TenantRow> rows;
  for (const Json& tenant : list != answer.end() && list->is_array() ? *list : none) {
    const std::size_t point = tenant.value("point", starts.size());
    if (point < starts.size() && point < measured.size()) {
      rows.push_back({starts[point].get<double>(), measured[point].get<double>(), &tenant});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const TenantRow& a, const TenantRow& b) {
    const auto key = [](const TenantRow& row) {
      return std::tuple(row.start, -device_seconds_of(*row.tenant), -bytes_of(*row.tenant));
    };
    return key(a) < key(b);
  });
  return rows;
}

std::string heading(const Json& answer) {
  const Json device = answer.value("device", Json::object());
  const auto minutes = answer.value("step_seconds", std::uint64_t{60}) / 60;
  const auto [length, unit] = minutes % 1440 == 0 ? std::pair(minutes / 1440, "day")
                              : minutes % 60 == 0 ? std::pair(minutes / 60, "hour")
                                                  : std::pair(minutes, "minute");
  return fmt::format("{} {} {}, by {}\n", text_of(device, "name"), text_of(device, "model"), text_of(device, "serial"),
                     length == 1 ? std::string("the ") + unit : util::count_text(length, unit));
}

std::string csv_field(const Json& value) {
  if (value.is_null()) {
    return "";
  }
  if (!value.is_string()) {
    return value.dump();
  }
  // A spreadsheet treats anything that begins like this as a formula.
  std::string text = value.get<std::string>();
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) {
    text.insert(0, "'");
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  }
  return quoted + "\"";
}

void end_line(std::string& out) { out.back() = '\n'; }

std::string list_csv(const Json& answer) {
  std::string out = "name,model,serial,first,last\n";
  for (const Json& device : answer.value("devices", Json::array())) {
    for (const char* field : {"name", "model", "serial", "first", "last"}) {
      out += csv_field(device.value(field, Json())) + ",";
    }
    end_line(out);
  }
  return out;
}

}  // namespace

std::string history_text(const Json& answer) {
  const Json points = answer.value("points", Json::object());
  std::string out = heading(answer);
  if (points.value("start", Json::array()).empty()) {
    out += "nothing was measured in this time\n";
  } else {
    out += points_text(points, false);
  }
  return out + wear_text(answer) + events_text(answer);
}

std::string history_list_text(const Json& answer) {
  std::string out = fmt::format("{:12} {:19} {:19} {}\n", "DEVICE", "FIRST", "LAST", "MODEL, SERIAL");
  for (const Json& device : answer.value("devices", Json::array())) {
    out += fmt::format("{:12} {:19} {:19} {} {}\n", text_of(device, "name"), local_time(device["first"]),
                       local_time(device["last"]), text_of(device, "model"), text_of(device, "serial"));
  }
  if (const auto left_out = answer.value("devices_left_out", std::uint64_t{0}); left_out > 0) {
    out += fmt::format("and {} that were measured before these; --device shows each\n", left_out);
  }
  return out + sorted_lines(changes_text(answer));
}

std::string history_by_tenant_text(const Json& answer) {
  constexpr double kMega = 1e6;
  std::vector<std::vector<std::string>> table{
      {"TIME", "TENANT", "READ/s", "MB/s", "WRITE/s", "MB/s", "DISCARD MB/s", "DEVICE TIME"}};
  double last = -1;
  for (const TenantRow& row : tenant_rows(answer)) {
    const auto rate = [&](const char* operation, const char* figure, double unit) {
      return per_second(figure_of(*row.tenant, operation, figure), row.seconds, unit);
    };
    const double device_seconds = device_seconds_of(*row.tenant);
    table.push_back({row.start == last ? " " : local_time(row.start).substr(0, 16),
                     model::tenant_title(text_of(*row.tenant, "name")), rate("read", "ios", 1),
                     rate("read", "bytes", kMega), rate("write", "ios", 1), rate("write", "bytes", kMega),
                     rate("discard", "bytes", kMega),
                     device_seconds > 0 ? per_second(100 * device_seconds, row.seconds, 1) + " %" : "-"});
    last = row.start;
  }
  if (table.size() == 1) {
    return heading(answer) + "the history has no tenants of this time\n";
  }
  std::ostringstream out;
  util::print_table(table, out);
  return heading(answer) + out.str();
}

std::string history_by_tenant_csv(const Json& answer) {
  std::string out = "start,measured_seconds,tenant";
  constexpr auto kOperations = std::to_array<const char*>({"read", "write", "discard"});
  constexpr auto kFigures = std::to_array<const char*>({"ios", "bytes", "device_seconds"});
  for (const char* operation : kOperations) {
    for (const char* figure : kFigures) {
      out += fmt::format(",{}_{}", operation, figure);
    }
  }
  out += '\n';
  for (const TenantRow& row : tenant_rows(answer)) {
    out +=
        fmt::format("{},{},{}", csv_field(row.start), csv_field(row.seconds), csv_field(text_of(*row.tenant, "name")));
    for (const char* operation : kOperations) {
      for (const char* figure : kFigures) {
        out += "," + csv_field(row.tenant->value(operation, Json::object()).value(figure, Json()));
      }
    }
    out += '\n';
  }
  return out;
}

std::string history_csv(const Json& answer) {
  if (!answer.contains("points")) {
    return list_csv(answer);
  }
  const Json& points = answer["points"];
  std::vector<std::pair<std::string, const Json*>> columns;
  for (const auto& [name, value] : points.items()) {
    if (value.is_array()) {
      columns.emplace_back(name, &value);
      continue;
    }
    for (const auto& [field, values] : value.items()) {
      columns.emplace_back(name + "_" + field, &values);
    }
  }
  std::sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first != "start", a.first) < std::pair(b.first != "start", b.first);
  });
  std::string out;
  for (const auto& column : columns) {
    out += column.first + ",";
  }
  end_line(out);
  for (std::size_t i = 0; i < points.at("start").size(); ++i) {
    for (const auto& column : columns) {
      out += (i < column.second->size() ? csv_field((*column.second)[i]) : "") + ",";
    }
    end_line(out);
  }
  return out;
}

}  // namespace ssdpulse::cli

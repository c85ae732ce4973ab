// SPDX-License-Identifier: Apache-2.0
// Whose I/O it is, on all drives together: from the answers about each drive, and as a table.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "exporters/terminal/top_answers.h"
#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_table.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

constexpr auto kOperations = std::to_array<const char*>({"read", "write", "discard"});

struct Totals {
  double ios = 0;
  double bytes = 0;
  double device_seconds = 0;
};

using ByOperation = std::array<Totals, kOperations.size()>;

ByOperation totals_of(const Json& tenant) {
  ByOperation all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& of = at(tenant, kOperations[i]);
    all[i] = {number(at(of, "ios")).value_or(0), number(at(of, "bytes")).value_or(0),
              number(at(of, "device_seconds")).value_or(0)};
  }
  return all;
}

/// Adds up what each did, over all drives.
class Sums {
 public:
  void add(const std::string& drive, double seconds, const Json& tenant, const ByOperation& before) {
    ByOperation did = totals_of(tenant);
    double ios = 0;
    double bytes = 0;
    double device_seconds = 0;
    for (std::size_t i = 0; i < did.size(); ++i) {  // who was forgotten and came back begins again
      did[i].bytes = std::max(0.0, did[i].bytes - before[i].bytes);
      ios += std::max(0.0, did[i].ios - before[i].ios);
      bytes += did[i].bytes;
      device_seconds += std::max(0.0, did[i].device_seconds - before[i].device_seconds);
    }
    if (!(seconds > 0) || !(ios > 0 || bytes > 0)) {
      return;
    }
    const std::string name = text(at(tenant, "name"));
    Entry& entry = by_name_[name];
    Tenant& sum = entry.tenant;
    const std::string title = text(at(tenant, "title"));
    sum.name = name;
    sum.title = title.empty() ? name : title;
    ++sum.drives;
    if (bytes > entry.most || sum.drive.empty()) {
      sum.drive = drive;
      entry.most = bytes;
    }
    sum.ios_per_second += ios / seconds;
    sum.read_bytes_per_second += did[0].bytes / seconds;
    sum.written_bytes_per_second += did[1].bytes / seconds;
    sum.discarded_bytes_per_second += did[2].bytes / seconds;
    sum.device_ratio += device_seconds / seconds;
  }

  std::vector<Tenant> take() {
    std::vector<Tenant> all;
    for (auto& [name, entry] : by_name_) {
      Tenant& sum = entry.tenant;
      if (sum.ios_per_second > 0 && sum.device_ratio > 0) {
        sum.mean_seconds = sum.device_ratio / sum.ios_per_second;
      }
      all.push_back(std::move(sum));
    }
    const auto data = [](const Tenant& one) {
      return one.read_bytes_per_second + one.written_bytes_per_second + one.discarded_bytes_per_second;
    };
    std::stable_sort(all.begin(), all.end(), [&](const Tenant& a, const Tenant& b) { return data(a) > data(b); });
    return all;
  }

 private:
  struct Entry {
    Tenant tenant;
    double most = 0;
  };
  std::map<std::string, Entry> by_name_;
};

namespace heads = words::terminal;
namespace shared = words::shared;

// Which column goes first on a narrow screen is documented in ssdpulse(1).
constexpr Column<Tenant> kColumns[] = {
    {shared::kIos, "/s", 9, 3, [](const Tenant& t) { return rate_text(t.ios_per_second); }},
    {shared::kReadHead, "MB/s", 9, 1, [](const Tenant& t) { return megabytes_text(t.read_bytes_per_second); }},
    {shared::kWrittenHead, "MB/s", 9, 1, [](const Tenant& t) { return megabytes_text(t.written_bytes_per_second); }},
    {heads::kDiscarded, "MB/s", 11, 2,
     [](const Tenant& t) {
       return t.discarded_bytes_per_second > 0 ? megabytes_text(t.discarded_bytes_per_second) : words::shared::kNone;
     },
     true},
    {heads::kDevice, heads::kTimePercent, 8, 2,
     [](const Tenant& t) { return t.mean_seconds ? percent_text(t.device_ratio) : kNotKnown; }},
    {heads::kMean, "ms", 8, 4, [](const Tenant& t) { return milliseconds_text(t.mean_seconds); }},
};

constexpr Table<Tenant> kTenants{
    .head = shared::kTenant,
    .state_head = "",
    .columns = kColumns,
    .last_importance = 4,
    .always_shown = 4,
    .name_share = 3,
    .label = [](const Tenant& t, std::size_t width) { return shortened(t.title, width); },
    .state = [](const Tenant&) { return std::string(); },
    .note =
        [](const Tenant& t) {
          return t.drives > 1 ? fmt::format(words::terminal::kOnManyDrives, t.drive, t.drives)
                              : fmt::format(words::shared::kOn, t.drive);
        },
    .style = [](const Tenant&) { return Style::plain; },
};

/// What the table does not say.
std::string remark(const Tenants& tenants) {
  if (!tenants.not_known.empty()) {
    return tenants.not_known;
  }
  if (tenants.tenants.empty()) {
    return fmt::format(words::shared::kNoIo, duration_text(tenants.seconds));
  }
  const bool root_alone = tenants.tenants.size() == 1 && tenants.tenants.front().name == "/";
  return fmt::format(words::terminal::kOverAllDrives, duration_text(tenants.seconds)) +
         (root_alone ? fmt::format(" {}", words::terminal::kChargedToSystem) : "");
}

}  // namespace

Tenants tenants_between(const TenantAnswers& before, const TenantAnswers& after) {
  Tenants all;
  Sums sums;
  bool named = false;
  bool counted = false;
  for (const auto& [drive, now] : after) {
    named = named || at(now, "tenants").is_array();
    counted = counted || at(now, "paths").is_array();
    const auto found = before.find(drive);
    const Json& then = found == before.end() ? kNothing : found->second;
    const double seconds = number(at(now, "taken_at")).value_or(0) - number(at(then, "taken_at")).value_or(0);
    if (then.is_null() || at(then, "run") != at(now, "run") || !(seconds > 0)) {
      continue;
    }
    all.seconds = std::max(all.seconds, seconds);
    std::map<std::string, ByOperation> known;  // a name that the first answer lacks began in between
    for (const Json& tenant : at(then, "tenants")) {
      known.emplace(text(at(tenant, "name")), totals_of(tenant));
    }
    for (const Json& tenant : at(now, "tenants")) {
      sums.add(drive, seconds, tenant, known[text(at(tenant, "name"))]);
    }
  }
  all.tenants = sums.take();
  if (!after.empty() && !named) {
    all.not_known = counted ? words::terminal::kTenantsHaveNoNames : words::terminal::kTenantsNotKnown;
  } else if (all.seconds == 0) {
    all.not_known = words::shared::kCountedInASecond;
  }
  return all;
}

Tenants tenants_at(double at_time, const std::map<std::string, Json>& histories) {
  Tenants all;
  Sums sums;
  bool any = false;
  for (const auto& [drive, history] : histories) {
    const auto point = point_at(history, at_time);
    const double seconds =
        point ? number(element(at(at(history, "points"), "measured_seconds"), *point)).value_or(0) : 0;
    all.seconds = std::max(all.seconds, seconds);
    for (const Json& tenant : at(history, "tenants")) {
      if (point && number(at(tenant, "point")) == static_cast<double>(*point)) {
        sums.add(drive, seconds, tenant, {});
        any = true;
      }
    }
  }
  all.tenants = sums.take();
  all.not_known = any ? "" : words::shared::kNoPastTenants;
  return all;
}

void draw_tenants(Grid& grid, std::size_t top, std::size_t bottom, const State& state, const View& view) {
  if (!state.tenants) {
    return;
  }
  top = put_lines(grid, top, bottom, remark(*state.tenants));
  if (state.tenants->tenants.empty() || top >= bottom) {
    return;
  }
  const auto tenants = shown(*state.tenants, view);
  draw_table(grid, top, bottom, kTenants, tenants, selected(*state.tenants, view));
  if (tenants.empty()) {
    put_lines(grid, top + 2, bottom, words::terminal::kNoTenantFits);
  }
}

}  // namespace ssdpulse::terminal

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "daemon/history/store.h"

namespace ssdpulse::history {
namespace {

using model::DeviceInterval;
using Tenants = std::vector<NumberedTenant>;

constexpr std::int64_t kLastOfLane = kMinutesOfADevice - 1;

/// A row that we did not write counts as absent: its content is lost, but what is added to it is right. `measured`: of
/// the row, if there is one.
template <typename Value, typename Decode>
Outcome<std::optional<Value>> value_at(Connection& connection, const std::string& sql, std::int64_t key,
                                       std::optional<std::int64_t>& measured, Decode decode_bytes) {
  Statement row(connection, sql.c_str());
  return row.with(key).step().map([&](bool there) -> std::optional<Value> {
    const auto bytes = there ? row.blob(0) : std::nullopt;
    measured = there ? row.integer(1) : std::nullopt;
    return bytes ? decode_bytes(std::span<const std::uint8_t>(*bytes)) : std::nullopt;
  });
}

/// The heaviest tenants; the others are summed under number 0, which no name has.
Tenants heaviest_of(const Tenants& tenants) {
  std::vector<model::TenantLoad> named;
  named.reserve(tenants.size());
  for (const NumberedTenant& tenant : tenants) {
    named.push_back(
        {tenant.id == 0 ? std::string(model::kOtherTenants) : "#" + std::to_string(tenant.id), tenant.totals});
  }
  Tenants kept;
  for (const model::TenantLoad& one : model::heaviest(std::move(named))) {
    kept.push_back({one.name == model::kOtherTenants ? 0 : std::stoll(one.name.substr(1)), one.totals});
  }
  return kept;
}

}  // namespace

Outcome<void> DeviceRows::add(const model::DeviceMinute& row) {
  const std::int64_t minute = number_of(row.minute);
  const auto lane = lane_of(row.device, minute);
  if (!lane) {
    return tl::unexpected(lane.error());
  }
  Tenants tenants;
  for (const model::TenantLoad& tenant : row.tenants) {
    const auto id = tenant.name == model::kOtherTenants ? Outcome<std::int64_t>(0) : id_of(tenant.name);
    if (!id) {
      return tl::unexpected(id.error());
    }
    tenants.push_back({*id, tenant.totals});
  }
  added_to_.insert(lane->id);
  const std::int64_t measured = account_.measured();
  const auto add_to = [&](const char* load_table, const char* tenant_table, std::int64_t start) {
    const std::int64_t key = key_of(lane->id, start);
    return merge(load_table, key, row.load, measured).and_then([&] {
      return tenants.empty() ? Outcome<void>() : merge_tenants(tenant_table, key, tenants, measured);
    });
  };
  if (minute >= lane->minutes_from) {
    if (auto added = add_to("device_minute", "tenant_minute", minute); !added) {
      return added;
    }
  }
  if (hour_of(minute) < lane->hours_made_to) {
    return add_to("device_hour", "tenant_hour", hour_of(minute));
  }
  return {};
}

Outcome<void> DeviceRows::put(const char* table, std::int64_t key, const model::Bytes& bytes, std::int64_t measured) {
  return history::put(connection_, account_.rows, table, RowBefore::merged, [&](const std::string& insert_into) {
    Statement row(connection_, (insert_into + table + " VALUES (?, ?, ?)").c_str());
    return row.with(key).with(std::span<const std::uint8_t>(bytes)).with(measured).run();
  });
}

/// A row is as old as what was added to it last.
Outcome<void> DeviceRows::merge(const char* table, std::int64_t key, const DeviceInterval& load,
                                std::int64_t measured) {
  std::optional<std::int64_t> known;
  auto before =
      value_at<DeviceInterval>(connection_, "SELECT load, measured FROM " + std::string(table) + " WHERE at = ?", key,
                               known, [](auto bytes) { return decode(bytes); });
  if (!before) {
    return tl::unexpected(before.error());
  }
  measured = std::max(measured, known.value_or(measured));
  if (!*before) {
    return put(table, key, encode(load), measured);
  }
  model::add(**before, load);
  return put(table, key, encode(**before), measured);
}

/// Keeps the oldest `measured`: no name in the row may be forgotten before it.
Outcome<void> DeviceRows::merge_tenants(const char* table, std::int64_t key, Tenants tenants, std::int64_t measured) {
  std::int64_t bytes_before = 0;
  std::optional<std::int64_t> known;
  auto before = value_at<Tenants>(connection_, "SELECT tenants, measured FROM " + std::string(table) + " WHERE at = ?",
                                  key, known, [&](auto bytes) {
                                    bytes_before = static_cast<std::int64_t>(bytes.size());
                                    return decode_tenants(bytes);
                                  });
  if (!before) {
    return tl::unexpected(before.error());
  }
  if (*before) {
    history::add(tenants, **before);
  }
  const model::Bytes bytes = encode(heaviest_of(tenants));
  account_.tenant_bytes += static_cast<std::int64_t>(bytes.size()) - bytes_before;
  return put(table, key, bytes, std::min(measured, known.value_or(measured)));
}

Outcome<void> DeviceRows::make_hours(model::Minute now, OpenLanes& open) {
  if (!open) {
    auto lanes = open_lanes();
    if (!lanes) {
      return tl::unexpected(lanes.error());
    }
    open = std::move(*lanes);
  }
  open->insert(added_to_.begin(), added_to_.end());
  return try_each(std::set<std::int64_t>(*open), [&](std::int64_t lane) { return make_hour_in(lane, now, *open); });
}

/// A lane without minutes after its last hour is not open.
Outcome<void> DeviceRows::make_hour_in(std::int64_t lane, model::Minute now, std::set<std::int64_t>& open) {
  Statement known(connection_,
                  "SELECT max(hours_made_to, minutes_from), last_minute, last_measured FROM device WHERE id = ?");
  const auto there = known.with(lane).step();
  if (!there) {
    return tl::unexpected(there.error());
  }
  const auto row = *there ? first_of(lane, "device_minute", known.integer(0).value_or(0))
                          : Outcome<std::optional<Row>>(std::nullopt);
  if (!row) {
    return tl::unexpected(row.error());
  }
  if (!*row) {
    open.erase(lane);
    return {};
  }
  const std::int64_t hour = hour_of((*row)->minute);
  const bool over = hour + kHour <= std::max(number_of(now), known.integer(1).value_or(0)) ||
                    known.integer(2).value_or(0) + kHour <= account_.measured();
  if (!over) {
    return {};
  }
  Statement made(connection_, "UPDATE device SET hours_made_to = ? WHERE id = ?");
  return make_hour_of(lane, hour).and_then([&] { return made.with(hour + kHour).with(lane).run(); });
}

Outcome<void> DeviceRows::make_hour_of(std::int64_t lane, std::int64_t hour) {
  const auto each_of = [&](const char* sql, const auto& take) -> Outcome<void> {
    Statement rows(connection_, sql);
    rows.with(key_of(lane, hour)).with(key_of(lane, hour + kHour - 1));
    return rows.each([&] { take(rows.blob(0).value_or(model::Bytes{}), rows.integer(1).value_or(0)); });
  };
  std::optional<DeviceInterval> sum;
  std::int64_t last = 0;
  auto loads = each_of("SELECT load, measured FROM device_minute WHERE at BETWEEN ? AND ?",
                       [&](const model::Bytes& bytes, std::int64_t measured) {
                         if (const auto load = decode(bytes)) {
                           sum = sum.value_or(DeviceInterval{});
                           model::add(*sum, *load);
                           last = std::max(last, measured);
                         }
                       });
  if (!loads || !sum) {
    return loads;
  }
  Tenants tenants;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  return each_of("SELECT tenants, measured FROM tenant_minute WHERE at BETWEEN ? AND ?",
                 [&](const model::Bytes& bytes, std::int64_t measured) {
                   history::add(tenants, decode_tenants(bytes).value_or(Tenants{}));
                   first = std::min(first, measured);
                 })
      .and_then([&] { return merge("device_hour", key_of(lane, hour), *sum, last); })
      .and_then([&] {
        return tenants.empty() ? Outcome<void>()
                               : merge_tenants("tenant_hour", key_of(lane, hour), std::move(tenants), first);
      });
}

Outcome<std::uint64_t> DeviceRows::thin_hour(std::int64_t end) {
  const auto all = fronts("device_minute");
  if (!all) {
    return tl::unexpected(all.error());
  }
  Statement made(connection_, "SELECT hours_made_to FROM device WHERE id = ?");
  Statement last(connection_, "SELECT max(measured) FROM device_minute WHERE at BETWEEN ? AND ?");
  std::vector<Row> ready;
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  const auto found = try_each(*all, [&](const Row& row) -> Outcome<void> {
    const std::int64_t hour = hour_of(row.minute);
    if (row.measured >= end) {
      return {};
    }
    const auto made_to = made.reset().with(row.lane).step_to_number();
    if (!made_to || hour + kHour > made_to->value_or(0)) {
      return made_to.map([](const auto&) {});
    }
    const auto last_measured =
        last.reset().with(key_of(row.lane, hour)).with(key_of(row.lane, hour + kHour - 1)).step_to_number();
    if (last_measured && last_measured->value_or(end) < end) {
      oldest = std::min(oldest, row.measured);
      ready.push_back(row);
    }
    return last_measured.map([](const auto&) {});
  });
  if (!found) {
    return tl::unexpected(found.error());
  }
  std::erase_if(ready, [&](const Row& row) { return row.measured > oldest + kHour; });
  std::uint64_t rows = 0;
  const auto thinned = try_each(ready, [&](const Row& row) {
    const std::int64_t end_of_hour = hour_of(row.minute) + kHour;
    Statement lane(connection_, "UPDATE device SET minutes_from = max(minutes_from, ?) WHERE id = ?");
    return lane.with(end_of_hour)
        .with(row.lane)
        .run()
        .and_then([&] { return erase("tenant_minute", Removal::hour, row.lane, 0, end_of_hour - 1); })
        .and_then([&](std::uint64_t) {
          return erase("device_minute", Removal::hour, row.lane, end_of_hour - kHour, end_of_hour - 1);
        })
        .map([&](std::uint64_t erased) { rows += erased; });
  });
  return thinned.map([&] { return rows; });
}

Outcome<void> DeviceRows::forget_hours(std::int64_t end, Removal why) {
  constexpr std::int64_t kStep = 10 * kHour;
  return fronts("device_hour").and_then([&](const std::vector<Row>& rows) {
    return try_each(rows, [&](const Row& row) {
      if (row.measured >= end) {
        return Outcome<void>();
      }
      Statement young(connection_,
                      "SELECT at FROM device_hour WHERE at BETWEEN ? AND ? AND measured >= ? ORDER BY at LIMIT 1");
      const std::int64_t last = row.minute + kStep;
      return young.with(key_of(row.lane, 0))
          .with(key_of(row.lane, last))
          .with(end)
          .step_to_number()
          .and_then([&](std::optional<std::int64_t> first_young) {
            const std::int64_t to = first_young ? minute_of_key(*first_young) - 1 : last;
            return erase("tenant_hour", why, row.lane, 0, to).and_then([&](std::uint64_t) {
              return erase("device_hour", why, row.lane, 0, to);
            });
          })
          .map([](std::uint64_t) {});
    });
  });
}

Outcome<void> DeviceRows::forget_tenants() {
  constexpr std::int64_t kDay = 24 * kHour;
  for (const auto& [table, step] : {std::pair{"tenant_minute", kHour}, std::pair{"tenant_hour", kDay}}) {
    const auto age = oldest(table);
    const auto all = age && *age ? fronts(table) : std::vector<Row>{};
    if (!age || !all) {
      return tl::unexpected(age ? all.error() : age.error());
    }
    if (*age) {
      return try_each(*all, [&, table = table, step = step](const Row& row) {
        return row.measured >= **age + step
                   ? Outcome<void>()
                   : erase(table, Removal::size, row.lane, 0, row.minute + step - 1).map([](std::uint64_t) {});
      });
    }
  }
  account_.tenant_bytes = 0;
  return {};
}

Outcome<std::uint64_t> DeviceRows::erase(const char* table, Removal why, std::int64_t lane, std::int64_t from,
                                         std::int64_t to) {
  const auto bounded = [&](const std::string& sql) {
    Statement statement(connection_, (sql + " FROM " + table + " WHERE at BETWEEN ? AND ?").c_str());
    statement.with(key_of(lane, from)).with(key_of(lane, to));
    return statement;
  };
  if (std::string_view(table).substr(0, 6) == "tenant") {
    const auto bytes = bounded("SELECT coalesce(sum(length(tenants)), 0)").step_to_number();
    if (!bytes) {
      return tl::unexpected(bytes.error());
    }
    account_.tenant_bytes -= bytes->value_or(0);
  }
  Statement gone = bounded("DELETE");
  return gone.run().map([&] {
    account_.rows.remove(table, why, connection_.changed_rows());
    return connection_.changed_rows();
  });
}

/// The row of the last lane also names the device in settings.
Outcome<void> DeviceRows::forget_names(std::int64_t end) {
  std::string unused =
      "DELETE FROM device WHERE last_measured < ?1 AND (NOT EXISTS (SELECT 1 FROM setting WHERE "
      "setting.device = device.identity) OR EXISTS (SELECT 1 FROM device AS later WHERE "
      "later.identity = device.identity AND later.id > device.id))";
  for (const char* table : {"device_hour", "device_minute", "tenant_hour", "tenant_minute"}) {
    unused += " AND NOT EXISTS (SELECT 1 FROM " + std::string(table) +
              " WHERE at BETWEEN device.id * ?2 AND device.id * ?2 + ?2 - 1)";
  }
  std::int64_t used_from = account_.measured();
  for (const char* table : {"tenant_minute", "tenant_hour"}) {
    const auto age = oldest(table);
    if (!age) {
      return tl::unexpected(age.error());
    }
    used_from = std::min(used_from, age->value_or(used_from));
  }
  Statement devices(connection_, unused.c_str());
  Statement tenants(connection_, "DELETE FROM tenant WHERE last_measured < ?");
  return devices.with(end)
      .with(kMinutesOfADevice)
      .run()
      .and_then([&] {
        account_.rows.remove("device", Removal::age, connection_.changed_rows());
        return tenants.with(used_from).run();
      })
      .map([&] { account_.rows.remove("tenant", Removal::age, connection_.changed_rows()); });
}

/// Rows of a lane go forward but for what came late: that is among the first few.
Outcome<std::optional<std::int64_t>> DeviceRows::oldest(const char* table) {
  const auto all = fronts(table);
  if (!all) {
    return tl::unexpected(all.error());
  }
  Statement row(connection_, ("SELECT min(measured) FROM (SELECT measured FROM " + std::string(table) +
                              " WHERE at BETWEEN ? AND ? ORDER BY at LIMIT 4)")
                                 .c_str());
  std::optional<std::int64_t> oldest;
  for (const Row& front : *all) {
    const auto measured =
        row.reset().with(key_of(front.lane, 0)).with(key_of(front.lane, kLastOfLane)).step_to_number();
    if (!measured) {
      return measured;
    }
    oldest = *measured ? std::min(oldest.value_or(**measured), **measured) : oldest;
  }
  return oldest;
}

Outcome<std::optional<std::int64_t>> DeviceRows::first(const char* table) {
  const auto all = fronts(table);
  if (!all) {
    return tl::unexpected(all.error());
  }
  std::optional<std::int64_t> first;
  for (const Row& front : *all) {
    const auto row =
        front.minute >= kClockUnset ? Outcome<std::optional<Row>>(front) : first_of(front.lane, table, kClockUnset);
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (*row) {
      first = std::min(first.value_or(kLastOfLane), (*row)->minute);
    }
  }
  return first;
}

Outcome<std::optional<DeviceRows::Row>> DeviceRows::first_of(std::int64_t lane, const char* table, std::int64_t from) {
  Statement row(
      connection_,
      ("SELECT at, measured FROM " + std::string(table) + " WHERE at BETWEEN ? AND ? ORDER BY at LIMIT 1").c_str());
  return row.with(key_of(lane, from)).with(key_of(lane, kLastOfLane)).step().map([&](bool there) {
    return there ? std::optional(Row{lane, minute_of_key(row.integer(0).value_or(0)), row.integer(1).value_or(0)})
                 : std::nullopt;
  });
}

/// From the first row of a lane to the first one after the lane: lanes without rows cost nothing.
Outcome<std::vector<DeviceRows::Row>> DeviceRows::fronts(const char* table) {
  Statement row(connection_,
                ("SELECT at, measured FROM " + std::string(table) + " WHERE at >= ? ORDER BY at LIMIT 1").c_str());
  std::vector<Row> rows;
  for (std::int64_t lane = 1; lane < kMinutesOfADevice / 2;) {
    const auto there = row.reset().with(key_of(lane, 0)).step();
    if (!there) {
      return tl::unexpected(there.error());
    }
    const auto key = *there ? row.integer(0) : std::nullopt;
    if (!key || *key / kMinutesOfADevice >= kMinutesOfADevice / 2) {
      break;
    }
    rows.push_back({*key / kMinutesOfADevice, minute_of_key(*key), row.integer(1).value_or(0)});
    lane = rows.back().lane + 1;
  }
  return rows;
}

Outcome<std::set<std::int64_t>> DeviceRows::open_lanes() {
  Statement rows(connection_,
                 "SELECT id FROM device WHERE last_minute >= hours_made_to AND last_minute >= minutes_from AND id > 0");
  std::set<std::int64_t> lanes;
  return rows.each([&] { lanes.insert(rows.integer(0).value_or(0)); }).map([&] { return std::move(lanes); });
}

/// The identity under which a device is stored: with where it is attached if another device has reported the same
/// identity, even if only this one is there now.
Outcome<std::string> DeviceRows::identity_of(const model::DeviceKey& device) {
  if (device.attached.empty()) {
    return device.identity;
  }
  Statement shared(connection_,
                   "SELECT 1 FROM device WHERE identity >= ?1 || ' | at ' AND identity < ?1 || ' | at!' LIMIT 1");
  return shared.with(device.identity).step().map([&](bool row) { return row ? device.attached : device.identity; });
}

/// Moves what is stored under an earlier identity of the device to its present one, if nothing is stored under that and
/// only one device can have had the earlier one.
Outcome<void> DeviceRows::rename(const model::DeviceKey& device) {
  if (device.without_wwid.empty()) {
    return {};
  }
  Statement stored(connection_, "SELECT 1 FROM device WHERE identity = ? LIMIT 1");
  if (const auto already = stored.with(device.identity).step(); !already || *already) {
    return already ? Outcome<void>() : tl::unexpected(already.error());
  }
  // ?1: identity, ?2: without WWID. Both are found by the index.
  Statement known(connection_,
                  "SELECT min(identity), max(identity) FROM device WHERE model = ?3 AND serial = ?4 AND (identity = ?2 "
                  "OR (?1 = ?2 AND identity >= ?2 || ' | wwid ' AND identity < ?2 || ' | wwid!' AND "
                  "instr(identity, ' | at ') = 0))");
  const auto row = known.with(device.identity).with(device.without_wwid).with(device.model).with(device.serial).step();
  if (!row || !*row) {
    return row ? Outcome<void>() : tl::unexpected(row.error());
  }
  const std::string before = known.text(0).value_or("").raw();
  if (before.empty() || known.text(1) != before) {
    return {};
  }
  const auto run = [&](const char* sql) {
    Statement statement(connection_, sql);
    return statement.with(device.identity).with(before).run();
  };
  // A setting may have been recorded under the new identity already, as if it were the first.
  return run("UPDATE device SET identity = ?1 WHERE identity = ?2")
      .and_then([&] {
        return run(
            "DELETE FROM setting WHERE device = ?1 AND value = (SELECT value FROM setting AS last WHERE last.device = "
            "?2 AND last.name = setting.name ORDER BY at_ms DESC LIMIT 1)");
      })
      .and_then([&] {
        account_.rows.remove("setting", Removal::repeated, connection_.changed_rows());
        return run("UPDATE setting SET device = ?1 WHERE device = ?2");
      });
}

/// The lane whose clock nearly shows this minute: the one that advanced as far by the wall as by the measuring clock.
/// So two clocks that take turns need two lanes, however often. A new lane if all have gone further.
Outcome<DeviceRows::Lane> DeviceRows::lane_of(const model::DeviceKey& device, std::int64_t minute) {
  const auto identity = identity_of(device);
  if (!identity) {
    return tl::unexpected(identity.error());
  }
  if (const auto renamed = *identity == device.identity ? rename(device) : Outcome<void>(); !renamed) {
    return tl::unexpected(renamed.error());
  }
  constexpr std::int64_t kLate = 10;  // measured minutes: what comes later to a minute is of another clock
  Statement known(
      connection_,
      "SELECT id, last_minute, last_measured, minutes_from, hours_made_to FROM device WHERE identity = ?1 AND "
      "(last_minute < ?2 OR (last_minute <= ?2 + ?4 AND last_measured >= ?3 - ?5)) ORDER BY abs(?2 - "
      "last_minute - ?3 + last_measured), id DESC LIMIT 1");
  const auto there = known.with(*identity).with(minute).with(account_.measured()).with(kSameClock).with(kLate).step();
  if (!there) {
    return tl::unexpected(there.error());
  }
  const std::int64_t measured = account_.measured();
  Lane lane{0, minute, measured, 0, 0};
  if (*there) {
    lane = {known.integer(0).value_or(0), std::max(minute, known.integer(1).value_or(0)), measured,
            known.integer(3).value_or(0), known.integer(4).value_or(0)};
    Statement seen(
        connection_,
        "UPDATE device SET name = ?, model = ?, serial = ?, last_minute = ?, last_measured = ? WHERE id = ?");
    return seen.with(device.name)
        .with(device.model)
        .with(device.serial)
        .with(lane.last_minute)
        .with(measured)
        .with(lane.id)
        .run()
        .map([&] { return lane; });
  }
  Statement added(connection_,
                  "INSERT INTO device (identity, name, model, serial, last_minute, last_measured, minutes_from, "
                  "hours_made_to) VALUES (?, ?, ?, ?, ?, ?, 0, 0) RETURNING id");
  return added.with(*identity)
      .with(device.name)
      .with(device.model)
      .with(device.serial)
      .with(minute)
      .with(measured)
      .step_to_number()
      .and_then([&](std::optional<std::int64_t> id) -> Outcome<Lane> {
        if (!id) {
          return tl::unexpected(Failure{"a device without an id", true});
        }
        account_.rows.insert("device");
        lane.id = *id;
        return lane;
      });
}

Outcome<std::int64_t> DeviceRows::id_of(const std::string& tenant) {
  Statement seen(connection_, "UPDATE tenant SET last_measured = max(last_measured, ?2) WHERE name = ?1 RETURNING id");
  const auto known = seen.with(tenant).with(account_.measured()).step_to_number();
  if (!known || *known) {
    return known.map([](const auto& id) { return *id; });
  }
  Statement added(connection_, "INSERT INTO tenant (name, last_measured) VALUES (?, ?) RETURNING id");
  const auto new_id = added.with(tenant).with(account_.measured()).step_to_number();
  return new_id.and_then([&](const auto& id) -> Outcome<std::int64_t> {
    account_.rows.insert("tenant");
    return id ? Outcome<std::int64_t>(*id) : tl::unexpected(Failure{"a tenant without an id", true});
  });
}

}  // namespace ssdpulse::history

// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/device_rows.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ssdpulse::history {
namespace {

using model::DeviceLoad;
using Tenants = std::vector<NumberedTenant>;

constexpr std::int64_t kLastMinute = kMinutesOfADevice - 1;

/// A row that we did not write counts as none: its content is lost, but what is added to it is right.
template <typename Value, typename Decode>
Outcome<std::optional<Value>> value_at(Connection& connection, const std::string& sql, std::int64_t key,
                                       Decode decode_bytes) {
  Statement row(connection, sql.c_str());
  return row.with(key).step().map([&](bool there) -> std::optional<Value> {
    const auto bytes = there ? row.blob(0) : std::nullopt;
    return bytes ? decode_bytes(std::span<const std::uint8_t>(*bytes)) : std::nullopt;
  });
}

Outcome<void> replace(Connection& connection, const char* table, std::int64_t key, const Bytes& bytes) {
  Statement row(connection, ("INSERT OR REPLACE INTO " + std::string(table) + " VALUES (?, ?)").c_str());
  return row.with(key).with(std::span<const std::uint8_t>(bytes)).run();
}

/// The heaviest of all that were seen; the rest go under number 0, which no name has.
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

void add_up(Tenants& sum, const Tenants& more) {
  for (const NumberedTenant& one : more) {
    const auto known = std::find_if(sum.begin(), sum.end(), [&](const auto& tenant) { return tenant.id == one.id; });
    if (known == sum.end()) {
      sum.push_back(one);
      continue;
    }
    for (std::size_t i = 0; i < one.totals.size(); ++i) {
      known->totals.at(i) += one.totals.at(i);
    }
  }
}

}  // namespace

Outcome<void> DeviceRows::add(const DeviceMinute& row) {
  const auto device = id_of(row.device, row.minute);
  if (!device) {
    return tl::unexpected(device.error());
  }
  Tenants tenants;
  for (const model::TenantLoad& tenant : row.tenants) {
    const auto id = tenant.name == model::kOtherTenants ? Outcome<std::int64_t>(0) : id_of(tenant.name, row.minute);
    if (!id) {
      return tl::unexpected(id.error());
    }
    tenants.push_back({*id, tenant.totals});
  }
  const std::int64_t minute = number_of(row.minute);
  const auto add_to = [&](const char* loads, const char* of_tenants, std::int64_t when) {
    const std::int64_t key = key_of(*device, when);
    return merge(loads, key, row.load).and_then([&] {
      return tenants.empty() ? Outcome<void>() : merge_tenants(of_tenants, key, tenants);
    });
  };
  if (minute >= account_.minutes_from) {
    if (auto added = add_to("device_minute", "tenant_minute", minute); !added) {
      return added;
    }
  }
  if (hour_of(minute) < account_.hours_made_to) {
    return add_to("device_hour", "tenant_hour", hour_of(minute));
  }
  return {};
}

Outcome<void> DeviceRows::merge(const char* table, std::int64_t key, const DeviceLoad& load) {
  auto before = value_at<DeviceLoad>(connection_, "SELECT load FROM " + std::string(table) + " WHERE at = ?", key,
                                     [](auto bytes) { return decode(bytes); });
  if (!before) {
    return tl::unexpected(before.error());
  }
  if (!*before) {
    return replace(connection_, table, key, encode(load));
  }
  model::add(**before, load);
  return replace(connection_, table, key, encode(**before));
}

Outcome<void> DeviceRows::merge_tenants(const char* table, std::int64_t key, Tenants tenants) {
  std::int64_t bytes_before = 0;
  auto before = value_at<Tenants>(connection_, "SELECT tenants FROM " + std::string(table) + " WHERE at = ?", key,
                                  [&](auto bytes) {
                                    bytes_before = static_cast<std::int64_t>(bytes.size());
                                    return decode_tenants(bytes);
                                  });
  if (!before) {
    return tl::unexpected(before.error());
  }
  if (*before) {
    add_up(tenants, **before);
  }
  const Bytes bytes = encode(heaviest_of(tenants));
  account_.tenant_bytes += static_cast<std::int64_t>(bytes.size()) - bytes_before;
  return replace(connection_, table, key, bytes);
}

Outcome<bool> DeviceRows::make_hour(Minute now) {
  const auto oldest = first("device_minute", std::max(account_.hours_made_to, account_.minutes_from));
  if (!oldest) {
    return tl::unexpected(oldest.error());
  }
  if (!*oldest || hour_of(**oldest) + kHour > number_of(now)) {
    return false;
  }
  const std::int64_t hour = hour_of(**oldest);
  const auto devices = device_ids();
  if (!devices) {
    return tl::unexpected(devices.error());
  }
  for (const std::int64_t device : *devices) {
    if (const auto made = make_hour_of(device, hour); !made) {
      return tl::unexpected(made.error());
    }
  }
  account_.hours_made_to = hour + kHour;
  return true;
}

Outcome<void> DeviceRows::make_hour_of(std::int64_t device, std::int64_t hour) {
  const auto each_of = [&](const char* sql, const auto& take) -> Outcome<void> {
    Statement rows(connection_, sql);
    rows.with(key_of(device, hour)).with(key_of(device, hour + kHour - 1));
    while (true) {
      const auto row = rows.step();
      if (!row) {
        return tl::unexpected(row.error());
      }
      if (!*row) {
        return {};
      }
      take(rows.blob(0).value_or(Bytes{}));
    }
  };
  std::optional<DeviceLoad> sum;
  auto loads = each_of("SELECT load FROM device_minute WHERE at BETWEEN ? AND ?", [&](const Bytes& bytes) {
    if (const auto load = decode(bytes)) {
      sum = sum.value_or(DeviceLoad{});
      model::add(*sum, *load);
    }
  });
  if (!loads || !sum) {
    return loads;
  }
  Tenants tenants;
  auto users = each_of("SELECT tenants FROM tenant_minute WHERE at BETWEEN ? AND ?",
                       [&](const Bytes& bytes) { add_up(tenants, decode_tenants(bytes).value_or(Tenants{})); });
  if (!users) {
    return users;
  }
  return merge("device_hour", key_of(device, hour), *sum).and_then([&] {
    return tenants.empty() ? Outcome<void>() : merge_tenants("tenant_hour", key_of(device, hour), std::move(tenants));
  });
}

Outcome<std::uint64_t> DeviceRows::thin_hour(std::int64_t end) {
  const auto oldest = first("device_minute");
  if (!oldest) {
    return tl::unexpected(oldest.error());
  }
  const std::int64_t hour = hour_of(oldest->value_or(kLastMinute));
  if (!*oldest || hour + kHour > std::min(end, account_.hours_made_to)) {
    return 0;
  }
  account_.minutes_from = std::max(account_.minutes_from, hour + kHour);
  return erase("device_minute", nullptr, hour, hour + kHour - 1).and_then([&](std::uint64_t rows) {
    return erase("tenant_minute", "tenants", 0, hour + kHour - 1).map([rows](std::uint64_t) { return rows; });
  });
}

Outcome<std::uint64_t> DeviceRows::forget_hours(std::int64_t end) {
  constexpr std::int64_t kStep = 10 * kHour;  // of all devices
  const auto oldest = first("device_hour");
  if (!oldest) {
    return tl::unexpected(oldest.error());
  }
  if (!*oldest || **oldest + kHour > end) {
    return 0;
  }
  const std::int64_t last = std::min(**oldest + kStep, end - kHour);
  return erase("device_hour", nullptr, 0, last).and_then([&](std::uint64_t rows) {
    return erase("tenant_hour", "tenants", 0, last).map([rows](std::uint64_t) { return rows; });
  });
}

Outcome<std::uint64_t> DeviceRows::forget_tenants() {
  constexpr std::int64_t kDay = 24 * kHour;
  for (const char* table : {"tenant_minute", "tenant_hour"}) {
    const auto oldest = first(table);
    if (!oldest) {
      return tl::unexpected(oldest.error());
    }
    if (*oldest) {
      const bool minutes = table == std::string_view("tenant_minute");
      return erase(table, "tenants", 0, **oldest + (minutes ? kHour - 1 : kDay - 1));
    }
  }
  account_.tenant_bytes = 0;
  return 0;
}

/// `column`: the one whose bytes are counted in the account, or null.
Outcome<std::uint64_t> DeviceRows::erase(const char* table, const char* column, std::int64_t from, std::int64_t to) {
  const auto devices = device_ids();
  if (!devices) {
    return tl::unexpected(devices.error());
  }
  std::uint64_t rows = 0;
  for (const std::int64_t device : *devices) {
    const auto bounded = [&](const std::string& sql) {
      Statement statement(connection_, (sql + " FROM " + table + " WHERE at BETWEEN ? AND ?").c_str());
      statement.with(key_of(device, from)).with(key_of(device, to));
      return statement;
    };
    if (column != nullptr) {
      Statement bytes = bounded("SELECT coalesce(sum(length(" + std::string(column) + ")), 0)");
      if (const auto row = bytes.step(); !row) {
        return tl::unexpected(row.error());
      }
      account_.tenant_bytes -= bytes.integer(0).value_or(0);
    }
    Statement gone = bounded("DELETE");
    if (const auto done = gone.run(); !done) {
      return tl::unexpected(done.error());
    }
    rows += connection_.changed_rows();
  }
  return rows;
}

Outcome<void> DeviceRows::forget_names(std::int64_t last_kept) {
  Statement devices(connection_,
                    "DELETE FROM device WHERE last_minute < ?1 AND NOT EXISTS (SELECT 1 FROM device_hour WHERE at "
                    "BETWEEN device.id * ?2 AND device.id * ?2 + ?2 - 1) AND NOT EXISTS (SELECT 1 FROM device_minute "
                    "WHERE at BETWEEN device.id * ?2 AND device.id * ?2 + ?2 - 1)");
  Statement tenants(connection_, "DELETE FROM tenant WHERE last_minute < ?");
  return devices.with(last_kept).with(kMinutesOfADevice).run().and_then([&] {
    return tenants.with(last_kept - 24 * kHour).run();
  });
}

Outcome<std::optional<std::int64_t>> DeviceRows::first(const char* table, std::int64_t from) {
  const auto devices = device_ids();
  if (!devices) {
    return tl::unexpected(devices.error());
  }
  std::optional<std::int64_t> oldest;
  for (const std::int64_t device : *devices) {
    Statement row(connection_, ("SELECT min(at) FROM " + std::string(table) + " WHERE at BETWEEN ? AND ?").c_str());
    if (const auto there = row.with(key_of(device, from)).with(key_of(device, kLastMinute)).step(); !there) {
      return tl::unexpected(there.error());
    }
    if (const auto key = row.integer(0)) {
      oldest = std::min(oldest.value_or(kLastMinute), minute_of_key(*key));
    }
  }
  return oldest;
}

Outcome<std::vector<std::int64_t>> DeviceRows::device_ids() {
  Statement rows(connection_, "SELECT id FROM device");
  std::vector<std::int64_t> ids;
  while (true) {
    const auto row = rows.step();
    if (!row) {
      return tl::unexpected(row.error());
    }
    if (!*row) {
      return ids;
    }
    if (const auto id = rows.integer(0); id && *id > 0 && *id < kMinutesOfADevice / 2) {
      ids.push_back(*id);
    }
  }
}

/// Gives the device its identity of now if nothing is stored under it, but something under one that it had before.
Outcome<void> DeviceRows::rename(const DeviceKey& device) {
  if (device.former.empty() && device.without_wwid.empty()) {
    return {};
  }
  // ?1: identity, ?2: without WWID, ?3: former.
  Statement known(connection_,
                  "SELECT identity FROM device WHERE model = ?4 AND serial = ?5 AND NOT EXISTS (SELECT 1 FROM device "
                  "WHERE identity = ?1) AND (identity = ?3 OR (?2 <> '' AND (identity = ?2 OR (?1 = ?2 AND "
                  "substr(identity, 1, length(?2) + 8) = ?2 || ' | wwid ' AND instr(identity, ' | at ') = 0)))) "
                  "ORDER BY last_minute DESC LIMIT 1");
  const auto row = known.with(device.identity)
                       .with(device.without_wwid)
                       .with(device.former)
                       .with(device.model)
                       .with(device.serial)
                       .step();
  if (!row || !*row) {
    return row ? Outcome<void>() : tl::unexpected(row.error());
  }
  const std::string before = known.text(0).value_or("");
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
      .and_then([&] { return run("UPDATE OR REPLACE setting SET device = ?1 WHERE device = ?2"); });
}

Outcome<std::int64_t> DeviceRows::id_of(const DeviceKey& device, Minute minute) {
  if (const auto renamed = rename(device); !renamed) {
    return tl::unexpected(renamed.error());
  }
  Statement upsert(connection_,
                   "INSERT INTO device (identity, name, model, serial, last_minute) VALUES (?, ?, ?, ?, ?) "
                   "ON CONFLICT (identity) DO UPDATE SET name = excluded.name, model = excluded.model, "
                   "serial = excluded.serial, last_minute = max(last_minute, excluded.last_minute) RETURNING id");
  return upsert.with(device.identity)
      .with(device.name)
      .with(device.model)
      .with(device.serial)
      .with(number_of(minute))
      .step()
      .and_then([&](bool row) -> Outcome<std::int64_t> {
        const auto id = row ? upsert.integer(0) : std::nullopt;
        return id ? Outcome<std::int64_t>(*id) : tl::unexpected(Failure{"a device without an id", true});
      });
}

Outcome<std::int64_t> DeviceRows::id_of(const std::string& tenant, Minute minute) {
  Statement upsert(
      connection_,
      "INSERT INTO tenant (name, last_minute) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last_minute = "
      "max(last_minute, excluded.last_minute) RETURNING id");
  return upsert.with(tenant).with(number_of(minute)).step().and_then([&](bool row) -> Outcome<std::int64_t> {
    const auto id = row ? upsert.integer(0) : std::nullopt;
    return id ? Outcome<std::int64_t>(*id) : tl::unexpected(Failure{"a tenant without an id", true});
  });
}

}  // namespace ssdpulse::history

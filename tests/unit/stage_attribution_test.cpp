// SPDX-License-Identifier: Apache-2.0
// Does every I/O belong to exactly one tenant while cgroups appear and disappear: no wrong sum, no counter that falls,
// no more series than allowed? The kernel side is played here, with its own ledger of what was done.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "daemon/tenants/attribution_stage.h"
#include "daemon/tenants/tenant_names.h"

namespace ssdpulse::tenants {
namespace {

using namespace std::chrono_literals;
using model::AttributedTotals;
using model::CgroupId;
using model::TotalsByOperation;

/// The kernel side of one device, second by second.
class Host {
 public:
  explicit Host(std::size_t most = 64) {
    tick_.at = model::SteadyTime(1h);
    tick_.wall = model::WallTime(500'000h);
    tick_.settings.max_tenants = most;
    auto device = std::make_shared<model::Device>();
    device->name = "sda";
    auto io = std::make_shared<model::DeviceIo>();
    io->since = tick_.wall;
    tick_.devices.emplace_back();
    tick_.devices[0].block.device = device;
    tick_.devices[0].block.io = io;
    tick_.cgroups = std::make_shared<const model::SeenCgroups>();
  }

  void name(CgroupId id, const std::string& path) { paths_[id] = path; }
  void done(CgroupId id, std::size_t operation, std::uint64_t ios, std::uint64_t bytes) {
    const AttributedTotals more{ios, bytes, ios * 1000};
    counted_.cgroups[id][operation] += more;
    all_[operation] += more;
  }
  void commit(CgroupId id) { ++counted_.commits[id]; }
  void done_without_slot(std::size_t operation, std::uint64_t ios) {
    const AttributedTotals more{ios, ios * 512, ios};
    counted_.other[operation] += more;
    all_[operation] += more;
  }
  /// Its directory is gone, but its counts are still there.
  void remove_directory(CgroupId id) {
    auto& gone = tick_.cgroups_gone;
    gone.insert(std::lower_bound(gone.begin(), gone.end(), id), id);
  }
  /// Its directory is gone and its counts no longer change.
  void release_cgroups(CgroupId id) {
    std::erase(tick_.cgroups_gone, id);
    for (std::size_t i = 0; i < model::kAttributedOperations.size(); ++i) {
      counted_.departed[i] += counted_.cgroups[id][i];
    }
    counted_.departed_commits += counted_.commits[id];
    counted_.cgroups.erase(id);
    counted_.commits.erase(id);
    paths_.erase(id);
  }
  bool has(CgroupId id) const { return counted_.cgroups.count(id) != 0; }

  const model::DeviceTenants& second() {
    tick_.at += 1s;
    tick_.wall += 1s;
    tick_.tenants = names_off ? nullptr : std::make_shared<const model::Tenants>(namer.tenants_of(paths_));
    tick_.io_accounting = accounting;
    tick_.devices[0].block.attribution = std::make_shared<const model::DeviceAttribution>(counted_);
    model::Findings findings = stage_.observe(tick_);
    snapshot = {};
    snapshot.devices.resize(1);
    findings.values(snapshot);
    for (const log::Line& line : findings.effects.lines) {
      lines.push_back(line.text);
    }
    return *snapshot.devices[0].tenants;
  }
  const model::DeviceTenants& seconds(int number) {
    for (int i = 1; i < number; ++i) {
      second();
    }
    return second();
  }

  [[nodiscard]] const TotalsByOperation& all() const { return all_; }

  TenantNamer namer{{}, std::nullopt};
  bool names_off = false;
  model::IoAccounting accounting = model::IoAccounting::below_root;
  std::vector<std::string> lines;
  model::Snapshot snapshot;

 private:
  model::DeviceAttribution counted_;
  model::CgroupPaths paths_;
  TotalsByOperation all_{};
  model::Tick tick_;
  Attribution stage_;
};

TotalsByOperation sum_of(const model::DeviceTenants& value) {
  TotalsByOperation sum = value.other;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += value.departed[i];
    for (const model::TenantIo& one : value.tenants) {
      sum[i] += one.totals[i];
    }
  }
  return sum;
}

const model::TenantIo* find(const model::DeviceTenants& value, const std::string& name) {
  for (const model::TenantIo& one : value.tenants) {
    if (one.tenant.name == name) {
      return &one;
    }
  }
  return nullptr;
}

TEST(Attribution, children_of_a_tenant_are_the_tenant) {
  Host host;
  host.name(1, "/");
  host.name(5, "/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope");
  host.name(6, "/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope/libvirt/emulator");
  host.done(1, 1, 2, 8192);
  host.done(5, 1, 3, 3000);
  host.done(6, 1, 4, 4000);
  host.commit(6);
  const auto& value = host.second();
  ASSERT_EQ(value.tenants.size(), 2U);
  EXPECT_EQ(value.tenants[0].tenant.name, "/");
  EXPECT_EQ(value.tenants[1].tenant.name, "vm/db1");
  EXPECT_EQ(value.tenants[1].totals[1].bytes, 7000U);
  EXPECT_EQ(value.tenants[1].commits, 1U);
  EXPECT_TRUE(sum_of(value) == host.all());
}

TEST(Attribution, a_pattern_of_the_configuration_wins) {
  Host host;
  host.namer = TenantNamer({{"/system.slice/mysql*", "db"}, {"*", "rest"}}, std::nullopt);
  host.name(5, "/system.slice/mysql@1.service");
  host.name(6, "/system.slice/mysql@2.service");
  host.name(7, "/x");
  host.done(5, 0, 1, 1);
  host.done(6, 0, 1, 1);
  host.done(7, 0, 1, 1);
  const auto& value = host.second();
  ASSERT_NE(find(value, "db"), nullptr);
  EXPECT_EQ(find(value, "db")->totals[0].ios, 2U);
  EXPECT_EQ(find(value, "db")->tenant.kind, model::TenantKind::configured);
  EXPECT_NE(find(value, "rest"), nullptr);
}

TEST(Attribution, hashed_names_are_the_same_again_and_tell_nothing) {
  util::HashKey key{};
  key[0] = 7;
  Host host;
  host.namer = TenantNamer({{"/p", "project-x"}}, key);
  host.name(1, "/");
  host.name(5, "/system.slice/mysql.service");
  host.name(6, "/p");
  host.done(1, 0, 1, 1);
  host.done(5, 0, 1, 1);
  host.done(6, 0, 1, 1);
  const auto value = host.second();
  ASSERT_EQ(value.tenants.size(), 3U);
  std::set<std::string> names;
  for (const model::TenantIo& one : value.tenants) {
    names.insert(one.tenant.name);
    EXPECT_TRUE(one.tenant.name == "/" || (one.tenant.name.size() == kTenantHashDigits &&
                                           one.tenant.name.find_first_not_of("0123456789abcdef") == std::string::npos))
        << one.tenant.name;
    EXPECT_EQ(one.tenant.cgroup, one.tenant.name == "/" ? "/" : "");
  }
  // HMAC-SHA-256 of mysql.service by another program:
  // printf mysql.service | openssl dgst -sha256 -mac HMAC -macopt hexkey:0700...00
  EXPECT_TRUE(names.count("93b09e264d4b43e8") == 1);
}

TEST(Attribution, without_names_there_are_paths_alone) {
  Host host;
  host.names_off = true;
  host.name(5, "/system.slice/mysql.service");
  host.done(5, 0, 1, 1);
  const auto& value = host.second();
  EXPECT_FALSE(value.named);
  EXPECT_TRUE(value.tenants.empty());
}

TEST(Attribution, what_is_not_named_yet_is_other_and_stays_there) {
  Host host;
  host.done(5, 0, 10, 100);
  EXPECT_EQ(host.second().other[0].ios, 10U);
  host.name(5, "/x");
  host.done(5, 0, 1, 100);
  const auto& value = host.second();
  EXPECT_EQ(value.other[0].ios, 10U);
  ASSERT_NE(find(value, "/x"), nullptr);
  EXPECT_EQ(find(value, "/x")->totals[0].ios, 1U);
}

TEST(Attribution, a_service_that_restarts_goes_on_and_one_that_is_gone_departs) {
  Host host;
  host.name(5, "/system.slice/a.service");
  host.done(5, 0, 10, 100);
  host.second();
  host.release_cgroups(5);
  host.seconds(100);
  host.name(9, "/system.slice/a.service");
  host.done(9, 0, 5, 50);
  EXPECT_EQ(find(host.second(), "a.service")->totals[0].ios, 15U);
  host.release_cgroups(9);
  EXPECT_NE(find(host.seconds(290), "a.service"), nullptr);
  const auto& value = host.seconds(20);
  EXPECT_EQ(find(value, "a.service"), nullptr);
  EXPECT_EQ(value.departed[0].ios, 15U);
  EXPECT_EQ(value.other[0].ios, 0U);
}

TEST(Attribution, a_newcomer_gets_the_slot_of_a_tenant_that_is_gone_and_no_other) {
  Host host(2);
  host.name(5, "/a");
  host.name(6, "/b");
  host.name(7, "/c");
  host.done(5, 0, 1, 1);
  host.done(6, 0, 1, 1);
  host.second();
  host.done(7, 0, 1, 1);
  EXPECT_EQ(host.second().other[0].ios, 1U);
  host.release_cgroups(5);
  host.second();
  host.done(7, 0, 1, 1);
  const auto& value = host.second();
  EXPECT_EQ(find(value, "/a"), nullptr);
  EXPECT_EQ(find(value, "/c")->totals[0].ios, 1U);
  EXPECT_EQ(value.other[0].ios, 1U);
  EXPECT_EQ(value.departed[0].ios, 1U);
  // All slots are in use; then one has been idle for so long that it gives up its slot.
  host.name(8, "/d");
  host.done(8, 0, 1, 1);
  EXPECT_EQ(host.second().other[0].ios, 2U);
  for (int i = 0; i < 700; ++i) {
    host.done(6, 0, 1, 1);
    host.second();
  }
  host.done(8, 0, 1, 1);
  EXPECT_NE(find(host.second(), "/d"), nullptr);
  EXPECT_NE(find(host.second(), "/b"), nullptr);
}

TEST(Attribution, who_is_gone_makes_room_before_its_counts_are_given_back) {
  Host host(1);
  host.name(5, "/a");
  host.name(6, "/b");
  host.done(5, 0, 10, 10);
  host.second();
  host.remove_directory(5);
  host.done(5, 0, 1, 1);  // what the page cache still held
  host.done(6, 0, 2, 2);
  const auto& value = host.second();
  EXPECT_EQ(find(value, "/a"), nullptr);
  EXPECT_EQ(value.departed[0].ios, 11U);
  ASSERT_NE(find(value, "/b"), nullptr);
  host.release_cgroups(5);
  EXPECT_EQ(host.second().departed[0].ios, 11U);
  EXPECT_EQ(host.second().other[0].ios, 0U);
}

TEST(Attribution, nobody_departs_who_was_not_seen_for_a_second) {
  Host host(2);
  for (const CgroupId id : {5U, 6U, 7U}) {
    host.name(id, "/c" + std::to_string(id));
    host.remove_directory(id);
    host.done(id, 0, 1, id);
  }
  const auto& value = host.second();
  EXPECT_EQ(value.tenants.size(), 2U);
  EXPECT_EQ(value.other[0].ios, 1U);
  EXPECT_EQ(value.departed[0].ios, 0U);
}

TEST(Attribution, sixty_containers_a_second_have_slots) {
  constexpr CgroupId kEachSecond = 60;
  Host host;
  host.name(1, "/");
  for (CgroupId now = 1; now <= 30; ++now) {
    host.done(1, 0, 1, 1);
    for (CgroupId number = 0; number < kEachSecond; ++number) {
      const CgroupId id = now * 100 + number;
      host.name(id, "/docker/" + std::to_string(id));
      host.done(id, 0, 3, 12288);
      host.remove_directory(id);  // it lived for less than a second
      if (now > 4) {
        host.release_cgroups(id - 400);
      }
    }
    ASSERT_EQ(host.second().other[0].ios, 0U) << now;
  }
  EXPECT_EQ(find(host.second(), "/")->totals[0].ios, 30U);
}

TEST(Attribution, a_host_that_accounts_nothing_below_the_root_says_so_once) {
  Host host;
  host.accounting = model::IoAccounting::root_only;
  host.name(1, "/");
  host.done(1, 0, 1, 1);
  host.seconds(5);
  ASSERT_EQ(host.lines.size(), 1U);
  EXPECT_NE(host.lines[0].find("DefaultIOAccounting=yes"), std::string::npos);
  EXPECT_EQ(host.snapshot.kernel_features[model::KernelFeature::io_accounting], model::KernelDecision::root_only);
  for (const auto accounting : {model::IoAccounting::unknown, model::IoAccounting::root_only}) {
    host.accounting = accounting;
    host.seconds(5);
    EXPECT_EQ(host.lines.size(), 1U) << "what cannot be read has not changed";
  }
  host.accounting = model::IoAccounting::below_root;
  host.seconds(5);
  EXPECT_EQ(host.lines.size(), 2U);
}

/// The oracle keeps what was done by name, and what each series showed last.
RC_GTEST_PROP(AttributionProperty, every_io_is_somebodys_once, ()) {
  const auto most = *rc::gen::inRange<std::size_t>(1, 6);
  Host host(most);
  std::map<std::string, TotalsByOperation> shown;
  std::map<std::string, std::uint64_t> started;
  TotalsByOperation other{};
  TotalsByOperation departed{};
  CgroupId next = 10;
  std::vector<CgroupId> living;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
  for (const int step : steps) {
    if (step < 30 || living.empty()) {  // ten names, some of which belong to the same tenant
      ++next;
      host.name(next, step % 3 == 0 ? "/system.slice/s" + std::to_string(step % 5) + ".service/w" + std::to_string(next)
                                    : "/c" + std::to_string(step % 10));
      living.push_back(next);
    }
    const std::size_t at = static_cast<std::size_t>(step) % living.size();
    const CgroupId id = living[at];
    if (step < 60) {
      host.done(id, static_cast<std::size_t>(step) % 3, 1 + static_cast<std::uint64_t>(step), 512);
      host.commit(id);
    } else if (step < 70) {
      host.done_without_slot(static_cast<std::size_t>(step) % 3, 2);
    } else if (step < 90) {
      if (step < 80 && host.has(id)) {
        host.done(id, 0, 3, 4096);  // its last I/Os, between two readings
      }
      if (host.has(id) && step >= 75) {
        host.remove_directory(id);
        host.second();
      }
      if (host.has(id)) {
        host.release_cgroups(id);
      }
      living.erase(living.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const model::DeviceTenants& value = step >= 95 ? host.seconds(400) : host.second();

    RC_ASSERT(sum_of(value) == host.all());
    RC_ASSERT(value.tenants.size() <= most);
    std::map<std::string, TotalsByOperation> now;
    for (const model::TenantIo& one : value.tenants) {
      RC_ASSERT(now.emplace(one.tenant.name, one.totals).second);
    }
    for (std::size_t i = 0; i < model::kAttributedOperations.size(); ++i) {
      for (const auto& [name, totals] : now) {
        RC_ASSERT(shown.count(name) == 0 || totals[i].ios >= shown[name][i].ios);
      }
      RC_ASSERT(value.other[i].ios >= other[i].ios && value.other[i].bytes >= other[i].bytes);
      RC_ASSERT(value.departed[i].ios >= departed[i].ios);
    }
    shown = std::move(now);
    other = value.other;
    departed = value.departed;
  }
}

/// The tenants' series and `other` grow by exactly what is done meanwhile: no totals move to them.
RC_GTEST_PROP(AttributionProperty, nothing_grows_by_what_was_done_before, ()) {
  Host host(3);
  std::uint64_t before = 0;
  CgroupId next = 10;
  for (int i = 0; i < 60; ++i) {
    ++next;
    host.name(next, "/c" + std::to_string(next));
    const auto ios = *rc::gen::inRange<std::uint64_t>(1, 1000);
    std::map<std::string, std::uint64_t> old;
    for (const model::TenantIo& one : host.second().tenants) {
      old[one.tenant.name] = one.totals[0].ios;
    }
    const std::uint64_t old_other = host.second().other[0].ios;
    host.done(next, 0, ios, 1);
    const auto& value = host.second();
    std::uint64_t grown = value.other[0].ios - old_other;
    for (const model::TenantIo& one : value.tenants) {
      grown += one.totals[0].ios - old[one.tenant.name];
    }
    RC_ASSERT(grown == ios);
    if (before != 0) {
      host.release_cgroups(before);
    }
    before = next;
  }
}

}  // namespace
}  // namespace ssdpulse::tenants

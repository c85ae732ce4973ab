// SPDX-License-Identifier: Apache-2.0
// Whose I/O was it, and by which path? The block programs count, the reader reads, and the test knows the answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <tuple>

#include "daemon/block/attribution_cells.h"
#include "tests/unit/fake_attribution.h"
#include "tests/unit/fake_io.h"
#include "tests/unit/fake_kernel.h"

namespace {

using namespace ssdpulse;
using model::AttributedTotals;
using model::CgroupId;
using model::DeviceAttribution;
using model::IoAccess;
using model::IoPath;
using model::Operation;

constexpr std::uint32_t kOps[] = {0, 1, 3};  // the kernel's codes of the attributed operations

struct Way {
  std::uint8_t way;
  IoPath path;
  IoAccess access;
  IoPath without_cast;
};
constexpr Way kWays[] = {
    {FAKE_UNKNOWN, IoPath::other, IoAccess::file, IoPath::other},
    {FAKE_FILE_LIBAIO, IoPath::libaio, IoAccess::file, IoPath::direct},
    {FAKE_FILE_IO_URING, IoPath::io_uring, IoAccess::file, IoPath::direct},
    {FAKE_FILE_SQPOLL, IoPath::sqpoll, IoAccess::file, IoPath::direct},
    {FAKE_FILE_SYNC, IoPath::sync, IoAccess::file, IoPath::direct},
    {FAKE_FILE_ENGINE, IoPath::direct, IoAccess::file, IoPath::direct},
    {FAKE_RAW_IO_URING, IoPath::io_uring, IoAccess::raw, IoPath::direct},
    {FAKE_RAW_SYNC, IoPath::sync, IoAccess::raw, IoPath::direct},
    {FAKE_RAW_PIECE, IoPath::io_uring, IoAccess::raw, IoPath::other},
    {FAKE_JOURNAL, IoPath::journal, IoAccess::file, IoPath::other},
    {FAKE_WRITEBACK, IoPath::writeback, IoAccess::file, IoPath::writeback},
};
static_assert(std::size(kWays) == FAKE_WAYS);

/// The device's own counts, from which the attribution must never differ.
AttributedTotals own(std::size_t operation, bool completion_only) {
  const test::Amount counted = test::counted(static_cast<std::uint32_t>(operation), completion_only);
  return {counted.ios, counted.bytes, 0};
}

AttributedTotals sum_of_owners(const DeviceAttribution& of, std::size_t operation) {
  AttributedTotals sum = of.departed[operation];
  sum += of.other[operation];
  for (const auto& [cgroup, totals] : of.cgroups) {
    sum += totals[operation];
  }
  return sum;
}

AttributedTotals sum_of_paths(const DeviceAttribution& of, std::size_t operation) {
  AttributedTotals sum;
  for (const auto& by_access : of.paths) {
    for (const auto& totals : by_access) {
      sum += totals[operation];
    }
  }
  return sum;
}

/// A kernel with one device, its cgroups, and the reader.
class Host {
 public:
  explicit Host(std::uint32_t sets = FAKE_SETS, bool cast = true, bool completion_only = false)
      : completion_only_(completion_only), reader_((boot(sets, cast), tables()), plan(sets)) {}

  CgroupId make_cgroup(std::uint32_t place) {
    const std::uint64_t number = ++cgroups_;
    names_[number] = "tenant" + std::to_string(number);
    fake_cgroups[place] = {number * 7, number + 1000, 1, names_[number].c_str()};
    return number + 1000;
  }

  static fake_request io(std::uint32_t operation, std::uint32_t cgroup, std::uint8_t way, std::uint32_t tag = 1) {
    fake_now += 1000;
    fake_request request{};
    request.structure = request.tag = tag;
    request.operation = operation;
    request.bytes = 4096;
    request.sector = request.start_ns = fake_now;
    request.cgroup = cgroup;
    request.way = way;
    return request;
  }

  void issue(fake_request& request) {
    fake_now += 1000;
    if (!completion_only_) {
      fake_kernel_issue(&request);
    }
    request.started = request.had_before = 1;
  }

  void end(const fake_request& request, std::uint32_t bytes) {
    fake_now += 1000;
    (completion_only_ ? fake_kernel_complete_only : fake_kernel_complete)(&request, 0, bytes);
  }

  void whole_io(std::uint32_t operation, std::uint32_t cgroup, std::uint8_t way) {
    fake_request request = io(operation, cgroup, way);
    issue(request);
    end(request, request.bytes);
  }

  /// In a real kernel `way` does not change; here it does, which shows when the programs read it.
  void io_that_changes(std::uint32_t operation, std::uint32_t cgroup, std::uint8_t at_issue, std::uint8_t at_end) {
    fake_request request = io(operation, cgroup, at_issue);
    issue(request);
    request.way = at_end;
    end(request, request.bytes);
  }

  /// What the source does at each sample; `meanwhile` happens between its two readings.
  template <typename Meanwhile>
  const DeviceAttribution& observe(Meanwhile meanwhile) {
    model::ByOperation<AttributedTotals, model::kAttributedOperations> counted;
    for (std::size_t operation = 0; operation < counted.size(); ++operation) {
      counted[operation] = own(operation, completion_only_);
    }
    meanwhile();
    for (const block::AttributedIncrement& increment : reader_.read()) {
      EXPECT_EQ(increment.device, 0U);
      account_.add(increment);
    }
    const auto departed = reader_.depart();
    for (std::size_t operation = 0; operation < counted.size(); ++operation) {
      account_.settle(model::kAttributedOperations[operation], counted[operation].ios, counted[operation].bytes);
    }
    for (const CgroupId cgroup : departed) {
      account_.depart(cgroup);
    }
    published_ = account_.published();
    for (std::size_t operation = 0; operation < counted.size(); ++operation) {
      expect_identity(operation, counted[operation]);
    }
    return *published_;
  }
  const DeviceAttribution& observe() {
    return observe([] {});
  }

  block::AttributionReader& reader() { return reader_; }

 private:
  static void boot(std::uint32_t sets, bool cast) {
    fake_kernel_boot();
    std::fill(std::begin(fake_cgroups), std::end(fake_cgroups), fake_cgroup{0, 0, 0, ""});
    fake_kernel_attribute(sets, cast ? 1 : 0);
  }
  static block::Tables tables() {
    block::Tables tables;
    tables.attributions = fake_attributions;
    tables.unattributed_cells = {&fake_unattributed, 1};
    tables.announced_cgroups = fake_announced;
    tables.announcement_states = {&fake_announcements, 1};
    return tables;
  }
  static block::MemoryPlan plan(std::uint32_t sets) {
    block::MemoryPlan plan;
    plan.devices = plan.cpus = plan.unattributed_cells = 1;
    plan.attribution_sets = sets;
    plan.announcements = FAKE_ANNOUNCEMENTS;
    return plan;
  }
  void expect_identity(std::size_t operation, const AttributedTotals& counted) {
    const AttributedTotals owners = sum_of_owners(*published_, operation);
    EXPECT_EQ(owners.ios, counted.ios) << operation;
    EXPECT_EQ(owners.bytes, counted.bytes) << operation;
    EXPECT_TRUE(owners == sum_of_paths(*published_, operation)) << operation;
  }

  bool completion_only_;
  std::map<std::uint64_t, std::string> names_;
  std::uint64_t cgroups_ = 0;
  block::AttributionReader reader_;
  block::AttributionAccount account_;
  std::shared_ptr<const DeviceAttribution> published_;
};

AttributedTotals by_path(const DeviceAttribution& of, IoPath path, IoAccess access, std::size_t operation) {
  return of.paths[static_cast<std::size_t>(path)][static_cast<std::size_t>(access)][operation];
}

TEST(Attribution, EachWayIsAPath) {
  for (const bool cast : {true, false}) {
    for (const Way& way : kWays) {
      SCOPED_TRACE(testing::Message() << "way " << int{way.way} << (cast ? "" : ", without the cast"));
      Host host(FAKE_SETS, cast);
      const CgroupId cgroup = host.make_cgroup(3);
      host.whole_io(1, 3, way.way);
      const DeviceAttribution& seen = host.observe();
      EXPECT_EQ(by_path(seen, cast ? way.path : way.without_cast, way.access, 1).ios,
                !cast && way.way == FAKE_RAW_PIECE ? 0U : 1U);
      ASSERT_EQ(seen.cgroups.count(cgroup), 1U);
      EXPECT_EQ(seen.cgroups.at(cgroup)[1].bytes, 4096U);
      EXPECT_EQ(seen.cgroups.at(cgroup)[1].device_ns, 1000U);
      const model::SeenCgroup& named = host.reader().cgroups()->at(cgroup);
      EXPECT_EQ(named.leaf, "tenant1");
      EXPECT_EQ(named.parent, 1U);
    }
  }
}

TEST(Attribution, UnattributedIo) {
  Host host;
  host.whole_io(0, 0, FAKE_RAW_IO_URING);
  fake_request read = Host::io(0, 0, FAKE_RAW_IO_URING);
  read.without_bio = 1;
  host.issue(read);
  host.end(read, 4096);
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.cgroups.at(model::kNoCgroup)[0].ios, 2U);
  EXPECT_EQ(by_path(seen, IoPath::other, IoAccess::file, 0).ios, 1U);
  EXPECT_TRUE(host.reader().cgroups()->empty());
}

TEST(Attribution, DiscardsHaveNoPathAndCommitsAreCounted) {
  Host host;
  const CgroupId cgroup = host.make_cgroup(2);
  host.whole_io(3, 2, FAKE_UNKNOWN);
  host.whole_io(2, 2, FAKE_UNKNOWN);  // a flush that is not a stage of another request
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.cgroups.at(cgroup)[2].ios, 1U);
  EXPECT_EQ(seen.cgroups.at(cgroup)[2].device_ns, 1000U);
  EXPECT_EQ(by_path(seen, IoPath::other, IoAccess::file, 2).ios, 1U);
  EXPECT_EQ(seen.commits.at(cgroup), 1U);
}

TEST(Attribution, ARequestThatEndsInParts) {
  Host host;
  const CgroupId cgroup = host.make_cgroup(2);
  fake_request write = Host::io(1, 2, FAKE_FILE_LIBAIO);
  write.bytes = 65536;
  host.issue(write);
  host.end(write, 16384);
  const DeviceAttribution& early = host.observe();
  EXPECT_EQ(early.cgroups.at(cgroup)[1].ios, 0U);
  EXPECT_EQ(early.cgroups.at(cgroup)[1].bytes, 16384U);
  write.bytes -= 16384;
  host.issue(write);
  host.end(write, write.bytes);
  const DeviceAttribution& seen = host.observe();
  EXPECT_TRUE(by_path(seen, IoPath::libaio, IoAccess::file, 1) == (AttributedTotals{1, 65536, 1000}));
}

TEST(Attribution, ThePathIsThatOfTheIssue) {
  Host host;
  host.make_cgroup(2);
  host.io_that_changes(0, 2, FAKE_FILE_LIBAIO, FAKE_FILE_SYNC);
  EXPECT_EQ(by_path(host.observe(), IoPath::libaio, IoAccess::file, 0).ios, 1U);
}

TEST(Attribution, WhatTheIssueDidNotRecogniseIsAskedAgain) {
  Host host;
  host.make_cgroup(2);
  host.io_that_changes(1, 2, FAKE_UNKNOWN, FAKE_WRITEBACK);
  EXPECT_EQ(by_path(host.observe(), IoPath::writeback, IoAccess::file, 1).ios, 1U);
}

TEST(Attribution, TheLastPartIsOfItsOwnBio) {
  Host host;
  host.make_cgroup(2);
  fake_request write = Host::io(1, 2, FAKE_FILE_LIBAIO);
  write.bytes = 65536;
  host.issue(write);
  host.end(write, 16384);
  write.bytes -= 16384;
  write.way = FAKE_FILE_SYNC;
  host.end(write, write.bytes);
  const DeviceAttribution& seen = host.observe();
  EXPECT_TRUE(by_path(seen, IoPath::libaio, IoAccess::file, 1) == (AttributedTotals{0, 16384, 0}));
  EXPECT_EQ(by_path(seen, IoPath::sync, IoAccess::file, 1).ios, 1U);
  EXPECT_EQ(by_path(seen, IoPath::sync, IoAccess::file, 1).bytes, 49152U);
}

TEST(Attribution, WhereTagsShareASlotEachHasItsOwnPath) {
  Host host;
  host.make_cgroup(2);
  fake_kernel_share_slots();
  fake_request first = Host::io(0, 2, FAKE_FILE_LIBAIO, 1);
  fake_request second = Host::io(0, 2, FAKE_FILE_SYNC, 1 + FAKE_TAGS / 2);
  host.issue(first);
  host.issue(second);
  host.end(first, first.bytes);
  host.end(second, second.bytes);
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(by_path(seen, IoPath::libaio, IoAccess::file, 0).ios, 1U);
  EXPECT_EQ(by_path(seen, IoPath::sync, IoAccess::file, 0).ios, 1U);
}

TEST(Attribution, SwitchedOffMeanwhileNothingIsAttributed) {
  Host host;
  host.make_cgroup(2);
  fake_request read = Host::io(0, 2, FAKE_FILE_LIBAIO);
  host.issue(read);
  fake_state->geometry.flags |= DEVICE_UNATTRIBUTED;
  host.end(read, read.bytes);
  EXPECT_EQ(test::attributed_to_all(0).ios, 0U);
}

TEST(Attribution, ARequestIssuedBeforeAnybodyAsked) {
  Host host;
  const CgroupId cgroup = host.make_cgroup(2);
  fake_request read = Host::io(0, 2, FAKE_FILE_LIBAIO);
  fake_state->geometry.flags |= DEVICE_UNATTRIBUTED;
  host.issue(read);
  fake_state->geometry.flags &= ~static_cast<std::uint32_t>(DEVICE_UNATTRIBUTED);
  host.end(read, read.bytes);
  const DeviceAttribution& seen = host.observe();
  EXPECT_TRUE(by_path(seen, IoPath::libaio, IoAccess::file, 0) == (AttributedTotals{1, 4096, 1000}));
  EXPECT_EQ(seen.cgroups.at(cgroup)[0].ios, 1U);
}

TEST(Attribution, AStrayHasNoTime) {
  Host host;
  const CgroupId cgroup = host.make_cgroup(2);
  fake_request read = Host::io(0, 2, FAKE_FILE_IO_URING);
  read.started = read.had_before = 1;  // its issue was not seen
  host.end(read, 4096);
  EXPECT_TRUE(host.observe().cgroups.at(cgroup)[0] == (AttributedTotals{1, 4096, 0}));
}

TEST(Attribution, NothingIsInTheDevicesCellsBeforeItIsAttributed) {
  for (const bool completion_only : {false, true}) {
    SCOPED_TRACE(completion_only);
    Host host(FAKE_SETS, true, completion_only);
    host.make_cgroup(1);
    static std::uint32_t looks;
    looks = 0;
    fake_on_lookup = [] {
      ++looks;
      for (std::uint32_t operation = 0; operation < model::kAttributedOperations.size(); ++operation) {
        ASSERT_GE(test::attributed_to_all(operation).bytes, test::counted(operation, true).bytes) << operation;
      }
    };
    for (const std::uint32_t operation : kOps) {
      host.whole_io(operation, 1, FAKE_FILE_LIBAIO);
      fake_request parts = Host::io(operation, 1, FAKE_FILE_LIBAIO);
      parts.bytes = 65536;
      host.issue(parts);
      host.end(parts, 16384);
      parts.bytes -= 16384;
      host.end(parts, parts.bytes);
      fake_request stray = Host::io(operation, 1, FAKE_FILE_LIBAIO, 2);
      stray.started = stray.had_before = 1;
      host.end(stray, 4096);
      fake_request refused = Host::io(operation, 1, FAKE_FILE_LIBAIO, 3);
      host.end(refused, 4096);
    }
    fake_on_lookup = nullptr;
    EXPECT_GT(looks, 30U);
    EXPECT_EQ(own(1, true).bytes, 4096U * 3 + 65536U);
    host.observe();
  }
}

TEST(Attribution, CompletionsBetweenTwoReadingsComeWithTheNext) {
  Host host;
  host.make_cgroup(2);
  const auto read = [&] { host.whole_io(0, 2, FAKE_FILE_IO_URING); };
  EXPECT_EQ(sum_of_owners(host.observe(read), 0).ios, 0U);
  EXPECT_EQ(sum_of_owners(host.observe(read), 0).ios, 1U);
  EXPECT_EQ(sum_of_owners(host.observe(), 0).ios, 2U);
}

TEST(Attribution, ATrueDifferenceIsNotHidden) {
  block::AttributionAccount account;
  const AttributedTotals one{1, 4096, 5};
  account.settle(Operation::read, 0, 0);
  account.add({0, ATTRIBUTED_READ, PATH_SYNC, 7, one});
  account.settle(Operation::read, 0, 0);
  EXPECT_EQ(sum_of_owners(*account.published(), 0).ios, 0U);
  account.settle(Operation::read, 0, 0);
  EXPECT_TRUE(sum_of_owners(*account.published(), 0) == one);
}

TEST(Attribution, WithoutRoomItIsCountedAsOther) {
  constexpr std::uint32_t kSets = 1;
  Host host(kSets);
  for (std::uint32_t place = 1; place <= 6; ++place) {
    host.make_cgroup(place);
    host.whole_io(0, place, FAKE_FILE_LIBAIO);
  }
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.cgroups.size(), std::size_t{ATTRIBUTED_IN_SET});
  EXPECT_EQ(seen.other[0].ios, 6U - ATTRIBUTED_IN_SET);
  EXPECT_EQ(by_path(seen, IoPath::libaio, IoAccess::file, 0).ios, 6U);
  EXPECT_EQ(host.reader().cgroups()->size(), std::size_t{ATTRIBUTED_IN_SET}) << "who has no cell is not announced";
}

TEST(Attribution, CountsNothingBeforeTheNameIsKnown) {
  Host host;
  for (std::uint32_t place = 1; place <= FAKE_ANNOUNCEMENTS + 1; ++place) {
    host.make_cgroup(place);
    host.whole_io(0, place, FAKE_FILE_LIBAIO);
  }
  EXPECT_EQ(host.observe().other[0].ios, 1U);
  host.whole_io(0, FAKE_ANNOUNCEMENTS + 1, FAKE_FILE_LIBAIO);
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.cgroups.size(), FAKE_ANNOUNCEMENTS + 1U) << "asked again";
  EXPECT_EQ(seen.other[0].ios, 1U);
}

TEST(Attribution, WhoIsGoneDepartsWithoutAJump) {
  Host host;
  const CgroupId gone = host.make_cgroup(1), stays = host.make_cgroup(2);
  const auto both = [&] {
    host.whole_io(0, 1, FAKE_FILE_LIBAIO);
    host.whole_io(0, 2, FAKE_FILE_LIBAIO);
  };
  both();
  host.observe();
  const std::size_t cells = host.reader().cells_in_use();
  host.reader().release_cgroups({gone, 4711});
  host.whole_io(0, 1, FAKE_FILE_LIBAIO);
  EXPECT_EQ(host.observe().cgroups.count(gone), 1U) << "its counts do not rest";
  for (int i = 0; i < 4; ++i) {
    host.observe();
  }
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.cgroups.count(gone), 0U);
  EXPECT_EQ(seen.departed[0].ios, 2U);
  EXPECT_EQ(seen.cgroups.at(stays)[0].ios, 1U);
  EXPECT_EQ(host.reader().cgroups()->count(gone), 0U);
  EXPECT_EQ(host.reader().cells_in_use(), cells - 1);
  both();
  const DeviceAttribution& again = host.observe();
  EXPECT_EQ(again.cgroups.at(gone)[0].ios, 1U) << "what a page cache still held";
  EXPECT_EQ(again.departed[0].ios, 2U);
  EXPECT_EQ(host.reader().cgroups()->at(gone).leaf, "tenant1");
}

TEST(Attribution, ItsIoWhileItDepartsIsItsOwn) {
  Host host;
  const CgroupId gone = host.make_cgroup(1);
  host.whole_io(0, 1, FAKE_FILE_LIBAIO);
  host.observe();
  host.reader().release_cgroups({gone});
  std::uint64_t ios = 1;
  for (int i = 0; i < 6; ++i) {
    host.observe([&] {
      if (i == 2) {  // its cells are closed by now
        host.whole_io(0, 1, FAKE_FILE_LIBAIO);
        ++ios;
      }
    });
  }
  EXPECT_EQ(host.observe().departed[0].ios, ios);
  host.whole_io(0, 1, FAKE_FILE_LIBAIO);
  const DeviceAttribution& seen = host.observe();
  EXPECT_EQ(seen.departed[0].ios, ios);
  EXPECT_EQ(seen.cgroups.at(gone)[0].ios, 1U) << "it has a cell and a name again";
  EXPECT_EQ(host.reader().cgroups()->count(gone), 1U);
  EXPECT_EQ(seen.other[0].ios, 0U);
}

TEST(Attribution, AThousandDepartAtOnceInOnePass) {
  constexpr std::uint64_t kGone = 1000, kCgroups = 1010;
  constexpr std::size_t kCells = 100'000, kSets = kCells / ATTRIBUTED_IN_SET;
  std::vector<attribution_set> sets(kSets);
  std::vector<announced_cgroup> announced(1024);
  std::vector<announcements> states(1);
  for (std::uint64_t number = 0; number < kCgroups; ++number) {
    announced[number].serial = number + 1;
    announced[number].cgroup = number + 1000;
  }
  for (std::size_t index = 0; index < kCells; ++index) {
    attributed& cell = sets[index / ATTRIBUTED_IN_SET].cell[index % ATTRIBUTED_IN_SET];
    cell = {attribution_key(1 + index % kCgroups, 0, ATTRIBUTED_READ, PATH_SYNC), 1, 4096, 10};
  }
  states[0].written = kCgroups;
  states[0].taken = kCells;
  block::Tables tables;
  tables.attributions = sets;
  tables.announced_cgroups = announced;
  tables.announcement_states = states;
  block::MemoryPlan plan;
  plan.devices = plan.cpus = plan.unattributed_cells = 1;
  plan.attribution_sets = kSets;
  plan.announcements = 1024;
  block::AttributionReader reader(tables, plan);
  const auto& increments = reader.read();
  ASSERT_EQ(increments.size(), kCgroups) << "one for all cells with the same key";
  ASSERT_EQ(std::accumulate(increments.begin(), increments.end(), std::size_t{0},
                            [](std::size_t sum, const auto& one) { return sum + one.totals.ios; }),
            kCells);
  std::vector<CgroupId> gone(kGone);
  std::iota(gone.begin(), gone.end(), 1000);
  reader.release_cgroups(gone);
  std::vector<CgroupId> departed;
  const std::clock_t begin = std::clock();  // CPU time of this process, whatever else the machine does
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(departed.empty());
    departed = reader.depart();
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%zu cgroups with %zu cells departed in %.3f s\n", departed.size(), kCells, seconds);
  EXPECT_LT(seconds, 0.1);
  std::sort(departed.begin(), departed.end());
  EXPECT_EQ(departed, gone);
  EXPECT_EQ(reader.cgroups()->size(), kCgroups - kGone);
  const auto taken = [&](std::uint64_t serial) { return serial > kGone; };
  std::size_t left = 0;
  for (std::size_t index = 0; index < kCells; ++index) {
    const attributed& cell = sets[index / ATTRIBUTED_IN_SET].cell[index % ATTRIBUTED_IN_SET];
    ASSERT_EQ(cell.key != ATTRIBUTION_FREE, taken(1 + index % kCgroups)) << index;
    left += cell.key != ATTRIBUTION_FREE ? 1 : 0;
  }
  EXPECT_EQ(reader.cells_in_use(), left);
}

using Lines = std::map<std::string, std::uint32_t>;

/// The cache lines that an event writes, by table.
Lines lines(const std::function<void()>& event) {
  fake_kernel_note();
  event();
  Lines written;
  std::uint32_t sum = 0;
  for (const char* table : {"issue_slots", "hot_cells", "write_cells", "streams", "attributions"}) {
    if (const std::uint32_t changed = fake_kernel_lines(table); changed != 0) {
      written[table] = changed;
      sum += changed;
    }
  }
  EXPECT_EQ(fake_kernel_lines("all"), sum) << "and nothing else";
  return written;
}

/// What deploy/docs/overhead.md documents: the sum of its rows for these writers.
Lines told(const std::vector<std::string>& writers) {
  std::ifstream document(std::string(SSDPULSE_SOURCE_DIR) + "/deploy/docs/overhead.md");
  std::map<std::string, Lines> rows;
  for (std::string row; std::getline(document, row);) {
    static const std::regex kRow(R"(\| ([a-z -]+) \| `([a-z_]+)`: [^|]+ \| (\d+)[^|]* \| [^|]+ \|)");
    if (std::smatch cells; std::regex_match(row, cells, kRow)) {
      rows[cells[1]][cells[2]] += static_cast<std::uint32_t>(std::stoul(cells[3]));
    }
  }
  const std::size_t in_the_document =
      std::accumulate(rows.begin(), rows.end(), std::size_t{0},
                      [](std::size_t sum, const auto& one) { return sum + one.second.size(); });
  EXPECT_EQ(in_the_document, 11U) << "a row that this test does not understand, or a new one";
  Lines sum;
  for (const std::string& writer : writers) {
    EXPECT_NE(rows.count(writer), 0U) << "overhead.md has no row of: " << writer;
    for (const auto& [table, number] : rows[writer]) {
      sum[table] += number;
    }
  }
  return sum;
}

TEST(CacheLines, OfAnOrdinaryRead) {
  Host host;
  host.make_cgroup(1);
  host.whole_io(0, 1, FAKE_FILE_IO_URING);
  fake_request read = Host::io(0, 1, FAKE_FILE_IO_URING);
  fake_now += 5'000'000;  // in other buckets than the previous I/O
  EXPECT_EQ(lines([&] { host.issue(read); }), told({"issue"}));
  EXPECT_EQ(lines([&] { host.end(read, read.bytes); }), told({"completion"}));
}

TEST(CacheLines, OfAnOrdinaryWrite) {
  Host host;
  host.make_cgroup(1);
  host.whole_io(1, 1, FAKE_FILE_IO_URING);
  fake_request write = Host::io(1, 1, FAKE_FILE_IO_URING);
  write.sector = write.sector / 8 * 8;
  EXPECT_EQ(lines([&] { host.issue(write); }), told({"issue"}));
  EXPECT_EQ(lines([&] { host.end(write, write.bytes); }), told({"completion", "completion of a write"}));
}

TEST(CacheLines, OfAWriteOfAModelledDrive) {
  Host host;
  host.make_cgroup(1);
  fake_state->sampling.page_bits = 12;
  fake_state->sampling.rate_bits = 10;
  fake_state->sampling.first_page = 1;  // beyond everything that is followed
  fake_state->sampling.groups = 1;
  host.whole_io(1, 1, FAKE_FILE_IO_URING);
  fake_request write = Host::io(1, 1, FAKE_FILE_IO_URING);
  write.sector = (1U << 20) + write.sector / 8 * 8;
  EXPECT_EQ(lines([&] { host.issue(write); }), told({"issue"}));
  EXPECT_EQ(lines([&] { host.end(write, write.bytes); }),
            told({"completion", "completion of a write", "completion of a modelled write"}));
}

TEST(CacheLines, OfACompletionAlone) {
  Host host(FAKE_SETS, true, true);
  host.make_cgroup(1);
  host.whole_io(0, 1, FAKE_FILE_IO_URING);
  fake_request read = Host::io(0, 1, FAKE_FILE_IO_URING);
  host.issue(read);
  EXPECT_EQ(lines([&] { host.end(read, read.bytes); }), told({"completion-only"}));
}

/// For each table that the list says is not shared: no line has words of two CPUs.
TEST(CacheLines, OfTwoCpusAreNeverOne) {
  constexpr std::size_t kLine = 64;
  EXPECT_EQ(sizeof(io_cell) % kLine, 0U);
  EXPECT_EQ(sizeof(write_cell) % kLine, 0U);
  EXPECT_EQ(sizeof(attribution_set) % kLine, 0U);
  EXPECT_EQ(offsetof(device_state, others_in_flight) % kLine, 0U);
  EXPECT_EQ(offsetof(device_state, full_paused_ns) / kLine, offsetof(device_state, others_in_flight) / kLine)
      << "what every completion reads is one line";
  EXPECT_EQ(kLine / sizeof(issue_slot), 4U) << "the slot and three others";
  EXPECT_EQ(sizeof(stream_ends) / kLine, 128U);
}

/// Cgroups appear and disappear; some requests are only partly seen. Only the test knows who did what.
void play(bool completion_only, double lost, int rounds) {
  Host host(FAKE_SETS, true, completion_only);
  std::mt19937 rng(20261);
  const auto happens = [&](double share) { return std::uniform_real_distribution<>(0, 1)(rng) < share; };
  std::map<CgroupId, model::ByOperation<AttributedTotals, model::kAttributedOperations>> told;
  std::array<CgroupId, FAKE_CGROUPS> living{};
  std::set<CgroupId> dead;
  for (std::uint32_t place = 1; place < 6; ++place) {
    living[place] = host.make_cgroup(place);
  }
  for (int round = 0; round < rounds; ++round) {
    const auto some_ios = [&] {
      for (auto i = rng() % 40; i > 0; --i) {
        const std::size_t operation = rng() % std::size(kOps);
        const auto place = static_cast<std::uint32_t>(rng() % 6);
        const std::uint8_t way = kWays[rng() % 4].way;
        fake_request request = Host::io(kOps[operation], place, way, static_cast<std::uint32_t>(rng() % FAKE_TAGS));
        request.bytes = 4096U << rng() % 5;
        AttributedTotals& totals = told[living[place]][operation];
        if (!happens(lost)) {
          host.issue(request);
        }
        request.started = request.had_before = 1;
        if (request.bytes > 4096 && rng() % 8 == 0) {
          host.end(request, 4096);
          totals.bytes += 4096;
          request.bytes -= 4096;
          host.issue(request);
        }
        if (!happens(lost)) {
          host.end(request, request.bytes);
          totals += {1, request.bytes, 0};
        }
      }
    };
    some_ios();
    host.observe(some_ios);
    if (round % 2 == 0) {
      const auto place = static_cast<std::uint32_t>(1 + rng() % 5);
      dead.insert(living[place]);
      living[place] = host.make_cgroup(place);
    }
    host.reader().release_cgroups({dead.begin(), dead.end()});
  }
  for (int i = 0; i < 6; ++i) {
    host.observe();
  }
  const DeviceAttribution& seen = host.observe();
  for (std::size_t operation = 0; operation < model::kAttributedOperations.size(); ++operation) {
    AttributedTotals departed;
    for (const auto& [cgroup, totals] : told) {
      if (dead.count(cgroup) != 0) {
        departed += totals[operation];
      } else if (!(totals[operation] == AttributedTotals{})) {
        ASSERT_EQ(seen.cgroups.count(cgroup), 1U) << cgroup;
        EXPECT_EQ(seen.cgroups.at(cgroup)[operation].ios, totals[operation].ios) << cgroup;
        EXPECT_EQ(seen.cgroups.at(cgroup)[operation].bytes, totals[operation].bytes) << cgroup;
      }
    }
    EXPECT_EQ(seen.departed[operation].ios, departed.ios);
    EXPECT_EQ(seen.departed[operation].bytes, departed.bytes);
    EXPECT_EQ(seen.other[operation].ios, 0U) << "there is always room";
  }
  EXPECT_LE(seen.cgroups.size(), 6U);
  EXPECT_LE(host.reader().cgroups()->size(), 5U);
  EXPECT_LE(host.reader().cells_in_use(), 6U * 9) << "cells come back";
}

TEST(AttributionStories, EverythingIsSeen) { play(false, 0, 4000); }
TEST(AttributionStories, SomeIssuesAndSomeEndsAreNot) { play(false, 0.1, 4000); }
TEST(AttributionStories, CompletionOnly) { play(true, 0.1, 4000); }

/// A write by a path that the issue recognises is counted in a shorter way than one whose path is not known.
TEST(PlainWrites, CountLikeAllOthers) {
  std::mt19937 rng(20261);
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t units[] = {512, 4096, 65536, 12288};
    const int ways[] = {FAKE_FILE_IO_URING, FAKE_RAW_IO_URING, FAKE_RAW_PIECE};
    const std::uint32_t granularity = units[rng() % 4], alignment = units[rng() % 4];
    const std::uint64_t sector = rng() % 2 == 0 ? rng() : rng() % 512 * 8;
    const auto bytes = static_cast<std::uint32_t>(512 * (1 + rng() % 256));
    const std::uint64_t begin = sector * 512;
    const bool misaligned = begin % alignment != 0 || (begin + bytes) % granularity != 0;
    for (const bool path_is_known : {true, false}) {
      fake_kernel_boot();
      fake_kernel_attribute(FAKE_SETS, 1);
      fake_state->geometry.write_granularity = granularity;
      fake_state->geometry.write_alignment = alignment;
      if (granularity == 12288 || alignment == 12288) {
        fake_state->geometry.flags |= DEVICE_ODD_WRITE_UNITS;
      }
      if (!path_is_known) {
        fake_state->geometry.flags |= DEVICE_UNATTRIBUTED;
      }
      fake_request write = test::io(test::kWrite);
      write.way = static_cast<std::uint8_t>(ways[rng() % std::size(ways)]);
      write.sector = sector;
      write.bytes = bytes;
      test::issue(write);
      test::end(write);
      EXPECT_EQ(fake_writes.misaligned_bytes, misaligned ? bytes : 0) << sector << ' ' << bytes << ' ' << path_is_known;
      EXPECT_EQ(fake_writes.small_bytes, bytes < granularity ? bytes : 0);
      EXPECT_EQ(fake_writes.class_bytes[WRITE_DIRECT], bytes);
      EXPECT_EQ(fake_writes.hint_bytes[HINT_DEFAULT], bytes);
      EXPECT_EQ(fake_writes.hint_ios[HINT_DEFAULT], 1U);
      EXPECT_EQ(fake_hot.of[CLASS_WRITE].completions, 1U);
    }
  }
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// How much is written on each rung, on made-up hosts: each figure is added up by hand.
#include "daemon/model/write_ladder.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "exporters/terminal/ladder_text.h"

namespace ssdpulse::model {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

struct Sent {
  IoPath path;
  std::uint64_t bytes;
};

/// A host with drives, volumes and file systems.
class Host {
 public:
  /// A partition is called NAMEp1, and so on. `sent`: what its tenants wrote, by path; `more`: while paths were off.
  Host& drive(const std::string& name, const std::vector<Sent>& sent, std::uint64_t more = 0) {
    Device device;
    device.name = name;
    DeviceTenants tenants;
    DeviceIo io;
    io.operations[index(Operation::write)].bytes = more;
    for (const Sent& one : sent) {
      tenants.paths[index(one.path)][index(IoAccess::file)][Operation::write].bytes = one.bytes;
      io.operations[index(Operation::write)].bytes += one.bytes;
    }
    DeviceSnapshot entry;
    entry.device = std::make_shared<const Device>(device);
    entry.io = std::make_shared<const DeviceIo>(io);
    entry.tenants = std::make_shared<const DeviceTenants>(tenants);
    snapshot.devices.push_back(entry);
    for (const char* part : {"", "p1", "p2"}) {
      snapshot.volumes.push_back({name + part, 0, 0, name});
    }
    return *this;
  }
  Host& volume(const std::string& name, LayerKind kind, const Texts& members) {
    snapshot.layers.push_back({name, "", kind, members});
    snapshot.volumes.push_back({name, 0, 0, name});
    snapshot.volumes.push_back({name + "p1", 0, 0, name});
    return *this;
  }
  /// Bytes of the bios of a volume, or of what lies below one.
  Host& bios(const std::string& name, std::uint64_t read, std::uint64_t written) {
    auto io = std::make_shared<BioIo>();
    io->device = name;
    io->operations[index(Operation::read)].bytes = read;
    io->operations[index(Operation::write)].bytes = written;
    snapshot.bios.push_back(io);
    return *this;
  }
  Host& mount(const std::string& volume, const char* fstype) {
    Filesystem filesystem;
    filesystem.mountpoint = "/" + volume;
    filesystem.fstype = fstype;
    filesystem.volumes = {volume};
    snapshot.filesystems.push_back(filesystem);
    return *this;
  }
  [[nodiscard]] WriteLadder ladder() {
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::sort(snapshot.layers.begin(), snapshot.layers.end(), by_name);
    std::sort(snapshot.volumes.begin(), snapshot.volumes.end(), by_name);
    std::sort(snapshot.bios.begin(), snapshot.bios.end(),
              [](const auto& a, const auto& b) { return a->device < b->device; });
    return ladder_of(snapshot);
  }

  Snapshot snapshot;
};

double sum(const WriteLadder& ladder, Rung rung, const std::string& device = "",
           std::optional<RungClass> rung_class = {}) {
  double bytes = 0;
  for (const RungBytes& one : ladder.rungs) {
    const bool wanted =
        one.rung == rung && (device.empty() || one.device == device) && (!rung_class || one.rung_class == rung_class);
    bytes += wanted ? one.bytes : 0;
  }
  return bytes;
}

/// "RUNG DEVICE REASON", sorted: of one rung, or of file systems and drives.
Texts gaps(const WriteLadder& ladder, std::optional<Rung> rung = {}) {
  Texts all;
  for (const RungGap& gap : ladder.gaps) {
    if (rung ? gap.rung == rung : gap.rung == Rung::file_system || gap.rung == Rung::drive) {
      all.push_back(std::string(name(gap.rung, kRungNames)) + " " + gap.device + " " +
                    std::string(name(gap.reason, kRungGapReasonNames)));
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(write_ladder, of_a_drive_without_volumes_is_what_it_was_sent) {
  const auto ladder = Host()
                          .drive("sda", {{IoPath::writeback, 100},
                                         {IoPath::journal, 30},
                                         {IoPath::metadata, 7},
                                         {IoPath::io_uring, 1000},
                                         {IoPath::sync, 500},
                                         {IoPath::swap, 20},
                                         {IoPath::other, 3}})
                          .mount("sdap1", "ext4")
                          .ladder();
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::writeback), 100);
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::journal), 30);
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::metadata), 7);
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::direct), 1500);
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::swap), 20);
  EXPECT_EQ(sum(ladder, Rung::file_system, "sda", RungClass::other), 3);
  EXPECT_EQ(sum(ladder, Rung::file_system), 1660);
  EXPECT_EQ(sum(ladder, Rung::drive), 1660);
  EXPECT_EQ(gaps(ladder), Texts());
  EXPECT_EQ(gaps(ladder, Rung::media), Texts{"media sda no_counter"});
  EXPECT_EQ(ladder.groups.size(), 1U);
  const auto partly = Host().drive("sda", {{IoPath::writeback, 100}}, 40).ladder();
  EXPECT_EQ(gaps(partly), Texts{"file_system sda unknown_sender"}) << "paths were off while 40 bytes were written";
}

TEST(write_ladder, has_volumes_from_the_top_of_the_stack_down_whatever_their_names) {
  const auto ladder = Host()
                          .drive("sda", {{IoPath::stacked, 10}})
                          .volume("dm-0", LayerKind::crypt, {"sda"})
                          .volume("dm-1", LayerKind::dm, {"dm-0"})
                          .volume("md0", LayerKind::raid0, {"dm-1"})
                          .volume("dm-2", LayerKind::lvm, {"md0"})
                          .volume("dm-3", LayerKind::lvm, {"md0"})
                          .ladder();
  ASSERT_EQ(ladder.groups.size(), 1U);
  EXPECT_EQ(ladder.groups[0].volumes, (Texts{"dm-2", "dm-3", "md0", "dm-1", "dm-0"}));
}

TEST(write_ladder, of_a_mirror_has_each_byte_twice_on_the_drives_and_once_above) {
  // 1000 bytes by LVM on a mirror; 50 by a file system on a partition of one of its drives; 8 of md's superblocks.
  const auto ladder = Host()
                          .drive("sda", {{IoPath::stacked, 1004}, {IoPath::writeback, 50}})
                          .drive("sdb", {{IoPath::stacked, 1004}})
                          .volume("md0", LayerKind::raid1, {"sdap2", "sdbp2"})
                          .volume("dm-0", LayerKind::lvm, {"md0"})
                          .volume("dm-1", LayerKind::lvm, {"md0"})
                          .bios("dm-0", 300, 900)
                          .bios("dm-1", 0, 100)
                          .bios("md0", 300, 1000)
                          .bios("sdap2", 200, 1004)
                          .bios("sdbp2", 100, 1004)
                          .mount("dm-0", "xfs")
                          .mount("dm-1", "btrfs")
                          .mount("sdap1", "ext4")
                          .ladder();
  EXPECT_EQ(sum(ladder, Rung::file_system), 1050);
  EXPECT_EQ(sum(ladder, Rung::file_system, "dm-0", RungClass::other), 900);
  EXPECT_EQ(sum(ladder, Rung::file_system, "md0"), 0) << "it carries others, where its bytes are counted";
  EXPECT_EQ(sum(ladder, Rung::drive), 2058);
  EXPECT_EQ(gaps(ladder), Texts());
  ASSERT_EQ(ladder.groups.size(), 1U);
  EXPECT_EQ(ladder.groups[0].drives, (Texts{"sda", "sdb"}));
  EXPECT_EQ(ladder.groups[0].volumes, (Texts{"dm-0", "dm-1", "md0"}));
  const PassedOn& mirror = ladder.passed_on.at("md0");
  EXPECT_EQ(mirror.written_bytes, 1000U);
  EXPECT_EQ(mirror.members_written_bytes, 2008U);
  EXPECT_EQ(mirror.members_read_bytes, 300U);
  EXPECT_FALSE(ladder.passed_on.at("dm-0").members_written_bytes) << "both lie on md0";
}

TEST(write_ladder, of_parity_has_the_reads_that_nobody_asked_for) {
  // One write of 4096: old data and old parity are read, new data and new parity written.
  auto host = Host();
  for (const char* name : {"sda", "sdb", "sdc"}) {
    host.drive(name, {}).bios(name, 0, 0);
  }
  host.snapshot.bios.clear();
  host.bios("sda", 4096, 4096).bios("sdb", 0, 0).bios("sdc", 4096, 4096).bios("md5", 0, 4096);
  const auto ladder = host.volume("md5", LayerKind::raid5, {"sda", "sdb", "sdc"}).ladder();
  const PassedOn& parity = ladder.passed_on.at("md5");
  EXPECT_EQ(parity.read_bytes, 0U);
  EXPECT_EQ(parity.members_read_bytes, 8192U);
  EXPECT_EQ(parity.members_written_bytes, 8192U);
}

TEST(write_ladder, says_what_it_lacks) {
  // Bios of volumes are not counted; one carries a file system next to another volume; a drive below is not measured.
  auto host = Host()
                  .drive("sda", {{IoPath::stacked, 100}})
                  .volume("dm-0", LayerKind::crypt, {"sda"})
                  .volume("md0", LayerKind::raid1, {"sda", "sdx"})
                  .volume("dm-2", LayerKind::lvm, {"md0"})
                  .volume("md127", LayerKind::other, {"sda"})
                  .mount("md0p1", "ext4");
  host.snapshot.volumes.push_back({"sdx", 0, 0, "sdx"});
  EXPECT_EQ(gaps(host.ladder()), (Texts{"drive sdx drive_not_measured", "file_system dm-0 volume_not_measured",
                                        "file_system dm-2 volume_not_measured", "file_system md0 carries_both"}));
  // Writes without a known sender next to a volume, on a drive that btrfs lies on: they are anybody's.
  const auto mixed = Host()
                         .drive("sda", {{IoPath::stacked, 100}, {IoPath::other, 5}})
                         .volume("dm-0", LayerKind::lvm, {"sdap2"})
                         .bios("dm-0", 0, 100)
                         .bios("sdap2", 0, 100)
                         .mount("sdap1", "btrfs")
                         .ladder();
  EXPECT_EQ(gaps(mixed), Texts{"file_system sda unknown_sender"});
  EXPECT_EQ(sum(mixed, Rung::file_system, "sda"), 0);
  // Paths were off for a while: what came from the volume meanwhile cannot be told.
  const auto off = Host()
                       .drive("sda", {{IoPath::stacked, 100}}, 1)
                       .volume("dm-0", LayerKind::lvm, {"sda"})
                       .bios("dm-0", 0, 101)
                       .bios("sda", 0, 101)
                       .ladder();
  EXPECT_EQ(gaps(off), Texts{"file_system sda unknown_sender"});
}

TEST(write_ladder, copies_of_a_snapshot_are_the_volumes) {
  // 100 bytes to an origin: 100 arrive, and 400 of old data are copied in a way that no path shows.
  const auto ladder = Host()
                          .drive("sda", {{IoPath::stacked, 100}, {IoPath::other, 400}, {IoPath::writeback, 10}})
                          .volume("dm-0", LayerKind::snapshot, {"sdap2"})
                          .bios("dm-0", 0, 100)
                          .bios("sdap2", 400, 500)
                          .mount("sdap1", "vfat")
                          .ladder();
  EXPECT_EQ(sum(ladder, Rung::file_system), 110);
  EXPECT_EQ(sum(ladder, Rung::drive), 510);
  EXPECT_EQ(ladder.passed_on.at("dm-0").members_written_bytes, 500U);
  EXPECT_EQ(gaps(ladder), Texts());
}

TEST(write_ladder, is_silent_where_an_array_passes_bios_on_as_they_are) {
  // md RAID 0 on Linux 5.10: its members see no bios of their own, and the drive's look like a file system's.
  const auto ladder = Host()
                          .drive("sda", {{IoPath::writeback, 100}})
                          .drive("sdb", {{IoPath::writeback, 100}})
                          .volume("md0", LayerKind::raid0, {"sda", "sdb"})
                          .bios("md0", 0, 200)
                          .bios("sda", 0, 0)
                          .bios("sdb", 0, 0)
                          .ladder();
  EXPECT_EQ(gaps(ladder), (Texts{"file_system sda unknown_sender", "file_system sdb unknown_sender"}));
  EXPECT_EQ(sum(ladder, Rung::file_system), 200) << "those of the volume";
  EXPECT_FALSE(ladder.passed_on.at("md0").members_written_bytes);
}

TEST(write_ladder, counts_the_head_of_a_multipath_drive_and_not_its_paths) {
  auto host = Host()
                  .drive("dm-0", {{IoPath::direct, 100}})
                  .drive("sda", {{IoPath::other, 60}})
                  .drive("sdb", {{IoPath::other, 40}})
                  .volume("dm-0", LayerKind::multipath, {"sda", "sdb"});
  host.snapshot.memberships = {{"dm-0", "sda", "dm", "", true}, {"dm-0", "sdb", "dm", "", true}};
  const auto ladder = host.ladder();
  EXPECT_EQ(sum(ladder, Rung::file_system), 100);
  EXPECT_EQ(sum(ladder, Rung::drive), 100);
  EXPECT_EQ(gaps(ladder), Texts());
  ASSERT_EQ(ladder.groups.size(), 1U);
  EXPECT_EQ(ladder.groups[0].drives, Texts{"dm-0"});
}

TEST(write_ladder, has_what_a_drive_reports_once) {
  auto host = Host().drive("nvme0n1", {}).drive("nvme0n2", {}).drive("nvme1n1", {});
  auto identity = std::make_shared<NvmeIdentity>();
  identity->controller = "nvme0";
  identity->namespaces = {{"nvme0n1", 1}, {"nvme0n2", 2}};
  NvmeDrive drive;
  drive.identity = identity;
  drive.write_amplification.source = "ocp";
  drive.write_amplification.host_written_bytes = 1000;
  drive.write_amplification.media_written_bytes = 1300;
  auto other = std::make_shared<NvmeIdentity>();
  other->controller = "nvme1";
  other->namespaces = {{"nvme1n1", 1}};
  NvmeDrive without;
  without.identity = other;
  without.write_amplification.host_written_bytes = 500;
  host.snapshot.nvme_drives = {drive, without};
  const auto ladder = host.ladder();
  EXPECT_EQ(sum(ladder, Rung::reported), 1500);
  EXPECT_EQ(sum(ladder, Rung::media), 1300);
  EXPECT_EQ(sum(ladder, Rung::media, "nvme0"), 1300) << "of the controller, whichever namespace is deleted";
  EXPECT_EQ(gaps(ladder, Rung::media), Texts{"media nvme1n1 no_counter"});
}

TEST(write_ladder, of_applications_is_what_became_dirty_and_what_was_written_past_the_page_cache) {
  auto signals = std::make_shared<HostSignals>();
  signals->dirtied_bytes = 5000;
  auto host = Host().drive("sda", {{IoPath::writeback, 4000},
                                   {IoPath::journal, 900},
                                   {IoPath::io_uring, 700},
                                   {IoPath::sync, 50},
                                   {IoPath::swap, 30},
                                   {IoPath::other, 100}});
  host.snapshot.host.signals = signals;
  const auto ladder = host.ladder();
  EXPECT_EQ(sum(ladder, Rung::application, "", RungClass::page_cache), 5000);
  EXPECT_EQ(sum(ladder, Rung::application, "sda", RungClass::direct), 750);
  EXPECT_EQ(sum(ladder, Rung::application, "sda", RungClass::swap), 30);
  EXPECT_EQ(sum(ladder, Rung::application), 5780);
  EXPECT_EQ(gaps(ladder, Rung::application), Texts()) << "100 of 5780 bytes are too few to matter";
  // Whoever sent it, btrfs does not show; nor does a volume, once it got something.
  auto unknown = Host()
                     .drive("sda", {{IoPath::other, 200}, {IoPath::direct, 700}})
                     .drive("sdb", {{IoPath::stacked, 8}})
                     .drive("sdc", {})
                     .drive("sdd", {{IoPath::writeback, 7}}, 5)
                     .volume("dm-0", LayerKind::crypt, {"sdb"})
                     .volume("dm-1", LayerKind::crypt, {"sdc"})
                     .bios("dm-0", 0, 8)
                     .bios("dm-1", 0, 0)
                     .bios("sdb", 0, 8)
                     .bios("sdc", 0, 0);
  EXPECT_EQ(gaps(unknown.ladder(), Rung::application),
            (Texts{"application  not_counted", "application dm-0 direct_unknown", "application sda direct_unknown",
                   "application sdd direct_unknown"}));
  EXPECT_EQ(sum(unknown.ladder(), Rung::application, "sda", RungClass::direct), 700) << "so many at least";
}

TEST(ladder_text, shows_what_is_added_between_two_answers) {
  const auto rung = [](const char* name, const char* device, double bytes, const char* write_class = nullptr) {
    Json one{{"rung", name}, {"device", device}, {"bytes", bytes}};
    if (write_class != nullptr) {
      one["class"] = write_class;
    }
    return one;
  };
  const auto answer = [&](double times) {
    const double mib = times * (1 << 20);
    return Json{{"host_rungs", {rung("application", "", 7 * mib, "page_cache")}},
                {"host_gaps", Json::array()},
                {"ladders",
                 {{{"drives", {"sda", "sdb"}},
                   {"volumes", {"md0"}},
                   {"gaps", Json::array()},
                   {"rungs",
                    {rung("file_system", "md0", 10 * mib, "other"), rung("file_system", "sda", 2 * mib, "journal"),
                     rung("application", "sda", 1 * mib, "direct"), rung("drive", "sda", 12 * mib),
                     rung("drive", "sdb", 10 * mib)}}}}},
                {"layers",
                 {{{"name", "md0"},
                   {"kind", "raid5"},
                   {"read_bytes", 0},
                   {"members_read_bytes", 4 * mib},
                   {"written_bytes", 10 * mib},
                   {"members_written_bytes", 20 * mib}}}}};
  };
  const Json devices{
      {"devices",
       {{{"name", "sda"}, {"nvme", {{"write_amplification", {{"ratio", 1.5}, {"window", "24h"}, {"source", "ocp"}}}}}},
        {{"name", "sdb"}, {"modelled", "modelled 2.4"}}}}};
  std::ostringstream out;
  terminal::print_ladders(answer(1), answer(2), devices, out);
  EXPECT_EQ(out.str(),
            "all of the host\n"
            "  applications                8.4M           direct 1.0M, page_cache 7.3M\n"
            "  file systems               12.6M  x 1.5\n"
            "sda sdb\n"
            "  file systems               12.6M           journal 2.1M, other 10.5M\n"
            "  md0 raid5                  21.0M  x 2      to its members, for 10.5M\n"
            "                              4.2M           extra reads from its members (parity, check, rebuild)\n"
            "  drives                     23.1M  x 1.83\n"
            "  media of sda                      x 1.5    by its own counters, 24h, ocp\n"
            "  media of sdb                               modelled 2.4\n");
  Json lacking = answer(2);
  lacking["ladders"][0]["gaps"] = {{{"rung", "file_system"}, {"device", "dm-1"}, {"reason", "volume_not_measured"}}};
  std::ostringstream text;
  terminal::print_ladders(answer(1), lacking, devices, text);
  EXPECT_NE(text.str().find("without dm-1 (volume_not_measured)"), std::string::npos);
  EXPECT_EQ(text.str().find("x 1.83"), std::string::npos) << "no ratio without it";
  EXPECT_EQ(text.str().find("x 1.5\n"), std::string::npos);
  lacking["ladders"][0]["gaps"] = {{{"rung", "application"}, {"device", "dm-1"}, {"reason", "direct_unknown"}}};
  std::ostringstream direct;
  terminal::print_ladders(answer(1), lacking, devices, direct);
  EXPECT_NE(direct.str().find("page_cache 7.3M; without dm-1 (direct_unknown)"), std::string::npos);
  EXPECT_EQ(direct.str().find("x 1.5\n"), std::string::npos) << "no ratio without it";
  EXPECT_NE(direct.str().find("x 1.83"), std::string::npos) << "the drives are not concerned";
  // md1 appeared between the answers: what it counts was written since.
  Json grows = answer(2);
  grows["ladders"][0]["volumes"] = {"md0", "md1"};
  grows["ladders"][0]["rungs"].push_back(rung("file_system", "md1", 6 << 20, "other"));
  grows["ladders"][0]["rungs"].back()["counts_since"] = 105;
  Json first = answer(1);
  first["taken_at"] = 100;
  std::ostringstream began;
  terminal::print_ladders(first, grows, devices, began);
  EXPECT_NE(began.str().find("file systems               18.9M"), std::string::npos) << began.str();
  EXPECT_NE(began.str().find("x 1.22"), std::string::npos) << "22 of 18 MiB";
  first["ladders"][0]["gaps"] = {{{"rung", "file_system"}, {"device", "md1"}, {"reason", "volume_not_measured"}}};
  std::ostringstream late;
  terminal::print_ladders(first, grows, devices, late);
  EXPECT_NE(late.str().find("without md1 (volume_not_measured)"), std::string::npos) << late.str();
  EXPECT_EQ(late.str().find("x 1.22"), std::string::npos) << "it was there before it was counted";
  std::ostringstream gone;
  terminal::print_ladders(grows, answer(3), devices, gone);
  EXPECT_NE(gone.str().find("without md1 (volume_not_measured)"), std::string::npos) << gone.str();
  EXPECT_EQ(gone.str().find("x 1.83"), std::string::npos);
  std::ostringstream anything;
  terminal::print_ladders({{"host_gaps", 7}, {"ladders", {{{"drives", {"a"}}, {"gaps", 1}}}}},
                          {{"host_gaps", 8}, {"ladders", {{{"drives", {"a"}}, {"gaps", "x"}}}}}, {}, anything);
  terminal::print_ladders(Json("x"), Json{{"ladders", {1, "x", {{"rungs", 7}, {"drives", {{1}}}}}}}, Json(), anything);
  terminal::print_ladders({}, {}, {}, anything);
  EXPECT_NE(anything.str().find("no drive is measured"), std::string::npos);
}

}  // namespace
}  // namespace ssdpulse::model

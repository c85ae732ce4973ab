// SPDX-License-Identifier: Apache-2.0
// Does each rule of the audit reach each of its verdicts when it should? A table of single changes to a healthy host.
#include "daemon/advice/audit.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <tuple>
#include <vector>

#include "tests/unit/audit_facts.h"

namespace ssdpulse::advice {
namespace {

using tests::MadeUpHost;
using Host = MadeUpHost&;
using model::DiscardTrigger;
using model::WriteClass;

struct Row {
  const char* id;
  Verdict verdict;
  std::function<void(MadeUpHost&)> change;
};

constexpr Verdict kOk = Verdict::ok;
constexpr Verdict kInfo = Verdict::info;
constexpr Verdict kAdvise = Verdict::advise;
constexpr Verdict kDanger = Verdict::danger;
constexpr Verdict kUnknown = Verdict::unknown;
constexpr Verdict kNot = Verdict::not_applicable;

std::function<void(MadeUpHost&)> file(const char* name, const char* text) {
  return [=](Host h) { h.disk().files.set(name, text); };
}
std::function<void(MadeUpHost&)> no_files() {
  return [](Host h) { h.disk().files = {}; };
}
std::function<void(MadeUpHost&)> option(const char* name) {
  return [=](Host h) { h.mount().options.insert(name); };
}
std::function<void(MadeUpHost&)> both(std::function<void(MadeUpHost&)> a, std::function<void(MadeUpHost&)> b) {
  return [a, b](Host h) {
    a(h);
    b(h);
  };
}
void nothing(Host /*host*/) {}
void no_nvme(Host h) {
  h.disk().controller_name.clear();
  h.disk().device.transport = "sata";
}
void deadline(Host h) {
  h.disk().device.scheduler = "mq-deadline";
  h.disk().files.set("queue/scheduler", "none [mq-deadline]");
}
std::function<void(MadeUpHost&)> one_queue(const char* transport) {
  return [=](Host h) {
    h.disk().device.transport = transport;
    h.disk().device.paths.front().hardware_queues = 1;
  };
}
void full_queue(Host h) {
  h.disk().files.set("queue/nr_requests", "16");
  h.measured_disk().queue_full_seconds = 1000;
}
void trims_of_both(Host h) {
  h.mount().options.insert("discard");
  h.measured_mount().discarded_bytes[index(DiscardTrigger::fstrim)] = 1e9;
  h.measured_mount().discarded_bytes[index(DiscardTrigger::online)] = 1e9;
}
void never_trimmed(Host h) {
  h.facts.settings.fstrim.enabled = false;
  h.discards(0);
}
/// The timer is enabled, but in so many times `enough` no discard was seen; something was written.
std::function<void(MadeUpHost&)> no_discards(double days, const char* calendar = "weekly") {
  return [=](Host h) {
    h.discards(0);
    h.facts.settings.fstrim.calendar = calendar;
    DeviceEvidence past;
    past.load.measured_ms = 7 * 6 * 3'600'000;
    past.load.operations.at(model::index(model::Operation::write)).bytes = 1'000'000'000'000;
    past.discards_observed_seconds = days * 6 * 3600;
    h.facts.evidence.emplace("nvme0n1", past);
  };
}
/// Of dm-crypt and of the disk below it: a million reads of this many milliseconds.
std::function<void(MadeUpHost&)> crypt_takes(int above, int below, int ios_below = 1'000'000) {
  return [=](Host h) {
    h.array().files.set("stat", fmt::format("1000000 0 8000000 {} 0 0 0 0 0 0 0", above * 1'000'000));
    h.array().files.set("slave/stat", fmt::format("{} 0 8000000 {} 0 0 0 0 0 0 0", ios_below, below * 1'000'000));
  };
}
void random_reads(Host h) {
  h.io(Operation::read, 1e6, 2000, 0, 4e9);
  h.measured(Operation::read).sequential_bytes = 0;
}
void many_tags(Host h) {
  h.disk().files.set("mq/0/nr_tags", "5000");
  h.disk().files.set("queue/nr_requests", "2048");
}
void stopped_discards(Host h) {
  h.mount().volumes = {"md0"};
  h.array().files.set("queue/discard_max_bytes", "0");
}
std::function<void(MadeUpHost&)> encrypted(std::set<std::string> flags, const char* uuid = "CRYPT-LUKS2-x") {
  return [=](Host h) {
    h.array().files.set("dm/uuid", uuid);
    h.array().files.set("dm/name", "data");
    h.array().crypt_flags = flags;
  };
}
std::function<void(MadeUpHost&)> kernel(const char* release) {
  return [=](Host h) { h.facts.settings.files.set("proc/sys/kernel/osrelease", release); };
}
/// Through two controllers, the second one `slower` times as slow; each has `ios` thousand writes.
std::function<void(MadeUpHost&)> two_paths(const char* policy, double slower, int ios = 1000) {
  return [=](Host h) {
    h.disk().device.paths = {{"nvme0c0n1", 4, 1023, 1}, {"nvme0c1n1", 4, 1023, 1}};
    h.disk().files.set("device/iopolicy", policy);
    for (const auto& path : h.disk().device.paths) {
      const double each = path.disk_name == "nvme0c1n1" ? slower : 1;  // ms
      const std::string directory = "paths/" + path.disk_name;
      h.disk().files.set(directory + "/state", "live");
      h.disk().files.set(directory + "/ana_state", "optimized");
      h.disk().files.set(directory + "/stat",
                         fmt::format("7 0 56 70 {} 0 8000 {} 0 0 0", ios * 1000, ios * 1000 * each));
    }
  };
}
void better_blocks(Host h) { h.measured_disk().block_size_ranks = {{512, 2}, {4096, 0}}; }
/// Host memory in MiB.
std::function<void(MadeUpHost&)> asks_for(double preferred, double minimum) {
  return [=](Host h) {
    h.measured_drive().host_memory_preferred_bytes = preferred * (1 << 20);
    h.measured_drive().host_memory_minimum_bytes = minimum * (1 << 20);
  };
}
std::function<void(MadeUpHost&)> machines(std::vector<util::OutsideText> lines) {
  return [=](Host h) { h.facts.settings.virtual_machines = lines; };
}
const char* const kQemuJson =
    R"(qemu-system-x86_64 -blockdev {"driver":"host_device","filename":"/dev/vg0/db1","aio":"threads",)"
    R"("node-name":"libvirt-1-storage"})";
const char* const kQemuTwo =
    "qemu-system-x86_64 -drive file=/dev/vg0/db1,format=raw,if=virtio -drive file=/iso,media=cdrom,aio=io_uring";
void check_runs(Host h) { h.array().files.set("md/sync_action", "check"); }
void may_have_other_options(Host h) { h.mount().unshown.complete = false; }
/// In force by the super block's defaults.
std::function<void(MadeUpHost&)> unshown(const char* name) {
  return [=](Host h) {
    h.mount().options.insert(name);
    h.mount().unshown.in_force.insert(name);
  };
}
std::function<void(MadeUpHost&)> delayed(const char* span) {
  return [=](Host h) { h.facts.settings.fstrim.delay = span; };
}
void much_memory(Host h) { h.facts.settings.memory_bytes = std::uint64_t{512} << 30U; }

const std::vector<Row>& table() {
  static const auto& rows = *new std::vector<Row>{
      {"Q1", kOk, nothing},
      {"Q1", kUnknown, [](Host h) { h.disk().device.scheduler.clear(); }},
      {"Q1", kNot, both(deadline, file("queue/zoned", "host-managed"))},
      {"Q1", kNot, both(deadline, file("queue/scheduler", "[mq-deadline]"))},
      {"Q1", kInfo, deadline},
      {"Q1", kInfo, both(deadline, one_queue("nvme"))},
      {"Q1", kOk, both(deadline, one_queue("sata"))},
      {"Q1", kAdvise, both(deadline, [](Host h) { h.io(Operation::read, 1e6, 1000, 300, 4e9); })},
      {"Q2", kOk, nothing},
      {"Q2", kUnknown, no_files()},
      {"Q2", kInfo, file("queue/nr_requests", "16")},
      {"Q2", kInfo, both(full_queue, file("queue/nr_requests", "1023"))},
      {"Q2", kInfo, both(both(full_queue, deadline), many_tags)},
      {"Q2", kAdvise, full_queue},
      {"Q3", kOk, nothing},
      {"Q3", kUnknown, no_files()},
      {"Q3", kInfo, file("queue/nomerges", "2")},
      {"Q3", kAdvise, both(file("queue/nomerges", "2"),
                           [](Host h) {
                             h.io(Operation::write, 1e6, 100, 0, 4e9);
                             h.measured(Operation::write).sequential_bytes = 3e9;
                           })},
      {"Q5", kOk, nothing},
      {"Q5", kUnknown, no_files()},
      {"Q5", kInfo, [](Host h) {
         h.io(Operation::read, 1000, 1, 0, 1000.0 * 131072);
         h.measured(Operation::read).sequential_bytes = 0;
       }},
      {"Q5", kAdvise, [](Host h) {
         h.io(Operation::read, 1e6, 1, 0, 1e6 * 131072);
         h.measured(Operation::read).sequential_bytes = 0;
       }},
      {"Q6", kOk, nothing},
      {"Q6", kNot, no_files()},
      {"Q6", kInfo, file("queue/wbt_lat_usec", "75000")},
      {"Q6", kAdvise, both(file("queue/wbt_lat_usec", "75000"), [](Host h) { h.excess(SpikeCause::saturation, 1000); })},
      {"Q7", kOk, nothing},
      {"Q7", kUnknown, no_files()},
      {"Q7", kInfo, [](Host h) { h.io(Operation::read, 1e5, 800, 0, 4e8); }},
      {"Q7", kInfo, [](Host h) { h.disk().device.rotational = true; }},
      {"Q7", kAdvise, [](Host h) {
         h.disk().device.rotational = true;
         h.io(Operation::read, 1e5, 10, 0, 4e8);
       }},
      {"Q8", kOk, nothing},
      {"Q8", kUnknown, no_files()},
      {"Q8", kDanger, both(file("queue/write_cache", "write through"), file("scsi_cache_type", "write back"))},
      {"Q9", kOk, nothing},
      {"Q9", kUnknown, no_files()},
      {"Q9", kInfo, file("queue/max_sectors_kb", "64")},
      {"Q9", kAdvise, both(file("queue/max_sectors_kb", "64"), [](Host h) { h.io(Operation::write, 1e6, 1, 0, 1e6 * 65536); })},
      {"Q9", kAdvise, both(file("queue/max_sectors_kb", "2048"),
                           [](Host h) {
                             h.measured_disk().timeouts = 2;
                           })},
      {"Q10", kOk, nothing},
      {"Q10", kUnknown, no_files()},
      {"Q10", kInfo, file("queue/iostats", "0")},
      {"Q10", kNot, both(file("queue/iostats", "0"), [](Host h) { h.disk().device.has_requests = false; })},
      {"Q10", kNot, both(file("queue/iostats", "0"),
                         [](Host h) { h.measured_disk().unseen = true; })},
      {"Q10", kAdvise, both(file("queue/iostats", "0"),
                            [](Host h) {
                              h.measured_disk().unstamped_ios = 5;
                            })},
      {"Q11", kOk, nothing},
      {"Q11", kUnknown, no_files()},
      {"Q11", kNot, both(no_files(), file("queue/nr_requests", "64"))},
      {"Q11", kInfo, file("queue/io_timeout", "4294967295")},
      {"Q11", kAdvise, [](Host h) {
         h.disk().device.model = "Amazon Elastic Block Store";
         h.measured_disk().timeouts = 2;
       }},
      {"Q13", kOk, nothing},
      {"Q13", kUnknown, no_files()},
      {"Q13", kNot, file("queue/discard_max_bytes", "0")},
      {"Q13", kInfo, file("queue/discard_max_bytes", "2199023255040")},
      {"Q13", kAdvise, both(file("queue/discard_max_bytes", "2199023255040"),
                            [](Host h) {
                              h.excess(SpikeCause::discard, 1000);
                              h.io(Operation::discard, 10, 10, 0, 1e10);
                            })},
      {"Q14", kOk, nothing},
      {"Q14", kUnknown, [](Host h) { h.facts.settings.cpus.reset(); }},
      {"Q14", kNot, [](Host h) { h.disk().device.transport = "sata"; }},
      {"Q14", kInfo, [](Host h) { h.facts.settings.cpus = 64; }},
      {"Q14", kAdvise, [](Host h) {
         h.facts.settings.cpus = 64;
         h.disk().device.transport = "virtio";
         h.excess(SpikeCause::queue, 1000);
       }},
      {"N1", kOk, nothing},
      {"N1", kOk, [](Host h) { h.disk().device.logical_block_bytes = 4096; }},
      {"N1", kNot, no_nvme},
      {"N1", kUnknown, [](Host h) { h.measured_for({}); }},
      {"N1", kUnknown, [](Host h) { h.measured_disk().block_size_ranks.clear(); }},
      {"N1", kInfo, better_blocks},
      {"N1", kAdvise, both(better_blocks, [](Host h) { h.excess(SpikeCause::saturation, 1000); })},
      {"N2", kOk, nothing},
      {"N2", kInfo, [](Host h) { h.disk().partitions[0].start_bytes = 63 * 512; }},
      {"N2", kAdvise, [](Host h) {
         h.disk().partitions[0].start_bytes = 63 * 512;
         h.io(Operation::write, 1e7, 1, 0, 100e9);
         h.measured_disk().misaligned_bytes = 90e9;
       }},
      {"N2", kInfo, [](Host h) {
         h.disk().partitions[0].start_bytes = 63 * 512;
         h.disk().device.write_granularity_bytes = 512;  // at a granularity of 512 bytes nothing is misaligned
         h.io(Operation::write, 1e7, 1, 0, 100e9);
         h.measured_disk().misaligned_bytes = 90e9;
       }},
      {"N3", kOk, nothing},
      {"N3", kNot, [](Host h) { h.array().files = {}; }},
      {"N3", kInfo, [](Host h) { h.array().files.set("md/chunk_size", "512"); }},
      {"N3", kAdvise, [](Host h) {
         h.array().files.set("md/dev-nvme0n1p1/offset", "2049");
         h.measured_disk().misaligned_bytes = 90e9;
       }},
      {"N3", kAdvise, [](Host h) {  // next to a member that prefers larger units and is aligned
         h.array().files.set("md/dev-nvme0n1p1/offset", "2049");
         h.measured_disk().misaligned_bytes = 90e9;
         model::DiskSettings other = h.disk();
         other.device.name = "nvme1n1";
         other.device.write_granularity_bytes = 16384;
         other.partitions.clear();
         h.facts.settings.disks.push_back(other);
         h.array().disks.push_back("nvme1n1");
         h.array().files.set("md/dev-nvme1n1/offset", "2048");
       }},
      {"N3", kInfo, [](Host h) {
         h.array().files.set("md/dev-nvme0n1p1/offset", "2049");
         h.disk().device.write_granularity_bytes = 512;
         h.measured_disk().misaligned_bytes = 90e9;
       }},
      {"N4", kOk, nothing},
      {"N4", kNot, no_nvme},
      {"N4", kUnknown, [](Host h) { h.measured_drive().write_amplification_lower_24h.reset(); }},
      {"N4", kInfo, [](Host h) { h.amplification(3); }},
      {"N4", kAdvise, [](Host h) {
         h.amplification(3);
         h.disk().partitions[0].size_bytes = 999'000'000'000;
       }},
      {"N7", kOk, nothing},
      {"N7", kNot, no_nvme},
      {"N7", kUnknown, [](Host h) { h.disk().controller.set("device/current_link_speed", "Unknown"); }},
      {"N7", kInfo, [](Host h) { h.disk().controller.set("device/current_link_width", "1"); }},
      {"N7", kAdvise, [](Host h) {
         h.disk().controller.set("device/current_link_width", "1");
         h.excess(SpikeCause::saturation, 1000);
       }},
      {"N9", kOk, nothing},
      {"N9", kNot, no_nvme},
      {"N9", kUnknown, [](Host h) { h.measured_drive().composite_celsius.reset(); }},
      {"N9", kInfo, [](Host h) {
         h.measured_drive().thermal_throttle_seconds = 86400;
         h.measured_drive().power_on_seconds = 864000;
       }},
      {"N9", kAdvise, [](Host h) { h.excess(SpikeCause::thermal, 1000); }},
      {"N10", kOk, nothing},
      {"N10", kNot, no_nvme},
      {"N10", kUnknown, [](Host h) { h.measured_drive().percentage_used_ratio.reset(); }},
      {"N10", kAdvise, [](Host h) { h.measured_drive().media_errors = 1; }},
      {"N10", kDanger, [](Host h) {
         h.measured_drive().warnings[2] = 1;
       }},
      // The daemon reads the drive through another controller of its subsystem than the audit.
      {"N10", kDanger, [](Host h) {
         h.disk().controller_name = "nvme7";
         h.measured_disk().controller = "nvme0";
         h.measured_drive().available_spare_ratio = 0.03;
       }},
      {"N11", kOk, nothing},
      {"N11", kNot, [](Host h) {
         h.disk().device.transport = "virtio";
         h.disk().device.model.clear();
       }},
      {"N11", kUnknown, [](Host h) { h.disk().device.firmware.clear(); }},
      {"N11", kInfo, [](Host h) {
         h.disk().device.model = "Samsung SSD 990 PRO 2TB";
         h.disk().device.firmware = "0B2QJXD7";
       }},
      {"N11", kDanger, [](Host h) {
         h.disk().device.model = "Samsung SSD 980 PRO 1TB";
         h.disk().device.firmware = "3B2QGXA7";
       }},
      {"N12", kOk, nothing},
      {"N12", kNot, no_nvme},
      {"N12", kNot, asks_for(0, 0)},
      {"N12", kUnknown, [](Host h) { h.measured_for({}); }},
      {"N12", kUnknown, [](Host h) { h.measured_drive().host_memory_preferred_bytes.reset(); }},
      {"N12", kUnknown, [](Host h) { h.facts.settings.files = {}; }},
      {"N12", kOk, asks_for(128, 128)},
      {"N12", kInfo, asks_for(200, 16)},
      {"N12", kInfo, asks_for(200, 129)},
      {"N12", kAdvise, both(asks_for(200, 129), random_reads)},
      {"N12", kAdvise, both(asks_for(200, 16), random_reads)},
      {"N12", kInfo, [](Host h) { h.disk().controller.set("hmb", "0"); }},
      {"N13", kNot, nothing},
      {"N13", kUnknown, no_nvme},
      {"N13", kOk, both(no_nvme, file("device/queue_depth", "31"))},
      {"N13", kOk, both(both(no_nvme, file("device/queue_depth", "1")), file("mq/0/nr_tags", "1"))},
      {"N13", kInfo, both(no_nvme, file("device/queue_depth", "1"))},
      {"N13", kAdvise, both(both(no_nvme, file("device/queue_depth", "1")), [](Host h) { h.excess(SpikeCause::queue, 1000); })},
      {"N14", kNot, nothing},
      {"N14", kOk, [](Host h) { h.disk().device.paths.resize(2); }},
      {"N14", kOk, two_paths("round-robin", 1.4)},
      {"N14", kOk, two_paths("queue-depth", 3)},
      {"N14", kOk, both(two_paths("round-robin", 3), file("paths/nvme0c1n1/ana_state", "non-optimized"))},
      {"N14", kOk, both(two_paths("round-robin", 3), file("paths/nvme0c1n1/stat", "9999 0 0 99990 9999 0 0 99990"))},
      {"N14", kInfo, two_paths("round-robin", 3, 50)},
      {"N14", kOk, both(two_paths("round-robin", 3),  // larger I/Os
                        file("paths/nvme0c1n1/stat", "7 0 56 70 1000000 0 16000 3000000"))},
      {"N14", kOk, both(two_paths("round-robin", 3),  // over a shorter time
                        file("paths/nvme0c1n1/stat", "7 0 56 70 500000 0 4000 1500000"))},
      {"N14", kInfo, both(two_paths("round-robin", 3), kernel("6.10.3"))},
      {"N14", kInfo, both(two_paths("queue-depth", 3), file("paths/nvme0c1n1/state", "connecting"))},
      {"N14", kInfo, both(two_paths("round-robin", 3), [](Host h) { h.facts.settings.uptime_seconds.reset(); })},
      {"N14", kInfo, both(two_paths("round-robin", 3), [](Host h) { h.facts.settings.uptime_seconds = 3600; })},
      {"N14", kAdvise, two_paths("round-robin", 3)},
      {"N14", kAdvise, both(two_paths("round-robin", 3), kernel("7.0.0-rc1"))},
      {"N14", kInfo, two_paths("numa", 3)},
      {"N14", kUnknown, [](Host h) {
         h.disk().device.paths.resize(2);
         h.measured_disk().failovers.reset();
       }},
      {"N14", kInfo, [](Host h) {
         h.disk().device.paths.resize(2);
         h.measured_disk().failovers = 4;
       }},
      {"N16", kOk, nothing},
      {"N16", kInfo, [](Host h) {
         h.disk().device.write_back_cache = false;
         h.commits(1e6, 11000);
       }},
      {"N16", kOk, [](Host h) { h.disk().device.write_back_cache = false; }},
      {"N16", kUnknown, [](Host h) { h.measured_disk().commit_seconds = {}; }},
      {"N16", kInfo, [](Host h) { h.commits(1e4, 1100); }},
      {"N16", kAdvise, [](Host h) { h.commits(1e5, 11000); }},
      {"F1", kOk, nothing},
      {"F1", kUnknown, [](Host h) { h.facts.settings.fstrim.enabled.reset(); }},
      {"F1", kInfo, option("discard")},
      {"F1", kNot, both(trims_of_both, [](Host h) { h.disk().device.discard = false; })},
      {"F1", kAdvise, trims_of_both},
      {"F1", kInfo, both(trims_of_both, [](Host h) { h.facts.settings.fstrim.enabled = false; })},
      {"F1", kOk, both(option("discard"), [](Host h) { h.facts.settings.fstrim.enabled = false; })},
      {"F1", kUnknown, may_have_other_options},
      {"F1", kOk, both(never_trimmed, may_have_other_options)},
      {"F2", kNot, nothing},
      {"F2", kNot, both(both(never_trimmed, option("discard")), stopped_discards)},
      {"F2", kUnknown, [](Host h) { h.facts.settings.fstrim.enabled.reset(); }},
      {"F2", kInfo, both(never_trimmed, option("discard"))},
      {"F2", kUnknown, both(never_trimmed, may_have_other_options)},
      {"F2", kAdvise, both(both(never_trimmed, option("discard")), [](Host h) { h.excess(SpikeCause::discard, 1000); })},
      {"F3", kOk, nothing},
      {"F3", kUnknown, [](Host h) { h.facts.settings.fstrim.enabled.reset(); }},
      {"F3", kNot, never_trimmed},
      {"F3", kInfo, no_discards(31)},
      {"F3", kOk, no_discards(3)},
      {"F3", kNot, both(trims_of_both, [](Host h) {
         h.burst_seconds(DiscardTrigger::fstrim, 500);
       })},
      {"F3", kInfo, [](Host h) {
         h.burst_seconds(DiscardTrigger::fstrim, 100);
       }},
      {"F3", kAdvise, [](Host h) {
         h.burst_seconds(DiscardTrigger::fstrim, 100);
         h.excess(SpikeCause::discard, 1000);
       }},
      {"F1", kInfo, both(no_discards(34), option("discard"))},
      {"F7", kDanger, both(option("barrier=none"), [](Host h) { h.disk().device.write_back_cache = true; })},
      {"Q5", kNot, [](Host h) { h.disk().device.has_requests = false; }},
      {"F4", kOk, nothing},
      {"F4", kNot, both(never_trimmed, [](Host h) { h.disk().device.discard = false; })},
      {"F4", kNot, both(never_trimmed, stopped_discards)},
      {"F4", kNot, both(never_trimmed, [](Host h) { h.mount().options = {"ro"}; })},
      {"F4", kUnknown, both(never_trimmed, [](Host h) { h.facts.settings.fstrim.enabled.reset(); })},
      {"F4", kUnknown, both(never_trimmed, may_have_other_options)},
      {"F4", kOk, may_have_other_options},
      {"F4", kInfo, never_trimmed},
      {"F4", kOk, no_discards(3)},
      {"F4", kInfo, no_discards(9)},
      {"F4", kOk, no_discards(8, "monthly")},
      {"F4", kOk, no_discards(8, "monthly UTC")},
      {"F4", kOk, no_discards(36, "*-*-31 00:00")},
      {"F4", kOk, both(no_discards(8), delayed("2w"))},
      {"F4", kOk, both(no_discards(8), delayed("soon"))},
      {"F4", kInfo, both(no_discards(9), delayed("6000"))},
      {"F4", kInfo, both(no_discards(9), delayed("1h 30min"))},
      {"F4", kInfo, no_discards(2, "*-*-* 03:00 Europe/Berlin")},
      {"F4", kOk, no_discards(31, "*-*-01 03:00")},
      {"F4", kOk, no_discards(31, "Sun *-*-1..7 03:00")},
      {"F4", kInfo, no_discards(36, "monthly")},
      {"F4", kInfo, no_discards(2, "*-*-* 03:00")},
      {"F4", kInfo, both(no_discards(31), option("discard"))},
      {"F4", kOk, both(no_discards(31), [](Host h) { h.facts.evidence.at("nvme0n1").discarded_bytes = 1; })},
      {"F4", kOk, both(no_discards(31), [](Host h) {
         h.facts.evidence.at("nvme0n1").load.operations.at(model::index(model::Operation::write)).bytes = 0;
       })},
      {"F4", kNot, both(no_discards(31), stopped_discards)},
      {"F4", kAdvise, both(no_discards(31), [](Host h) { h.amplification(2); })},
      {"F4", kAdvise, both(never_trimmed, [](Host h) { h.amplification(2); })},
      {"F5", kOk, nothing},
      {"F5", kUnknown, [](Host h) { h.array().files = {}; }},
      {"F5", kNot, [](Host h) { h.disk().device.discard = false; }},
      {"F5", kInfo, [](Host h) { h.array().files.set("queue/discard_max_bytes", "0"); }},
      {"F5", kAdvise, [](Host h) {
         h.array().files.set("queue/discard_max_bytes", "0");
         h.array().files.set("dm/uuid", "CRYPT-LUKS2-x");
         h.array().files.set("dm/name", "data");
         h.amplification(2);
       }},
      {"F5", kAdvise, both(encrypted({"same_cpu_crypt"}),
                           [](Host h) {
                             h.array().files.set("queue/discard_max_bytes", "0");
                             h.amplification(2);
                           })},
      {"F5", kInfo, [](Host h) {
         h.array().files.set("queue/discard_max_bytes", "0");
         h.array().files.set("dm/uuid", "CRYPT-VERITY-x");
         h.amplification(2);
       }},
      {"F6", kNot, nothing},
      {"F6", kNot, [](Host h) { h.array().files.set("dm/uuid", "CRYPT-VERITY-x"); }},
      {"F6", kNot, encrypted({}, "CRYPT-PLAIN-x")},
      {"F6", kNot, both(encrypted({}), [](Host h) { h.disk().device.rotational = true; })},
      {"F6", kUnknown, [](Host h) { h.array().files.set("dm/uuid", "CRYPT-LUKS2-x"); }},
      {"F6", kInfo, encrypted({"allow_discards"})},
      {"F6", kInfo, encrypted({"no_write_workqueue"})},
      {"F6", kInfo, both(encrypted({}), crypt_takes(2, 2))},
      {"F6", kInfo, both(encrypted({}), crypt_takes(9, 2, 2'000'000))},
      {"F6", kInfo, both(both(encrypted({}), crypt_takes(9, 2)), [](Host h) { h.facts.settings.uptime_seconds.reset(); })},
      {"F6", kAdvise, both(encrypted({}), crypt_takes(9, 2))},
      {"F6", kOk, encrypted({"no_read_workqueue", "no_write_workqueue"})},
      {"F7", kOk, nothing},
      {"F7", kDanger, option("nobarrier")},
      {"F7", kDanger, unshown("nobarrier")},
      {"F7", kDanger, both(option("nobarrier"), may_have_other_options)},
      {"F7", kUnknown, may_have_other_options},
      {"F7", kInfo, both(option("barrier=0"), [](Host h) { h.disk().device.write_back_cache = false; })},
      {"F8", kOk, nothing},
      {"F8", kNot, [](Host h) { h.mount().fstype = "xfs"; }},
      {"F8", kInfo, option("data=writeback")},
      {"F8", kInfo, unshown("data=writeback")},
      {"F8", kInfo, [](Host h) { h.mount().unshown.journal = false; }},
      {"F8", kUnknown, may_have_other_options},
      {"F8", kInfo, option("data=journal")},
      {"F8", kAdvise, both(option("data=journal"),
                           [](Host h) {
                             h.written(WriteClass::journal, 50e9);
                             h.written(WriteClass::writeback, 50e9);
                           })},
      {"F9", kOk, nothing},
      {"F9", kOk, may_have_other_options},
      {"F9", kUnknown, both(may_have_other_options, [](Host h) { h.mount().options.clear(); })},
      {"F9", kInfo, [](Host h) { h.mount().options.clear(); }},
      {"F9", kAdvise, [](Host h) {
         h.mount().options.clear();
         h.written(WriteClass::metadata, 50e9);
       }},
      {"F12", kOk, nothing},
      {"F12", kUnknown, [](Host h) { h.mount().used_ratio.reset(); }},
      {"F12", kUnknown, [](Host h) { h.mount().answers = false; }},
      {"F12", kNot, [](Host h) { h.mount().options = {"ro"}; }},
      {"F12", kInfo, [](Host h) { h.mount().used_ratio = 0.95; }},
      {"F12", kAdvise, [](Host h) {
         h.mount().used_ratio = 0.95;
         h.amplification(3);
       }},
      {"F12", kAdvise, [](Host h) {
         h.measured_mount().available_bytes = 1e9;
         h.measured_mount().filling_bytes_per_second = 1e5;
       }},
      {"F12", kOk, [](Host h) {  // in four months
         h.measured_mount().available_bytes = 1e12;
         h.measured_mount().filling_bytes_per_second = 1e5;
       }},
      {"F13", kOk, nothing},
      {"F13", kUnknown, [](Host h) { h.facts.settings.memory_bytes.reset(); }},
      {"F13", kInfo, much_memory},
      {"F13", kAdvise, both(much_memory,
                            [](Host h) {
                              h.written(WriteClass::writeback, 1e9);
                              h.excess(SpikeCause::queue, 1000);
                            })},
      {"F14", kNot, nothing},
      {"F14", kUnknown, [](Host h) { h.facts.settings.swaps = {{"/dev/gone", {}, false}}; }},
      {"F14", kNot, [](Host h) { h.facts.settings.swaps = {{"/dev/zram0", {"zram0"}, true}}; }},
      {"F14", kInfo, [](Host h) {
         h.facts.settings.swaps = {{"/dev/gone", {}, false}, {"/swapfile", {"nvme0n1", "nvme1n1"}, true}};
       }},
      {"F14", kInfo, [](Host h) { h.facts.settings.swaps = {{"/dev/nvme0n1p1", {"nvme0n1"}, true}}; }},
      {"F14", kAdvise, [](Host h) {
         h.facts.settings.swaps = {{"/dev/nvme0n1p1", {"nvme0n1"}, true}};
         h.written(WriteClass::swap, 9e9);
       }},
      {"F15", kOk, nothing},
      {"F15", kInfo, [](Host h) { h.facts.settings.cgroup_limits = {{"a.slice/io.max", "259:0 rbps=1"}}; }},
      {"F15", kInfo, [](Host h) {
         h.facts.measured.tenant_limits = true;
       }},
      {"F15", kAdvise, [](Host h) { h.facts.measured.cgroup_limit_seconds = 200; }},
      {"F15", kOk, [](Host h) { h.facts.measured.cgroup_limit_seconds = 0; }},
      {"F17", kOk, nothing},
      {"F17", kNot, [](Host h) { h.array().files = {}; }},
      {"F17", kInfo, check_runs},
      {"F17", kAdvise, both(check_runs, [](Host h) { h.excess(SpikeCause::saturation, 1000); })},
      {"F17", kInfo, both(check_runs, [](Host h) { h.spike_that_goes_on(SpikeCause::gc, 1000); })},
      {"F17", kAdvise, both(check_runs, [](Host h) { h.spike_that_goes_on(SpikeCause::saturation, 1000); })},
      {"F18", kNot, nothing},
      {"F18", kUnknown, machines({""})},
      {"F18", kUnknown, machines({"qemu -readconfig db1.cfg"})},
      {"F18", kNot, machines({"qemu -nographic -drive file=rbd:pool/db1"})},
      {"F18", kInfo, machines({"qemu -drive file=x,aio=threads"})},
      {"F18", kInfo, machines({kQemuJson})},
      {"F18", kInfo, machines({kQemuTwo})},
      {"F18", kInfo, machines({"qemu -drive file=x,aio=native", kQemuJson})},
      {"F18", kOk, machines({"qemu -drive file=x,aio=io_uring"})},
      {"F18", kAdvise, both(machines({kQemuJson}), [](Host h) {
         h.measured_disk().path_ios[index(model::IoPath::sync)] = 50e6;
       })},
      {"F18", kInfo, both(machines({kQemuJson}), [](Host h) {
         h.measured_disk().path_ios[index(model::IoPath::io_uring)] = 50e6;
       })},
      {"F21", kOk, nothing},
      {"F21", kNot, no_nvme},
      {"F21", kUnknown, [](Host h) { h.measured_drive().log_read_latency_effect_ratio.reset(); }},
      {"F21", kAdvise, [](Host h) {
         h.measured_drive().log_read_latency_effect_ratio = 2;
       }},
      {"F21", kInfo, [](Host h) {
         h.measured_drive().log_read_latency_effect_ratio = 2;
         h.facts.enough = std::chrono::hours(72);
       }},
  };
  return rows;
}

Finding of(const std::vector<Finding>& all, const std::string& id) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& one) { return one.id == id; });
  EXPECT_NE(found, all.end()) << id;
  return found == all.end() ? Finding{} : *found;
}

std::string_view word(Verdict verdict) { return model::kVerdictNames[static_cast<std::size_t>(verdict)]; }

TEST(audit, every_verdict_of_every_rule) {
  for (const Row& row : table()) {
    MadeUpHost host;
    row.change(host);
    const Finding finding = of(judge(host.facts), row.id);
    EXPECT_EQ(word(finding.verdict), word(row.verdict)) << row.id << ": " << finding.found << ": " << finding.why;
    EXPECT_FALSE(finding.found.empty() || finding.source.empty()) << row.id;
    const bool needs_reason = row.verdict != kOk;
    EXPECT_EQ(finding.why.empty(), !needs_reason) << row.id << ": " << finding.why;
    if (row.verdict == kAdvise) {
      EXPECT_FALSE(finding.change.empty() || finding.risk.empty() || finding.evidence.empty()) << row.id;
    }
  }
}

TEST(audit, every_rule_is_in_the_table) {
  std::set<std::string> known;
  for (const Row& row : table()) {
    known.insert(row.id);
  }
  for (const Rule& rule : rules()) {
    EXPECT_EQ(known.erase(std::string(rule.id)), 1U) << rule.id;
  }
  EXPECT_TRUE(known.empty());
}

TEST(audit, every_rule_can_advise_or_warn) {
  std::set<std::string> silent;
  for (const Rule& rule : rules()) {
    silent.insert(std::string(rule.id));
    EXPECT_EQ(rule.limit.rfind("never", 0), std::string_view::npos) << rule.id;
  }
  for (const Row& row : table()) {
    if (row.verdict == kAdvise || row.verdict == kDanger) {
      silent.erase(row.id);
    }
  }
  EXPECT_TRUE(silent.empty()) << *silent.begin();
}

TEST(audit, does_not_claim_trimming_where_nothing_was_discarded) {
  for (const bool online : {false, true}) {
    MadeUpHost host;
    no_discards(31)(host);
    if (online) {
      host.mount().options.insert("discard");
    }
    const Finding one = of(judge(host.facts), "F4");
    EXPECT_NE(one.found.find("yet nothing was discarded in the 7 d 18 h measured"), std::string::npos) << one.found;
    EXPECT_EQ((one.found + one.why).find("it is trimmed"), (one.found + one.why).find("it is trimmed, ")) << one.found;
  }
}

TEST(audit, advises_nothing_without_measurements_or_before_enough_of_them) {
  for (const Row& row : table()) {
    if (row.verdict != kAdvise || std::string(row.id) == "N10" || std::string(row.id) == "Q10") {
      continue;  // errors and blind spots need no measurements
    }
    MadeUpHost blind;
    row.change(blind);
    blind.measured_for({});
    EXPECT_NE(of(judge(blind.facts), row.id).verdict, kAdvise) << row.id;
    MadeUpHost early;
    row.change(early);
    early.facts.enough = std::chrono::hours(49);
    const Verdict verdict = of(judge(early.facts), row.id).verdict;
    EXPECT_TRUE(verdict == kInfo || verdict == kOk) << row.id;  // ok: what is measured may still happen
  }
}

TEST(audit, a_host_that_is_well) {
  for (const Finding& one : judge(MadeUpHost().facts)) {
    EXPECT_TRUE(one.verdict == kOk || one.verdict == kNot) << one.id << ": " << one.found;
  }
}

TEST(audit, changes_are_what_a_shell_understands) {
  MadeUpHost host;
  deadline(host);
  const Finding one = of(judge(host.facts), "Q1");
  EXPECT_EQ(one.change, "echo none > /sys/block/nvme0n1/queue/scheduler");
  EXPECT_EQ(one.undo,
            "echo mq-deadline > /sys/block/nvme0n1/queue/scheduler; "
            "rm -f /etc/udev/rules.d/60-ssdpulse-nvme0n1-scheduler.rules");
  EXPECT_EQ(one.persistent, R"(echo 'ACTION=="add|change", KERNEL=="nvme0n1", ATTR{queue/scheduler}="none"' > )"
                            "/etc/udev/rules.d/60-ssdpulse-nvme0n1-scheduler.rules");
}

TEST(audit, undoes_what_the_kernel_would_refuse_to_take_back) {
  MadeUpHost host;
  host.disk().files.set("queue/discard_max_bytes", "4294966784");  // not a multiple of 4096
  EXPECT_EQ(of(judge(host.facts), "Q13").undo,
            "echo 4294963200 > /sys/block/nvme0n1/queue/discard_max_bytes; "
            "rm -f /etc/udev/rules.d/60-ssdpulse-nvme0n1-discard_max_bytes.rules");
}

TEST(audit, undo_removes_each_file_that_was_made_for_good) {
  MadeUpHost host;
  much_memory(host);
  host.facts.settings.swaps = {{"/dev/nvme0n1p1", {"nvme0n1"}, true}};
  for (const auto& [name, text] : std::vector<std::pair<const char*, const char*>>{
           {"queue/nomerges", "2"}, {"queue/wbt_lat_usec", "75000"}, {"queue/iostats", "0"}}) {
    host.disk().files.set(name, text);
  }
  int files = 0;
  for (const Finding& one : judge(host.facts)) {
    const auto to = one.persistent.find(" > /etc/");
    if (to != std::string::npos) {
      ++files;
      EXPECT_NE(one.undo.find("; rm -f " + one.persistent.substr(to + 3)), std::string::npos) << one.id << one.undo;
    }
  }
  EXPECT_EQ(files, 5);
}

TEST(audit, rules_of_udev_match_the_disk_and_not_its_name_of_today) {
  MadeUpHost host;
  deadline(host);
  host.disk().device.name = "sda";
  host.disk().device.wwid = "t10.ATA     Disk 1   S1";
  EXPECT_EQ(of(judge(host.facts), "Q1").persistent,
            R"(echo 'ACTION=="add|change", KERNEL=="sd*", ATTR{device/wwid}=="t10.ATA     Disk 1   S1", )"
            R"(ATTR{queue/scheduler}="none"' > /etc/udev/rules.d/60-ssdpulse-t10.ATA_____Disk_1___S1-scheduler.rules)");
  for (const char* none : {"", "naa.5*", "x\", RUN+=\"reboot"}) {
    host.disk().device.wwid = none;
    const Finding one = of(judge(host.facts), "Q1");
    EXPECT_EQ(one.persistent, "");
    EXPECT_EQ(one.undo, "echo mq-deadline > /sys/block/sda/queue/scheduler");
    EXPECT_NE(one.why.find("no udev rule"), std::string::npos);
  }
}

TEST(audit, drops_the_dearer_trim) {
  MadeUpHost host;
  trims_of_both(host);
  EXPECT_EQ(of(judge(host.facts), "F1").change, "mount -o remount,nodiscard /data");
  host.burst_seconds(DiscardTrigger::fstrim, 500);
  host.burst_seconds(DiscardTrigger::online, 50);
  EXPECT_EQ(of(judge(host.facts), "F1").change.rfind("systemctl disable --now fstrim.timer", 0), 0U);
}

TEST(audit, unmounts_xfs_which_takes_the_option_at_a_remount_and_ignores_it) {
  MadeUpHost host;
  trims_of_both(host);
  host.mount().fstype = "xfs";
  const Finding one = of(judge(host.facts), "F1");
  EXPECT_EQ(one.change, "umount /data && mount -o nodiscard /data");
  EXPECT_EQ(one.undo.rfind("umount /data && mount -o discard /data", 0), 0U) << one.undo;
}

TEST(audit, remounts_only_with_options_that_the_file_system_has) {
  MadeUpHost host;
  trims_of_both(host);
  host.mount().fstype = "vfat";
  const Finding one = of(judge(host.facts), "F1");
  EXPECT_EQ(one.change, "remove discard from the options of /data in /etc/fstab, unmount it and mount it again");
  EXPECT_EQ(one.undo, "add discard to its options again, unmount it and mount it again");
}

TEST(audit, lets_discards_pass_for_good_where_the_header_keeps_it_and_where_crypttab_does) {
  for (const bool luks2 : {true, false}) {
    MadeUpHost host;
    encrypted({}, luks2 ? "CRYPT-LUKS2-x" : "CRYPT-LUKS1-x")(host);
    host.array().files.set("queue/discard_max_bytes", "0");
    host.amplification(2);
    const Finding one = of(judge(host.facts), "F5");
    EXPECT_EQ(one.change, "cryptsetup refresh --allow-discards data");
    EXPECT_EQ(one.persistent, luks2 ? "cryptsetup refresh --allow-discards --persistent data"
                                    : "add discard to the options of data in /etc/crypttab");
  }
}

TEST(audit, gives_no_command_that_erases_a_drive) {
  MadeUpHost host;
  better_blocks(host);
  auto& settings = host.facts.settings;
  settings.arrays.clear();
  settings.mounts.clear();
  host.disk().partitions.clear();
  host.measured(Operation::write).bytes = 0;
  const Finding one = of(judge(host.facts), "N1");
  EXPECT_NE(one.change.find("the next drive"), std::string::npos) << "a volume that is not active is not seen";
  EXPECT_EQ((one.change + one.undo).find("nvme format"), std::string::npos) << one.change;
  EXPECT_EQ(one.persistent, "");
  EXPECT_NE(one.why.find("erases everything on it"), std::string::npos) << one.why;
}

TEST(audit, a_drive_gets_the_memory_that_the_host_can_spare) {
  MadeUpHost host;
  asks_for(199.5, 129)(host);
  const Finding one = of(judge(host.facts), "N12");
  EXPECT_EQ(one.change, "nvme.max_host_mem_size_mb=200 on the kernel's command line, then restart the host");
  EXPECT_NE(one.found.find("and gets none"), std::string::npos) << one.found;
  asks_for(16.0 * (1 << 20), 16)(host);  // the largest value of the field
  EXPECT_EQ(of(judge(host.facts), "N12").change, "");
  host.facts.settings.memory_bytes.reset();
  asks_for(200, 16)(host);
  EXPECT_EQ(of(judge(host.facts), "N12").change, "");
}

TEST(audit, a_policy_of_paths_is_changed_for_good_and_back_and_no_failover_is_hidden) {
  MadeUpHost host;
  two_paths("round-robin", 3)(host);
  host.measured_disk().failovers = 4;
  const Finding one = of(judge(host.facts), "N14");
  EXPECT_EQ(one.verdict, kAdvise);
  EXPECT_EQ(one.change, "echo queue-depth > /sys/block/nvme0n1/device/iopolicy");
  EXPECT_EQ(one.undo,
            "echo round-robin > /sys/block/nvme0n1/device/iopolicy; "
            "rm -f /etc/udev/rules.d/60-ssdpulse-nvme0n1-iopolicy.rules");
  EXPECT_NE(one.persistent.find("60-ssdpulse-nvme0n1-iopolicy.rules"), std::string::npos) << one.persistent;
  EXPECT_NE(one.why.find("a path failed with I/Os in flight"), std::string::npos) << one.why;
  EXPECT_DOUBLE_EQ(one.evidence.at("path_latency_ratio"), 3);
  EXPECT_DOUBLE_EQ(*one.excess_seconds_per_day, 1000);  // a million writes, 2 ms each, in two days
  EXPECT_EQ(one.observed_seconds, 172800);
  EXPECT_EQ(one.observer, model::Observer::kernel);
  two_paths("numa", 3)(host);
  EXPECT_EQ(of(judge(host.facts), "N14").change, "") << "each path has a load of its own";
  two_paths("round-robin", 3)(host);
  kernel("6.10")(host);
  EXPECT_EQ(of(judge(host.facts), "N14").change, "") << "which the kernel would refuse";
}

TEST(audit, a_refresh_of_a_volume_keeps_the_flags_that_it_has) {
  MadeUpHost host;
  encrypted({"allow_discards", "same_cpu_crypt"})(host);
  const Finding one = of(judge(host.facts), "F6");
  EXPECT_EQ(one.change,
            "cryptsetup refresh --allow-discards --perf-no_read_workqueue --perf-no_write_workqueue "
            "--perf-same_cpu_crypt data");
  EXPECT_EQ(one.persistent,
            "cryptsetup refresh --allow-discards --perf-no_read_workqueue --perf-no_write_workqueue "
            "--perf-same_cpu_crypt --persistent data");
  EXPECT_EQ(one.undo,
            "cryptsetup refresh --allow-discards --perf-same_cpu_crypt data  # --persistent if it was made for good");
  encrypted({}, "CRYPT-LUKS1-x")(host);
  EXPECT_EQ(of(judge(host.facts), "F6").persistent,
            "add no-read-workqueue,no-write-workqueue to the options of data in /etc/crypttab");
}

TEST(audit, gives_no_command_that_drops_flags_which_were_not_read) {
  for (const char* uuid : {"CRYPT-LUKS1-x", "CRYPT-LUKS2-x"}) {
    MadeUpHost host;
    encrypted({}, uuid)(host);
    host.array().crypt_flags.reset();  // as for a user other than root, and for the daemon
    host.array().files.set("queue/discard_max_bytes", "0");
    host.amplification(2);
    const Finding one = of(judge(host.facts), "F5");
    EXPECT_EQ(one.verdict, kAdvise);
    EXPECT_EQ(one.change.rfind("run ssdpulse audit as root", 0), 0U) << one.change;
    EXPECT_EQ(one.persistent + one.undo, "");
  }
}

TEST(audit, two_rules_do_not_set_the_flags_of_one_volume) {
  MadeUpHost host;
  encrypted({"no_write_workqueue"})(host);
  host.array().files.set("queue/discard_max_bytes", "0");
  const auto all = judge(host.facts);
  EXPECT_EQ(of(all, "F5").change, "cryptsetup refresh --allow-discards --perf-no_write_workqueue data");
  EXPECT_EQ(of(all, "F5").undo,
            "cryptsetup refresh --perf-no_write_workqueue data  # --persistent if it was made for good");
  EXPECT_EQ(of(all, "F6").change + of(all, "F6").persistent + of(all, "F6").undo, "");
  encrypted({"allow_discards"})(host);  // the layer below keeps them
  EXPECT_EQ(of(judge(host.facts), "F5").change, "");
  EXPECT_NE(of(judge(host.facts), "F6").change, "");
}

TEST(audit, a_scheduler_takes_fewer_requests_than_some_drivers_have_tags) {
  MadeUpHost host;
  full_queue(host);
  host.disk().files.set("mq/0/nr_tags", "5000");
  EXPECT_EQ(of(judge(host.facts), "Q2").change, "echo 5000 > /sys/block/nvme0n1/queue/nr_requests");
  deadline(host);
  EXPECT_EQ(of(judge(host.facts), "Q2").change, "echo 2048 > /sys/block/nvme0n1/queue/nr_requests");
}

TEST(audit, leaves_the_timer_to_mounts_that_need_it) {
  MadeUpHost host;
  trims_of_both(host);
  host.burst_seconds(DiscardTrigger::fstrim, 500);
  host.burst_seconds(DiscardTrigger::online, 50);
  host.facts.settings.mounts.push_back({"/other", "ext4", {"rw", "relatime"}, {"nvme0n1p2"}, {"nvme0n1"}, 0.5});
  const Finding one = of(judge(host.facts), "F1");
  EXPECT_EQ(one.device, "/data");
  EXPECT_EQ(one.change + one.undo, "");
  EXPECT_NE(one.why.find("other file systems need its timer"), std::string::npos) << one.why;
}

TEST(audit, weighs_what_drives_did_in_a_week) {
  for (const char* id : {"F4", "F5", "F12", "N4"}) {
    MadeUpHost host;
    never_trimmed(host);
    host.mount().used_ratio = 0.95;
    host.disk().partitions[0].size_bytes = 999'000'000'000;
    for (const auto& [file, text] : std::vector<std::pair<const char*, const char*>>{
             {"queue/discard_max_bytes", "0"}, {"dm/uuid", "CRYPT-LUKS2-x"}, {"dm/name", "data"}}) {
      host.array().files.set(file, text);
    }
    EXPECT_NE(of(judge(host.facts), id).verdict, kAdvise) << id;
    host.measured_drive().write_amplification_lower_24h = 1;
    host.measured_drive().write_amplification_lower_7d = 3;
    host.measured(Operation::write).bytes = 1e12;
    EXPECT_EQ(of(judge(host.facts), id).verdict, kAdvise) << id;
  }
}

TEST(audit, danger_first_then_by_what_it_costs) {
  MadeUpHost host;
  host.mount().options.insert("nobarrier");
  deadline(host);
  host.io(Operation::read, 1e6, 1000, 300, 4e9);
  host.disk().files.set("queue/wbt_lat_usec", "75000");
  host.excess(SpikeCause::saturation, 10'000);
  const auto all = judge(host.facts);
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all[0].id, "F7");
  EXPECT_EQ(all[1].id, "Q6");
  EXPECT_EQ(all[2].id, "Q1");
  EXPECT_DOUBLE_EQ(*all[2].excess_seconds_per_day, 150);
  EXPECT_DOUBLE_EQ(*all[1].excess_seconds_per_day, 5000);
}

TEST(audit, options_of_the_super_block_are_changed_there) {
  for (const auto& [id, option, command] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"F1", "discard", "discard"},
           {"F7", "nobarrier", "nobarrier"},
           {"F8", "data=writeback", "journal_data_writeback"},
           {"F8", "data=journal", "journal_data"}}) {
    MadeUpHost host;
    unshown(option)(host);
    const Finding finding = of(judge(host.facts), id);
    EXPECT_NE((finding.change + finding.persistent).find(fmt::format("tune2fs -o ^{} /dev/nvme0n1p1", command)),
              std::string::npos)
        << id << ": " << finding.change << "; " << finding.persistent;
  }
}

TEST(audit, a_drive_without_partitions_is_not_called_partitioned) {
  MadeUpHost host;
  host.amplification(3);
  host.disk().partitions.clear();
  const Finding one = of(judge(host.facts), "N4");
  EXPECT_EQ(one.found, "write amplification is at least 3.00, and the drive is used as a whole, without partitions");
  EXPECT_FALSE(one.evidence.contains("unpartitioned_ratio"));
}

TEST(audit, a_limit_that_is_not_given_has_one_reason) {
  MadeUpHost host;
  asks_for(16.0 * (1 << 20), 16)(host);
  EXPECT_NE(of(judge(host.facts), "N12").why.find("more than a sixteenth of the host's memory"), std::string::npos);
  host.facts.settings.memory_bytes.reset();
  EXPECT_NE(of(judge(host.facts), "N12").why.find("the host's memory is not known"), std::string::npos);
}

TEST(audit, every_verdict_of_the_table_of_firmware_is_one_that_it_has) {
  std::ifstream table(SSDPULSE_SOURCE_DIR "/daemon/advice/known_bad_firmware.txt");
  std::size_t rows = 0;
  for (std::string line; std::getline(table, line);) {
    if (!line.empty() && line.front() != '#') {
      ++rows;
      EXPECT_TRUE(line.find("| danger |") != std::string::npos || line.find("| info |") != std::string::npos) << line;
    }
  }
  EXPECT_GT(rows, 0U);
}

TEST(audit, firmware_is_bad_only_where_a_source_says_so) {
  const auto found = [](const char* model, const char* revision) {
    MadeUpHost host;
    host.disk().device.model = model;
    host.disk().device.firmware = revision;
    return of(judge(host.facts), "N11");
  };
  const auto verdict = [&](const char* model, const char* revision) { return found(model, revision).verdict; };
  EXPECT_EQ(verdict("KINGSTON SA2000M8500G", "S5Z42105"), kDanger);
  EXPECT_EQ(found("KINGSTON SA2000M8500G", "S5Z42105").change, "back up, then install the vendor's newer firmware");
  EXPECT_EQ(verdict("KINGSTON SA2000M8500G", "S5Z42109"), kOk);
  EXPECT_EQ(verdict("Samsung SSD 980 PRO 1TB", "5B2QGXA7"), kOk);
  EXPECT_EQ(verdict("Samsung SSD 980 1TB", "3B2QGXA7"), kOk);
  EXPECT_EQ(verdict("MO1600JEFHL", "HPD5"), kOk) << "no public source names these models";
}

TEST(accepted, until_the_day_and_never_by_a_pattern_if_it_is_danger) {
  MadeUpHost host;
  host.mount().options.insert("nobarrier");
  full_queue(host);
  const auto all = judge(host.facts);
  const auto standing = [&](const Acceptance& one) {
    const Accepted result = accept(all, {one}, "2026-11-23");
    return std::count_if(result.standing.begin(), result.standing.end(), [](const Finding& finding) {
      return finding.verdict == kAdvise || finding.verdict == kDanger;
    });
  };
  EXPECT_EQ(standing({"Z9", "*", "none", "2027-01-01"}), 2);
  EXPECT_EQ(standing({"Q2", "nvme0*", "old", "2027-01-01"}), 1);
  EXPECT_EQ(standing({"Q?", "*", "old", "2027-01-01"}), 1);
  EXPECT_EQ(standing({"Q2", "nvme0n1", "old", "2026-11-23"}), 2) << "expired today";
  EXPECT_EQ(standing({"*", "*", "all", "2027-01-01"}), 1) << "danger is named in full";
  EXPECT_EQ(standing({"F7", "/data", "a test", "2027-01-01"}), 1);
  EXPECT_EQ(accept(all, {{"Q2", "*", "x", "2020-01-01"}, {"Z9", "*", "x", "2027-01-01"}}, "2026-11-23").problems.size(),
            2U);
}

}  // namespace
}  // namespace ssdpulse::advice

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/qemu_disks.h"
#include "daemon/audit/rules/rules.h"
#include "daemon/util/number_text.h"

namespace ssdpulse::audit {
namespace {

constexpr double kThreadIosPerDay = 10e6;  // a wake-up of 6 us for each of them is a minute a day

/// Of all programs, as a thread sends them: without io_uring and libaio, and past the page cache.
std::optional<double> thread_ios_per_day(const Facts& facts) {
  std::optional<double> all;
  for (const DiskSettings& disk : facts.settings.disks) {
    for (const model::IoPath path : {model::IoPath::sync, model::IoPath::direct}) {
      add_figure(all, facts.measured.per_day(facts.measured.device(disk.device.name).path_ios[index(path)]));
    }
  }
  return all;
}

Finding virtual_machines(const Facts& facts) {
  if (facts.settings.virtual_machines.empty()) {
    return not_applicable("no QEMU virtual machine is running here");
  }
  std::size_t disks = 0;
  std::size_t unread = 0;
  std::vector<util::OutsideText> by_threads;
  for (const util::OutsideText& line : facts.settings.virtual_machines) {
    const QemuDisks of_one = disks_of_qemu(line.raw());
    unread += line.empty() || !of_one.whole ? 1 : 0;
    disks += of_one.disks.size();
    for (const QemuDisk& disk : of_one.disks) {
      if (disk.threads) {
        by_threads.push_back(disk.file);
      }
    }
  }
  const std::string partly =
      unread == 0 ? "" : fmt::format("; {} not readable as a whole", util::count_text(unread, "command line"));
  if (by_threads.empty()) {
    return unread > 0 ? unknown("how virtual machines reach their disks", partly.substr(2))
           : disks > 0
               ? ok(fmt::format("virtual machines use no threads for the I/O of {}", util::count_text(disks, "disk")))
               : not_applicable("no QEMU has a disk in a file or on a block device of this host");
  }
  constexpr std::size_t kShown = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, by_threads.size()); ++i) {
    names += (names.empty() ? "" : ", ") + util::for_json(by_threads[i], 80);
  }
  names += by_threads.size() > kShown ? fmt::format(" and {} more", by_threads.size() - kShown) : "";
  Finding bad =
      info(fmt::format("virtual machines use threads for the I/O of {} of {}: {}", by_threads.size(),
                       util::count_text(disks, "disk"), names),
           "a thread is woken up for each I/O, which on fast drives costs more than the drive's own time" + partly);
  bad.change =
      "aio=io_uring (libvirt: io='io_uring' in the disk's <driver>), and an iothread for each disk; then "
      "restart the virtual machine";
  bad.undo = "the former options, and another restart";
  bad.risk = "the virtual machine is down meanwhile; io_uring needs QEMU 5.0";
  return weigh(facts, std::move(bad), {{"thread_ios_per_day", thread_ios_per_day(facts), kThreadIosPerDay}});
}

}  // namespace

const Rule kF18{.id = "F18",
                .title = "How virtual machines reach their disks",
                .limit = "one uses threads, and 10 million I/Os a day are sent as threads send them",
                .source = "qemu(1), -drive aio=; QMP, BlockdevOptionsFile",
                .of_host = virtual_machines};

}  // namespace ssdpulse::audit

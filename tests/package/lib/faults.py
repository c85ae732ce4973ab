# SPDX-License-Identifier: Apache-2.0
"""What happens to the service when something goes wrong? It continues to measure, or the failure is visible within a
minute, and nothing that was recorded is lost. The daemon's state is printed after each fault.
"""
import time
from contextlib import contextmanager

import figures
import machine
from lib import metrics

VISIBLE = 60  # seconds
WRITES = 50


class Fault:
    """One thing that goes wrong: what was visible, and that the history is complete afterwards."""

    def __init__(self, vm, check, service, name):
        self.vm, self.check, self.service, self.name = vm, check, service, name
        self.seen = self.during = "nothing was asked"

    def __enter__(self):
        self.minute = int(self.vm.sh("date +%s")) // 60
        self.rows, self.pid = self.service.history(), self.service.main_pid()
        return self

    def visible(self, condition, what, seconds=VISIBLE):
        """Something reports the failure, soon enough."""
        took = self.service.until(condition, f"{self.name}: {what}", seconds)
        self.seen, self.during = f"visible after {took:.0f} s: {what}", self.service.state()

    def goes_on(self):
        """Measuring continues while the fault lasts, in the same process."""
        writes = self._measured_writes()
        self.check.equal((writes, self.service.main_pid()), (WRITES, self.pid),
                         f"{self.name}: writes that are measured meanwhile, and the process")
        self.seen = (f"{self.seen}; " if "visible" in self.seen else "") + "measuring goes on"
        self.during = self.service.state()

    def _measured_writes(self):
        disk, before = self.vm.disk("first"), self.service.at_rest()
        self.vm.sh(f"dd if=/dev/zero of=/dev/{disk} bs=4k count={WRITES} oflag=direct 2>&1")
        return figures.ios(metrics.Difference(before, self.service.at_rest()), disk, "write")

    def _lost_rows(self):
        """Rows that are gone, and rows of minutes long past that have changed."""
        now = self.service.history()
        return [key for key, row in self.rows.items() if key not in now or (key[0] < self.minute and now[key] != row)]

    def __exit__(self, kind, error, trace):
        if kind is not None:
            return
        back = self.service.until_ready(VISIBLE)
        writes, lost, state = self._measured_writes(), self._lost_rows(), self.service.state()
        same = "the same process" if self.service.main_pid() == self.pid else "a new process"
        self.check.that(writes == WRITES and not lost and state.startswith("active (running)"),
                        f"{self.name}: {self.seen}; afterwards {same}, ready {back:.0f} s later, {writes:.0f} of {WRITES} "
                        f"writes measured; rows lost: {len(lost)} of {len(self.rows)} {lost[:3] or ''}")
        print(f"TABLE {self.name} | {self.seen} | {self.during} | {state}, {same} | {len(lost)} of {len(self.rows)}")


def killed(vm, check, service):
    with Fault(vm, check, service, "SIGKILL of the daemon") as fault:
        vm.sh(f"kill -KILL {fault.pid}")
        fault.visible(lambda: service.main_pid() not in (0, fault.pid), "systemd has started another")
    with Fault(vm, check, service, "SIGKILL of the log reader") as fault:
        reader = service.main_pid(service.READER)
        vm.sh(f"kill -KILL {reader}")
        fault.visible(lambda: service.main_pid(service.READER) not in (0, reader), "systemd has started another")
        fault.goes_on()
        now = float(vm.sh("date +%s"))
        service.when_drives_were_read(3, now, VISIBLE)


def next_minute(vm):
    """Sets the clock to its middle: a minute that lasts only a moment has no sample, and no row."""
    vm.sh("date -s @$((($(date +%s) / 60 + 1) * 60 + 20)); sleep 1.5")


@contextmanager
def history_elsewhere(vm, service):
    """The history on a file system of its own."""
    disk = vm.disk("history")
    vm.sh(f"systemctl stop ssdpulse && mkfs.ext4 -q -F -m 0 -e remount-ro /dev/{disk} && "
          "cp -a /var/lib/ssdpulse /var/lib/ssdpulse.kept && "
          f"mount /dev/{disk} /var/lib/ssdpulse && rmdir /var/lib/ssdpulse/lost+found && "
          "cp -a /var/lib/ssdpulse.kept/. /var/lib/ssdpulse/ && systemctl start ssdpulse", 90)
    service.until_ready()
    yield disk  # a failure in between is inspected with everything still in place
    vm.sh("systemctl stop ssdpulse && cp -a /var/lib/ssdpulse/. /var/lib/ssdpulse.kept/ && umount /var/lib/ssdpulse && "
          "cp -a /var/lib/ssdpulse.kept/. /var/lib/ssdpulse/ && rm -r /var/lib/ssdpulse.kept && systemctl start ssdpulse", 90)
    service.until_ready()


def history_disk(vm, check, service):
    def down():
        return service.value_or_none("ssdpulse_source_up", source="history") == 0

    # The disk is written to once a minute; a failure shows at that moment, and with the next sample.
    with history_elsewhere(vm, service) as disk:
        with Fault(vm, check, service, "state directory full") as fault:
            vm.sh("dd if=/dev/zero of=/var/lib/ssdpulse/full bs=64k 2>/dev/null; df /var/lib/ssdpulse | tail -n 1", 120)
            # Rows still fit into the file's existing pages (16 KiB each). Minutes pass more quickly here, so that it grows:
            # those of idle drives fill a page in a quarter of an hour.
            fault.visible(lambda: down() or next_minute(vm), 'ssdpulse_source_up{source="history"} 0', 5 * VISIBLE)
            fault.goes_on()
            vm.sh("rm /var/lib/ssdpulse/full")
            service.until(service.keeps_history, "the history is written again", 150)
            now = int(vm.sh("date +%s")) // 60
            minutes = sorted(minute for minute, serial in service.history() if serial == "first" and fault.minute <= minute < now)
            check.equal(minutes, list(range(fault.minute, now)),
                        "state directory full: the minutes that waited are written")
        # After an error the kernel stops writing; some (6.12) do not allow reads either, until it is repaired.
        for name, restart in (("state directory read-only", False), ("state directory read-only, then a restart", True)):
            with Fault(vm, check, service, name) as fault:
                vm.sh(f"echo tried >/sys/fs/ext4/{disk}/trigger_fs_error; ! touch /var/lib/ssdpulse/tried 2>&1")
                if restart:
                    vm.sh("systemctl restart ssdpulse", 90)
                    service.until_ready()
                    fault.pid = service.main_pid()
                fault.visible(down, 'ssdpulse_source_up{source="history"} 0', VISIBLE + 3)
                fault.goes_on()
                vm.sh(f"systemctl stop ssdpulse && umount /var/lib/ssdpulse && fsck.ext4 -p /dev/{disk}; [ $? -le 1 ] && "
                      f"mount /dev/{disk} /var/lib/ssdpulse && systemctl start ssdpulse", 90)
                service.until(service.keeps_history, "the history is written again", 150)


def configuration(vm, check, service):
    with Fault(vm, check, service, "configuration deleted, then a reload") as fault:
        vm.sh("mv /etc/ssdpulse/ssdpulse.yaml /tmp/ && systemctl reload ssdpulse; true")
        fault.visible(lambda: "ssdpulse.yaml" in service.words(), "the journal names the file")
        fault.goes_on()
    with Fault(vm, check, service, "configuration deleted, then a restart") as fault:
        vm.sh("systemctl restart ssdpulse; true", 90)
        fault.visible(lambda: service.show("ActiveState") == "failed", "systemd: failed, exit code 2")
        check.equal(service.show("ExecMainStatus"), "2", "configuration deleted, then a restart: the exit status")
        vm.sh("mv /tmp/ssdpulse.yaml /etc/ssdpulse/ && systemctl start ssdpulse", 90)


def drive_gone(vm, check, service):
    disk = vm.disk("unplugged")
    with Fault(vm, check, service, "drive gone") as fault:
        present = service.scrape().series("ssdpulse_device_info", device=disk)
        vm.unplug("unplugged", 60)
        fault.visible(lambda: not service.scrape().series("ssdpulse_device_info", device=disk), "its series end")
        check.that(present, "drive gone: it was measured")
        fault.goes_on()


def logs_refused(vm, check, service):
    """A page that a drive lacks is reported and not requested again; a node that cannot be opened is noticed."""
    with Fault(vm, check, service, "a log page refused by the drive") as fault:
        fault.visible(lambda: service.scrape().series("ssdpulse_nvme_refused_page_info", page="ocp_smart"),
                      'ssdpulse_nvme_refused_page_info{page="ocp_smart"}')
        fault.goes_on()
    with Fault(vm, check, service, "log pages refused (the node cannot be opened)") as fault:
        vm.sh("systemctl set-property --runtime ssdpulse-nvme.service DeviceAllow= && "
              "systemctl restart ssdpulse-nvme.service", 60)
        def drives_alone():
            up = {dict(labels).get("controller"): value
                  for labels, value in service.scrape().series("ssdpulse_source_up", source="nvme").items()}
            return up.pop(None) == 1 and not any(up.values())
        fault.visible(drives_alone, 'ssdpulse_source_up{source="nvme",controller=...} 0 of each')
        fault.goes_on()
        vm.sh("systemctl revert ssdpulse-nvme.service && systemctl daemon-reload && systemctl restart ssdpulse-nvme.service", 60)
        service.until(lambda: all(service.scrape().series("ssdpulse_source_up", source="nvme").values()), "all drives answer", 150)


def clock(vm, check, service):
    for name, step in (("a day forward", 86400), ("a day back", -86400)):
        with Fault(vm, check, service, f"clock stepped by {name}") as fault:
            missed = service.scrape().value("ssdpulse_missed_ticks_total") or 0
            vm.sh(f"date -s @$(($(date +%s) + {step}))")
            fault.minute = min(fault.minute, int(vm.sh("date +%s")) // 60)  # a repeated minute is recorded again
            time.sleep(3)
            fault.goes_on()
            scrape = service.scrape()
            check.that(abs(scrape.value("ssdpulse_snapshot_timestamp_seconds") - float(vm.sh("date +%s"))) < 10,
                       f"clock stepped by {name}: samples have the new time")
            check.that(scrape.value("ssdpulse_missed_ticks_total") - missed <= 2, f"clock stepped by {name}: ticks missed: "
                       f"{scrape.value('ssdpulse_missed_ticks_total') - missed:.0f}")
            service.when_drives_were_read(2, float(vm.sh("date +%s")), VISIBLE)


def memory(vm, check, service):
    """A limit below what the daemon needs: it is killed, or the kernel refuses its tables and it exits; it is restarted
    again and again, until there is enough."""
    group = f"/sys/fs/cgroup{service.show('ControlGroup')}"
    needs = sum(int(vm.sh(f"sed -n 's/^{kind} //p' {group}/memory.stat")) for kind in ("anon", "kernel"))
    with Fault(vm, check, service, "memory limit hit") as fault:
        try:
            vm.sh(f"systemctl set-property --runtime ssdpulse.service MemoryMax={needs // 2}", 60)
            fault.visible(lambda: "oom-kill" in service.state() and not service.ready(),
                          f"systemd: oom-kill (of {needs >> 10} KiB half are allowed), and no answer to a scrape")
            ends = ("oom-kill", "exit-code")
            service.until(lambda: int(service.show("NRestarts")) >= 2 and any(end in service.state() for end in ends),
                          "it was started under the same limit", 90)
            fault.during = service.state()
        finally:
            vm.sh("systemctl revert ssdpulse.service && systemctl daemon-reload", 60)


def run(vm, check, service):
    for fault in (killed, configuration, drive_gone, logs_refused, clock, memory, history_disk):
        vm.sh("systemctl reset-failed ssdpulse ssdpulse-nvme 2>/dev/null; true")
        try:
            fault(vm, check, service)
        except machine.GuestError as error:
            check.that(False, f"{fault.__name__}: {error}")
            vm.sh("systemctl restart ssdpulse; true", 90)
            service.until_ready()

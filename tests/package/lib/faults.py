# SPDX-License-Identifier: Apache-2.0
"""What becomes of the service when something goes wrong: measuring goes on, or the failure is visible within a minute, and
nothing that was recorded is lost. The daemon's state is named after each.
"""
import time

import figures
import machine
from lib import metrics

VISIBLE = 60  # seconds


class Fault:
    """One thing that goes wrong: what was seen of it, and that the history is whole afterwards."""

    def __init__(self, vm, check, service, name):
        self.vm, self.check, self.service, self.name = vm, check, service, name
        self.seen = "measuring went on"

    def __enter__(self):
        self.rows, self.pid = self.service.history(), self.service.pid()
        return self

    def visible(self, true, what):
        """Something tells of the failure, soon enough."""
        took = self.service.until(true, f"{self.name}: {what}", VISIBLE)
        self.seen = f"visible after {took:.0f} s: {what}"

    def __exit__(self, kind, error, trace):
        if kind is not None:
            return
        back = self.service.until_ready(VISIBLE)
        disk = self.vm.disk("first")
        before = self.service.at_rest()
        self.vm.sh(f"dd if=/dev/zero of=/dev/{disk} bs=4k count=50 oflag=direct 2>&1")
        ios = figures.ios(metrics.Difference(before, self.service.at_rest()), disk, "write")
        lost = self.rows - self.service.history()
        state = self.service.state()
        same = "the same process" if self.service.pid() == self.pid else "a new process"
        self.check.that(ios == 50 and not lost and state.startswith("active (running)"),
                        f"{self.name}: {self.seen}; {same}, ready {back:.0f} s after; {ios:.0f} of 50 writes measured; "
                        f"rows lost: {len(lost)} of {len(self.rows)}")
        print(f"TABLE {self.name} | {self.seen} | {same} | {state} | 0 of {len(self.rows)} rows lost")


def killed(vm, check, service):
    with Fault(vm, check, service, "SIGKILL of the daemon") as fault:
        vm.sh(f"kill -KILL {fault.pid}")
        fault.visible(lambda: service.pid() not in (0, fault.pid), "systemd has started another")
    with Fault(vm, check, service, "SIGKILL of the log reader") as fault:
        reader = service.pid(service.READER)
        vm.sh(f"kill -KILL {reader}")
        fault.visible(lambda: service.pid(service.READER) not in (0, reader), "systemd has started another")
        check.equal(service.pid(), fault.pid, "SIGKILL of the log reader: the daemon is the same process")
        now = float(vm.sh("date +%s"))
        service.when_drives_were_read(3, now, VISIBLE)


def history_disk(vm, check, service):
    """The history on a small disk of its own: read-only, full."""
    vm.sh("systemctl stop ssdpulse && cp -a /var/lib/ssdpulse /var/lib/ssdpulse.kept && "
          "mount -t tmpfs -o size=2M,mode=0750,uid=ssdpulse,gid=ssdpulse history /var/lib/ssdpulse && "
          "cp -a /var/lib/ssdpulse.kept/. /var/lib/ssdpulse/ && systemctl start ssdpulse", 90)
    service.until_ready()

    def down():
        return service.at("ssdpulse_source_up", source="history") == 0

    def up():
        return service.at("ssdpulse_source_up", source="history") == 1

    with Fault(vm, check, service, "state directory read-only") as fault:
        vm.sh("mount -o remount,ro /var/lib/ssdpulse")
        fault.visible(down, 'ssdpulse_source_up{source="history"} 0')
        vm.sh("mount -o remount,rw /var/lib/ssdpulse")
        service.until(up, "the history is written again", 150)
    with Fault(vm, check, service, "state directory full") as fault:
        vm.sh("dd if=/dev/zero of=/var/lib/ssdpulse/full bs=4k 2>/dev/null; df /var/lib/ssdpulse | tail -n 1")
        fault.visible(down, 'ssdpulse_source_up{source="history"} 0')
        vm.sh("rm /var/lib/ssdpulse/full")
        service.until(up, "the history is written again", 150)
    vm.sh("systemctl stop ssdpulse && cp -a /var/lib/ssdpulse/. /var/lib/ssdpulse.kept/ && umount /var/lib/ssdpulse && "
          "cp -a /var/lib/ssdpulse.kept/. /var/lib/ssdpulse/ && rm -r /var/lib/ssdpulse.kept && systemctl start ssdpulse", 90)
    service.until_ready()


def configuration(vm, check, service):
    with Fault(vm, check, service, "configuration deleted, then a reload") as fault:
        vm.sh("mv /etc/ssdpulse/ssdpulse.yaml /tmp/ && systemctl reload ssdpulse; true")
        fault.visible(lambda: "ssdpulse.yaml" in service.words(), "the journal names the file")
        check.equal(service.pid(), fault.pid, "configuration deleted, then a reload: the same process goes on")
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
        check.equal(service.pid(), fault.pid, "drive gone: the same process goes on")


def logs_refused(vm, check, service):
    """A drive that has no such page is not asked again; a node that cannot be opened is seen."""
    with Fault(vm, check, service, "log pages refused (the node cannot be opened)") as fault:
        vm.sh("systemctl set-property --runtime ssdpulse-nvme.service DeviceAllow= && "
              "systemctl restart ssdpulse-nvme.service", 60)
        fault.visible(lambda: any(value == 0 for labels, value in service.scrape().series(
            "ssdpulse_source_up", source="nvme").items()), 'ssdpulse_source_up{source="nvme"} 0')
        vm.sh("systemctl revert ssdpulse-nvme.service && systemctl daemon-reload && systemctl restart ssdpulse-nvme.service", 60)
        service.until(lambda: all(service.scrape().series("ssdpulse_source_up", source="nvme").values()), "all drives answer", 150)


def clock(vm, check, service):
    for name, step in (("a day forward", 86400), ("a day back", -86400)):
        with Fault(vm, check, service, f"clock stepped by {name}") as fault:
            missed = service.scrape().value("ssdpulse_missed_ticks_total") or 0
            vm.sh(f"date -s @$(($(date +%s) + {step}))")
            time.sleep(3)
            check.equal(service.pid(), fault.pid, f"clock stepped by {name}: the same process goes on")
            scrape = service.scrape()
            check.that(abs(scrape.value("ssdpulse_snapshot_timestamp_seconds") - float(vm.sh("date +%s"))) < 10,
                       f"clock stepped by {name}: samples have the new time")
            check.that(scrape.value("ssdpulse_missed_ticks_total") - missed <= 2, f"clock stepped by {name}: ticks missed: "
                       f"{scrape.value('ssdpulse_missed_ticks_total') - missed:.0f}")
            service.when_drives_were_read(2, float(vm.sh("date +%s")), VISIBLE)


def memory(vm, check, service):
    with Fault(vm, check, service, "memory limit hit") as fault:
        vm.sh("systemctl set-property --runtime ssdpulse.service MemoryMax=6M", 60)
        fault.visible(lambda: service.show("NRestarts") != "0" or service.show("Result") == "oom-kill"
                      or service.pid() != fault.pid, "systemd: oom-kill, and starts it again")
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

# SPDX-License-Identifier: Apache-2.0
"""Which right is needed for what: each is taken from a user who has nothing else, and what is lost then is named."""
import machine
from devices import Nvme

SHARES_GUEST = True
KERNELS = ("5.10", "6.12")
USER = "setpriv --reuid=65534 --regid=65534 --clear-groups"
# As in the units: the daemon's, and those of the log reader, which are tried in one process tree here.
DAEMON, READER = ("bpf", "perfmon", "syslog"), ("sys_admin", "dac_read_search")
NOTHING = frozenset()
REFUSED = frozenset({"start"})
# What is lost without the right.
WITHOUT = {"bpf": REFUSED, "perfmon": REFUSED, "syslog": frozenset({"end_functions"})}
WITHOUT_OF_READER = {"sys_admin": frozenset({"logs"}), "dac_read_search": frozenset({"logs"})}
MEMLOCK_KB = 64  # what a login has


def devices():
    return [Nvme("restricted")]


def grants(rights):
    return " ".join(f"--{which}-caps=-all" + "".join(f",+{right}" for right in rights) for which in ("inh", "ambient"))


def start(vm, rights, memlock="unlimited", reader=True):
    """The daemon's exit code, or "up" if it starts."""
    socket = "" if reader else " --nvme.reader-socket=/nowhere"
    vm.sh("rm -rf /tmp/rights && mkdir /tmp/rights && chown 65534:65534 /tmp/rights && printf "
          "'nvme: { poll_interval: 10s }\\nhistory: { directory: /tmp/rights }\\n' >/tmp/rights.yaml")
    vm.sh(f"rm -f /tmp/rights.code; ulimit -l {memlock}; {{ {USER} {grants(rights)} ssdpulse run "
          f"--devices.include '*' --config /tmp/rights.yaml{socket} >/tmp/daemon.log 2>&1; echo $? >/tmp/rights.code; "
          "} &")
    code = vm.sh(f"n=0; until curl -sf -o /dev/null http://127.0.0.1:{machine.Daemon.PORT}/-/ready; do "
                 "[ -s /tmp/rights.code ] && { cat /tmp/rights.code; exit; }; n=$((n + 1)); [ $n -lt 300 ] || exit 1; "
                 "sleep 0.1; done; echo up", 120)
    return code


def lost(vm, disk, controller, rights, **how):
    """Which things that should work do not; and what the daemon says if it does not start."""
    if (code := start(vm, rights, **how)) != "up":
        return REFUSED, f"exit code {code}: {vm.sh('tail -n 1 /tmp/daemon.log')}"
    vm.sh(f"dd if=/dev/{disk} of=/dev/null bs=64k count=64 iflag=direct 2>/dev/null; sleep 2.5; n=0; "
          "until grep -q 'history up' /tmp/daemon.log; do n=$((n + 1)); [ $n -lt 100 ] || break; sleep 0.1; done; sleep 1.5")
    text = vm.sh(f"curl -s http://127.0.0.1:{machine.Daemon.PORT}/metrics")
    works = {
        "latency": f'ssdpulse_io_device_latency_seconds_count{{device="{disk}",operation="read"' in text,
        "end_functions": 'feature="write_class",decision="end_functions"' in text,
        "discards": 'feature="discard_submitters",decision="not_hooked"' not in text,
        "history": 'ssdpulse_source_up{source="history"} 1' in text,
        "skipped runs": 'cause="recursion"' in text or vm.name == "5.10",
        "logs": f'ssdpulse_source_up{{source="nvme",controller="{controller}"}} 1' in text,
    }
    # As the daemon's user: what a daemon of anybody else says is not read.
    named = machine.doctor(vm, "--config /tmp/rights.yaml", how=USER)
    works["said by the doctor"] = (("write-classes", "") in named, any(one == "sources" for one, _ in named)) == (
        not works["end_functions"], not works["logs"])
    pid = vm.sh("grep -lx ssdpulse /proc/[0-9]*/comm | cut -d/ -f3")  # the reader has another name
    caps = set(vm.sh(f"grep -h -E '^Cap(Prm|Eff|Inh|Amb)' /proc/{pid}/task/*/status | cut -f2").split())
    works["drop"] = caps == {"0" * 16}
    vm.sh(f"kill {pid}; n=0; while kill -0 {pid} 2>/dev/null; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1; done")
    return frozenset(what for what, does in works.items() if not does), ""


def asked(vm, rights, memlock="unlimited"):
    """{id: (verdict, why)} of what the doctor reports missing for a daemon started by this user."""
    found = machine.doctor(vm, "--address 127.0.0.1:1 --config /tmp/rights.yaml", how=f"ulimit -l {memlock}; {USER} {grants(rights)}")
    return {one: (finding["verdict"], finding["why"]) for (one, _), finding in found.items()}


def doctor_names_them(vm, check):
    for right in ("bpf", "perfmon"):
        verdict, why = asked(vm, [other for other in DAEMON if other != right]).get("capabilities", ("ok", ""))
        check.that(verdict == "unknown" and f"lacks CAP_{right.upper()}," in why, f"the doctor, without {right}: {why}")
    found = asked(vm, DAEMON)
    check.equal((found.get("capabilities"), "memlock" in found), (("info", "CAP_SYS_ADMIN is missing"), False),
                "the doctor, with the daemon's rights")
    check.that("capabilities" not in asked(vm, [*DAEMON, *READER]), "the doctor, with the reader's, too")
    have = ["memlock" in asked(vm, rights, MEMLOCK_KB) for rights in (DAEMON, [*DAEMON, "sys_resource"])]
    check.equal(have, [vm.name == "5.10", False], f"the doctor, with {MEMLOCK_KB} KiB of locked memory, and sys_resource")


def run(vm, check):
    disk = vm.disk("restricted")
    controller = vm.sh("grep -l '^restricted ' /sys/class/nvme/*/serial | cut -d/ -f5")
    check.equal(vm.sh(f"stat -c '%a %u %g' /dev/{controller}"), "600 0 0", "who may open the drive's node")

    def says(rights, expected, what, **how):
        found, words = lost(vm, disk, controller, rights, **how)
        check.that(found == expected, f"{what}: lost {sorted(found) or 'nothing'}, expected {sorted(expected) or 'nothing'}"
                                      f" {words}")

    alone = frozenset({"logs"})  # nothing reads them in these
    says(DAEMON, alone, "the daemon's rights", reader=False)
    for right, expected in WITHOUT.items():
        says([other for other in DAEMON if other != right], expected | (NOTHING if expected == REFUSED else alone),
             f"without {right}", reader=False)
    says(DAEMON, REFUSED if vm.name == "5.10" else alone, f"with {MEMLOCK_KB} KiB of locked memory", reader=False,
         memlock=MEMLOCK_KB)
    if vm.name == "5.10":
        says([*DAEMON, "sys_resource"], alone, "which sys_resource mends", reader=False, memlock=MEMLOCK_KB)
    says([*DAEMON, *READER], NOTHING, "and with the reader's")
    for right, expected in WITHOUT_OF_READER.items():
        says([*DAEMON, *(other for other in READER if other != right)], expected, f"without {right}")
    doctor_names_them(vm, check)

# SPDX-License-Identifier: Apache-2.0
"""Write amplification of emulated FDP drives is exported within 1 %; zeroes cause no drift, others' writes do."""
import machine
from devices import Backend, NvmeSubsystem

KERNELS_IN_CI = ("5.10",)  # the long form has all
SECONDS = 800  # it takes two minutes, mostly waiting for polls: it goes first

POLL_SECONDS = 10  # the shortest that may be configured
FLEET_SERIES = 60  # of a drive, native
WRITING_SECONDS = 35  # a ratio is reported after changes in three readings
FDP = "fdp.runs=1M,fdp.nrg=1,fdp.nruh=4"
# What is written to each drive in one round, and the result. Updating a handle gives up the rest of its reclaim
# unit of 1 MiB, which the emulator counts as written; a command that crosses into the next unit it counts twice.
UPDATE = "nvme fdp update /dev/{disk} --pids=0 >/dev/null"
DRIVES = {
    "quarter": (f"dd if=/dev/zero of=/dev/{{disk}} bs=256k count=1 oflag=direct && {UPDATE}", 256 << 10, 4.0),
    "half": (f"dd if=/dev/zero of=/dev/{{disk}} bs=512k count=1 oflag=direct && {UPDATE}", 512 << 10, 2.0),
    "filled": ("dd if=/dev/zero of=/dev/{disk} bs=128k count=8 oflag=direct", 1 << 20, 1 + 128 / 1024),
}


# Drives with only the OCP page. Its counter in the emulator is what the host wrote, to the byte, and the health page
# counts begun units of 512,000: for a few kilobytes there is no ratio, for many megabytes it is 1.
OCP = {
    "little": "dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct",
    "much": "dd if=/dev/zero of=/dev/{disk} bs=512k count=12 oflag=direct",
}

# The host counter includes write zeroes in the emulator for FDP, but not in the health page, which goes with OCP.
ZEROED = {"counting": {"fdp": FDP, "ocp": True}, "ignoring": {"ocp": True}}
STEADY = "dd if=/dev/zero of=/dev/{disk} bs=512k count=2 oflag=direct"  # shows in every poll: the counters are not late
WRITTEN = 384 << 20
ELSEWHERE = WRITTEN // 100 // (128 << 10) * (128 << 10)  # by commands that the block layer does not count as writes


def devices():
    return [*(NvmeSubsystem(serial, Backend("512M", data=True), **options) for serial, options in ZEROED.items()),
            *(NvmeSubsystem(serial, Backend("256M"), fdp=FDP, ocp=True) for serial in DRIVES),
            *(NvmeSubsystem(serial, Backend("256M"), ocp=True) for serial in OCP)]


def write_for_a_while(vm, disks):
    """Rounds on all drives at once; {serial: number of rounds}."""
    jobs = " ".join(
        f"( n=0; while [ $(date +%s) -lt $end ]; do {{ {command.format(disk=disks[serial])}; }} 2>/dev/null || exit 1; "
        f"n=$((n + 1)); sleep 1; done; echo $n >/tmp/rounds-{serial} ) &"
        for serial, command in [*((serial, command) for serial, (command, _, _) in DRIVES.items()), *OCP.items(),
                                *((serial, STEADY) for serial in ZEROED)])
    vm.sh(f"end=$(($(date +%s) + {WRITING_SECONDS})); {jobs} wait", WRITING_SECONDS * 2 + 30)
    return {serial: int(vm.sh(f"cat /tmp/rounds-{serial}")) for serial in DRIVES}


def drift(scrape, serial):
    [info] = scrape.series("ssdpulse_nvme_info", serial=serial)
    return [scrape.value(f"ssdpulse_nvme_host_written_drift{bound}_bytes", controller=dict(info)["controller"])
            for bound in ("_lower", "", "_upper")]


def no_drift(check, scrape, serial, what):
    bounds = drift(scrape, serial)
    check.that(None not in bounds and bounds[0] <= 0 <= bounds[2], f"{serial}: drift {what}: {bounds}")


def is_small(check, daemon, disk, controller):
    """The fleet profile has no more series of such a drive than it promises."""
    own = {("device", disk), ("controller", controller)}
    whole, profile = (daemon.scrape(f"?collect%5B%5D={what}") for what in ("all", "fleet"))
    before, after = (sum(bool(own & labels) for _, labels in (*scrape.values, *scrape.histograms)) for scrape in (whole, profile))
    print(f"TABLE wear: {disk} has {before} native series, {after} in the fleet profile")
    check.that(after <= FLEET_SERIES, f"{after} series of {disk} in the fleet profile, at most {FLEET_SERIES}")


def zero(vm, check, daemon, disks):
    """File systems are made, volumes zeroed: no drift is found. Then one percent of the writes comes from elsewhere."""
    def on_both(command, what):
        for serial in ZEROED:
            vm.sh(command.format(disk=disks[serial]), 120)
        scrape = daemon.when_drives_were_read(len(disks), float(vm.sh("date +%s")) + 1)
        for serial in ZEROED:
            print(f"NOTE {serial}: drift {what}: {drift(scrape, serial)}")
        return scrape

    vm.sh("modprobe -q xfs; true")
    steps = {"after mkfs": "mkfs.xfs -q -f -K /dev/{disk}",
             "after zeroing": "blkdiscard --force --zeroout /dev/{disk}",
             "after a discard and writes":
                 "blkdiscard --force /dev/{disk}; "
                 f"dd if=/dev/zero of=/dev/{{disk}} bs=1M count={WRITTEN >> 20} oflag=direct 2>&1"}
    for what, command in steps.items():
        scrape = on_both(command, what)
        for serial in ZEROED:
            no_drift(check, scrape, serial, what)
    scrape = on_both(f"for i in $(seq {ELSEWHERE >> 17}); do nvme write /dev/{{disk}} --start-block=0 --block-count=255 "
                     "--data-size=131072 --data=/dev/zero >/dev/null; done", "after writes of others")
    for serial in ZEROED:
        bounds = drift(scrape, serial)
        check.that(None not in bounds and 0 < bounds[0] <= ELSEWHERE <= bounds[2],
                   f"{serial}: {ELSEWHERE} of {WRITTEN} bytes from elsewhere, drift {bounds}")


def run(vm, check):
    disks = {serial: vm.disk(serial) for serial in [*DRIVES, *OCP, *ZEROED]}
    vm.sh(f"printf 'nvme: {{ poll_interval: {POLL_SECONDS}s }}\\nhistory: {{ directory: \"\" }}\\n' >/tmp/wear.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/wear.yaml")
    before = daemon.when_drives_were_read(len(disks), 0)
    rounds = write_for_a_while(vm, disks)
    after = daemon.when_drives_were_read(len(disks), float(vm.sh("date +%s")) + 1)
    for serial, (_, bytes_of_round, ratio) in DRIVES.items():
        [info] = after.series("ssdpulse_nvme_info", serial=serial)
        controller = dict(info)["controller"]
        labels = {"controller": controller, "source": "fdp"}
        host, media = (after.value(f"ssdpulse_nvme_{who}_written_bytes_total", **labels)
                       - before.value(f"ssdpulse_nvme_{who}_written_bytes_total", **labels)
                       for who in ("host", "media"))
        check.equal((host, media / host), (rounds[serial] * bytes_of_round, ratio),
                    f"{serial}: bytes of the host in {rounds[serial]} rounds, and ratio of the bytes")
        values = [after.value(f"ssdpulse_write_amplification{bound}_ratio", window="5m", **labels)
                  for bound in ("_lower", "", "_upper")]
        check.that(None not in values and values[0] <= ratio <= values[2] and values[2] - values[0] <= 0.01 * ratio,
                   f"{serial}: ratio {values[1]} in {values[0]}..{values[2]}, expected {ratio}")
        check.equal(after.value("ssdpulse_source_up", source="nvme", controller=controller), 1, f"{serial}: source up")
        no_drift(check, after, serial, "of writes")
        is_small(check, daemon, disks[serial], controller)
    for serial in OCP:
        [info] = after.series("ssdpulse_nvme_info", serial=serial)
        labels = {"controller": dict(info)["controller"], "source": "ocp", "window": "5m"}
        values = [after.value(f"ssdpulse_write_amplification{bound}_ratio", **labels)
                  for bound in ("_lower", "", "_upper")]
        if serial == "little":
            check.equal(values, [None, None, None], "little: no ratio of a few kilobytes")
        else:
            check.that(None not in values and values[0] <= 1 <= values[2] and values[2] - values[0] <= 0.2,
                       f"much: ratio {values[1]} in {values[0]}..{values[2]}, expected 1")
    zero(vm, check, daemon, disks)
    errors = {key: value for key, value in after.series("ssdpulse_source_errors_total", source="nvme").items() if value}
    print(f"NOTE errors of the source: {errors}")
    print("NOTE " + vm.sh("ssdpulse devices").split("\n\n")[-1].replace("\n", "\nNOTE "))
    daemon.stop()

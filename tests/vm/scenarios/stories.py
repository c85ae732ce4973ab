# SPDX-License-Identifier: Apache-2.0
"""What hurts a database although percentiles look good is seen, with cause, edges and cost; health is silent.

The drives' own log (slow_disk.py) is the truth: when which command was held up, and for how long.
"""
import json
import os
import random
import time
from collections import Counter, defaultdict

import machine
import story_cases
from devices import Slow, VirtioBlk
from spike_lines import GOES_ON, ahead, spikes_of
from story_cases import BLIND, NEW, STORIES

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "stories"  # CI replays spikes without a guest
ALONE = True  # what is healthy must not be held up by other guests
# A stall of minutes must not become a time-out.
MACHINE = {"append": "nvme_core.multipath=N nvme_core.io_timeout=255", "memory": "2G", "nice": -10}
SECONDS = 900
ROUNDS = 5  # of the long form, for stories that were once blind spots
SEEN = 0.8  # of the rounds
SETTLE, WARM_UP, AFTER = 12, 32, 50  # seconds: outliers end after 30 s without one; a cause may need a drive's log
HEALTHY = 600
NEAR = 2  # seconds
FLOOR = "300ms"  # for those that were blind spots: the guest is occasionally held up by its host, for less than that
EXCESS = 0.1
OPERATIONS = ("read", "write", "flush", "commit")
CAUSE_WORDS = {"discard": "trim", "flush": "flush", "gc": "garbage collection", "queue": "on the host",
               "saturation": "too much load", "error": "I/Os fail", "unknown": "nothing measured here explains"}
EXCESS_TOTAL = "ssdpulse_latency_excess_seconds_total"
# Nothing is wrong with these: jobs, and settings of the backend. The last becomes ten times slower in 150 s.
HEALTH = {
    "quiet": (({"rw": "randrw", "thinktime": 500},), {}),
    "steady": (({"rw": "randrw", "numjobs": 4, "thinktime": 80},), {}),
    "onoff": (({"rw": "randrw", "numjobs": 4, "thinktime": 10000, "thinktime_blocks": 100},), {}),
    "bursts": (({"rw": "randread", "numjobs": 8, "thinktime": 4000, "thinktime_blocks": 20},), {}),
    "mixed": (({"rw": "randrw", "numjobs": 4, "thinktime": 80, "bssplit": "4k/60:64k/30:256k/10"},),
              {"bytes_per_second": 60_000_000}),
    "log": ((story_cases.LOG, story_cases.READERS), {}),
    "logs": (({**story_cases.LOG, "numjobs": 8, "thinktime": 5000, "thinktime_blocks": 20}, story_cases.READERS), {}),
    "dsync": ((story_cases.DSYNC, story_cases.WRITERS), {}),
    "growing": (({"rw": "randrw", "numjobs": 4, "thinktime": 80},), {}),
}


def devices():
    return [story.device(serial) for serial, story in STORIES.items()] + [
        VirtioBlk(f"h-{serial}", Slow("256M", read=0.01, write=0.005, flush=0.005, **settings), own_thread=True)
        for serial, (_, settings) in HEALTH.items()]


class Drive:
    """What a plan may do to its drive."""

    def __init__(self, vm, serial, disk):
        backend = vm.devices[serial].backend
        self.set, self.stall = backend.set, backend.stall
        self.guest = lambda script: vm.sh(f"{{ {script.format(disk=disk)}; }} >/tmp/{serial}.guest 2>&1 &")


def follow(steps, began):
    """[(second, what to do)]"""
    for second, act in sorted(steps, key=lambda step: step[0]):
        time.sleep(max(0, began + second - time.monotonic()))
        act()


def episodes(held, apart):
    """[(begin, end)] of [(end, seconds)]"""
    found = []
    for end, seconds in sorted(held, key=lambda one: one[0] - one[1]):
        if found and end - seconds - found[-1][1] < apart:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([end - seconds, end])
    return found


def held_up(backend, story):
    """{operation: [(end, seconds)]} by the drive's own log."""
    held = defaultdict(list)
    for end, kind, seconds, _ in backend.added():
        if seconds > 0.01 and kind != "trim":  # otherwise it was late itself
            held[kind].append((end, seconds))
    if story.commits in held:
        held["commit"] = [(end, seconds) for end, seconds in held[story.commits]]
    return held


class Verdicts:
    """Over all rounds: how each story and operation was reported."""

    def __init__(self):
        self.rounds, self.lines = defaultdict(list), []

    def judge(self, round_number, serial, held, spikes, excess):
        story = STORIES[serial]
        left = list(spikes)
        for operation, causes in story.expected.items():
            if not held.get(operation):
                continue
            good, words, spans = True, [], episodes(held[operation], story.apart)
            for begin, end in spans:
                own = [spike for spike in left if spike.operation == operation
                       and spike.begin < end + NEAR and begin - NEAR < spike.end]
                left = [spike for spike in left if spike not in own]
                good, words = self._told(story, causes, (begin, end), own, words) and good, words
            cost = sum(seconds for _, seconds in held[operation])
            ratio = excess[operation] / cost
            right = abs(ratio - 1) <= EXCESS or not story.cost
            self.rounds[serial, operation].append((good, right))
            self._say(f"{serial:10} {operation:6} round {round_number}: {'; '.join(words)}; held up for {cost:.1f} s, excess "
                      f"{ratio:.3f} of it{'' if good and right else '  <-- WRONG'}")
        for operation in OPERATIONS:
            if operation not in story.expected and operation not in story.late:
                silent = all(spike.operation != operation for spike in left)
                self.rounds[serial, f"{operation}, of which nothing was to be said"].append((silent, True))
        for spike in left:
            self._say(f"{serial:10} {spike.operation:6} round {round_number}: {spike.cause} {spike.end - spike.begin:.1f} s, "
                      f"for nothing  <-- WRONG: {spike.rest}")

    @staticmethod
    def _told(story, causes, span, own, words):
        if not own:
            words.append("MISSED")
            return False
        longest = max(own, key=lambda spike: spike.end - spike.begin)
        begin, end = longest.begin - span[0], longest.end - span[1]
        words.append(f"{'+'.join(sorted({spike.cause for spike in own}))} {begin:+.2f} {end:+.2f}")
        return longest.cause in causes and (not story.edges or max(abs(begin), abs(end)) <= NEAR)

    def _say(self, line):
        self.lines.append(line)
        print("NOTE " + line)

    def check(self, check):
        for (serial, operation), results in self.rounds.items():
            seen, right = (sum(column) for column in zip(*results))
            enough = SEEN * len(results)
            check.that(seen >= enough, f"{serial} {operation}: right in {seen} of {len(results)}")
            check.that(right >= enough, f"{serial} {operation}: excess within {EXCESS:.0%} in {right} of {len(results)}")
        for serial, story in STORIES.items():
            for operation in story.expected:
                if operation in ("read", "commit") and (serial, operation) not in self.rounds:
                    check.that(False, f"{serial} {operation}: the drive held up nothing")


def judge_first_lines(vm, check, stories, disks, offset):
    """`why --at` the middle of each drive's longest trouble names one of the disks that were held up in that minute,
    and a cause that is right for it."""
    held = {serial: held_up(vm.devices[serial].backend, story) for serial, story in stories.items()}
    held = {serial: {kind: times for kind, times in kinds.items() if kind in stories[serial].expected}
            for serial, kinds in held.items()}
    serials = {disk: serial for serial, disk in disks.items()}
    for serial, kinds in held.items():
        begin, end = max((span for times in kinds.values() for span in episodes(times, stories[serial].apart)),
                         key=lambda span: span[1] - span[0], default=(0, 0))
        if end - begin < NEAR:
            continue  # so short that it may lie at the edge of a minute
        at = int((begin + end) / 2 + offset)
        said = json.loads(vm.sh(f"ssdpulse why --at @{at} --json"))["why"]
        minute = at - at % 60 - offset
        guilty = serials.get(said["device"])
        there = [kind for kind, times in held.get(guilty, {}).items()
                 if any(moment - seconds < minute + 60 + NEAR and moment > minute - NEAR for moment, seconds in times)]
        words = [CAUSE_WORDS[cause] for kind in there for cause in stories[guilty].expected[kind]]
        words += ["because the drive itself"] if CAUSE_WORDS["unknown"] in words else []  # where nothing else happened
        print(f"NOTE first line, {serial}: {said['sentence']}")
        check.that(said["verdict"] == "slow" and any(word in said["sentence"] for word in words),
                   f"first line while {serial} is held up: {said['sentence']}")


def play(vm, verdicts, check, stories, number, seed):
    """Plays all of these at once."""
    dice, disks = random.Random(seed), {serial: vm.disk(serial) for serial in stories}
    for serial, story in stories.items():
        vm.devices[serial].backend.set(added=(), **{"read": story_cases.READ, **story.healthy})
        if story.load:
            vm.sh(story_cases.fio(serial, story.array or disks[serial], story.load, 600))
    time.sleep(SETTLE)  # a hundred jobs that start at once are no healthy load, and would become the usual level
    daemon = machine.Daemon(vm, "--config", "/tmp/blind.yaml" if stories is BLIND else "/tmp/stories.yaml")
    time.sleep(WARM_UP)
    for serial in stories:
        vm.devices[serial].backend.forget_added()
    offset, _ = ahead(vm)
    steps = [step for serial, story in stories.items() if story.plan
             for step in story.plan(Drive(vm, serial, disks[serial]), dice)]
    follow(steps, time.monotonic())
    time.sleep(AFTER)
    scrape, words = daemon.scrape(), daemon.words()
    judge_first_lines(vm, check, stories, disks, offset)
    (vm.state / f"daemon.{next(iter(stories))}.{number}.log").write_text(words)
    drift = ahead(vm)[0] - offset
    print(f"     round {number}, seed {seed}: the guest's clock was ahead by {offset:.3f} s, and {drift:+.3f} s afterwards")
    for serial, disk in disks.items():
        excess = Counter()
        for labels, value in scrape.series(EXCESS_TOTAL, device=disk).items():
            excess[dict(labels)["operation"]] += value
        backend = vm.devices[serial].backend
        spikes = [spike.moved(-offset) for spike in spikes_of(words) if spike.device == disk]
        verdicts.judge(number, serial, held_up(backend, stories[serial]), spikes, excess)
        late = [late for *_, late in backend.added()]
        print(f"     {serial}: the drive itself was late by {max(late, default=0):.2f} s at most")
        if stories[serial].goes_on:
            told = [line for line in words.splitlines() if GOES_ON in line and f"device={disk} operation=read" in line]
            check.that(len(told) >= 3, f"{serial}: said {len(told)} times while it went on")
    vm.sh("kill $(pidof fio); sleep 1; true")
    daemon.stop()


def healthy(vm, check, seconds):
    """Nothing is wrong, for a long time; what the drive's own log shows is excused."""
    disks = {serial: vm.disk(f"h-{serial}") for serial in HEALTH}
    for serial, (jobs, _) in HEALTH.items():
        vm.sh(story_cases.fio(serial, disks[serial], jobs, seconds + 60))
    time.sleep(SETTLE)
    daemon = machine.Daemon(vm, "--config", "/tmp/stories.yaml")
    for serial in HEALTH:
        vm.devices[f"h-{serial}"].backend.forget_added()
    slower = vm.devices["h-growing"].backend
    follow([(60 + step / 2, lambda step=step: slower.set(read=0.01 + 0.0003 * step)) for step in range(300)]
           + [(seconds, lambda: None)], time.monotonic())
    offset, _ = ahead(vm)
    said = json.loads(vm.sh("ssdpulse why --json"))["why"]
    names, unexcused, excused = {disk: serial for serial, disk in disks.items()}, [], 0
    for spike in spikes_of(daemon.words()):
        spike = spike.moved(-offset)
        late = [late for end, _, _, late in vm.devices[f"h-{names[spike.device]}"].backend.added()
                if spike.begin - NEAR <= end <= spike.end + NEAR]
        words = (f"{names[spike.device]} {spike.operation} {spike.cause} {spike.end - spike.begin:.1f} s; "
                 f"the drive was late by {max(late, default=0):.2f} s: {spike.rest}")
        print("NOTE healthy: " + words)
        excused += bool(late)
        unexcused += [] if late else [words]
    check.equal(unexcused, [], f"spikes in {seconds} s of healthy load")
    if not excused:
        check.equal(said["sentence"], "No drive is slower than usual.", "the first line after healthy load")
    print(f"TABLE health: {seconds} s, {len(HEALTH)} drives, {len(unexcused)} spikes, {excused} more where a drive was late "
          "itself")
    vm.sh("kill $(pidof fio); sleep 1; true")
    daemon.stop()


def run(vm, check):
    vm.sh("printf 'nvme: { poll_interval: 10s }\\nhistory: { directory: \"\" }\\n' >/tmp/stories.yaml; "
          f"{{ cat /tmp/stories.yaml; echo 'spikes: {{ floor: {FLOOR} }}'; }} >/tmp/blind.yaml; modprobe raid0; "
          "mdadm --build /dev/md0 --level=0 --chunk=64 --raid-devices=2 "
          f"/dev/{vm.disk('left')} /dev/{vm.disk('right')}")
    first, verdicts = int(os.environ.get("SSDPULSE_TEST_SEED", "1")), Verdicts()
    for number in range(1, ROUNDS + 1 if vm.long else 2):
        play(vm, verdicts, check, BLIND, number, first + number)
    healthy(vm, check, HEALTHY if vm.long else 120)
    play(vm, verdicts, check, NEW, 1, first)
    verdicts.check(check)
    vm.sh("mdadm --stop /dev/md0 2>&1")

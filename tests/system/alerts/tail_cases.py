# SPDX-License-Identifier: Apache-2.0
"""Alerts about why requests are slow. 2^-13 s is 0.12 ms, healthy; 2^-4 s is 62 ms, a stall; a sample is 15 s."""
from alerts.case import MINUTE, Case
from alerts.series import counter, device_latency, gauge, latency, volume_latency

USUAL, STALL = -13, -4
CALM, TROUBLE, AFTER = 64, 52, 40  # samples: 16, 13 and 10 minutes
ALL = CALM + TROUBLE + AFTER
BEGIN = 16 * MINUTE
BEFORE, DURING, LATER = 15 * MINUTE, 28 * MINUTE, 39 * MINUTE
READ = {"device": "nvme0n1", "operation": "read"}
SIBLING = {**READ, "group": "md0"}
FLOOD = [counter("ssdpulse_tenant_bytes_total", [(CALM, 0), (TROUBLE, growth), (AFTER, 0)], tenant=tenant, **READ)
         for tenant, growth in (("backup.service", 15e8), ("db.service", 15e6))]


def met(slow, ios=300, operation="read", during="discard", samples=TROUBLE):
    """I/Os that overlap a discard or flush during the trouble."""
    return device_latency([(CALM, {}), (samples, {slow: ios}), (AFTER, {})], during=during, operation=operation)


def others(slow=USUAL, ios=100, usual=USUAL, during="none", operation="read"):
    """All other I/Os; `slow` and `ios` apply during the trouble."""
    return device_latency([(CALM, {usual: 30000}), (TROUBLE, {slow: ios}), (AFTER, {usual: 30000})], during=during,
                          operation=operation)


def bursts():
    return gauge("ssdpulse_discard_burst_active", [(CALM, 0), (TROUBLE, 1), (AFTER, 0)], device="nvme0n1", trigger="fstrim")


def spike(cause, phases, operation="read"):
    labels = {"device": "nvme0n1", "operation": operation, "cause": cause}
    return gauge("ssdpulse_latency_spike_active", phases, **labels)


def tail(alert, what, *series, fires=(), silent=()):
    return Case(f"SsdpulseTail{alert}", what, list(series), fires, (BEFORE, DURING, LATER, *silent))


def meeting(company, alert):
    """The cases that exist for discards as well as for flushes."""
    other = {"discard": "flush", "flush": "discard"}[company]

    def case(what, apart, beside, seconds=None, operation="read"):
        labels = {**READ, "operation": operation, "during": company}
        says = (f"On db1:10936, {operation}s on nvme0n1 that overlap a {company} take {seconds} s (99th percentile over "
                f"one minute); 0.00012 s is usual.")
        return tail(alert, f"{company}: {what}", apart, beside, fires=((DURING, labels, says),) if seconds else ())

    def with_them(slow, ios=300, **rest):
        return met(slow, ios, during=company, **rest)

    return [
        case("reads stall beside them and are quick apart from them", others(), with_them(STALL), "0.062"),
        case("nearly all writes meet them", others(ios=0, operation="write"), with_them(STALL, operation="write"), "0.062",
             "write"),
        case("some meet both", others(), met(STALL, during="both"), "0.062"),
        case("it hurts nobody", others(ios=30000), with_them(USUAL, ios=9000)),
        case("slower beside them: 4 ms", others(), with_them(-8), "0.0039"),
        case("slower beside them, but still quick: 1 ms", others(), with_them(-10)),
        case("those apart are as slow", others(slow=STALL, ios=300), with_them(STALL)),
        case("those apart are slower as well, but far less: 16 ms", others(slow=-6), with_them(STALL), "0.062"),
        case("a fifth of the time that I/Os take", others(ios=600000), with_them(STALL), "0.062"),
        case("a twentieth of it", others(ios=3000000), with_them(STALL)),
        case("31 ms beside them, but 16 ms are usual", others(usual=-6), with_them(-5)),
        case("two I/Os a second", others(ios=2), with_them(STALL, ios=30), "0.062"),
        case("too few I/Os to tell", others(ios=2), with_them(STALL, ios=9)),
        case(f"a stall beside {other} is none of theirs", others(), met(STALL, during=other)),
    ]


def whole(slow, ios, operation="read", before=30000):
    return latency([(CALM, {USUAL: before}), (TROUBLE, {slow: ios}), (AFTER, {USUAL: before})],
                   operation=operation)


def volume(slow, ios=3000, name="dm-0", operation="read", usual=USUAL, samples=TROUBLE):
    return volume_latency([(CALM, {usual: 30000}), (samples, {slow: ios}), (AFTER, {usual: 30000})], name, operation)


def of_volume(what, *series, fires=(), silent=()):
    return Case("SsdpulseVolumeLatencyHigh", what, [*BELOW, *series], fires, (BEFORE, DURING, LATER, *silent))


def waiting(usual, slow, ios):
    return latency([(CALM, {usual: 30000}), (TROUBLE, {slow: ios}), (AFTER, {usual: 30000})], part="io_queue")


TROUBLED = [(CALM, 0), (TROUBLE, 1), (AFTER, 0)]
COMMIT = {"device": "nvme0n1", "operation": "commit"}
FREEZES = [(CALM, 0), *[(1, 1), (2, 0)] * (TROUBLE // 3), (AFTER, 0)]  # one every 45 s
RARE = ("On db1:10936, 68.99% of the time that reads on nvme0n1 waited in the last 15 minutes was in excess of the usual, "
        "although 99 % of them are as fast as ever.")
LASTING = RARE.replace("68.99%", "47.91%")


def rare(seconds):
    """What the I/Os of one sample waited beyond the usual."""
    return [counter("ssdpulse_latency_excess_seconds_total", [(CALM, 0), (TROUBLE, seconds), (AFTER, 0)], cause="unknown",
                    **READ), pending(0)]


def pending(seconds):
    """What they waited beyond the usual in a spike that is still going on."""
    return gauge("ssdpulse_latency_spike_pending_excess_seconds", [(CALM, 0), (TROUBLE, seconds), (AFTER, 0)], **READ)


# dm-0 on dm-1 on a partition of a drive, next to another drive
BELOW = [gauge("ssdpulse_device_member_info", [(ALL, 1)], array=name, device="nvme0n1", kind="dm") for name in ("dm-0", "dm-1")]
BELOW += [gauge("ssdpulse_volume_member_info", [(ALL, 1)], volume=name, member=member)
          for name, member in (("dm-0", "dm-1"), ("dm-1", "nvme0n1p1"))]
ON_VOLUME = {"volume": "dm-0", "operation": "read"}
SLOW_VOLUME = "On db1:10936, reads on the volume {} take 0.062 s (99th percentile over 5 minutes); 0.00012 s is usual; of the disks below, nvme0n1 is slowest ({} s)"

NAMESPACE = gauge("ssdpulse_nvme_namespace_info", [(ALL, 1)], controller="nvme0", device="nvme0n1", nsid="1")
AMPLIFIED = gauge("ssdpulse_write_amplification_ratio", [(CALM, 1.2), (TROUBLE, 3.4), (AFTER, 1.2)],
                  controller="nvme0", source="fdp", window="5m")

CASES = [
    *meeting("discard", "LiftedByDiscard"),
    Case("SsdpulseTailLiftedByDiscard", "it fires a minute and a half after it began, with the trigger",
         [others(), met(STALL), bursts()],
         fires=((BEGIN + 90, {**READ, "during": "discard"},
                 "On db1:10936, reads on nvme0n1 that overlap a discard take 0.062 s (99th percentile over one minute); "
                 "0.00012 s is usual. Trigger: fstrim."),)),

    *meeting("flush", "LiftedByFlush"),
    tail("LiftedByFlush", "a checkpoint of two minutes", others(ios=30000), met(STALL, during="flush", samples=8),
         silent=(BEGIN + 2 * MINUTE, BEGIN + 4 * MINUTE)),

    tail("LiftedByGarbageCollection", "a spike by garbage collection", spike("gc", TROUBLED), NAMESPACE, AMPLIFIED,
         fires=((DURING, {**READ, "cause": "gc"},
                 "On db1:10936, garbage collection in the drive slowed down reads on nvme0n1 in 100% of the last 5 minutes. "
                 "Write amplification in that time: 3.4."),)),
    tail("LiftedByGarbageCollection", "many short ones, which only their seconds show",
         counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (TROUBLE, 3), (AFTER, 0)], cause="gc", **READ),
         spike("gc", [(ALL, 0)]),
         fires=((DURING, {**READ, "cause": "gc"},
                 "On db1:10936, garbage collection in the drive slowed down reads on nvme0n1 in 20% of the last 5 minutes."),)),
    tail("LiftedByGarbageCollection", "the same shape without evidence from the drive", spike("unknown", TROUBLED),
         spike("gc", [(ALL, 0)])),
    tail("LiftedByGarbageCollection", "one spike of 20 s in 5 minutes",
         counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 20), (80, 0)], cause="gc", **READ),
         silent=(BEGIN + 2 * MINUTE,)),

    tail("LiftedByQueueing", "reads wait in the queue, the drive is quick", waiting(-15, STALL, 300), whole(STALL, 300),
         fires=((BEGIN + 13 * MINUTE, READ,
                 "On db1:10936, reads on nvme0n1 wait 0.062 s in the queue before they reach the drive (99th "
                 "percentile over 5 minutes), which is 100% of their total time."),)),
    tail("LiftedByQueueing", "the drive is slow, not the queue", waiting(-15, -15, 300), whole(STALL, 300)),
    tail("LiftedByQueueing", "a wait, but little against the drive's own time", waiting(-15, -7, 300), whole(-5, 300)),
    tail("LiftedByQueueing", "hardly any I/O", waiting(-15, STALL, 2), whole(STALL, 2)),
    tail("LiftedByQueueing", "one minute of it",
         latency([(CALM, {-15: 30000}), (4, {STALL: 300}), (80, {-15: 30000})], part="io_queue"),
         latency([(CALM, {USUAL: 30000}), (4, {STALL: 300}), (80, {USUAL: 30000})]), silent=(BEGIN + 5 * MINUTE,)),
    tail("LiftedByQueueing", "much more than before, but quick: 1 ms", waiting(-16, -10, 3000), whole(-10, 3000)),
    tail("LiftedByQueueing", "a queue that is always this long", waiting(-6, -5, 3000),
         latency([(CALM, {-6: 30000}), (TROUBLE, {-5: 3000}), (AFTER, {-6: 30000})])),

    tail("SpikeUnexplained", "slow for a while and no cause known", spike("unknown", TROUBLED),
         fires=((DURING, {**READ, "cause": "unknown"},
                 "On db1:10936, reads on nvme0n1 were slow without a known cause in 100% of the last 5 minutes."),)),
    tail("SpikeUnexplained", "a tenant floods the drive", spike("unknown", TROUBLED), *FLOOD,
         fires=((DURING, {**READ, "cause": "unknown"},
                 "On db1:10936, reads on nvme0n1 were slow without a known cause in 100% of the last 5 minutes; top tenant by I/O: "
                 "backup.service (100MB/s)."),)),
    tail("SpikeUnexplained", "the cause is known", spike("gc", TROUBLED), spike("unknown", [(ALL, 0)])),
    tail("SpikeUnexplained", "unknown only until the drive was asked, a minute later",
         spike("unknown", [(CALM, 0), (4, 1), (TROUBLE + AFTER, 0)]),
         spike("gc", [(CALM + 4, 0), (TROUBLE, 1), (AFTER, 0)]), silent=(BEGIN + 3 * MINUTE, BEGIN + 4 * MINUTE)),
    tail("SpikeUnexplained", "one of 20 s in 5 minutes",
         counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 20), (80, 0)], cause="unknown", **READ),
         silent=(BEGIN + 4 * MINUTE,)),

    Case("SsdpulseCommitsSlow", "commits are slow because the device's flushes are", [spike("flush", TROUBLED, "commit")],
         fires=((DURING, {"device": "nvme0n1", "operation": "commit", "cause": "flush"},
                 "On db1:10936, commits on nvme0n1 were slow in 100% of the last 5 minutes (cause: flush)."),),
         silent=(BEFORE, LATER)),
    Case("SsdpulseCommitsSlow", "one spike of 20 s, with what it cost",
         [counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 20), (80, 0)], cause="flush", **COMMIT),
          counter("ssdpulse_latency_excess_seconds_total", [(CALM, 0), (1, 60), (80, 0)], cause="flush", **COMMIT),
          gauge("ssdpulse_latency_spike_pending_excess_seconds", [(ALL, 0)], **COMMIT)],
         fires=((BEGIN + 90, {**COMMIT, "cause": "flush"},
                 "On db1:10936, commits on nvme0n1 were slow in 6.667% of the last 5 minutes (cause: flush); they "
                 "waited 60 s longer than usual in 15 minutes."),), silent=(BEFORE, BEGIN + 8 * MINUTE)),
    Case("SsdpulseCommitsSlow", "a spike that goes on has cost something, too",
         [spike("flush", TROUBLED, "commit"),
          counter("ssdpulse_latency_excess_seconds_total", [(ALL, 0)], cause="flush", **COMMIT),
          gauge("ssdpulse_latency_spike_pending_excess_seconds", [(CALM, 0), (TROUBLE, 90), (AFTER, 0)], **COMMIT)],
         fires=((DURING, {**COMMIT, "cause": "flush"},
                 "On db1:10936, commits on nvme0n1 were slow in 100% of the last 5 minutes (cause: flush); they waited 90 s longer "
                 "than usual in 15 minutes."),), silent=(BEFORE, LATER)),
    Case("SsdpulseCommitsSlow", "most commits are one tenant's",
         [spike("flush", TROUBLED, "commit"),
          *(counter("ssdpulse_tenant_commits_total", [(CALM, growth), (TROUBLE, growth), (AFTER, growth)], device="nvme0n1", tenant=tenant)
            for tenant, growth in (("db.service", 3000), ("/", 15)))],
         fires=((DURING, {"device": "nvme0n1", "operation": "commit", "cause": "flush"},
                 "On db1:10936, commits on nvme0n1 were slow in 100% of the last 5 minutes (cause: flush); top tenant by "
                 "commits: db.service."),), silent=(BEFORE, LATER)),
    Case("SsdpulseCommitsSlow", "one of 10 s in 5 minutes, and slow reads",
         [counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 10), (80, 0)], cause="flush", **COMMIT),
          spike("flush", TROUBLED)], silent=(BEGIN + 2 * MINUTE, DURING)),

    Case("SsdpulseIoHeldUp", "a unit is at its limit",
         [gauge("ssdpulse_host_wait_active", [(CALM, 0), (TROUBLE, 1), (AFTER, 0)], cause="cgroup_limit"),
          gauge("ssdpulse_host_wait_active", [(ALL, 0)], cause="full"),
          counter("ssdpulse_host_io_pressure_seconds_total", [(CALM, 1), (TROUBLE, 12), (AFTER, 1)], kind="some")],
         fires=((DURING, {"cause": "cgroup_limit"}, "On db1:10936, I/O is held up above the drives (cause: cgroup_limit); "
                 "tasks wait for I/O 80% of the time."),), silent=(BEFORE, LATER)),
    Case("SsdpulseIoHeldUp", "for moments, as by a snapshot",
         [gauge("ssdpulse_host_wait_active", [(CALM, 0), (1, 1), (4, 0), (1, 1), (AFTER, 0)], cause="suspended")],
         silent=(BEGIN + 30, BEGIN + 90, DURING)),

    Case("SsdpulseSlowerThanSiblings", "a member of an array",
         [gauge("ssdpulse_device_slower_than_siblings", [(CALM, 0), (TROUBLE, 1), (AFTER, 0)], **SIBLING),
          gauge("ssdpulse_device_latency_of_siblings_ratio", [(CALM, 1), (TROUBLE, 4), (AFTER, 1)], **SIBLING)],
         fires=((DURING, SIBLING, "On db1:10936, reads on nvme0n1 have taken longer than those of its siblings (group: md0) at "
                 "equal load for 10 minutes: 4 times as long."),), silent=(BEFORE, LATER)),
    Case("SsdpulseSlowerThanSiblings", "it has had no load for so long that nothing is known of it any more",
         [gauge("ssdpulse_device_slower_than_siblings", [(CALM, 0), (TROUBLE, 1), (AFTER, None)], **SIBLING)],
         fires=((DURING, SIBLING, "On db1:10936, reads on nvme0n1 have taken longer than those of its siblings (group: md0) at "
                 "equal load for 10 minutes."),), silent=(BEFORE, LATER)),
    Case("SsdpulseSlowerThanSiblings", "twice as slow, and it may be the load, or chance",
         [gauge("ssdpulse_device_slower_than_siblings", [(ALL, 0)], **SIBLING),
          gauge("ssdpulse_device_latency_of_siblings_ratio", [(CALM, 1), (TROUBLE, 2), (AFTER, 1)], **SIBLING)],
         silent=(BEFORE, DURING, LATER)),

    Case("SsdpulseRepeatedStalls", "a freeze of 0.8 s every 45 s",
         [counter("ssdpulse_latency_spikes_total", FREEZES, cause="unknown", **READ),
          counter("ssdpulse_latency_spike_seconds_total", [(n, 0.8 * what) for n, what in FREEZES], cause="unknown", **READ)],
         fires=((DURING, READ, "On db1:10936, reads on nvme0n1 stalled 13 times in 10 minutes."),),
         silent=(BEFORE, 41 * MINUTE)),
    Case("SsdpulseRepeatedStalls", "three in ten minutes",
         [counter("ssdpulse_latency_spikes_total", [(CALM, 0), (1, 1), (10, 0), (1, 1), (10, 0), (1, 1), (60, 0)],
                  cause="unknown", **READ),
          counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 1), (90, 0)], cause="unknown", **READ)],
         silent=(BEGIN + 6 * MINUTE, BEGIN + 8 * MINUTE)),
    Case("SsdpulseRepeatedStalls", "as many, but each is long: other alerts report them",
         [counter("ssdpulse_latency_spikes_total", FREEZES, cause="gc", **READ),
          counter("ssdpulse_latency_spike_seconds_total", [(n, 30 * what) for n, what in FREEZES], cause="gc", **READ)],
         silent=(DURING,)),

    Case("SsdpulseRareSlowIo", "a few hold half of the waiting time", [*rare(3), whole(USUAL, 30000)],
         fires=((DURING, READ, RARE),), silent=(BEFORE, 43 * MINUTE)),
    Case("SsdpulseRareSlowIo", "in one spike that lasts", [*rare(0)[:1], pending(100), whole(USUAL, 30000)],
         fires=((DURING, READ, LASTING),), silent=(BEFORE, 43 * MINUTE)),
    Case("SsdpulseRareSlowIo", "they hold a twentieth of it", [*rare(0.15), whole(USUAL, 30000)], silent=(DURING,)),
    Case("SsdpulseRareSlowIo", "the tail is not fine either: other alerts report it", [*rare(1000), whole(STALL, 30000)],
         silent=(DURING,)),
    Case("SsdpulseRareSlowIo", "hardly any I/O", [*rare(3), whole(USUAL, 100, before=100)], silent=(DURING,)),
    Case("SsdpulseRareSlowIo", "repeated freezes have an alert of their own",
         [*rare(3), whole(USUAL, 30000), counter("ssdpulse_latency_spikes_total", FREEZES, cause="unknown", **READ),
          counter("ssdpulse_latency_spike_seconds_total", FREEZES, cause="unknown", **READ)], silent=(DURING,)),

    tail("LatencyHigh", "sixteen times the usual p99 for ten minutes", whole(-7, 3000), fires=((DURING, READ,
         "On db1:10936, reads on nvme0n1 take 0.0078 s (99th percentile over 5 minutes); 0.00012 s is usual."),)),
    tail("LatencyHigh", "a tenant floods the drive", whole(-7, 3000), *FLOOD, fires=((DURING, READ,
         "On db1:10936, reads on nvme0n1 take 0.0078 s (99th percentile over 5 minutes); 0.00012 s is usual; top tenant by I/O: "
         "backup.service (100MB/s)."),)),
    tail("LatencyHigh", "ten times the usual, but quick: 2 ms", whole(-9, 3000)),
    tail("LatencyHigh", "twice the usual", latency([(CALM, {-8: 3000}), (TROUBLE, {-7: 3000}), (AFTER, {-8: 3000})])),
    tail("LatencyHigh", "one minute of it",
         latency([(CALM, {USUAL: 30000}), (4, {STALL: 300}), (80, {USUAL: 30000})]), silent=(BEGIN + 5 * MINUTE,)),
    tail("LatencyHigh", "hardly any I/O", whole(STALL, 2)),
    tail("LatencyHigh", "discards themselves may be slow", whole(STALL, 3000, operation="discard")),

    of_volume("the volume is slow, not what is below", volume(STALL), volume(USUAL, 30000, "dm-1"), whole(USUAL, 30000),
              fires=((DURING, ON_VOLUME, SLOW_VOLUME.format("dm-0", "0.00012") + "."),)),
    of_volume("a layer below is: it is named alone", volume(STALL), volume(STALL, name="dm-1"), whole(USUAL, 30000),
              gauge("ssdpulse_host_wait_active", TROUBLED, cause="layer"), gauge("ssdpulse_host_wait_active", [(ALL, 0)], cause="full"),
              fires=((DURING, {**ON_VOLUME, "volume": "dm-1"},
                      SLOW_VOLUME.format("dm-1", "0.00012") + ". I/O is held up above the drives (cause: layer)."),)),
    of_volume("the drive below is slow", volume(STALL), volume(STALL, name="dm-1"), whole(STALL, 3000)),
    of_volume("the drive below is slow at writes, the volume at reads", volume(STALL), whole(USUAL, 30000), whole(STALL, 3000, "write"),
              fires=((DURING, ON_VOLUME, SLOW_VOLUME.format("dm-0", "0.00012") + "."),)),
    of_volume("the drive below is slower, but quick: 0.5 ms", volume(STALL), whole(-11, 3000),
              fires=((DURING, ON_VOLUME, SLOW_VOLUME.format("dm-0", "0.00049") + "."),)),
    of_volume("ten times the usual, but quick: 2 ms", volume(-9, 3000), whole(USUAL, 30000)),
    of_volume("31 ms, but 16 ms are usual", volume(-5, 3000, usual=-6), whole(USUAL, 30000)),
    of_volume("one minute of it",
              volume_latency([(CALM, {USUAL: 30000}), (4, {STALL: 3000}), (80, {USUAL: 30000})]), silent=(BEGIN + 5 * MINUTE,)),
    of_volume("hardly any I/O", volume(STALL, 2), whole(USUAL, 30000)),
]

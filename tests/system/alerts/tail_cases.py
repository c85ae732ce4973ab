# SPDX-License-Identifier: Apache-2.0
"""Why requests are slow. 2^-13 s: 0.12 ms, healthy; 2^-4 s: 62 ms, a stall; a sample is 15 s."""
from alerts.case import MINUTE, Case
from alerts.series import counter, device_latency, gauge, latency

USUAL, STALL = -13, -4
CALM, TROUBLE, LONG, AFTER = 48, 20, 40, 40  # samples: 12, 5, 10 and 10 minutes
BEGIN = 12 * MINUTE
BEFORE, DURING, LATER = 11 * MINUTE, 16 * MINUTE, 25 * MINUTE  # of 5 minutes
LONGER, LATER_STILL = 21 * MINUTE, 32 * MINUTE  # of 10 minutes
READ = {"device": "nvme0n1", "operation": "read"}
MET_DISCARD, MET_FLUSH = {**READ, "beside": "discard"}, {**READ, "operation": "write", "beside": "flush"}


def met(slow, ios=300, operation="read", during="discard"):
    """I/Os that meet a discard in the time of trouble."""
    return device_latency([(CALM, {}), (TROUBLE, {slow: ios}), (AFTER, {})], during=during, operation=operation)


def others(slow=USUAL, ios=100, usual=USUAL, during="none", operation="read"):
    """All others; `slow` and `ios` in the time of trouble."""
    return device_latency([(CALM, {usual: 30000}), (TROUBLE, {slow: ios}), (AFTER, {usual: 30000})], during=during,
                          operation=operation)


def bursts(trigger="fstrim"):
    return gauge("ssdpulse_discard_burst_active", [(CALM, 0), (TROUBLE, 1), (AFTER, 0)], device="nvme0n1",
                 trigger=trigger)


def spike(cause, phases, operation="read"):
    labels = {"device": "nvme0n1", "operation": operation, "cause": cause}
    return gauge("ssdpulse_latency_spike_active", phases, **labels)


def discard(what, *series, **rest):
    return Case("SsdpulseTailLiftedByDiscard", what, list(series), silent=(BEFORE, DURING, LATER), **rest)


def flush(what, *series, **rest):
    return Case("SsdpulseTailLiftedByFlush", what, list(series), silent=(BEFORE, LONGER, LATER_STILL), **rest)


def discard_says(operation="read", trigger=" Trigger: fstrim."):
    return (f"On db1:10936, {operation}s of nvme0n1 that meet a discard take 0.062 s (99th percentile of a minute); "
            f"0.00012 s are usual.{trigger}")




def fsync(slow, ios=300):
    return device_latency([(CALM, {USUAL: 9000}), (LONG, {slow: ios}), (AFTER, {USUAL: 9000})],
                          during="flush", operation="write")


def plain(slow=USUAL, ios=30000):
    return device_latency([(CALM, {USUAL: 30000}), (LONG, {slow: ios}), (AFTER, {USUAL: 30000})],
                          operation="write")


def whole(slow, ios, operation="read", before=30000):
    return latency([(CALM, {USUAL: before}), (LONG, {slow: ios}), (AFTER, {USUAL: before})],
                   operation=operation)


def waiting(usual, slow, ios):
    return latency([(CALM, {usual: 30000}), (LONG, {slow: ios}), (AFTER, {usual: 30000})], part="io_queue")


def queueing(what, *series, **rest):
    return Case("SsdpulseTailLiftedByQueueing", what, list(series), silent=(BEFORE, LONGER, LATER_STILL), **rest)


def high(what, *series, **rest):
    return Case("SsdpulseTailLatencyHigh", what, list(series), silent=(BEFORE, LONGER, LATER_STILL), **rest)


def gc(what, *series, **rest):
    return Case("SsdpulseTailLiftedByGarbageCollection", what, list(series), silent=(BEFORE, LONGER, LATER_STILL), **rest)


def unexplained(what, *series, **rest):
    return Case("SsdpulseTailSpikeUnexplained", what, list(series), silent=(BEFORE, LONGER, LATER_STILL), **rest)


TROUBLED = [(CALM, 0), (LONG, 1), (AFTER, 0)]
NAMESPACE = gauge("ssdpulse_nvme_namespace_info", [(CALM + LONG + AFTER, 1)], controller="nvme0", device="nvme0n1", nsid="1")
AMPLIFIED = gauge("ssdpulse_write_amplification_ratio", [(CALM, 1.2), (LONG, 3.4), (AFTER, 1.2)],
                  controller="nvme0", source="fdp", window="5m")

CASES = [
    discard("reads stall beside an fstrim and are quick apart from it", others(), met(STALL), bursts(),
            fires=((DURING, MET_DISCARD, discard_says()),)),
    Case("SsdpulseTailLiftedByDiscard", "it is told a minute and a half after it began",
         [others(), met(STALL), bursts()], fires=((BEGIN + 90, MET_DISCARD, discard_says()),)),
    discard("nearly all writes meet a discard", others(ios=0, operation="write"), met(STALL, operation="write"),
            fires=((DURING, {**MET_DISCARD, "operation": "write"}, discard_says("write", "")),)),
    discard("some meet a flush as well", others(), met(STALL, during="both"),
            fires=((DURING, MET_DISCARD, discard_says(trigger="")),)),
    discard("an fstrim that hurts nobody", others(ios=30000), met(USUAL, ios=9000), bursts()),
    discard("slower beside it: 4 ms", others(), met(-8),
            fires=((DURING, MET_DISCARD, discard_says(trigger="").replace("0.062", "0.0039")),)),
    discard("slower beside it, but still quick: 1 ms", others(), met(-10), bursts()),
    discard("a fifth of the time that I/Os take", others(ios=600000), met(STALL),
            fires=((DURING, MET_DISCARD, discard_says(trigger="")),)),
    discard("a twentieth of it", others(ios=3000000), met(STALL)),
    discard("a drive with 16 ms for all, and 31 ms beside discards", others(usual=-6, slow=-6, ios=100), met(-5)),
    discard("those apart are slower as well, but far less: 16 ms", others(slow=-6), met(STALL),
            fires=((DURING, MET_DISCARD, discard_says(trigger="")),)),
    discard("two I/Os a second", others(ios=2), met(STALL, ios=30),
            fires=((DURING, MET_DISCARD, discard_says(trigger="")),)),
    discard("too few I/Os to tell", others(ios=2), met(STALL, ios=9), bursts()),
    discard("those apart are as slow: not the discards", others(slow=STALL, ios=300), met(STALL), bursts()),
    discard("a few outliers among many quick ones", others(ios=30000), met(STALL, ios=1), bursts()),
    discard("outliers enough to count, but no time lost with them", others(ios=9000000), met(STALL, ios=16), bursts()),
    discard("a drive that is always this slow", others(usual=-5, slow=-5, ios=100), met(STALL), bursts()),
    discard("a stall beside flushes is no discard's", others(), met(STALL, during="flush")),

    flush("writes stall beside flushes", fsync(STALL), plain(ios=100),
          fires=((LONGER, MET_FLUSH,
                  "On db1:10936, writes of nvme0n1 that meet a flush take 0.062 s (99th percentile of a minute); "
                  "0.00012 s are usual."),)),
    flush("an ordinary database, whose writes always meet flushes", fsync(USUAL, ios=9000), plain()),
    flush("those apart are as slow: not the flushes", fsync(STALL), plain(STALL, 300)),
    flush("beside discards, not flushes", others(), met(STALL)),
    Case("SsdpulseTailLiftedByFlush", "a checkpoint of two minutes",
         [device_latency([(CALM, {USUAL: 9000}), (8, {STALL: 300}), (AFTER, {USUAL: 9000})], during="flush"),
          device_latency([(CALM + LONG + AFTER, {USUAL: 3000})])], silent=(BEGIN + 2 * MINUTE, BEGIN + 4 * MINUTE, BEGIN + 6 * MINUTE)),

    gc("a spike by garbage collection", spike("gc", TROUBLED), NAMESPACE, AMPLIFIED,
       fires=((LONGER, {**READ, "cause": "gc"},
               "On db1:10936, reads of nvme0n1 were slowed down by the drive's garbage collection in 100% of the last 5 "
               "minutes. Write amplification in that time: 3.4."),)),
    gc("many short ones, which only their seconds tell",
       counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (LONG, 3), (AFTER, 0)], cause="gc", **READ),
       spike("gc", [(CALM + LONG + AFTER, 0)]),
       fires=((LONGER, {**READ, "cause": "gc"},
               "On db1:10936, reads of nvme0n1 were slowed down by the drive's garbage collection in 20% of the last 5 "
               "minutes."),)),
    gc("the same shape without evidence from the drive", spike("unknown", TROUBLED), spike("gc", [(CALM + LONG + AFTER, 0)])),
    gc("one spike of 20 s in 5 minutes",
       counter("ssdpulse_latency_spike_seconds_total", [(CALM, 0), (1, 20), (60, 0)], cause="gc", **READ)),

    queueing("reads wait in the queue, the drive is quick", waiting(-15, STALL, 300), whole(STALL, 300),
             fires=((LONGER, READ,
                     "On db1:10936, reads of nvme0n1 wait 0.062 s in the queue before the drive gets them (99th "
                     "percentile of 5 minutes), 100% of all their time."),)),
    queueing("the drive is slow, not the queue", waiting(-15, -15, 300), whole(STALL, 300)),
    queueing("a wait, but little against the drive's own time", waiting(-15, -7, 300), whole(-5, 300)),
    queueing("a queue that is always this long", waiting(-6, -5, 3000),
             latency([(CALM, {-6: 30000}), (LONG, {-5: 3000}), (AFTER, {-6: 30000})])),

    unexplained("slow for ten minutes and no cause known", spike("unknown", TROUBLED),
                fires=((LONGER, {**READ, "cause": "unknown"},
                        "On db1:10936, reads of nvme0n1 were slow without a known cause in 100% of the last 5 minutes."),)),
    unexplained("the cause is known", spike("gc", TROUBLED), spike("unknown", [(CALM + LONG + AFTER, 0)])),
    unexplained("unknown only until the drive was asked, half a minute later",
                spike("unknown", [(CALM, 0), (2, 1), (TROUBLE + AFTER, 0)]),
                spike("gc", [(CALM + 2, 0), (TROUBLE, 1), (AFTER, 0)])),

    high("sixteen times the usual p99 for ten minutes", whole(-7, 3000), fires=((LONGER, READ,
         "On db1:10936, reads of nvme0n1 take 0.0078 s (99th percentile of 5 minutes); 0.00012 s are usual."),)),
    high("ten times the usual, but quick: 2 ms", whole(-9, 3000)),
    high("twice the usual", latency([(CALM, {-8: 3000}), (LONG, {-7: 3000}), (AFTER, {-8: 3000})])),
    high("hardly any I/O", whole(STALL, 2)),
    high("discards themselves may be slow", whole(STALL, 3000, operation="discard")),
]

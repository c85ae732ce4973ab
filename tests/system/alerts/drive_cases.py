# SPDX-License-Identifier: Apache-2.0
"""Alerts about drives: discards, wear, health, and the writes that they receive."""
from alerts.case import DAY, HOUR, MINUTE, Case
from alerts.series import counter, gauge

DRIVE, DEVICE = {"controller": "nvme0"}, {"device": "nvme0n1"}
SOURCE = {**DRIVE, "source": "ocp"}
TERA, GIBI = 1e12, 2 ** 30


def minutely(alert, what, *series, **rest):
    return Case(alert, what, list(series), step=MINUTE, evaluation=MINUTE, **rest)


def step_gauge(name, before, then, after, samples=60, **labels):
    """Each value for an hour (or for this many samples)."""
    return gauge(name, [(samples, before), (samples, then), (samples, after)], **labels)


# --- discards -----------------------------------------------------------------------------------------------------
# Time 0 of promtool is a Thursday, 00:00 UTC.
def work(what, *series, **rest):
    return Case("SsdpulseDiscardInWorkingHours", what, list(series), step=5 * MINUTE, evaluation=5 * MINUTE, **rest)


def discarding(since, hours, trigger="fstrim", days=1):
    return counter("ssdpulse_discard_burst_seconds_total",
                   [(int(since * 12), 0), (int(hours * 12), 300), (int((24 * days - since - hours) * 12), 0)],
                   **DEVICE, trigger=trigger)


def work_says(share, trigger="fstrim", size=""):
    return f"On db1:10936, discards (trigger {trigger}) kept nvme0n1 busy for {share} of the last hour{size}."


FSTRIM = {**DEVICE, "trigger": "fstrim"}
DISCARDS = [
    work("an fstrim from 9 to 11 h on a Thursday", discarding(9, 2),
         counter("ssdpulse_discard_burst_bytes_total", [(108, 0), (24, GIBI), (156, 0)], **FSTRIM),
         fires=((int(10.5 * HOUR), FSTRIM, work_says("100%", size=", 12GiB")),), silent=(8 * HOUR, 13 * HOUR)),
    work("online discard, 20 s in each 5 minutes, but all day: 7 %",
         counter("ssdpulse_discard_burst_seconds_total", [(288, 20)], **DEVICE, trigger="online"),
         silent=(9 * HOUR, 12 * HOUR)),
    work("online discard, as little, whose bursts are open nearly all the time, waiting for another discard",
         counter("ssdpulse_discard_burst_seconds_total", [(288, 20)], **DEVICE, trigger="online"),
         gauge("ssdpulse_discard_burst_active", [(289, 1)], **DEVICE, trigger="online"), silent=(9 * HOUR, 12 * HOUR)),
    work("online discard, a minute in each 5 minutes",
         counter("ssdpulse_discard_burst_seconds_total", [(288, 60)], **DEVICE, trigger="online"),
         fires=((12 * HOUR, {**DEVICE, "trigger": "online"}, work_says("20%", "online")),), silent=(7 * HOUR, 19 * HOUR)),
    work("the same fstrim at night", discarding(2, 2), silent=(3 * HOUR, 4 * HOUR, 9 * HOUR)),
    work("the same fstrim on a Saturday", discarding(48 + 9, 2, days=3), silent=(58 * HOUR,)),
    work("a short one in working hours: 5 minutes", discarding(10, 1 / 12), silent=(int(10.25 * HOUR), 11 * HOUR)),
]


def twice(what, *series, **rest):
    return Case("SsdpulseOnlineDiscardAndFstrim", what, list(series), step=HOUR, evaluation=HOUR, **rest)


ONLINE = {"volume": "nvme0n1p1", "mountpoint": "/data", "discard": "true"}
QUIET = {"volume": "nvme0n1p2", "mountpoint": "/quiet", "discard": "false"}


def discarded(where, trigger="fstrim", each_hour=GIBI):
    return counter("ssdpulse_filesystem_discard_bytes_total", [(24, 0), (2, each_hour), (19 * 24, 0)], **where,
                   trigger=trigger)


def until(day, samples):
    """From that day on, the file system is mounted with the other option."""
    samples.values[day * 24:] = [None] * len(samples.values[day * 24:])
    return samples


DISCARDS += [
    twice("mounted with discard and trimmed by fstrim", discarded(ONLINE), discarded(QUIET, each_hour=0),
          fires=((3 * DAY, {**ONLINE, "trigger": "fstrim"},
                  "On db1:10936, /data (nvme0n1p1) is mounted with discard, and fstrim also discarded 2GiB there in 8 "
                  "days."),), silent=(20 * HOUR, 12 * DAY)),
    twice("until it was mounted without", until(2, discarded(ONLINE)), silent=(3 * DAY,)),
    twice("fstrim alone", discarded(QUIET), silent=(3 * DAY,)),
    twice("online discard alone", discarded(ONLINE, "online"), discarded(ONLINE, each_hour=0), silent=(3 * DAY,)),
    twice("fstrim of another partition of the drive", discarded(ONLINE, "online"), discarded(ONLINE, each_hour=0),
          discarded(QUIET), counter("ssdpulse_discard_bursts_total", [(24, 0), (2, 4), (19 * 24, 0)], **FSTRIM),
          gauge("ssdpulse_filesystem_info", [(20 * 24, 1)], **DEVICE, mountpoint="/data", fstype="xfs", discard="true"),
          silent=(3 * DAY,)),
]


# --- wear -----------------------------------------------------------------------------------------------------------
def ratios(hour, week, covered=3 * DAY, certainty=0.05):
    """An hour's write amplification in the second hour, and its bounds."""
    waf, found = "ssdpulse_write_amplification", []
    for window, value in (("1h", hour), ("7d", week)):
        labels = {**SOURCE, "window": window}
        before = min(hour, week)
        for name, factor in (("ratio", 1), ("lower_ratio", 1 - certainty), ("upper_ratio", 1 + certainty)):
            found.append(step_gauge(f"{waf}_{name}", before * factor, (value if window == "1h" else week) * factor,
                                    before * factor, **labels))
    found.append(gauge(f"{waf}_covered_seconds", [(180, covered)], **SOURCE, window="7d"))
    return found


def daily(value, covered=12 * HOUR):
    labels = {**SOURCE, "window": "24h"}
    return [step_gauge("ssdpulse_write_amplification_lower_ratio", 1.2, value, 1.2, **labels),
            step_gauge("ssdpulse_write_amplification_ratio", 1.3, value + 0.2, 1.3, **labels),
            gauge("ssdpulse_write_amplification_covered_seconds", [(180, covered)], **labels)]


def written(gigabytes_a_day):
    """Writes to the media of a drive of 4 TB."""
    return [counter("ssdpulse_nvme_media_written_bytes_total", [(180, gigabytes_a_day * 1e9 / 1440)], start=9e13, **SOURCE),
            gauge("ssdpulse_nvme_namespace_info", [(181, 1)], **DRIVE, **DEVICE, nsid="1"),
            gauge("ssdpulse_device_size_bytes", [(181, 4 * TERA)], **DEVICE)]


LATER = 150 * MINUTE
ABOVE, HIGH = "SsdpulseWriteAmplificationAboveBaseline", "SsdpulseWriteAmplificationHigh"
WEAR = [
    minutely(ABOVE, "3 in the last hour, 1.2 over 7 days", *ratios(3, 1.2),
             fires=((90 * MINUTE, SOURCE, "On db1:10936, write amplification of nvme0 is at least 2.8 "
                     "over the last hour; over 7 days it was 1.2 (counters: ocp)."),), silent=(70 * MINUTE, LATER)),
    minutely(ABOVE, "3 in an hour of 25 GB", *ratios(3, 1.2), *written(600), silent=(70 * MINUTE, LATER),
             fires=((90 * MINUTE, SOURCE, "On db1:10936, write amplification of nvme0 is at least 2.8 "
                     "over the last hour; over 7 days it was 1.2 (counters: ocp)."),)),
    minutely(ABOVE, "3 in an hour in which hardly anything was written", *ratios(3, 1.2), *written(300), silent=(90 * MINUTE,)),
    minutely(ABOVE, "as high as over 7 days", *ratios(3, 3), silent=(90 * MINUTE,)),
    minutely(ABOVE, "a little more", *ratios(1.7, 1.2), silent=(90 * MINUTE,)),
    minutely(ABOVE, "more, but the bounds allow that it is not", *ratios(2, 1.2, certainty=0.1), silent=(90 * MINUTE,)),
    minutely(ABOVE, "7 days that are half a day yet", *ratios(3, 1.2, covered=DAY / 2), silent=(90 * MINUTE,)),

    minutely(HIGH, "at least 3.4 over a day", *daily(3.4),
             fires=((90 * MINUTE, {**SOURCE, "window": "24h"}, "On db1:10936, write amplification of nvme0 is at least 3.4 "
                     "over 24 hours (counters: ocp)."),), silent=(70 * MINUTE, LATER)),
    minutely(HIGH, "3.4 of a drive that is hardly written to", *daily(3.4), *written(300), silent=(90 * MINUTE,)),
    minutely(HIGH, "about 3, perhaps less", *daily(2.9), silent=(90 * MINUTE,)),
    minutely(HIGH, "a day that is an hour yet", *daily(3.4, covered=HOUR), silent=(90 * MINUTE,)),
]

MODELLED = "SsdpulseModelledWriteAmplificationHigh"


def modelled(lower, ratio, overprovisioning="typical", **drive):
    labels = {**(drive or DRIVE), "policy": "any", "overprovisioning": overprovisioning, "discards": "honoured",
              "placement": "none", "window": "24h"}
    return [step_gauge("ssdpulse_modelled_write_amplification_lower_ratio", 1.2, lower, 1.2, **labels),
            step_gauge("ssdpulse_modelled_write_amplification_ratio", 1.3, ratio, 1.3, **labels)]


def modelled_say(drive):
    return (f"On db1:10936, write amplification of {drive} is at least 3.4 over 24 hours according to the model: the drive "
            "does not count it.")


def counted(controller):
    return counter("ssdpulse_nvme_media_written_bytes_total", [(180, 1e9)], start=9e13, controller=controller, source="ocp")


WEAR += [
    minutely(MODELLED, "at least 3.4, of one drive with a controller and one without; another drive is measured",
             *modelled(3.4, 3.9), *modelled(3.4, 3.9, device="sda"), counted("nvme1"), silent=(70 * MINUTE, LATER),
             fires=((90 * MINUTE, DRIVE, modelled_say("nvme0")), (90 * MINUTE, {"device": "sda"}, modelled_say("sda")))),
    minutely(MODELLED, "2.8 to 3", *modelled(2.8, 2.9), silent=(90 * MINUTE,)),
    minutely(MODELLED, "3.4, but perhaps less than 3", *modelled(2.9, 3.4), silent=(90 * MINUTE,)),
    minutely(MODELLED, "a drive whose write amplification is measured", *modelled(3.4, 3.9, "fitted"), *daily(1.2),
             counted("nvme0"), silent=(90 * MINUTE,)),
    minutely(MODELLED, "with less spare flash than the drive has", *modelled(3.4, 3.9, "0.07"), silent=(90 * MINUTE,)),
    minutely(MODELLED, "no estimate", gauge("ssdpulse_modelled_write_amplification_silence_info", [(181, 1)], **DRIVE,
                                            window="24h", reason="warming_up"), silent=(90 * MINUTE,)),
]

SOON, YEAR = "SsdpulseDriveWornOutIn90Days", "SsdpulseDriveWornOutInOneYear"


def life(days, window=30 * DAY, basis="percentage_used"):
    """This many days left for three hours, far more before and after."""
    labels = {**DRIVE, "basis": basis}
    return [gauge("ssdpulse_nvme_life_remaining_seconds", [(60, 1500 * DAY), (180, days * DAY), (60, 1500 * DAY)], **labels),
            gauge("ssdpulse_nvme_life_remaining_window_seconds", [(300, window)], **labels)]


def life_says(days):
    return f"On db1:10936, the rated life of nvme0 ends in {days}d 0h 0m 0s at the current rate; used up: 91%."


def used(before, then=None):
    """`then` for three hours, `before` otherwise."""
    return gauge("ssdpulse_nvme_percentage_used_ratio", [(60, before), (180, then or before), (60, before)], **DRIVE)


USED = used(0.91)
WORN, NEW = 3 * HOUR, (90 * MINUTE, 280 * MINUTE)
WEAR += [
    minutely(SOON, "60 days left", *life(60), USED, fires=((WORN, DRIVE, life_says(60)),), silent=NEW),
    minutely(SOON, "60 days by the other estimate", *life(600), *life(60, basis="endurance_estimate"), USED,
             fires=((WORN, DRIVE, life_says(60)),), silent=NEW),
    minutely(SOON, "100 days left", *life(100), silent=(WORN,)),
    minutely(SOON, "an hour's bulk load makes it look like 60 days", *life(60, window=HOUR), silent=(WORN,)),
    minutely(SOON, "none left: that is the other alert's", *life(0), used(1.02), silent=(WORN,)),
    minutely("SsdpulseDriveWornOut", "worn out when it came: nobody knows how fast", used(0.91, 1.02),
             gauge("ssdpulse_nvme_available_spare_ratio", [(300, 0.88)], **DRIVE),
             fires=((WORN, DRIVE, "On db1:10936, nvme0 has used up 102% of its rated life; spare blocks left: 88%."),),
             silent=(62 * MINUTE, 280 * MINUTE)),
    minutely("SsdpulseDriveWornOut", "nearly", used(0.99), silent=(WORN,)),
    minutely(YEAR, "300 days left", *life(300), USED, fires=((WORN, DRIVE, life_says(300)),), silent=NEW),
    minutely(YEAR, "500 days left", *life(500), silent=(WORN,)),
    minutely(YEAR, "60 days left: that is the other alert's", *life(60), silent=(WORN,)),
]


def swapped(samples, after, label="serial"):
    """After this many samples, the controller's number goes to another drive, or the same drive gets another label."""
    return [gauge("ssdpulse_nvme_info", [(before, None), (there, 1), (later, None)],
                  **{**DRIVE, "serial": "S1", "firmware": "1.0", label: value})
            for value, before, there, later in (("ONE", 0, samples, after), ("OTHER", samples, after, 0))]


def idle(what, gigabytes_a_day, other, *more, hours=48, **rest):
    """One sample per hour."""
    grow = [(24, 0), (hours, gigabytes_a_day * 1e9 / 24), (96 - hours, 0)]
    return Case("SsdpulseIdleWear", what, [
        counter("ssdpulse_nvme_idle_media_written_bytes_total", grow, start=5e12, **DRIVE),
        counter("ssdpulse_nvme_media_written_bytes_total", [(n, one + other * 1e9 / 24) for n, one in grow], start=9e13,
                **SOURCE),
        gauge("ssdpulse_nvme_namespace_info", [(121, 1)], **DRIVE, **DEVICE, nsid="1"),
        gauge("ssdpulse_device_size_bytes", [(121, 4 * TERA)], **DEVICE), *more], step=HOUR, evaluation=HOUR, **rest)


WEAR += [
    idle("400 GB a day into a drive of 4 TB", 400, 100, silent=(20 * HOUR, 110 * HOUR), fires=((
        60 * HOUR, DRIVE, "On db1:10936, nvme0 wrote 372.5GiB to its media in a day while the host wrote nothing."),)),
    idle("refresh of 40 GB a day", 40, 10, silent=(60 * HOUR,)),
    idle("300 GB a day beside 4 TB of ordinary writes", 300, 4000, silent=(60 * HOUR,)),
    idle("another drive has its number, which wrote 5 TB so in its life", 24 * 5000, 100, *swapped(25, 96), hours=1,
         silent=(27 * HOUR, 40 * HOUR, 48 * HOUR)),
]


# --- health ---------------------------------------------------------------------------------------------------------
def health(alert, what, *series, **rest):
    return minutely(f"Ssdpulse{alert}", what, *series, **rest)


def spare(then, threshold=0.1, prefix="ssdpulse_nvme", **labels):
    return [step_gauge(f"{prefix}_available_spare_ratio", 1, then, 1, **DRIVE, **labels),
            gauge(f"{prefix}_available_spare_threshold_ratio", [(180, threshold)], **DRIVE, **labels)]


THEN, BOTH = 90 * MINUTE, (50 * MINUTE, 150 * MINUTE)
HEALTH = [
    health("SpareLow", "30 % left, the drive warns at 10 %", *spare(0.3), silent=BOTH,
           fires=((THEN, DRIVE, "On db1:10936, nvme0 has 30% of its spare blocks left."),)),
    health("SpareLow", "of an endurance group", *spare(0.3, prefix="ssdpulse_nvme_endurance_group", endurance_group="1"),
           silent=BOTH, fires=((THEN, {**DRIVE, "endurance_group": "1"},
                                "On db1:10936, nvme0 (endurance group 1) has 30% of its spare blocks left."),)),
    health("SpareLow", "40 % left", *spare(0.4), silent=(THEN,)),
    health("SpareLow", "neither a reserve nor a threshold is reported", *spare(0, 0), silent=(THEN,)),
    health("SpareLow", "nor of an endurance group", silent=(THEN,),
           *spare(0, 0, prefix="ssdpulse_nvme_endurance_group", endurance_group="1")),
    health("SpareLow", "98 % left of a drive that warns at 97 %", *spare(0.98, 0.97), silent=(THEN,)),
]


ARRAY = {"volume": "md0"}


def lacking(minutes, members=1):
    """An array that lacks members for this many minutes, and whose spare is being rebuilt meanwhile."""
    return [gauge("ssdpulse_volume_degraded_members", [(60, 0), (minutes, members), (121 - minutes, 0)], **ARRAY),
            gauge("ssdpulse_volume_info", [(181, 1)], **ARRAY, kind="raid1"),
            gauge("ssdpulse_array_resync_progress_ratio", [(60, None), (minutes, 0.45), (121 - minutes, None)], array="md0",
                  action="recover")]


def lacking_says(rest):
    return f"On db1:10936, the array md0{rest}."


HEALTH += [
    health("ArrayDegraded", "a mirror without one of its members, which is being rebuilt", *lacking(60),
           silent=(59 * MINUTE, 63 * MINUTE, 125 * MINUTE), fires=((THEN, ARRAY, lacking_says(
               " (raid1) lacks members (missing, failed, or still being rebuilt): 1. What runs now: recover, 45% done")),)),
    health("ArrayDegraded", "two are missing, and no more is known", *lacking(60, 2)[:1], silent=(125 * MINUTE,),
           fires=((THEN, ARRAY, lacking_says(" lacks members (missing, failed, or still being rebuilt): 2")),)),
    health("ArrayDegraded", "a member that is back within four minutes", *lacking(4), silent=(63 * MINUTE, 65 * MINUTE, 70 * MINUTE)),
    health("ArrayDegraded", "a check of an array that is whole", *lacking(60, 0), silent=(THEN,)),
]


def failing(growth, error="medium", operation="read"):
    return counter("ssdpulse_io_errors_total", [(60, 0), (2, growth), (118, 0)], **DEVICE, operation=operation, error=error)


UP = gauge("up", [(181, 1)])


def there(minutes, away=180, medium="drive"):
    """There for this many minutes, then away for `away` minutes."""
    return gauge("ssdpulse_device_info", [(minutes, 1), (away, None), (181, 1)], **DEVICE, model="ACME", serial="S1", medium=medium,
                 transport="nvme", scheduler="none")


def media_errors(growth):
    return counter("ssdpulse_nvme_media_errors_total", [(60, 0), (2, growth), (118, 0)], start=17, **DRIVE)


HEALTH += [
    health("MediaErrors", "two errors by the drive's own count", media_errors(1), silent=(59 * MINUTE, 130 * MINUTE),
           fires=((70 * MINUTE, DRIVE, "On db1:10936, nvme0 had 2 media errors in the last hour."),)),
    health("MediaErrors", "four reads that failed", failing(2), silent=(59 * MINUTE, 130 * MINUTE),
           fires=((70 * MINUTE, DEVICE, "On db1:10936, nvme0n1 had 4 media errors in the last hour."),)),
    health("MediaErrors", "old errors, none new", media_errors(0), silent=(70 * MINUTE,)),
    health("MediaErrors", "two errors after its firmware was changed", media_errors(1), *swapped(60, 120, "firmware"),
           fires=((70 * MINUTE, DRIVE, "On db1:10936, nvme0 had 2 media errors in the last hour."),)),
    health("MediaErrors", "a drive with 17 old errors has its number now; it gets one more, which is reported within an hour",
           counter("ssdpulse_nvme_media_errors_total", [(60, 0), (1, 17), (29, 0), (1, 1), (88, 0)], **DRIVE), *swapped(61, 119),
           silent=(62 * MINUTE, 70 * MINUTE, 119 * MINUTE, 155 * MINUTE),
           fires=((125 * MINUTE, DRIVE, "On db1:10936, nvme0 had 1 media errors in the last hour."),)),
    health("MediaErrors", "reads that failed on the way", failing(2, error="transport"), silent=(70 * MINUTE,)),

    health("IoErrors", "reads that failed on the way", failing(10, error="transport"), silent=(59 * MINUTE, 90 * MINUTE),
           fires=((70 * MINUTE, {**DEVICE, "error": "transport"},
                   "On db1:10936, 20 reads, writes and flushes on nvme0n1 failed in the last 15 minutes (transport)."),)),
    health("IoErrors", "one read that failed", failing(0.5, error="io"), silent=(70 * MINUTE,)),
    health("IoErrors", "what is not supported", failing(10, error="unsupported"), silent=(70 * MINUTE,)),
    health("IoErrors", "discards that the target refuses", failing(10, error="target", operation="discard"),
           silent=(70 * MINUTE,)),

    health("DeviceGone", "the kernel lost a drive", there(60), UP, silent=(60 * MINUTE, 64 * MINUTE, 125 * MINUTE),
           fires=((80 * MINUTE, {**DEVICE, "model": "ACME", "serial": "S1"},
                   "nvme0n1 on db1:10936 (ACME, serial S1) is gone: removed, dropped by the kernel, or no longer measured."),)),
    health("DeviceGone", "the host was away for two hours, and came back without it", there(400, away=600),
           gauge("up", [(401, 1), (120, 0), (500, 1)]), silent=(390 * MINUTE, 460 * MINUTE, 780 * MINUTE),
           fires=((540 * MINUTE, {**DEVICE, "model": "ACME", "serial": "S1"},
                   "nvme0n1 on db1:10936 (ACME, serial S1) is gone: removed, dropped by the kernel, or no longer measured."),)),
    health("DeviceGone", "away for three minutes", there(60, away=3), UP, silent=(64 * MINUTE, 67 * MINUTE, 80 * MINUTE)),
    health("DeviceGone", "the whole host is", there(60), gauge("up", [(61, 1), (120, 0)]), silent=(80 * MINUTE,)),
    health("DeviceGone", "a volume of a cloud", there(60, medium="software"), UP, silent=(80 * MINUTE,)),

    health("CriticalWarning", "the drive calls itself unreliable", silent=BOTH,
           *[step_gauge("ssdpulse_nvme_critical_warning", 0, then, 0, **DRIVE, warning=warning)
             for warning, then in (("reliability", 1), ("available_spare", 0))], *spare(0.5),
           fires=((THEN, {**DRIVE, "warning": "reliability"},
                   "On db1:10936, nvme0 reports: reliability. Spare blocks left: 50%."),)),
    health("CriticalWarning", "an endurance group became read-only", silent=BOTH, fires=((
        THEN, {**DRIVE, "warning": "read_only", "endurance_group": "2"},
        "On db1:10936, nvme0 (endurance group 2) reports: read_only."),), *[
            step_gauge("ssdpulse_nvme_endurance_group_warning", 0, 1, 0, **DRIVE, warning="read_only",
                       endurance_group="2")]),
    health("TemperatureWarning", "too hot", silent=(*BOTH, 61 * MINUTE), *[
        step_gauge("ssdpulse_nvme_critical_warning", 0, 1, 0, **DRIVE, warning="temperature")],
           *[gauge("ssdpulse_nvme_temperature_celsius", [(180, 84)], **DRIVE, sensor="composite")],
           fires=((THEN, {**DRIVE, "warning": "temperature"},
                   "On db1:10936, nvme0 warns of its temperature. It is at 84 degrees Celsius."),)),
    health("TemperatureWarning", "a single reading of heat", silent=(THEN, 91 * MINUTE), *[
        gauge("ssdpulse_nvme_critical_warning", [(90, 0), (1, 1), (90, 0)], **DRIVE, warning="temperature")]),
    health("CriticalWarning", "heat: that is the other alert's", silent=(THEN,), *[
        gauge("ssdpulse_nvme_critical_warning", [(180, 1)], **DRIVE, warning="temperature")]),
    health("CriticalWarning", "none", *[gauge("ssdpulse_nvme_critical_warning", [(180, 0)], **DRIVE, warning=warning)
                                        for warning in ("available_spare", "reliability", "read_only")], silent=(THEN,)),

    health("AuditDanger", "a file system is mounted without barriers", silent=(*BOTH, 65 * MINUTE), fires=((
        THEN, {"id": "F7", "device": "/srv", "verdict": "danger"},
        "On db1:10936, the audit reports danger by rule F7 on /srv. `ssdpulse audit` shows what it is and what to change."),),
        *[gauge("ssdpulse_audit_finding_info", [(60, None), (60, 1), (60, None)], id="F7", device="/srv", verdict="danger")]),
    health("AuditDanger", "something is advised", silent=(THEN,), *[
        gauge("ssdpulse_audit_finding_info", [(180, 1)], id="F1", device="/srv", verdict="advise")]),
]


HOT = gauge("ssdpulse_nvme_temperature_celsius", [(180, 84)], **DRIVE, sensor="composite")
THROTTLED = {"silent": (59 * MINUTE, LATER), "fires": ((
    70 * MINUTE, DRIVE, "On db1:10936, nvme0 throttled because of heat in the last 15 minutes; its "
    "temperature is 84 degrees Celsius."),)}


def throttle(name, growth, **labels):
    return counter(f"ssdpulse_nvme_{name}", [(60, 0), (30, growth), (90, 0)], start=600, **DRIVE, **labels)


HEALTH += [
    health("ThermalThrottling", "by the standard's seconds", throttle("thermal_management_seconds_total", 60, level="1"),
           HOT, **THROTTLED),
    health("ThermalThrottling", "by its transitions", throttle("thermal_management_transitions_total", 1, level="2"),
           HOT, **THROTTLED),
    health("ThermalThrottling", "by a vendor's events", throttle("thermal_throttle_events_total", 1), HOT, **THROTTLED),
    health("ThermalThrottling", "by a vendor's seconds", throttle("thermal_throttle_seconds_total", 60), HOT, **THROTTLED),
    health("ThermalThrottling", "by a vendor's level", step_gauge("ssdpulse_nvme_thermal_throttle_level", 0, 1, 0, **DRIVE),
           HOT, **THROTTLED),
    *[health("ThermalThrottling", f"another drive has its number, which did once: {name}", HOT, *swapped(61, 119),
             counter(f"ssdpulse_nvme_{name}", [(60, 0), (1, 600), (119, 0)], **DRIVE),
             silent=(62 * MINUTE, 65 * MINUTE, 75 * MINUTE, 80 * MINUTE))
      for name in ("thermal_management_seconds_total", "thermal_throttle_events_total")],
    health("ThermalThrottling", "another drive has its number, which does now", HOT, *swapped(61, 119),
           gauge("ssdpulse_nvme_thermal_throttle_level", [(61, 0), (119, 1)], **DRIVE), silent=(60 * MINUTE,),
           fires=((65 * MINUTE, DRIVE, THROTTLED["fires"][0][2]),)),
    health("ThermalThrottling", "warm, and it did throttle once, long ago",
           throttle("thermal_management_seconds_total", 0, level="1"), HOT, silent=(70 * MINUTE,)),
]


# --- writes ---------------------------------------------------------------------------------------------------------
def hinted(megabytes_a_minute, hint="short"):
    return counter("ssdpulse_write_hint_bytes_total", [(120, megabytes_a_minute * 1e6), (180, 0)], **DEVICE, hint=hint)


def path(kernel, drive):
    return gauge("ssdpulse_write_hint_path_info", [(301, 1)], **DEVICE, kernel=kernel, drive=drive)


def hints(what, *series, **rest):
    return minutely("SsdpulseHintsNotArriving", what, *series, **rest)


def hints_say(kernel, drive, size="5.588GiB"):
    return (f"On db1:10936, {size} were written to nvme0n1 with a write hint in the last hour. The hints end here: kernel "
            f"{kernel}, drive {drive}.")


def misaligned(what, share, rate=2e6, small=0.25, **rest):
    """Bytes per second; misaligned for two hours, then aligned at the same rate."""
    return minutely("SsdpulseMisalignedWrites", what,
                    counter("ssdpulse_io_bytes_total", [(300, rate * 60)], **DEVICE, operation="write"),
                    counter("ssdpulse_io_bytes_total", [(300, rate * 60)], **DEVICE, operation="read"),
                    counter("ssdpulse_write_misaligned_bytes_total", [(120, rate * 60 * share), (180, 0)], **DEVICE),
                    counter("ssdpulse_write_small_bytes_total", [(300, rate * 60 * small)], **DEVICE), **rest)


def wrong_order(what, ratio, **rest):
    return minutely("SsdpulseHintsInWrongOrder", what,
                    gauge("ssdpulse_write_hint_order_violation", [(120, ratio), (180, 1)], controller="nvme0", shorter="short",
                          longer="long"), **rest)


WRITES = [
    hints("the kernel drops them", hinted(100), path("dropped", "fdp"), silent=(260 * MINUTE,),
          fires=((110 * MINUTE, {**DEVICE, "kernel": "dropped", "drive": "fdp"}, hints_say("dropped", "fdp")),)),
    hints("the drive knows neither streams nor placement", hinted(100, "extreme"), path("drive", "none"),
          silent=(260 * MINUTE,),
          fires=((110 * MINUTE, {**DEVICE, "kernel": "drive", "drive": "none"}, hints_say("drive", "none")),)),
    hints("they arrive", hinted(100), path("drive", "fdp"), silent=(110 * MINUTE,)),
    hints("nobody knows what the drive does with them", hinted(100), path("drive", "unknown"), silent=(110 * MINUTE,)),
    hints("nobody gives hints", hinted(100, "not_set"), hinted(100, "none"), path("dropped", "none"),
          silent=(110 * MINUTE,)),
    hints("a few files with hints", hinted(10), path("dropped", "none"), silent=(110 * MINUTE,)),

    wrong_order("short-lived data lives three times as long", 3, silent=(30 * MINUTE, 260 * MINUTE),
                fires=((110 * MINUTE, {"controller": "nvme0", "shorter": "short", "longer": "long"},
                        "On db1:10936, nvme0: SHORT data lives longer than LONG, by a factor of 3.0."),)),
    wrong_order("as long", 1.4, silent=(110 * MINUTE,)),
    misaligned("three quarters of the bytes", 0.75, silent=(10 * MINUTE, 260 * MINUTE),
               fires=((110 * MINUTE, DEVICE, "On db1:10936, 75% of the bytes written to nvme0n1 in the last hour were "
                       "misaligned; 25% were in writes smaller than the drive's granularity."),)),
    misaligned("two fifths", 0.4, silent=(110 * MINUTE,)),
    misaligned("most, but hardly anything is written", 0.75, rate=1e5, silent=(110 * MINUTE,)),
]

CASES = [*DISCARDS, *WEAR, *HEALTH, *WRITES]

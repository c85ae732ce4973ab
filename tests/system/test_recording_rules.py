#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the ratios of the write ladder say what made-up bytes add up to, and nothing where something lacks?

Of a fleet, the ten highest are kept.
With promtool from every Debian suite, an hour after the first sample. Rates are bytes a minute: what a rung or a
member gets, by hand.
"""
import json
import subprocess
from pathlib import Path

import prometheus
import yaml
from lib import rig

RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/rules"
GROUP, OF_FLEET = "ssdpulse_write_ladder", "job:ssdpulse_write_ladder:worst10_ratio1d"
SAMPLES = 60  # one a minute
LADDER, GAP = "ssdpulse_write_ladder_bytes_total", "ssdpulse_write_ladder_gap_info"
# {host: {labels of a rung: bytes a minute}}
WRITTEN = {
    # LVM on a mirror, and a file system next to it on one of its drives: 660 bytes become 1260. One drive counts its media.
    "mirror": {"file_system dm-0 other": 600, "file_system sda writeback": 50, "file_system sda journal": 10,
               "drive sda": 660, "drive sdb": 600, "reported nvme0": 660, "reported nvme1": 600, "media nvme0": 990},
    # Two drives that count what they write to their media, and an idle one that does not.
    "flash": {"file_system nvme0n1 direct": 600, "file_system nvme1n1 direct": 200, "drive nvme0n1": 600, "drive nvme1n1": 200,
              "drive sdz": 0, "file_system sdz other": 0, "reported nvme0": 600, "reported nvme1": 200,
              "media nvme0": 660, "media nvme1": 540, "application - page_cache": 300, "application nvme0n1 direct": 200},
    "lacking": {"file_system sda other": 600, "drive sda": 1200},
    "lacked": {"file_system sda other": 600, "drive sda": 1200, "application - page_cache": 300},
    # Eleven hosts of a fleet, whose drives make 3, 4, ... 13 bytes of one.
    **{f"host{factor}": {"file_system sda other": 60, "drive sda": 60, "reported nvme0": 60, "media nvme0": 60 * factor}
       for factor in range(3, 14)},
}
FACTORS = {host: int(host[4:]) for host in WRITTEN if host.startswith("host")}
# {host: {labels of a gap: values}}
GAPS = {"mirror": {"media sdb no_counter": "1x60", "application dm-0 direct_unknown": "1x60"}, "flash": {"media sdz no_counter": "1x60"},
        "lacking": {"file_system dm-1 volume_not_measured": "1x60"},
        "lacked": {"file_system dm-1 volume_not_measured": "_x10 1 stale"}}  # for a minute of sixty
RATIOS = {"instance_step:ssdpulse_write_ladder:ratio1d": {
              "mirror step=drive": 1260 / 660, "flash step=drive": 1, "lacked step=drive": 2,
              # Of the mirror's drives one counts its media, and is not compared with what both received.
              "mirror step=media": 990 / 660, "flash step=media": (660 + 540) / 800,
              "flash step=file_system": 800 / 500, "lacked step=file_system": 2,
              **{f"{host} step=drive": 1 for host in FACTORS}, **{f"{host} step=media": factor for host, factor in FACTORS.items()}},
          "instance:ssdpulse_write_ladder:ratio1d": {"flash": 1.5, **FACTORS},
          OF_FLEET: {host: factor for host, factor in FACTORS.items() if factor > 3}}
# {volume: (kind, read, written, {member: (read, written)})}; a member without figures is not measured.
VOLUMES = {
    "md5": ("raid5", 0, 600, {"sda": (600, 600), "sdb": (600, 600), "sdc": (0, 0)}),  # single small writes
    "md1": ("raid1", 60, 600, {"sdd1": (60, 600), "sde1": (0, 600)}),
    "dm-0": ("lvm", 60, 300, {"md1": None}),
    "dm-1": ("lvm", 0, 300, {"md1": None}),  # both lie on md1
    "md9": ("raid1", 0, 600, {"sdf1": (0, 600), "sdg1": (0, 600)}),
    "dm-9": ("crypt", 0, 600, {"md9": None}),
    "md0": ("raid0", 0, 600, {"sdh": (0, 0), "sdi": (0, 0)}),  # passes bios on as they are
    "md4": ("raid1", 0, 600, {"sdj": (0, 600), "sdk": None}),
}
OF_MEMBERS = {"md5 operation=write": 2, "md1 operation=write": 2, "md1 operation=read": 1, "md9 operation=write": 2,
              "dm-9 operation=write": 1}
PARITY_READS = {"md5": 2}


def text(labels):
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def counter(name, rate, **labels):
    return {"series": name + text(labels), "values": f"0+{rate}x{SAMPLES}"}


def of_rungs():
    for host, written in WRITTEN.items():
        for words, rate in written.items():
            rung, device, *rung_class = words.replace(" -", " ").split(" ")
            yield counter(LADDER, rate, job="j", instance=host, rung=rung, device=device, **({"class": rung_class[0]} if rung_class else {}))
        for words, values in GAPS.get(host, {}).items():
            rung, device, reason = words.split()
            yield {**counter(GAP, 0, job="j", instance=host, rung=rung, device=device, reason=reason), "values": values}


def of_volumes():
    own = {"job": "j", "instance": "v"}
    for volume, (kind, read, written, members) in VOLUMES.items():
        yield {**counter("ssdpulse_volume_info", 0, **own, volume=volume, kind=kind), "values": f"1x{SAMPLES}"}
        for operation, rate in (("read", read), ("write", written)):
            yield counter("ssdpulse_volume_bytes_total", rate, **own, volume=volume, operation=operation)
        for member, rates in members.items():
            yield {**counter("ssdpulse_volume_member_info", 0, **own, volume=volume, member=member), "values": f"1x{SAMPLES}"}
            for operation, rate in zip(("read", "write"), rates or ()):
                yield counter("ssdpulse_volume_member_bytes_total", rate, **own, member=member, operation=operation)


def expected(name, figures, label):
    """`label`: what the first word of a key is."""
    samples = []
    for key, value in figures.items():
        first, *more = key.split()
        labels = {"job": "j", "instance": "v", label: first, **dict(one.split("=") for one in more)}
        samples.append({"labels": text(labels), "value": round(value, 3)})
    return {"expr": f"round({name}, 0.001)", "eval_time": f"{SAMPLES}m", "exp_samples": samples}


def test(check, state):
    groups = [group for name in ("recording.yml", "fleet.yml") for group in yaml.safe_load((RULES / name).read_text())["groups"]]
    [group] = [group for group in groups if group["name"] == GROUP]
    [of_fleet] = [rule for one in groups for rule in one["rules"] if rule["record"] == OF_FLEET]
    group["rules"].append(of_fleet)
    (state / "rules.yml").write_text(json.dumps({"groups": [group]}))
    asked = [expected(name, figures, "instance") for name, figures in RATIOS.items()]
    asked += [expected("instance_volume_operation:ssdpulse_volume_members_bytes:ratio1h", OF_MEMBERS, "volume"),
              expected("instance_volume:ssdpulse_volume_parity_read_bytes:ratio1h", PARITY_READS, "volume")]
    (state / "test.yml").write_text(json.dumps({
        "rule_files": ["rules.yml"], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [*of_rungs(), *of_volumes()], "promql_expr_test": asked}]}))
    recorded = {rule["record"] for rule in group["rules"]}
    check.that({one["expr"].split("(")[1].split(",")[0] for one in asked} <= recorded, f"{len(recorded)} rules, and all that is asked for")
    for suite in prometheus.SUITES:
        done = subprocess.run([prometheus.promtool(state, suite), "test", "rules", state / "test.yml"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        check.that(done.returncode == 0, f"promtool of {suite}{'' if done.returncode == 0 else ': ' + done.stdout}")


rig.main(test)

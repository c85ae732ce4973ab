# SPDX-License-Identifier: Apache-2.0
"""Whose I/O it is, where systemd and a container runtime make the cgroups: the names, the sums, and no name where hashed."""
import base64
import json
import re

import machine

BLOCK = 4096
CONTAINER, IN_POD = "8f3c0c1d2e5b46a7" * 4, "d00dfeed0c1d2e5b" * 4
POD = "1c2d3e4f-aabb-4c5d-8e9f-001122334455"
LABELS = {"operation": "read"}


def work(disk, blocks):
    """So much of it, and it stays for as long as the daemon needs to find its cgroup."""
    return f"dd if=/dev/{disk} of=/dev/null bs={BLOCK} count={blocks} iflag=direct; sleep 3"


def unit(name, disk, blocks, *properties):
    """Its start ends with it: --wait would need a session of D-Bus."""
    options = " ".join(f"-p {one}" for one in ("Type=oneshot", "IOAccounting=yes", *properties))
    return f"systemd-run --quiet --unit={name} {options} sh -c '{work(disk, blocks)}'"


def container(vm, name, path, disk, blocks):
    """Its root is that of the guest. There is no D-Bus, so crun makes the cgroup itself, as runtimes with `cgroupfs` for
    their driver do."""
    config = {"ociVersion": "1.0.2", "root": {"path": "rootfs"},
              "process": {"args": ["sh", "-c", work(disk, blocks)], "cwd": "/", "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
                          "user": {"uid": 0, "gid": 0}},
              "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                         {"destination": "/dev", "type": "bind", "source": "/dev", "options": ["rbind"]}],
              "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}], "cgroupsPath": path,
                        "resources": {"devices": [{"allow": True, "access": "rwm"}]}}}
    text = base64.b64encode(json.dumps(config).encode()).decode()
    bundle = f"/tmp/{name}"
    vm.sh(f"mkdir -p {bundle}/rootfs && mount --bind / {bundle}/rootfs && mount --make-private {bundle}/rootfs && "
          f"echo {text} | base64 -d >{bundle}/config.json")
    return f"crun --cgroup-manager=cgroupfs run --bundle {bundle} {name}"


def run_all(vm, commands):
    """At once."""
    started = "; ".join(f"{{ {command}; }} >/tmp/tenant.{number} 2>&1 & pids=\"$pids $!\"" for number, command in enumerate(commands))
    code, words = vm.run(f"pids=; {started}; failed=0; for pid in $pids; do wait $pid || failed=1; done; cat /tmp/tenant.*; "
                         "rm /tmp/tenant.*; exit $failed", 120)
    if code != 0:
        raise machine.GuestError(f"a unit or a container fails: {' '.join(words.decode(errors='replace').split())}")


def named(vm, check, service, serial="first"):
    disk = vm.disk(serial)
    # name of the tenant: (how it is run, blocks, kind, path)
    expected = {
        "reader.service": (unit("reader", disk, 300), 300, "unit", "/system.slice/reader.service"),
        "nightly@one.service": (unit("nightly@one", disk, 200, "Slice=batch.slice"), 200, "unit", "/batch.slice/nightly@one.service"),
        f"docker/{CONTAINER[:12]}": (container(vm, "shop", f"/docker/{CONTAINER}", disk, 250), 250, "container", f"/docker/{CONTAINER}"),
        f"pod/{POD}/{IN_POD[:12]}": (container(vm, "inpod", f"/kubepods/burstable/pod{POD}/{IN_POD}", disk, 150), 150, "container",
                                     f"/kubepods/burstable/pod{POD}/{IN_POD}")}
    before = service.at_rest()
    try:
        run_all(vm, [command for command, _, _, _ in expected.values()])
        after = service.at_rest()
    finally:
        # No rm -r: what is still mounted there is the guest itself.
        vm.sh("for bundle in /tmp/shop /tmp/inpod; do umount -R $bundle/rootfs && rm $bundle/config.json && rmdir $bundle/rootfs $bundle; "
              "done; find /sys/fs/cgroup/docker /sys/fs/cgroup/kubepods -depth -type d -exec rmdir {} + 2>/dev/null || true")
    # A shell that starts reads nothing of this disk.
    have = {dict(labels)["tenant"]: value - (before.value("ssdpulse_tenant_bytes_total", **dict(labels)) or 0)
            for labels, value in after.series("ssdpulse_tenant_bytes_total", device=disk, **LABELS).items()}
    check.equal({name: size for name, size in have.items() if size}, {name: one[1] * BLOCK for name, one in expected.items()},
                "bytes read by units and containers, and by nobody else")
    info = {dict(labels)["tenant"]: (dict(labels)["kind"], dict(labels).get("cgroup"))
            for labels in after.series("ssdpulse_tenant_info")}
    check.equal({name: info.get(name) for name in expected}, {name: one[2:] for name, one in expected.items()}, "kinds and paths")


def hashed(vm, check, service, serial="first"):
    """Of what ran since, nothing has a name: not on the page, in the journal, or in the history."""
    disk, secret = vm.disk(serial), "payroll-of-acme"
    config = "/etc/ssdpulse/ssdpulse.yaml"
    vm.sh(f"cp -p {config} /tmp/kept.yaml; sed -i 's/^  names: full$/  names: hashed/' {config} && systemctl restart ssdpulse", 90)
    service.until_ready()
    since = vm.sh("date +'%Y-%m-%d %H:%M:%S'")
    run_all(vm, [unit(secret, disk, 300)])
    scrape = service.at_rest()
    hashes = {dict(labels)["tenant"] for labels, value in scrape.series("ssdpulse_tenant_bytes_total", device=disk, **LABELS).items()
              if value == 300 * BLOCK}
    check.that(len(hashes) == 1 and re.fullmatch("[0-9a-f]{16}", next(iter(hashes))), f"hashed: {hashes} read {300 * BLOCK} bytes")
    [alias] = hashes
    service.until(lambda: vm.run(f"grep -q {alias} {service.HISTORY}")[0] == 0, "a minute of it is in the history", 150)
    code, found = vm.run(f"curl -s http://127.0.0.1:{service.PORT}/metrics | grep {secret}; "
                         f"journalctl --no-pager -u ssdpulse --since '{since}' | grep {secret}; "
                         f"grep -l {secret} -r /var/lib/ssdpulse")
    check.equal(found.decode().split(), [], f"hashed: places that tell a name ({code})")
    vm.sh(f"mv /tmp/kept.yaml {config} && systemctl restart ssdpulse", 90)
    service.until_ready()

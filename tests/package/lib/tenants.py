# SPDX-License-Identifier: Apache-2.0
"""Whose I/O is it, where systemd and a container runtime make the cgroups? Names, sums, and no names where hashed."""
import base64
import json
import re

import machine

BLOCK = 4096
CONTAINER, IN_POD = "8f3c0c1d2e5b46a7" * 4, "d00dfeed0c1d2e5b" * 4
POD = "1c2d3e4f-aabb-4c5d-8e9f-001122334455"
LABELS = {"operation": "read"}
FOUND, GO = "/var/tmp/tenants.found", "/var/tmp/tenants.go"  # containers see them too: /tmp is a mount since Debian 13
NAMED_SECONDS = 120  # an emulated guest walks its cgroups in slices for many ticks


def work(disk, blocks):
    """Reads a little until the daemon has found its cgroup (I/O before that has no owner); then `blocks` blocks."""
    read = f"dd if=/dev/{disk} of=/dev/null bs={BLOCK} iflag=direct"
    return f"until [ -e {FOUND} ]; do {read} count=1; sleep 0.5; done; until [ -e {GO} ]; do sleep 0.2; done; {read} count={blocks}"


def unit(name, disk, blocks, *properties):
    """Starting it returns when it has ended: --wait would need a D-Bus session."""
    options = " ".join(f"-p {one}" for one in ("Type=oneshot", "IOAccounting=yes", *properties))
    return f"systemd-run --quiet --unit={name} {options} sh -c '{work(disk, blocks)}'"


def container(vm, name, path, disk, blocks):
    """Its root is that of the guest. There is no D-Bus, so crun makes the cgroup itself, as
    runtimes with the `cgroupfs` driver do."""
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


def run_all(vm, service, commands, found):
    """Runs all at once. Once `found` is true of a scrape, lets them work; returns the scrapes before and after that."""
    vm.sh("\n".join(f"{{ {command}; echo $? >/tmp/tenant.{number}.code; }} >/tmp/tenant.{number} 2>&1 &"
                    for number, command in enumerate(commands)))
    try:
        service.until(lambda: found(service.scrape()), "the cgroups are found", NAMED_SECONDS)
        vm.sh(f"touch {FOUND}; sleep 1")
        before = service.at_rest()
        vm.sh(f"touch {GO}")
        service.until(lambda: vm.run(f"[ $(ls /tmp/tenant.*.code | wc -l) = {len(commands)} ]")[0] == 0, "all of them end", 120)
        after = service.at_rest()
    finally:
        words = vm.run(f"touch {FOUND} {GO}; sleep 3; cat /tmp/tenant.*; rm -f {FOUND} {GO}")[1].decode(errors="replace")
    if vm.run("codes=$(cat /tmp/tenant.*.code | sort -u); rm /tmp/tenant.*; [ \"$codes\" = 0 ]")[0] != 0:
        raise machine.GuestError(f"a unit or a container fails: {' '.join(words.split())}")
    return before, after


def read_bytes(before, after, disk):
    """{tenant: bytes} that it read in between."""
    grown = {dict(labels)["tenant"]: value - (before.value("ssdpulse_tenant_bytes_total", **dict(labels)) or 0)
             for labels, value in after.series("ssdpulse_tenant_bytes_total", device=disk, **LABELS).items()}
    return {tenant: size for tenant, size in grown.items() if size}


def named(vm, check, service, serial="first"):
    disk = vm.disk(serial)
    # tenant name: (how it is run, blocks, kind, path)
    expected = {
        "reader.service": (unit("reader", disk, 300), 300, "unit", "/system.slice/reader.service"),
        "nightly@one.service": (unit("nightly@one", disk, 200, "Slice=batch.slice"), 200, "unit", "/batch.slice/nightly@one.service"),
        f"docker/{CONTAINER[:12]}": (container(vm, "shop", f"/docker/{CONTAINER}", disk, 250), 250, "container", f"/docker/{CONTAINER}"),
        f"pod/{POD}/{IN_POD[:12]}": (container(vm, "inpod", f"/kubepods/burstable/pod{POD}/{IN_POD}", disk, 150), 150, "container",
                                     f"/kubepods/burstable/pod{POD}/{IN_POD}")}
    try:
        before, after = run_all(vm, service, [command for command, _, _, _ in expected.values()], lambda scrape: set(expected) <= {
            dict(labels)["tenant"] for labels in scrape.series("ssdpulse_tenant_bytes_total", device=disk, **LABELS)})
    finally:
        # No rm -r: if something is still mounted there, it is the guest's own root.
        vm.sh("for bundle in /tmp/shop /tmp/inpod; do umount -R $bundle/rootfs && rm $bundle/config.json && rmdir $bundle/rootfs $bundle; "
              "done; find /sys/fs/cgroup/docker /sys/fs/cgroup/kubepods -depth -type d -exec rmdir {} + 2>/dev/null || true")
    # Starting a shell reads nothing from this disk.
    check.equal(read_bytes(before, after, disk), {name: one[1] * BLOCK for name, one in expected.items()},
                "bytes read by units and containers, and by nobody else")
    info = {dict(labels)["tenant"]: (dict(labels)["kind"], dict(labels).get("cgroup"))
            for labels in after.series("ssdpulse_tenant_info")}
    check.equal({name: info.get(name) for name in expected}, {name: one[2:] for name, one in expected.items()}, "kinds and paths")


def hashed(vm, check, service, serial="first"):
    """Nothing that ran since then has a name: not on the page, in the journal, or in the history."""
    disk, secret = vm.disk(serial), "payroll-of-acme"
    config = "/etc/ssdpulse/ssdpulse.yaml"
    vm.sh(f"cp -p {config} /tmp/kept.yaml; sed -i 's/^  names: full$/  names: hashed/' {config} && systemctl restart ssdpulse", 90)
    service.until_ready()
    since = vm.sh("date +'%Y-%m-%d %H:%M:%S'")
    scrapes = run_all(vm, service, [unit(secret, disk, 300)], lambda scrape: any(
        re.fullmatch("[0-9a-f]{16}", dict(labels)["tenant"])
        for labels in scrape.series("ssdpulse_tenant_bytes_total", device=disk, **LABELS)))
    hashes = read_bytes(*scrapes, disk)
    check.that(list(hashes.values()) == [300 * BLOCK] and re.fullmatch("[0-9a-f]{16}", *hashes), f"hashed: {hashes} read {300 * BLOCK} bytes")
    [alias] = hashes
    service.until(lambda: vm.run(f"grep -q {alias} {service.HISTORY}")[0] == 0, "a minute of it is in the history", 150)
    code, found = vm.run(f"curl -s http://127.0.0.1:{service.PORT}/metrics | grep {secret}; "
                         f"journalctl --no-pager -u ssdpulse --since '{since}' | grep {secret}; "
                         f"grep -l {secret} -r /var/lib/ssdpulse")
    check.equal(found.decode().split(), [], f"hashed: places that tell a name ({code})")
    vm.sh(f"mv /tmp/kept.yaml {config} && systemctl restart ssdpulse", 90)
    service.until_ready()

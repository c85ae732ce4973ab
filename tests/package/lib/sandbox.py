# SPDX-License-Identifier: Apache-2.0
"""Is every directive of the units' sandboxes in force? Each is tried from inside.

A unit is copied with all its directives, and runs try_sandbox in place of the daemon. The same attempts by root outside
any sandbox each get a different answer, so it is the sandbox that refuses. A directive that is not judged here is a
failure.
"""
import re

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOENT", "EAFNOSUPPORT"}
OPEN = {"ok"}
# What has nothing to do with a sandbox.
OTHER = {"Type", "ExecStart", "ExecReload", "WatchdogSec", "TimeoutStartSec", "TimeoutStopSec", "Restart", "RestartSec",
         "RestartPreventExitStatus", "RestartSteps", "RestartMaxDelaySec", "LoadCredential", "StandardInput", "Group",
         "RuntimeDirectoryMode", "StateDirectoryMode", "NonBlocking", "StandardOutput", "FileDescriptorStoreMax"}
# Directive: attempts, each with the right answers; a word stands for the unit's own value, a set for errors.
BOTH = {
    "ProtectSystem": {"write_usr": REFUSED, "write_etc": REFUSED},
    "PrivateTmp": {"read_host_tmp": REFUSED},
    "ProtectControlGroups": {"write_cgroup": REFUSED},
    "DevicePolicy": {"open_nvme_disk": REFUSED, "open_mem": REFUSED, "open_kmsg": REFUSED},
    "NoNewPrivileges": {"no_new_privileges": {"1"}},
    "ProtectHostname": {"set_host_name": REFUSED},
    "ProtectKernelModules": {"load_module": REFUSED},
    "ProtectProc": {"read_process_1": REFUSED},
    "LockPersonality": {"personality": REFUSED},
    "MemoryDenyWriteExecute": {"make_memory_executable": REFUSED, "map_writable_and_executable": REFUSED},
    "RestrictNamespaces": {"new_user_namespace": REFUSED, "new_mount_namespace": REFUSED},
    "RestrictRealtime": {"realtime": REFUSED},
    "RestrictSUIDSGID": {"make_set_uid_file": REFUSED},
    "SystemCallArchitectures": {"call_of_32_bit": {"SIGSYS", "EPERM"}},
    "SystemCallFilter": {"set_clock": REFUSED, "mount": REFUSED, "trace_a_process": REFUSED, "add_key": REFUSED,
                         "swap_on": REFUSED, "reboot": REFUSED, "change_root": REFUSED, "raise_priority": REFUSED, "seccomp": {"2"}},
    "SystemCallErrorNumber": {"reboot": {"EPERM"}},
    "OOMScoreAdjust": {"oom_score_adj": {"500"}},
    "LimitCORE": {"limit_core": {"0"}},
}
DAEMON = {
    "ProtectHome": {"read_root_home": REFUSED, "read_below_home": OPEN, "write_home": {"EROFS"}},
    # What tells of waits above the drives stays readable.
    "User": {"become_root": REFUSED, "read_shadow": REFUSED, "read_pressure": OPEN, "read_vmstat": OPEN,
             "read_cgroup_pressure": OPEN, "read_cgroup_limits": {"ok", "ENOENT"}, "ask_for_room": OPEN},  # no io controller
    "StateDirectory": {"write_state": OPEN},
    "RuntimeDirectory": {"write_runtime": OPEN},
    "ConfigurationDirectory": {"write_etc": REFUSED},
    "UMask": {"mode_of_a_new_file": {"750"}},
    "PrivateDevices": {"open_nvme_controller": REFUSED, "make_device_node": REFUSED, "open_null": OPEN},
    "ReadOnlyPaths": {"write_sysctl": REFUSED, "write_sysfs": REFUSED},
    "InaccessiblePaths": {"read_kcore": REFUSED},
    "CapabilityBoundingSet": {"bounding_set": {"000000c400000000"}},
    "AmbientCapabilities": {"capabilities": {"000000c400000000"}},
    "ProtectClock": {"set_clock": REFUSED},
    "LimitNOFILE": {"limit_nofile": {"8192"}},
    "LimitMEMLOCK": {"limit_memlock": {"-1"}},
    "RestrictAddressFamilies": {"socket_packet": REFUSED, "socket_inet": OPEN, "socket_unix": OPEN, "socket_netlink": OPEN},
}
READER = {
    "ProtectHome": {"read_root_home": REFUSED, "read_below_home": REFUSED},
    "DynamicUser": {"become_root": REFUSED},
    "RootDirectory": {"files_outside_of_lib": {"/etc/ld.so.cache /usr/bin/ssdpulse"},
                      "run_another_program": REFUSED, "read_passwd": REFUSED, "write_state": REFUSED},
    "BindReadOnlyPaths": {"write_usr": REFUSED},
    "MountAPIVFS": {"open_nvme_controller": OPEN},
    "DeviceAllow": {"open_nvme_controller": OPEN, "open_nvme_disk": REFUSED},
    "PrivateNetwork": {"namespace_net": None},
    "PrivateIPC": {"namespace_ipc": None},
    "ProtectKernelTunables": {"write_sysctl": REFUSED, "write_sysfs": REFUSED},
    "ProtectKernelLogs": {"read_kernel_log": REFUSED, "open_kmsg": REFUSED},
    "ProcSubset": {"read_uptime": REFUSED},
    "CapabilityBoundingSet": {"bounding_set": {"0000000000200004"}},
    "AmbientCapabilities": {"capabilities": {"0000000000200004"}},
    "UMask": {"mode_of_a_new_file": {"700"}},
    "RestrictAddressFamilies": {"socket_inet": REFUSED, "socket_inet6": REFUSED, "socket_netlink": REFUSED,
                                "socket_packet": REFUSED, "socket_unix": OPEN},
}
# Directives that cannot be tried from inside: the value that systemd, or the control group, has for them.
KEPT = {"MemoryMax": "memory.max", "MemorySwapMax": "memory.swap.max", "CPUQuota": "cpu.max", "CPUWeight": "cpu.weight",
        "TasksMax": "pids.max", "IPAddressDeny": None, "RemoveIPC": None, "KeyringMode": None}
# Where root outside gets the same answer, because it is not a refusal, or because the file exists nowhere.
NO_CONTROL = {"read_kcore", "open_mem", "read_root_home"}


def directives(vm, unit):
    """[(name, value)] of the service, drop-ins included."""
    text = vm.sh(f"systemctl cat {unit}")
    section, found = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and re.match(r"[A-Z]\w*=", line):
            found.append(tuple(line.split("=", 1)))
    return found


def tried(vm, unit, found):
    """{attempt: answer} in a copy of the unit."""
    name = f"tried-{unit}"
    kept = [f"{key}={value}" for key, value in found if key not in {"Type", "ExecStart", "ExecReload", "WatchdogSec"}
            and not key.startswith("Restart") or key.startswith("Restrict")]
    text = "\n".join(["[Service]", "Type=oneshot", "ExecStart=/usr/lib/try_sandbox", f"StandardOutput=truncate:/tmp/{name}.out",
                      "RuntimeDirectoryPreserve=yes", *kept])
    vm.sh(f"cat >/run/systemd/system/{name} <<'UNIT'\n{text}\nUNIT\nsystemctl daemon-reload && systemctl start {name}")
    answers = vm.sh(f"cat /tmp/{name}.out")
    vm.sh(f"rm /run/systemd/system/{name} && systemctl daemon-reload")
    return parse(answers)


def parse(text):
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def judge(vm, check, unit, table, control):
    found = directives(vm, unit)
    answers = tried(vm, unit, found)
    group = "/sys/fs/cgroup" + vm.sh(f"systemctl show -P ControlGroup {unit}")
    check.equal(sorted(set(table) - set(dict(found))), [], f"{unit}: directives that are gone")
    for name, value in dict(found).items():
        if name in OTHER:
            continue
        if name in KEPT:
            has = vm.sh(f"cat {group}/{KEPT[name]}") if KEPT[name] else vm.sh(f"systemctl show -P {name} {unit}")
            check.that(has not in ("", "max", "max 100000", "no", "shared"), f"{unit} {name}={value[:40]}: {has[:60]}")
            continue
        attempts = table.get(name)
        if attempts is None:
            check.that(False, f"{unit} {name}={value[:40]}: nobody has tried it")
            continue
        for attempt, right in attempts.items():
            answer, outside = answers.get(attempt, "nothing"), control.get(attempt, "nothing")
            good = answer in right if right else answer != outside
            if right == REFUSED and attempt not in NO_CONTROL:
                good = good and answer != outside
            check.that(good, f"{unit} {name}={value[:40]}: {attempt}: {answer[:70]} (outside: {outside[:40]})")
    return answers


def processes(vm, check, service):
    """Every thread of the real ones."""
    for unit, capabilities in ((service.UNIT, "0000000000000000"), (service.READER, None)):
        pid = service.main_pid(unit)
        lines = vm.sh(f"grep -hE '^(Uid|CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/{pid}/task/*/status").split("\n")
        values = {}
        for line in lines:
            key, value = line.split(":", 1)
            values.setdefault(key, set()).add(value.split()[0])
        check.that(values["Uid"] != {"0"} and len(values["Uid"]) == 1, f"{unit}: its user: {values['Uid']}")
        check.equal((values["NoNewPrivs"], values["Seccomp"]), ({"1"}, {"2"}), f"{unit}: no new privileges and a filter in each thread")
        for kind in ("CapEff", "CapPrm", "CapAmb"):
            if capabilities is not None:
                check.equal(values[kind], {capabilities}, f"{unit}: {kind} of each thread")
            else:
                check.that(all(int(value, 16) & ~0x200004 == 0 for value in values[kind]), f"{unit}: {kind} of each thread: {values[kind]}")


def run(vm, check, service):
    vm.sh("touch /root/.profile; mkdir -p /home/.disk; mount -t tmpfs none /home/.disk; touch /home/.disk/file")
    control = parse(vm.sh("/usr/lib/try_sandbox; hostname guest 2>/dev/null || true"))
    judge(vm, check, service.UNIT, {**BOTH, **DAEMON}, control)
    judge(vm, check, service.READER, {**BOTH, **READER}, control)
    vm.sh("umount /home/.disk; rmdir /home/.disk")
    processes(vm, check, service)

# SPDX-License-Identifier: Apache-2.0
"""What does watching cost? Nanoseconds per I/O of each observer, in turns, on one loop device over tmpfs.

Observers: nothing; two empty hooks (the floor: what the kernel's own accounting of a run costs); ssdpulse in full mode,
also looking up each buffered page's file for its hint, and with completions only; biolatency -D of libbpf-tools; the
cheapest way to measure latencies (completion_hash.bpf.c). Each is run several times in random order, so that a machine
that becomes slower affects all of them; only ratios of medians are judged, never a time. First with the kernel's
accounting of BPF programs on (nanoseconds by hook), then with it off (IOPS, p99 and CPU time of the load itself).
Looking up pages has its own load, buffered writes, because direct ones have no page to look up. Full mode takes turns
under two names: their difference is noise. Full mode without samples for the flash model and, with --old, other builds
take turns as well: full mode's cost above the floor is divided by theirs.

There are two loads. `local`: each I/O completes on the CPU that issued it, as on an NVMe drive with a queue for each
CPU. `remote`: it completes on another CPU, so that CPUs wait for each other's cache lines, for the peer's hash map more
than for ours: this load alone would flatter us. fio is bound to one CPU; the loop device's workers are bound to the
same one or kept off it by /sys/devices/virtual/workqueue/cpumask, which holds for all unbound workers of the host and
is restored even if this process is killed. The share of local completions is counted before and after each load; a run
in which less than 95 % of them are where they should be is refused.

Ratios to the peer are printed of the whole cost, and of what is above the floor: (x - floor) / (peer - floor), which
leaves out the kernel's own accounting. Full mode is shown with the hook on every bio and without it.

--user shows what a user would notice: IOPS, p99 and CPU time of the load, without ssdpulse and with it, in pairs.
"""
import argparse
import ctypes
import fcntl
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
from lib import rig  # noqa: E402  (the disks, the load and the daemon of the kernel tests)

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
WORKERS = Path("/sys/devices/virtual/workqueue/cpumask")
CPUS = os.sched_getaffinity(0)
LOAD_CPU = max(CPUS)
WORKER_CPUS = {"local": {LOAD_CPU}, "remote": CPUS - {LOAD_CPU}}  # by where I/Os complete
LEAST_SHARE = 0.95  # of the completions, where they should be
NOISE_BAND = 0.05
ATTEMPTS = 3
EVERY_BIO = ("on_bio_queue", "on_bio_5_10")  # hooks that exist only where the kernel refuses function hooks
LOAD = {"rw": "randrw", "ioengine": "io_uring", "iodepth": 32, "bs": "4k", "size": "512M", "time_based": None,
        "cpus_allowed": LOAD_CPU}
BUFFERED = {"rw": "randwrite", "ioengine": "psync", "direct": 0, "bs": "4k", "size": "512M", "fsync": 256,
            "time_based": None}


def programs():
    """{id: (name, runs, nanoseconds)} of all programs in the kernel."""
    done = subprocess.run(["bpftool", "--json", "prog", "show"], capture_output=True, text=True, check=False)
    return {one["id"]: (one.get("name", "?"), one.get("run_cnt", 0), one.get("run_time_ns", 0))
            for one in json.loads(done.stdout or "[]") if "id" in one}


def own_programs():
    """IDs of those that this process or a child of it holds open: others on the host appear and disappear meanwhile."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = set()
    for process in [os.getpid(), *children]:
        for file in Path(f"/proc/{process}/fdinfo").iterdir():
            try:
                found |= {int(number) for number in re.findall(r"^prog_id:\s*(\d+)", file.read_text(), re.MULTILINE)}
            except FileNotFoundError:  # closed since the listing
                continue
    return found


@contextmanager
def setting(file, value):
    """Changes a setting of the kernel. A child restores it when our end of its pipe closes, so also if we are killed."""
    with open(file) as lock:  # the child has it, too
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{file}: set by another measurement, wait for its end")
        before = file.read_text().strip()
        restore = ["sh", "-c", 'trap "" INT TERM HUP; read -r _; printf %s "$1" >"$2"', "sh", before, file]
        # In a session of its own, and without the environment by which a runner finds a test's processes.
        child = subprocess.Popen(restore, stdin=subprocess.PIPE, stdout=lock, env={}, start_new_session=True)
        try:
            file.write_text(str(value))
            yield before
        finally:
            child.stdin.close()
            if child.wait() != 0:
                file.write_text(before)


def accounting(on):
    return setting(STATS, int(on))


def map_words(name):
    """The 64-bit words of the first element of a map."""
    done = subprocess.run(["bpftool", "--json", "map", "dump", "name", name], capture_output=True, text=True, check=True)
    data = bytes(int(byte, 16) for byte in json.loads(done.stdout)[0]["value"])
    return [int.from_bytes(data[at:at + 8], "little") for at in range(0, len(data), 8)]


@contextmanager
def completions_on(which, state, disk):
    """Places the loop device's workers, so that I/Os of LOAD complete locally or remotely; refuses if they do not."""
    def count():
        with bench_programs("completion_cpus")(state, disk):
            rig.fio(disk, 1, runtime="300ms", **LOAD)
            total, local = map_words("completion_cpus")
        print(f"{which}: {local / total:.2%} of {total} I/Os completed on the CPU that issued them", file=sys.stderr)
        if (local if which == "local" else total - local) < LEAST_SHARE * total:
            sys.exit(f"refused: less than {LEAST_SHARE:.0%} of the completions are {which}")

    if not WORKER_CPUS[which]:
        sys.exit("remote completions need a second CPU")
    mask = sum(1 << cpu for cpu in WORKER_CPUS[which])
    words = ",".join(f"{mask >> 32 * word & 0xFFFFFFFF:x}" for word in reversed(range(mask.bit_length() // 32 + 1)))
    # 0: a request completes where its worker ran, whatever caches that CPU shares.
    with setting(Path(f"/sys/block/{disk.name}/queue/rq_affinity"), 0), setting(WORKERS, words) as before:
        print(f"{WORKERS}: {before} before, {words} now", file=sys.stderr)
        count()
        yield
        count()


@contextmanager
def nothing(_state, _disk):
    yield


def bench_programs(name):
    """Attaches all programs of tests/bench/NAME.bpf.c through libbpf itself: Debian 12's bpftool cannot attach any."""
    @contextmanager
    def observer(state, _disk):
        libbpf = ctypes.CDLL("libbpf.so.1")
        for function in ("bpf_object__open", "bpf_object__next_program", "bpf_program__attach"):
            getattr(libbpf, function).restype = ctypes.c_void_p
        bpf_object = ctypes.c_void_p(libbpf.bpf_object__open(str(state / f"{name}.bpf.o").encode()))
        if not bpf_object or libbpf.bpf_object__load(bpf_object) != 0:
            raise RuntimeError(f"{name} does not load")
        links, program = [], None
        while program := libbpf.bpf_object__next_program(bpf_object, ctypes.c_void_p(program)):
            links.append(ctypes.c_void_p(libbpf.bpf_program__attach(ctypes.c_void_p(program))))
        try:
            yield
        finally:
            for link in links:
                libbpf.bpf_link__destroy(link)
            libbpf.bpf_object__close(bpf_object)
    return observer


def compile_bench_programs(state):
    compiler = next(name for name in ("clang-14", "clang-16", "clang-19", "clang")
                    if subprocess.run(["which", name], capture_output=True, check=False).returncode == 0)
    for source in HERE.glob("*.bpf.c"):
        rig.run(compiler, "-g", "-O2", "-mcpu=v3", "-target", "bpf", "-D__TARGET_ARCH_x86", f"-I{HERE.parent.parent / 'bpf'}",
                "-c", source, "-o", state / f"{source.stem}.o")


def ssdpulse(mode, page_hints="auto", binary=rig.BINARY, more=""):
    @contextmanager
    def observer(state, disk):
        with rig.daemon(state, [disk], mode, settings=f"writes: {{ page_hints: {page_hints} }}\n{more}", binary=binary):
            yield
    return observer


WITHOUT_SAMPLES = "flash_model: { enabled: false }\n"
WITHOUT_TENANTS = f"attribution: {{ enabled: false }}\n{WITHOUT_SAMPLES}"


@contextmanager
def biolatency(_state, _disk):
    process = subprocess.Popen(["biolatency", "-D", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(own_programs()) < 2:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("biolatency of libbpf-tools does not run here")
            time.sleep(0.1)
        time.sleep(0.5)  # loaded; it attaches now
        yield
    finally:
        process.terminate()
        process.wait()


OBSERVERS = {"nothing": nothing, "floor": bench_programs("empty_hooks"), "full": ssdpulse("full"),
             "full again": ssdpulse("full"), "without samples": ssdpulse("full", more=WITHOUT_SAMPLES),
             "completion-only": ssdpulse("completion-only"), "biolatency": biolatency,
             "completion hash": bench_programs("completion_hash"),
             "without tenants": ssdpulse("completion-only", more=WITHOUT_TENANTS)}
OF_PAGES = {"pages not asked": ssdpulse("full", "never"), "pages asked": ssdpulse("full", "always")}


def measure(name, state, disk, seconds, runs=1):
    """Each run: {ns, by_hook, iops, p99_us, cpu_ns} per I/O, and nanoseconds of one run of the issue program."""
    load = BUFFERED if name in OF_PAGES else LOAD
    with {**OBSERVERS, **OF_PAGES}[name](state, disk):
        mine = own_programs()
        rig.fio(disk, 1, runtime="500ms", **load)
        return [_run(disk, load, seconds, mine) for _ in range(runs)]


def _run(disk, load, seconds, mine):
    before = programs()
    job = rig.fio(disk, random.randrange(1, 1 << 30), runtime=f"{int(seconds * 1000)}ms", **load)
    after = programs()
    ios = job["read"]["total_ios"] + job["write"]["total_ios"]
    hooks, issue_ns = {}, 0
    for program in mine:
        label, runs, ns = after[program]
        if label.startswith("on_issue"):
            issue_ns = (ns - before[program][2]) / max(1, runs - before[program][1])
        hooks[label] = hooks.get(label, 0) + (ns - before[program][2]) / ios
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6 / ios
    return {"issue_ns": issue_ns, "ns": sum(hooks.values()), "by_hook": hooks, "iops": ios / job["job_runtime"] * 1000, "cpu_ns": cpu,
            "p99_us": max(job[way]["lat_ns"].get("percentile", {}).get("99.000000", 0) for way in ("read", "write")) / 1000}


def in_turns(names, runs, state, disk, seconds, say):
    """{name: [run, ...]}, each name once per round, in a new order each time."""
    results = {name: [] for name in names}
    for number in range(runs):
        for name in random.sample(names, len(names)):
            results[name] += measure(name, state, disk, seconds)
            say(f"round {number + 1} of {runs}: {name}")
    return results


def median(runs, figure):
    return statistics.median(run[figure] for run in runs)


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def band(runs, figure):
    """The interquartile range, as a share of the median: half of the runs lie within it."""
    low, _, high = quartiles([run[figure] for run in runs])
    return (high - low) / median(runs, figure)


def by_accounting(arguments, state, disk, say):
    """Nanoseconds per I/O; repeated while the machine is too noisy to judge."""
    names = [name for name in OBSERVERS if name != "nothing"]
    for attempt in range(1, ATTEMPTS + 1):
        with accounting(True):
            results = in_turns(names, arguments.runs, state, disk, arguments.seconds, say)
        widest = max((band(results[name], "ns"), name) for name in names)
        if widest[0] <= NOISE_BAND:
            return results
        print(f"noisy: half of the runs of {widest[1]} spread over {widest[0]:.1%} (attempt {attempt} of {ATTEMPTS})",
              file=sys.stderr)
    if arguments.noisy:
        return results
    sys.exit(f"the machine is too noisy to compare: the band is above {NOISE_BAND:.0%} in {ATTEMPTS} attempts; "
             "stop what else runs, or give --noisy to see the figures all the same")


def but_every_bio(runs):
    """The same on a kernel that allows function hooks: bios cost nothing there."""
    return [{**run, "ns": run["ns"] - sum(run["by_hook"].get(hook, 0) for hook in EVERY_BIO),
             "by_hook": {hook: ns for hook, ns in run["by_hook"].items() if hook not in EVERY_BIO}} for run in runs]


def share_of_peer(runs, costs, above_floor, of=median):
    floor = of(costs["floor"], "ns") if above_floor else 0
    return (of(runs, "ns") - floor) / (of(costs["biolatency"], "ns") - floor)


def report(costs):
    print(f"{'observer':<22} {'ns per I/O':>10} {'band':>6} {'of floor':>9} {'of peer':>8} {'above floor':>12}   by hook")
    for name, runs in costs.items():
        ns = median(runs, "ns")
        hooks = {hook: statistics.median(run["by_hook"].get(hook, 0) for run in runs) for hook in runs[0]["by_hook"]}
        # The floor has two hooks, so it is not the floor of an observer of completions alone.
        above = f"{share_of_peer(runs, costs, True):.3f}" if any(value and "issue" in hook for hook, value in hooks.items()) else ""
        print(f"{name:<22} {ns:>10.1f} {band(runs, 'ns'):>6.1%} {ns / median(costs['floor'], 'ns'):>9.2f} "
              f"{share_of_peer(runs, costs, False):>8.3f} {above:>12}   "
              + ", ".join(f"{hook} {value:.1f}" for hook, value in sorted(hooks.items())))


def report_pages(of_pages):
    print(f"\n{'buffered writes':<22} {'ns per issue':>12}")
    for name, runs in of_pages.items():
        print(f"{name:<22} {median(runs, 'issue_ns'):>12.1f}")


def of_nothing(effects, figure):
    """For each pair, what the load did with ssdpulse divided by what it did without."""
    return [run[figure] / base[figure] for run, base in zip(effects["full"], effects["nothing"])]


def report_effects(effects):
    print(f"\n{'pairs, accounting off':<22} {'without':>10} {'with':>10}   difference: median (quartiles)")
    for label, figure in (("IOPS", "iops"), ("p99, us", "p99_us"), ("CPU ns per I/O", "cpu_ns")):
        low, middle, high = (ratio - 1 for ratio in quartiles(of_nothing(effects, figure)))
        print(f"{label:<22} {median(effects['nothing'], figure):>10.0f} {median(effects['full'], figure):>10.0f}   "
              f"{middle:+.1%} ({low:+.1%} to {high:+.1%})")


def ratios(costs, of=median):
    full, without_bios = costs["full"], but_every_bio(costs["full"])
    return {**{f"{name}_of_peer{suffix}": share_of_peer(runs, costs, bool(suffix), of) for suffix in ("", "_above_floor")
               for name, runs in (("full", full), ("full_without_bios", without_bios))},
            "full_of_floor": of(full, "ns") / of(costs["floor"], "ns"),
            "completion_only_of_peer": share_of_peer(costs["completion-only"], costs, False, of),
            **({"completion_only_of_completion_hash": of(costs["completion-only"], "ns") / of(costs["completion hash"], "ns")}
               if "completion hash" in costs else {}),
            "completion_only_without_tenants_of_peer": share_of_peer(costs["without tenants"], costs, False, of)}


def above_floor(costs, others, of=median):
    """Full mode divided by the others, above the floor and without the hook on every bio (the same in every build)."""
    floor = of(costs["floor"], "ns")
    above = {name: of(but_every_bio(costs[name]), "ns") - floor for name in ("full", *others)}
    return {f"full_of_{name.replace(' ', '_')}_above_floor": above["full"] / above[name] for name in others}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--completions", choices=("local", "remote", "both"), default="both",
                        help="on the CPU that issued the I/O, on another one, or both loads, one after the other (both)")
    parser.add_argument("--user", action="store_true", help="only IOPS, p99 and CPU time of the load, accounting off")
    parser.add_argument("--runs", type=int, default=5, help="of each observer (5)")
    parser.add_argument("--pairs", type=int, help="of nothing and full, accounting off (5; with --user 20)")
    parser.add_argument("--seconds", type=float, default=3, help="of load in one run (3)")
    parser.add_argument("--noisy", action="store_true", help="print figures also where the machine is too noisy")
    parser.add_argument("--old", type=Path, action="append", default=[], metavar="BINARY",
                        help="another build's ssdpulse, to compare with; may be repeated")
    parser.add_argument("--json", type=Path, help="write the ratios there, by load")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))  # leaves no disk behind

    old = {f"old {number}": binary for number, binary in enumerate(arguments.old, 1)}
    OBSERVERS.update({name: ssdpulse("full", binary=binary) for name, binary in old.items()})

    def say(text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    figures = {}
    with rig.state_directory() as state, rig.ram_disks(state, size="512M") as [disk]:
        compile_bench_programs(state)
        for which in ("local", "remote") if arguments.completions == "both" else (arguments.completions,):
            costs = {}
            with completions_on(which, state, disk):
                if not arguments.user:
                    costs = by_accounting(arguments, state, disk, say)
                with accounting(False):
                    pairs = arguments.pairs or (20 if arguments.user else 5)
                    effects = in_turns(["nothing", "full"], pairs, state, disk, arguments.seconds, say)
            say("")
            print(f"\n=== {which} completions ===")
            if costs:
                figures[which] = {**ratios(costs), **above_floor(costs, ["full again", "without samples", *old])}
                if any(hook in EVERY_BIO for hook in costs["full"][0]["by_hook"]):
                    costs["full, bios not hooked"] = but_every_bio(costs["full"])
                report(costs)
            report_effects(effects)
            figures.setdefault(which, {}).update({f"{name}_of_nothing": statistics.median(of_nothing(effects, figure))
                                                  for name, figure in (("iops", "iops"), ("p99", "p99_us"))})
            print("\n" + ", ".join(f"{name} {value:.3f}" for name, value in figures[which].items()))
        if not arguments.user:
            with accounting(True):
                report_pages(in_turns(list(OF_PAGES), arguments.runs, state, disk, arguments.seconds, say))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()

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
"""
import argparse
import ctypes
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
from lib import rig  # noqa: E402  (the disks, the load and the daemon of the kernel tests)

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
NOISE_BAND = 0.05
ATTEMPTS = 3
EVERY_BIO = ("on_bio_queue", "on_bio_5_10")  # hooks that exist only where the kernel refuses function hooks
LOAD = {"rw": "randrw", "ioengine": "io_uring", "iodepth": 32, "bs": "4k", "size": "512M", "time_based": None}

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
def accounting(on):
    before = STATS.read_text()
    STATS.write_text("1" if on else "0")
    try:
        yield
    finally:
        STATS.write_text(before)


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


def band(runs, figure):
    """The interquartile range, as a share of the median: half of the runs lie within it."""
    low, _, high = statistics.quantiles((run[figure] for run in runs), n=4, method="inclusive")
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


def report(costs, of_pages, effects):
    print(f"{'observer':<22} {'ns per I/O':>10} {'band':>6} {'of floor':>9} {'of peer':>8}   by hook")
    for name, runs in costs.items():
        ns = median(runs, "ns")
        hooks = {hook: statistics.median(run["by_hook"].get(hook, 0) for run in runs) for hook in runs[0]["by_hook"]}
        print(f"{name:<22} {ns:>10.1f} {band(runs, 'ns'):>6.1%} {ns / median(costs['floor'], 'ns'):>9.2f} "
              f"{ns / median(costs['biolatency'], 'ns'):>8.3f}   "
              + ", ".join(f"{hook} {value:.1f}" for hook, value in sorted(hooks.items())))
    print(f"\n{'buffered writes':<22} {'ns per issue':>12}")
    for name, runs in of_pages.items():
        print(f"{name:<22} {median(runs, 'issue_ns'):>12.1f}")
    print(f"\n{'accounting off':<22} {'IOPS':>10} {'p99 us':>8} {'CPU ns per I/O':>15} {'IOPS of nothing':>16}")
    for name, runs in effects.items():
        pairs = statistics.median(run["iops"] / base["iops"] for run, base in zip(runs, effects["nothing"]))
        print(f"{name:<22} {median(runs, 'iops'):>10.0f} {median(runs, 'p99_us'):>8.0f} {median(runs, 'cpu_ns'):>15.0f} "
              f"{pairs:>16.3f}")


def ratios(costs, of=median):
    full, only = of(costs["full"], "ns"), of(costs["completion-only"], "ns")
    peer = of(costs["biolatency"], "ns")
    return {"full_of_peer": full / peer, "full_of_floor": full / of(costs["floor"], "ns"),
            "full_without_bios_of_peer": of(but_every_bio(costs["full"]), "ns") / peer,
            "completion_only_of_peer": only / peer,
            **({"completion_only_of_completion_hash": only / of(costs["completion hash"], "ns")}
               if "completion hash" in costs else {}),
            **({"completion_only_without_tenants_of_peer": of(costs["without tenants"], "ns") / peer}
               if "without tenants" in costs else {})}


def above_floor(costs, others, of=median):
    """Full mode divided by the others, above the floor and without the hook on every bio (the same in every build)."""
    floor = of(costs["floor"], "ns")
    above = {name: of(but_every_bio(costs[name]), "ns") - floor for name in ("full", *others)}
    return {f"full_of_{name.replace(' ', '_')}_above_floor": above["full"] / above[name] for name in others}


def effect(effects):
    return {"iops_of_nothing": statistics.median(run["iops"] / base["iops"]
                                                 for run, base in zip(effects["full"], effects["nothing"]))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="of each observer (5)")
    parser.add_argument("--pairs", type=int, default=5, help="of nothing and full, accounting off (5; 20 for the claim)")
    parser.add_argument("--seconds", type=float, default=3, help="of load in one run (3)")
    parser.add_argument("--noisy", action="store_true", help="print figures also where the machine is too noisy")
    parser.add_argument("--old", type=Path, action="append", default=[], metavar="BINARY",
                        help="another build's ssdpulse, to compare with; may be repeated")
    parser.add_argument("--json", type=Path, help="write the ratios there")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root")

    old = {f"old {number}": binary for number, binary in enumerate(arguments.old, 1)}
    OBSERVERS.update({name: ssdpulse("full", binary=binary) for name, binary in old.items()})

    def say(text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    with ExitStack() as stack:
        state = stack.enter_context(rig.state_directory())
        compile_bench_programs(state)
        [disk] = stack.enter_context(rig.ram_disks(state, size="512M"))
        costs = by_accounting(arguments, state, disk, say)
        with accounting(True):
            of_pages = in_turns(list(OF_PAGES), arguments.runs, state, disk, arguments.seconds, say)
        with accounting(False):
            effects = in_turns(["nothing", "full"], arguments.pairs, state, disk, arguments.seconds, say)
    say("")
    if any(hook in EVERY_BIO for hook in costs["full"][0]["by_hook"]):
        costs["full, bios not hooked"] = but_every_bio(costs["full"])
    report(costs, of_pages, effects)
    figures = {**ratios(costs), **effect(effects), **above_floor(costs, ["full again", "without samples", *old])}
    print("\n" + ", ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()

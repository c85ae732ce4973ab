# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent to the log reader, drives get only identify and the listed log pages, by the emulator's trace."""
import random
import re
from collections import Counter

from devices import Nvme, NvmeSubsystem

MACHINE = {"qemu": ("-trace", "pci_nvme_admin_cmd", "-trace", "pci_nvme_identify", "-trace", "pci_nvme_get_log")}
KERNELS = ("6.12",)  # the kernel plays no part in it
MESSAGES, LONG_MESSAGES = 100_000, 1_000_000
IDENTIFY, GET_LOG_PAGE = 0x06, 0x02
# NVM Express's and the vendors' own: what is read from a drive, and no more.
PAGES = {0x02, 0x09, 0x20, 0x21, 0x22, 0x23, 0xC0, 0xC4, 0xCA, 0xD0, 0xFB}
STRUCTURES = {0x00, 0x01, 0x17, 0x19}


def devices():
    return [Nvme("plain"), NvmeSubsystem("placing", fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4", ocp=True)]


def run(vm, check):
    for serial in ("placing", "plain"):
        vm.disk(serial)
    log = vm.state / "qemu.log"
    begin = log.stat().st_size
    seed, messages = random.getrandbits(32), LONG_MESSAGES if vm.long else MESSAGES
    said = vm.sh(f"reader_fuzz {seed} {messages} 2", 3000 if vm.long else 300).splitlines()
    print(f"NOTE seed {seed}: {said[-1]}")
    trace = log.read_text()[begin:]
    opcodes = Counter(int(opcode, 16) for opcode in re.findall(r"pci_nvme_admin_cmd .* opc (0x[0-9a-f]+)", trace))
    identified = Counter(int(cns, 16) for cns in re.findall(r"pci_nvme_identify cid \d+ cns (0x[0-9a-f]+)", trace))
    read = Counter((int(lid, 16), int(lsp, 16), int(size)) for lid, lsp, size in re.findall(
        r"pci_nvme_get_log cid \d+ lid (0x[0-9a-f]+) lsp (0x[0-9a-f]+) rae 0x1 len (\d+) off 0$", trace, re.M))
    check.that(set(opcodes) == {IDENTIFY, GET_LOG_PAGE} and opcodes.total() > messages // 10,
               f"the drives saw {opcodes[IDENTIFY]} identify, {opcodes[GET_LOG_PAGE]} get log page, and nothing else of "
               f"{messages} messages: {dict(opcodes)}")
    check.that(set(identified) == STRUCTURES and {lid for lid, _, _ in read} == PAGES,
               f"structures {sorted(map(hex, identified))}, pages {sorted({hex(lid) for lid, _, _ in read})}")
    answered_identify, answered_logs = Counter(), Counter()
    for kind, *numbers in map(str.split, said[:-1]):
        *what, times = map(int, numbers)
        if kind == "identify":
            answered_identify[what[0]] += times
        else:
            answered_logs[tuple(what)] += times
    check.equal((identified.total(), read.total()), (opcodes[IDENTIFY], opcodes[GET_LOG_PAGE]),
                "all of them for retained events, from the page's begin")
    check.that(identified == answered_identify and read == answered_logs,
               f"as many of each as were answered: {opcodes.total()}")
    check.equal(vm.kernel_complaints(), [], "complaints of the kernel")

# SPDX-License-Identifier: Apache-2.0
"""A kernel's memory around one request, and the maps as the daemon sets them up: what the block programs run on.

Only what a case puts there can be read.
"""
import re
from functools import lru_cache
from pathlib import Path

from bpf_object import ANONYMOUS, BpfObject, region_start
from interpreter import Fault, Interpreter, Memory

ABI = Path(__file__).resolve().parents[3] / "bpf/abi"
CONSTANTS = {name: int(value, 0) for file in sorted(ABI.glob("*.h"))
             for name, value in re.findall(r"(?m)^#define (\w+) \(?(-?(?:0x)?[0-9a-f]+)U?L*\)?\s*(?:/[*/].*)?$", file.read_text("utf-8"))}
# Values of the kernel's own; only that they differ matters.
ENUMERATORS = {"__REQ_SYNC": 11, "__REQ_META": 12, "__REQ_PRIO": 13, "__REQ_IDLE": 15, "__REQ_FUA": 17, "__REQ_PREFLUSH": 18,
               "__REQ_SWAP": 24, "__REQ_NOUNMAP": 28, "PG_writeback": 1, "PG_swapbacked": 17}
ENDED = {"page.compound_head": (7, 0), "buffer_head.b_end_io": (7, 1)}
OPERATIONS = {"read": (0, "CLASS_READ"), "write": (1, "CLASS_WRITE"), "flush": (2, "CLASS_FLUSH"), "discard": (3, "CLASS_DISCARD")}
FLUSH_SEQUENCE, STAMPED = 1 << 4, 1 << 10  # of rq_flags
RARE_FLAGS = 0xfe | 1 << ENUMERATORS["__REQ_FUA"]  # of cmd_flags
FUNCTIONS = {name: 0xffffffff81000000 + 0x40 * number for number, name in enumerate(
    ("iomap_dio_bio_end_io", "blkdev_bio_end_io_async", "io_complete_rw", "aio_complete_rw", "an unknown function"), 1)}
COMPLETED_BY = {"io_uring": "io_complete_rw", "libaio": "aio_complete_rw"}
CPUS, DEVICES, QUEUES, TAGS, SETS, ANNOUNCED = 2, 2, 2, 16, 64, 8
CPU, DEVICE, QUEUE_ID, HARDWARE_QUEUE, TAG, DISK_SEQUENCE, SERIAL, CGROUP, CGROUP_NAME = 1, 1, 5, 1, 3, 77, 12345, 4711, b"a.service"
FIRST_TABLE, FIRST_OBJECT = 0x400, 0x500
IDLE, IN_FLIGHT = 0, 1  # enum mq_rq_state
LOOK_UP, CLOCK, CPU_NUMBER, READ_TEXT, RING_OUTPUT = 1, 5, 8, 115, 130  # enum bpf_func_id


@lru_cache(maxsize=None)
def read_object(path, version):
    return BpfObject(path, version, ENUMERATORS, ENDED)


class MadeUpKernel:
    def __init__(self, path, version=(6, 18), attribution=True, sampled=False, left_out=0):
        """`left_out`: flags of the device."""
        self.version, self.now_ns, self.events = version, 10**10, []
        self.program, self.memory = read_object(path, version), Memory()
        self._types = self.program.types
        for address, contents in self.program.data.values():
            self.memory.add(address, contents)
        self._places, self._tables = {}, {}
        self.request_address = self._place("request")
        self._configure(attribution)
        self._make_tables()
        self._make_device(sampled, left_out)
        self._given = self._all_words()
        self.interpreter = Interpreter(self.program, self.memory, {
            LOOK_UP: self._look_up, CLOCK: lambda *_: self.now_ns, CPU_NUMBER: lambda *_: CPU, READ_TEXT: self._read_text,
            RING_OUTPUT: lambda _, event, size, *__: self.events.append(self.memory.bytes(event, size)) or 0,
            "bpf_rdonly_cast": lambda pointer, *_: pointer})

    def counted(self):
        """{"table.key.member": value}: everything in the tables that is not as the daemon left it."""
        words = self._all_words()
        return {path: words.get(path, 0) for path in {**words, **self._given} if words.get(path) != self._given.get(path)}

    def request(self, operation, path, sector, size, start_ns):
        """Allocates one; `path`: how it was submitted."""
        number = OPERATIONS[operation][0]
        self._object("gendisk", diskseq=DISK_SEQUENCE, major=0, first_minor=DISK_SEQUENCE)
        self._object("request_queue", id=QUEUE_ID, disk=self._place("gendisk"))
        self._object("sbitmap_queue", **{"ws_active.counter": 0})
        by_pointer = self._types.kernel_has("blk_mq_tags___until_5_15", "bitmap_tags")
        self._object("blk_mq_tags", **{"bitmap_tags": self._place("sbitmap_queue")} if by_pointer else {"bitmap_tags.ws_active.counter": 0})
        self._object("blk_mq_hw_ctx", queue_num=HARDWARE_QUEUE, tags=self._place("blk_mq_tags"), sched_tags=0)
        self._make_bio(number, path, sector, size)
        self._object("request", q=self._place("request_queue"), rq_disk=self._place("gendisk"), mq_hctx=self._place("blk_mq_hw_ctx"),
                     cmd_flags=number, rq_flags=STAMPED, tag=TAG, internal_tag=-1, __data_len=size, __sector=sector, bio=self._place("bio"),
                     biotail=self._place("bio"), nr_phys_segments=1, start_time_ns=start_ns, state=IDLE, deadline=0)

    def start(self):
        """What the driver does between the issue and the end."""
        self._set("request", state=IN_FLIGHT, deadline=self.now_ns)

    def run(self, program, *arguments):
        return self.interpreter.run(program, [self.request_address, *arguments])

    def _configure(self, attribution):
        classes = bytearray([CONSTANTS["CLASS_PASSTHROUGH"]] * 256)
        for number, name in OPERATIONS.values():
            classes[number] = CONSTANTS[name]
        values = {
            "cfg_cpus": CPUS, "cfg_class_of_op": int.from_bytes(classes, "little"),
            "cfg_request": RARE_FLAGS | (FLUSH_SEQUENCE | STAMPED) << 32 | STAMPED << 64, "cfg_flush_sequence_flag": FLUSH_SEQUENCE,
            "cfg_stamped_flag": STAMPED, "cfg_hints_of_pages": 0, "cfg_has_cast": self.version >= (6, 2),
            "cfg_tagged_mask": CPUS - 1, "cfg_commit_mask": CPUS - 1, "cfg_other_mask": CPUS - 1,
            "cfg_attribution": attribution, "cfg_attribution_sets": SETS, "cfg_announced": ANNOUNCED,
            "cfg_end_iomap_dio": FUNCTIONS["iomap_dio_bio_end_io"], "cfg_end_blkdev_async": FUNCTIONS["blkdev_bio_end_io_async"],
            "cfg_ki_io_uring": FUNCTIONS["io_complete_rw"], "cfg_ki_libaio": FUNCTIONS["aio_complete_rw"]}
        variables = {name: place for name, place in self.program.variables.items() if name.startswith("cfg_")}
        if variables.keys() != values.keys():
            raise Fault(f"what is the value of {variables.keys() ^ values.keys()}?")
        for name, (address, size) in variables.items():
            self.memory.store(address, size, values[name])

    def _make_tables(self):
        """Name -> type and address of the first element, number of elements."""
        cold_classes = CONSTANTS["CLASSES"] - CONSTANTS["HOT_CLASSES"]
        entries = {"issue_slots": QUEUES * TAGS, "hot_cells": DEVICES * CPUS, "cold_cells": DEVICES * cold_classes, "write_cells": DEVICES * CPUS,
                   "tagged_cells": DEVICES * CPUS, "commit_cells": DEVICES * CPUS,
                   "end_functions": CONSTANTS["END_FUNCTION_SETS"], "streams": DEVICES, "host_states": 1, "rare_events": DEVICES,
                   "attributions": CPUS * SETS, "unattributed_cells": DEVICES * CPUS, "announced_cgroups": CPUS * ANNOUNCED,
                   "announcement_states": CPUS, "known_disks": CONSTANTS["KNOWN_DISKS"]}
        for number, (name, of) in enumerate(self.program.value_types.items()):
            if of:
                self._tables[name] = of, region_start(FIRST_TABLE + number), entries[name]
                self.memory.add(region_start(FIRST_TABLE + number), bytes(self._types.size(of) * entries[name]))
        for name, element in (("queue_entries", "queue_entry"), ("device_states", "device_state")):
            of, (address, size) = self._types.named(element), self.program.variables[name]
            self._tables[name] = of, address, size // self._types.size(of)

    def _make_device(self, sampled, left_out):
        slots = {"slot_mask": QUEUES * TAGS - 1, "slot_stride": TAGS}
        geometry = {**slots, "flags": CONSTANTS["SLOTS_EXACT"] | left_out, "drive": DEVICE, "write_granularity": 4096, "write_alignment": 4096}
        sampling = {"groups": 100000 * sampled, "seed": 99, "sampling": 1, "page_bits": 12, "rate_bits": 8}
        self._write("device_states", DEVICE, {**{f"geometry.{name}": value for name, value in geometry.items()},
                                              **{f"sampling.{name}": value for name, value in sampling.items()}})
        self._write("queue_entries", QUEUE_ID, {
            "disk": DISK_SEQUENCE << CONSTANTS["QUEUE_ENTRY_DEVICE_BITS"] | DEVICE + 1, **slots})

    def _write(self, table, key, values):
        """The values of some members of an element."""
        first, start, _ = self._tables[table]
        for path, value in values.items():
            of, at = first, start + key * self._types.size(first)
            for name in path.split("."):
                of, at = next((part, at + offset) for member, part, offset in self._types.members(of) if member == name)
            self.memory.store(at, self._types.size(of), value)

    def _all_words(self):
        return {f"{name}.{key}.{path}": value for name, (of, start, entries) in self._tables.items() for key in range(entries)
                for path, value in self._words(of, start + key * self._types.size(of)).items()}

    def _words(self, of, address):
        """{path: value} of everything in there that is not 0."""
        size = self._types.size(of)
        if not any(self.memory.bytes(address, size)):
            return {}
        if not (members := self._types.members(of)):
            return {"": self.memory.load(address, size)}
        return {f"{'' if name == ANONYMOUS else name}.{path}".strip("."): value for name, part, offset in members
                for path, value in self._words(part, address + offset).items()}

    def _make_bio(self, operation, path, sector, size):
        self.memory.add(self._place("name of a cgroup"), CGROUP_NAME + b"\0", True)
        self._object("kernfs_node", name=self._place("name of a cgroup"), id=CGROUP)
        self._object("cgroup", kn=self._place("kernfs_node"))
        self._object("blkcg", **{"css.cgroup": self._place("cgroup"), "css.serial_nr": SERIAL, "css.parent": 0})
        self._object("blkcg_gq", blkcg=self._place("blkcg"))
        self._object("io_ring_ctx", flags=0)
        self._object("io_kiocb", **{"begins_with.ki_complete": FUNCTIONS[COMPLETED_BY[path]] if path in COMPLETED_BY else 0},
                     ctx=self._place("io_ring_ctx"))
        self._object("iomap_dio", iocb=self._place("io_kiocb"))
        self._object("page", **{"flags": 0, "flags.f": 0, "lru.next": 0, "mapping": 0})
        self._object("bio_vec", bv_page=self._place("page"))
        function = "an unknown function" if path == "unrecognised" else "iomap_dio_bio_end_io"
        self._object("bio", bi_next=0, bi_opf=operation, bi_io_vec=self._place("bio_vec"), bi_end_io=FUNCTIONS[function],
                     bi_private=self._place("iomap_dio"), bi_blkg=self._place("blkcg_gq"), bi_write_hint=0, bi_write_stream=0,
                     **{"bi_iter.bi_sector": sector, "bi_iter.bi_size": size})

    def _place(self, name):
        return region_start(self._places.setdefault(name, FIRST_OBJECT + len(self._places)))

    def _object(self, name, /, **values):
        """Begins a structure of the kernel's anew."""
        self.memory.add(self._place(name), [None] * max(map(sum, self._types.kernel_layout(name).values())), name != "request")
        self._set(name, **values)

    def _set(self, name, /, **fields):
        """A field that no program declares for this kernel is left out."""
        layout = self._types.kernel_layout(name)
        for path, value in fields.items():
            if path in layout:
                self.memory.store(self._place(name) + layout[path][0], layout[path][1], value)

    def _look_up(self, handle, key, *_):
        of, start, entries = self._tables[self.program.maps[handle]]
        number = self.memory.load(key, 4)
        if number >= entries:
            raise Fault(f"{self.program.maps[handle]} has no element {number}")
        return start + number * self._types.size(of)

    def _read_text(self, to, size, text, *_):
        for at in range(size):
            byte = self.memory.load(text + at, 1) if at < size - 1 else 0
            self.memory.store(to + at, 1, byte)
            if not byte:
                return at + 1
        raise Fault("a text of no bytes")

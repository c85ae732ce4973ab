# SPDX-License-Identifier: Apache-2.0
"""Reads a compiled BPF object, and relocates its programs as libbpf does for a kernel of some version."""
import json
import re
import struct
import subprocess
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

FIELD_OFFSET, FIELD_EXISTS, TYPE_NUMBER, ENUM_VALUE = 0, 2, 7, 11  # enum bpf_core_relo_kind
LOAD_IMMEDIATE, CALL, LOCAL_CALL = 0x18, 0x85, 1
MEMORY_ACCESS = (1, 2, 3)  # classes of instructions
FUNCTION, NO_BITS = 2, 8  # of a symbol, of a section
DATA = (".rodata", ".bss")
FIRST_MAP = 0x100  # the sections come before
ALIASES = ("TYPEDEF", "VOLATILE", "CONST", "RESTRICT")
ANONYMOUS = "(anon)"
VERSIONS = re.compile(r"___(since|until)_(\d+)_(\d+)$")


def region_start(number):
    """Everything has 4 GiB of addresses to itself, and distinct low halves, too, because programs compare those."""
    return number << 32 | number << 20


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


class Types:
    """The object's types (BTF); a type is its number here.

    And the kernel's structures, made up: what all declarations of one have for this version, one member after the other.
    `ended`: {"structure.member": version that no longer has it}.
    """

    def __init__(self, path, version, ended):
        listing = subprocess.run(["bpftool", "-j", "btf", "dump", "file", path], check=True, capture_output=True, text=True).stdout
        self.list = [{"kind": "VOID"}, *json.loads(listing)["types"]]
        self._version, self._ended, self._made = version, ended, {}

    def resolve(self, number):
        while self.list[number]["kind"] in ALIASES:
            number = self.list[number]["type_id"]
        return self.list[number]

    def named(self, name, kind="STRUCT"):
        return next(number for number, one in enumerate(self.list) if one.get("name") == name and one["kind"] == kind)

    def size(self, number):
        one = self.resolve(number)
        if one["kind"] == "ARRAY":
            return one["nr_elems"] * self.size(one["type_id"])
        return 8 if one["kind"] == "PTR" else one["size"]

    def members(self, number):
        """(name, type, offset) of the members of a structure or the elements of an array; () for anything else."""
        one = self.resolve(number)
        if one["kind"] == "ARRAY":
            return [(str(at), one["type_id"], at * self.size(one["type_id"])) for at in range(one["nr_elems"])]
        return [(member["name"], member["type_id"], member["bits_offset"] // 8) for member in one.get("members", ())]

    def kernel_has(self, flavour, path):
        name = flavour.partition("___")[0]
        return self._covers(flavour) and self._version < self._ended.get(f"{name}.{path}", (99,)) and path in self.kernel_layout(name)

    def kernel_layout(self, name):
        """{member path: (offset, size)} of a structure, named without flavour."""
        if name not in self._made:
            declared = [number for number, one in enumerate(self.list)
                        if one["kind"] == "STRUCT" and one["name"].partition("___")[0] == name and self._covers(one["name"])]
            # A member whose type has changed is in the plain declaration, too.
            declared.sort(key=lambda number: not VERSIONS.search(self.list[number]["name"]))
            layout, end = {}, 0
            for member, of, _ in [member for number in declared for member in self.members(number)]:
                if member not in layout:
                    inner = self._inner(of)
                    layout[member] = end, max([self.size(of), *map(sum, inner.values())])
                    layout |= {f"{member}.{path}": (end + offset, size) for path, (offset, size) in inner.items()}
                    end += (layout[member][1] + 7) // 8 * 8
            self._made[name] = layout
        return self._made[name]

    def _inner(self, number):
        one = self.resolve(number)
        if one["kind"] != "STRUCT":
            return {}
        if one["name"] != ANONYMOUS:
            return self.kernel_layout(one["name"].partition("___")[0])
        return {member: (offset, self.size(of)) for member, of, offset in self.members(number)}

    def _covers(self, flavour):
        match = VERSIONS.search(flavour)
        return not match or (self._version >= (int(match[2]), int(match[3]))) == (match[1] == "since")


@dataclass
class Instruction:
    opcode: int
    target: int  # registers
    source: int
    offset: int
    immediate: int
    address: int
    bytes: int = 8
    function: int = 0  # address of the BPF function that it calls
    kernel_function: str = ""
    missing: str = ""  # what it needs, and this kernel does not have


class BpfObject:
    """`enumerators`: the kernel's values; `ended`: see Types."""

    def __init__(self, path, version, enumerators, ended):
        self._data, self._enumerators = Path(path).read_bytes(), enumerators
        self._read_sections()
        self.types = Types(path, version, ended)
        self.compiler = (re.search(rb"clang version [\w.+~-]+", self._data) or [b"unknown compiler"])[0].decode()
        variables = [self.types.list[one["type_id"]] for one in self.types.list[self.types.named(".maps", "DATASEC")]["vars"]]
        self.maps = {region_start(FIRST_MAP + number): one["name"] for number, one in enumerate(variables)}
        self.value_types = {one["name"]: self._value_type(one["type_id"]) for one in variables}
        self._handles = {name: address for address, name in self.maps.items()}
        self.data = {name: (self._starts[name], self._section(name) or bytes(self._headers[name][5])) for name in DATA}
        self.variables = {name: (self._starts[section] + value, size) for name, section, value, size, _ in self._symbols
                          if section in DATA and size}
        functions = [(name, section, value) for name, section, value, _, info in self._symbols if info & 15 == FUNCTION]
        self.functions = {name: self._starts[section] + value for name, section, value in functions}
        self._core, self._lines, self.instructions = {}, defaultdict(list), {}
        self._read_extensions()
        for section in {section for _, section, _ in functions}:
            self._relocate(section)

    def line_of(self, address):
        """(file, line number, text) of an instruction."""
        lines = self._lines[address >> 32]
        return lines[bisect_right(lines, address, key=lambda line: line[0]) - 1][1:]

    def _read_sections(self):
        table, = struct.unpack_from("<Q", self._data, 40)
        count, names = struct.unpack_from("<HH", self._data, 60)
        headers = [struct.unpack_from("<IIQQQQ", self._data, table + 64 * number) for number in range(count)]
        order = [text_at(self._data, headers[names][4] + header[0]) for header in headers]
        self._headers = dict(zip(order, headers))
        self._starts = {name: region_start(number) for number, name in enumerate(order)}
        self._symbols = [(text_at(self._section(".strtab"), name), order[index] if 0 < index < count else "", value, size, info)
                         for name, info, _, index, value, size in struct.iter_unpack("<IBBHQQ", self._section(".symtab"))]

    def _section(self, name):
        _, kind, _, _, offset, size = self._headers[name]
        return b"" if kind == NO_BITS else self._data[offset:offset + size]

    def _value_type(self, declaration):
        """__type(value, T) in bpf_helpers.h is a pointer to a T; 0 if there is none."""
        return next((self.types.resolve(pointer)["type_id"] for name, pointer, _ in self.types.members(declaration) if name == "value"), 0)

    def _read_extensions(self):
        data, types = self._section(".BTF.ext"), self._section(".BTF")
        header, _, _, lines, line_bytes, core, core_bytes = struct.unpack_from("<4xIIIIIII", data)
        texts = types[sum(struct.unpack_from("<4xI4x4xI", types)):]

        def entries(at, length):
            size, = struct.unpack_from("<I", data, at)
            at, end = at + 4, at + length
            while at < end:
                section, count = struct.unpack_from("<II", data, at)
                at += 8
                for _ in range(count):
                    offset, *entry = struct.unpack_from("<IIII", data, at)
                    yield self._starts[text_at(texts, section)] + offset, *entry
                    at += size

        for address, of, path, kind in entries(header + core, core_bytes):
            self._core[address] = (of, text_at(texts, path), kind)
        for address, file, text, position in entries(header + lines, line_bytes):
            self._lines[address >> 32].append((address, Path(text_at(texts, file)).name, position >> 10, text_at(texts, text).strip()))

    def _relocate(self, section):
        code, start, at = self._section(section), self._starts[section], 0
        symbols = {start + place: self._symbols[info >> 32] for place, info in struct.iter_unpack("<QQ", self._section(".rel" + section))}
        while at < len(code):
            opcode, registers, offset, immediate = struct.unpack_from("<BBhi", code, at)
            one = Instruction(opcode, registers & 15, registers >> 4, offset, immediate, start + at)
            if opcode == LOAD_IMMEDIATE:
                one.bytes, one.immediate = 16, immediate & 0xffffffff | struct.unpack_from("<I", code, at + 12)[0] << 32
            if one.address in symbols:
                self._resolve_symbol(one, *symbols[one.address])
            elif opcode == CALL and one.source == LOCAL_CALL:
                one.function = one.address + 8 * (one.immediate + 1)
            if one.address in self._core:
                self._resolve_core(one, *self._core[one.address])
            self.instructions[one.address] = one
            at += one.bytes

    def _resolve_symbol(self, one, name, section, value, _, info):
        if one.opcode == CALL and not section:
            one.kernel_function = name
        elif one.opcode == CALL:
            one.function = self._starts[section] + (value if info & 15 == FUNCTION else 8 * (one.immediate + 1))
        elif section == ".maps":
            one.immediate = self._handles[name]
        elif section in DATA:
            one.immediate += self._starts[section] + value
        else:
            raise NotImplementedError(f"a reference to {name} in {section or 'the kernel'}")

    def _resolve_core(self, one, of, path, kind):
        local = self.types.resolve(of)
        if kind in (FIELD_OFFSET, FIELD_EXISTS):
            path = self._member_path(of, path)
            exists = self.types.kernel_has(local["name"], path)
            if kind == FIELD_EXISTS:
                one.immediate = int(exists)
            elif not exists:
                one.missing = f"{local['name']}.{path}"
            else:
                offset, _ = self.types.kernel_layout(local["name"].partition("___")[0])[path]
                setattr(one, "offset" if one.opcode & 7 in MEMORY_ACCESS else "immediate", offset)
        elif kind == ENUM_VALUE:
            one.immediate = self._enumerators[local["values"][int(path)]["name"]]
        elif kind != TYPE_NUMBER:
            raise NotImplementedError(f"relocation {kind} of {local['name']}")

    def _member_path(self, number, path):
        """Names for "0:1:2", an access by positions."""
        first, *positions = (int(part) for part in path.split(":"))
        names = []
        for position in positions:
            name, number, _ = self.types.members(number)[position]
            names.append(name)
        if first or ANONYMOUS in names:
            raise NotImplementedError(f"access {path}")
        return ".".join(names)

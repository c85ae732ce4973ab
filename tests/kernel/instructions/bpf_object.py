# SPDX-License-Identifier: Apache-2.0
"""Reads a compiled BPF object, and relocates it as libbpf does: its programs, maps, types and lines.

The kernel's structures are made up from the object's own declarations of them: the members of all flavours that the
kernel version has, one after the other. So a program can read what it declares, and nothing else.
"""
import re
import struct
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

POINTER, ARRAY, STRUCT, UNION, ENUM, INT = 2, 3, 4, 5, 6, 1
ALIASES = (8, 9, 10, 11)  # typedef, volatile, const, restrict
VARIABLE, SECTION = 14, 15
ENTRY_BYTES = {STRUCT: 12, UNION: 12, ENUM: 8, 13: 8, SECTION: 12, 19: 12}
EXTRA_BYTES = {INT: 4, ARRAY: 12, VARIABLE: 4, 17: 4}
FIELD_OFFSET, FIELD_EXISTS, TYPE_ID, ENUM_VALUE = 0, 2, 7, 11
LOAD_IMMEDIATE, CALL = 0x18, 0x85
LOCAL_CALL = 1
FUNCTION = 2  # of symbols
NO_BITS = 8  # of sections
DATA = (".rodata", ".bss")
VERSIONS = re.compile(r"___(since|until)_(\d+)_(\d+)")
FIRST_MAP = 0x100  # the sections come before


def region_start(number):
    """Everything has 4 GiB of addresses to itself, and distinct low halves, too, because programs compare those."""
    return number << 32 | number << 20


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def records(data, offset, length, layout):
    """Each entry of a table of .BTF.ext: (section's name offset, entry)."""
    size, = struct.unpack_from("<I", data, offset)
    at, end = offset + 4, offset + length
    while at < end:
        section, count = struct.unpack_from("<II", data, at)
        for number in range(count):
            yield section, struct.unpack_from(layout, data, at + 8 + number * size)
        at += 8 + count * size


@dataclass
class Type:
    kind: int
    name: str
    size: int  # or the type that it refers to
    members: list = field(default_factory=list)  # (name, type, offset in bytes), (name, value), (variable, type, offset)
    element: int = 0
    count: int = 0


class Types:
    """The types of a .BTF section."""

    def __init__(self, data):
        header, types, length, texts = struct.unpack_from("<4xIIII", data)
        self._texts = data[header + texts:]
        self.list = [Type(0, "void", 0)]
        at, end = header + types, header + types + length
        while at < end:
            name, info, size = struct.unpack_from("<III", data, at)
            one = Type(info >> 24 & 31, self.text(name), size)
            at += 12
            if one.kind == ARRAY:
                one.element, _, one.count = struct.unpack_from("<III", data, at)
            for entry in range(info & 0xffff if one.kind in ENTRY_BYTES else 0):
                one.members.append(self._member(one.kind, data, at + entry * ENTRY_BYTES[one.kind], info >> 31))
            at += EXTRA_BYTES.get(one.kind, 0) + len(one.members) * ENTRY_BYTES.get(one.kind, 0)
            self.list.append(one)

    def _member(self, kind, data, at, has_bit_fields):
        if kind == ENUM:
            name, value = struct.unpack_from("<Ii", data, at)
            return self.text(name), value
        name, of, offset = struct.unpack_from("<III", data, at)
        if kind == SECTION:
            return self.list[name].name, name, of
        if has_bit_fields and kind in (STRUCT, UNION):
            raise NotImplementedError("bit fields")
        return self.text(name), of, offset // 8

    def text(self, offset):
        return text_at(self._texts, offset)

    def resolve(self, number):
        while self.list[number].kind in ALIASES:
            number = self.list[number].size
        return self.list[number]

    def named(self, name, kinds=(STRUCT, UNION)):
        return next(number for number, one in enumerate(self.list) if one.name == name and one.kind in kinds)

    def size(self, number):
        one = self.resolve(number)
        if one.kind == ARRAY:
            return one.count * self.size(one.element)
        return 8 if one.kind == POINTER else one.size

    def locate(self, number, path):
        """(offset, type) of "member.index.member" in a type; members of anonymous structures are its own."""
        offset = 0
        for part in path.split(".") if path else ():
            one = self.resolve(number)
            if one.kind == ARRAY:
                if int(part) >= one.count:
                    raise IndexError(f"{path}: {one.count} elements")
                offset, number = offset + int(part) * self.size(one.element), one.element
            else:
                step, number = self._member_of(one, part)
                offset += step
        return offset, number

    def _member_of(self, one, name):
        for member, number, offset in one.members:
            if member == name:
                return offset, number
            if not member:
                try:
                    step, inner = self._member_of(self.resolve(number), name)
                    return offset + step, inner
                except KeyError:
                    pass
        raise KeyError(f"struct {one.name} has no member {name}")


@dataclass
class Map:
    name: str
    kind: int
    value_bytes: int
    value_type: int


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
    field: str = ""  # of the kernel, whose offset it has
    missing: str = ""  # what it needs, and this kernel does not have


class Layouts:
    """The kernel's structures: name without flavour -> {member path: (offset, size)}."""

    def __init__(self, types, version, ended):
        self._types, self._version, self._ended, self._made = types, version, ended, {}

    def has(self, flavour, path):
        """Has this kernel that member of a structure, whose name may end in the versions that it is for?"""
        name = flavour.partition("___")[0]
        return self._covers(flavour) and self._version < self._ended.get(f"{name}.{path}", (99,)) and path in self.of(name)

    def of(self, name):
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name):
        flavours = [one for one in self._types.list if one.kind == STRUCT and one.name.partition("___")[0] == name]
        # A member whose type has changed is in the plain declaration, too.
        flavours.sort(key=lambda one: not VERSIONS.search(one.name))
        layout, end = {}, 0
        for flavour in flavours if all(one.name for one in flavours) else ():
            for member, number, _ in flavour.members if self._covers(flavour.name) else ():
                if member not in layout:
                    inner, size = self._inner(number)
                    layout[member] = (end, size)
                    layout |= {f"{member}.{path}": (end + offset, width) for path, (offset, width) in inner.items()}
                    end += (size + 7) // 8 * 8
        return layout

    def _covers(self, flavour):
        match = VERSIONS.search(flavour)
        return not match or (self._version >= (int(match[2]), int(match[3]))) == (match[1] == "since")

    def _inner(self, number):
        """(layout, size) of a member."""
        one = self._types.resolve(number)
        if one.kind != STRUCT:
            return {}, self._types.size(number)
        if one.name:
            inner = self.of(one.name.partition("___")[0])
        else:
            inner = {member: (offset, self._types.size(of)) for member, of, offset in one.members}
        return inner, max(offset + size for offset, size in inner.values())


class BpfObject:
    """`enumerators`: the kernel's values; `ended`: its members that some version no longer has."""

    def __init__(self, path, version, enumerators, ended):
        self._data, self._enumerators = Path(path).read_bytes(), enumerators
        self._read_sections()
        self.types = Types(self._section(".BTF"))
        self.layouts = Layouts(self.types, version, ended)
        self.compiler = (re.search(rb"clang version [\w.+~-]+", self._data) or [b"unknown compiler"])[0].decode()
        self.maps = {region_start(FIRST_MAP + number): self._map(name, of)
                     for number, (name, of, _) in enumerate(self.types.list[self.types.named(".maps", (SECTION,))].members)}
        self._handles = {one.name: address for address, one in self.maps.items()}
        self.variables = {name: (self._starts[section] + value, size) for name, section, value, size, _ in self._symbols
                          if section in DATA and size}
        self.functions = {name: self._starts[section] + value for name, section, value, _, info in self._symbols
                          if info & 15 == FUNCTION}
        self.instructions = {}
        self._read_extensions()
        for section in self._starts:
            if section == ".text" or section.startswith("tp_btf/"):
                self._relocate(section)

    def data(self):
        """Name -> (address, contents) of the sections that hold variables."""
        return {name: (self._starts[name], self._section(name) or bytes(self._headers[name][5])) for name in DATA}

    def line_of(self, address):
        """(file, line number, text) of an instruction."""
        lines = self._lines[address >> 32]
        return lines[bisect_right(lines, (address & 0xffffffff) - (address >> 32 << 20), key=lambda line: line[0]) - 1][1:]

    def _read_sections(self):
        table, = struct.unpack_from("<Q", self._data, 40)
        count, names = struct.unpack_from("<HH", self._data, 60)
        headers = [struct.unpack_from("<IIQQQQII", self._data, table + 64 * number) for number in range(count)]
        texts = self._data[headers[names][4]:]
        order = [text_at(texts, header[0]) for header in headers]
        self._headers = dict(zip(order, headers))
        self._starts = {name: region_start(number) for number, name in enumerate(order)}
        texts = self._section(".strtab")
        self._symbols = [(text_at(texts, name), order[index] if 0 < index < count else "", value, size, info)
                         for name, info, _, index, value, size in struct.iter_unpack("<IBBHQQ", self._section(".symtab"))]

    def _section(self, name):
        _, kind, _, _, offset, size, *_ = self._headers[name]
        return b"" if kind == NO_BITS else self._data[offset:offset + size]

    def _map(self, name, variable):
        """As it is declared: __uint(X, n) in bpf_helpers.h is a pointer to an array of n, __type(X, t) to a t."""
        found = {}
        for member, pointer, _ in self.types.resolve(self.types.list[variable].size).members:
            of = self.types.resolve(pointer).size
            found[member] = of if member in ("key", "value") else self.types.resolve(of).count
        size = found.get("value_size") or (self.types.size(found["value"]) if "value" in found else 0)
        return Map(name, found["type"], size, found.get("value"))

    def _read_extensions(self):
        data = self._section(".BTF.ext")
        header, _, _, lines, line_bytes, core, core_bytes = struct.unpack_from("<4xIIIIIII", data)
        self._core, self._lines = defaultdict(dict), defaultdict(list)
        for section, (at, of, path, kind) in records(data, header + core, core_bytes, "<IIII"):
            self._core[self.types.text(section)][at] = (of, self.types.text(path), kind)
        for section, (at, file, text, position) in records(data, header + lines, line_bytes, "<IIII"):
            self._lines[self._starts[self.types.text(section)] >> 32].append(
                (at, self.types.text(file), position >> 10, self.types.text(text).strip()))

    def _relocate(self, section):
        code, start = self._section(section), self._starts[section]
        symbols = {at: self._symbols[info >> 32] for at, info in struct.iter_unpack("<QQ", self._section(".rel" + section))}
        at = 0
        while at < len(code):
            opcode, registers, offset, immediate = struct.unpack_from("<BBhi", code, at)
            one = Instruction(opcode, registers & 15, registers >> 4, offset, immediate, start + at)
            if opcode == LOAD_IMMEDIATE:
                one.bytes = 16
                one.immediate = immediate & 0xffffffff | struct.unpack_from("<I", code, at + 12)[0] << 32
            if at in symbols:
                self._resolve_symbol(one, *symbols[at])
            elif opcode == CALL and one.source == LOCAL_CALL:
                one.function = one.address + 8 * (one.immediate + 1)
            if at in self._core[section]:
                self._resolve_core(one, *self._core[section][at])
            self.instructions[one.address] = one
            at += one.bytes

    def _resolve_symbol(self, one, name, section, value, _, info):
        if one.opcode == CALL:
            if section != ".text":
                one.kernel_function = name
            elif info & 15 == FUNCTION:
                one.function = self._starts[section] + value
            else:
                one.function = self._starts[section] + 8 * (one.immediate + 1)
        elif section == ".maps":
            one.immediate = self._handles[name]
        elif section in DATA:
            one.immediate += self._starts[section] + value
        else:
            raise NotImplementedError(f"a reference to {name} in {section or 'the kernel'}")

    def _resolve_core(self, one, of, path, kind):
        local = self.types.resolve(of)
        if kind in (FIELD_OFFSET, FIELD_EXISTS):
            path = self._names(of, path)
            exists = self.layouts.has(local.name, path)
            name = local.name.partition("___")[0]
            if kind == FIELD_EXISTS:
                one.immediate = int(exists)
            elif not exists:
                one.missing = f"{local.name}.{path}"
            elif one.opcode & 7 in (1, 2, 3):
                one.offset, one.field = self.layouts.of(name)[path][0], f"{name}.{path}"
            else:
                one.immediate = self.layouts.of(name)[path][0]
        elif kind == ENUM_VALUE:
            one.immediate = self._enumerators[local.members[int(path)][0]]
        elif kind == TYPE_ID:
            one.immediate = of
        else:
            raise NotImplementedError(f"relocation {kind} of {local.name}")

    def _names(self, number, path):
        """The member path of "0:1:2", an access by positions."""
        first, *positions = (int(part) for part in path.split(":"))
        names = []
        for position in positions:
            names.append(self.types.resolve(number).members[position][0])
            number = self.types.resolve(number).members[position][1]
        if first or "" in names:
            raise NotImplementedError(f"access {path}")
        return ".".join(names)

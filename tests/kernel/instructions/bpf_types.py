# SPDX-License-Identifier: Apache-2.0
"""The types of a BPF object (BTF, as bpftool reads it), and what the kernel's own structures look like to its programs."""
import json
import re
import subprocess

ALIASES = ("TYPEDEF", "VOLATILE", "CONST", "RESTRICT")
AGGREGATES = ("STRUCT", "UNION")
ANONYMOUS = "(anon)"
VERSIONS = re.compile(r"___(since|until)_(\d+)_(\d+)$")


class Types:
    """A type is its number here."""

    def __init__(self, path):
        listing = subprocess.run(["bpftool", "-j", "btf", "dump", "file", path], check=True, capture_output=True, text=True).stdout
        self.list = [{"kind": "VOID"}, *json.loads(listing)["types"]]

    def resolve(self, number):
        while self.list[number]["kind"] in ALIASES:
            number = self.list[number]["type_id"]
        return self.list[number]

    def named(self, name, kinds=AGGREGATES):
        return next(number for number, one in enumerate(self.list) if one.get("name") == name and one["kind"] in kinds)

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

    def flavours(self, name):
        return [number for number, one in enumerate(self.list) if one["kind"] == "STRUCT" and one["name"].partition("___")[0] == name]


class Layouts:
    """The kernel's structures, made up: what all declarations of one have for this version, one member after the other.

    `ended`: {"structure.member": version that no longer has it}.
    """

    def __init__(self, types, version, ended):
        self._types, self._version, self._ended, self._made = types, version, ended, {}

    def has(self, flavour, path):
        name = flavour.partition("___")[0]
        return self._covers(flavour) and self._version < self._ended.get(f"{name}.{path}", (99,)) and path in self.of(name)

    def of(self, name):
        """{member path: (offset, size)} of a structure, named without flavour."""
        if name not in self._made:
            self._made[name] = self._lay_out(name)
        return self._made[name]

    def size(self, name):
        return max(offset + size for offset, size in self.of(name).values())

    def _lay_out(self, name):
        numbers = [number for number in self._types.flavours(name) if self._covers(self._types.list[number]["name"])]
        # A member whose type has changed is in the plain declaration, too.
        numbers.sort(key=lambda number: not VERSIONS.search(self._types.list[number]["name"]))
        layout, end = {}, 0
        for member, of, _ in [member for number in numbers for member in self._types.members(number)]:
            if member not in layout:
                inner = self._inner(of)
                layout[member] = end, max([self._types.size(of), *(offset + size for offset, size in inner.values())])
                layout |= {f"{member}.{path}": (end + offset, size) for path, (offset, size) in inner.items()}
                end += (layout[member][1] + 7) // 8 * 8
        return layout

    def _inner(self, number):
        one = self._types.resolve(number)
        if one["kind"] != "STRUCT":
            return {}
        if one["name"] != ANONYMOUS:
            return self.of(one["name"].partition("___")[0])
        return {member: (offset, self._types.size(of)) for member, of, offset in self._types.members(number)}

    def _covers(self, flavour):
        match = VERSIONS.search(flavour)
        return not match or (self._version >= (int(match[2]), int(match[3]))) == (match[1] == "since")

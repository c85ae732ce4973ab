# SPDX-License-Identifier: Apache-2.0
"""Runs a BPF program as the kernel would, and counts its instructions. Whatever it does not know is an error."""
import operator
from collections import Counter
from dataclasses import dataclass

from bpf_object import CALL, LOAD_IMMEDIATE, region_start

BYTES = {0x10: 1, 0x08: 2, 0x00: 4, 0x18: 8}
LOAD, STORE_IMMEDIATE, STORE, ALU32, JUMP, JUMP32, ALU64 = 1, 2, 3, 4, 5, 6, 7
MEMORY, ATOMIC = 0x60, 0xc0
ALWAYS, EXIT = 0x05, 0x95
NEGATE, MOVE, SHIFT_SIGNED = 0x80, 0xb0, 0xc0
ALU = {0x00: operator.add, 0x10: operator.sub, 0x20: operator.mul, 0x30: lambda a, b: a // b if b else 0, 0x40: operator.or_,
       0x50: operator.and_, 0x60: operator.lshift, 0x70: operator.rshift, 0x90: lambda a, b: a % b if b else a,
       0xa0: operator.xor}
SHIFTS = (0x60, 0x70, SHIFT_SIGNED)
JUMPS = {0x10: operator.eq, 0x20: operator.gt, 0x30: operator.ge, 0x40: lambda a, b: a & b != 0, 0x50: operator.ne,
         0xa0: operator.lt, 0xb0: operator.le}
SIGNED_JUMPS = {0x60: operator.gt, 0x70: operator.ge, 0xc0: operator.lt, 0xd0: operator.le}
ATOMICS = {0x00: operator.add, 0x40: operator.or_, 0x50: operator.and_, 0xa0: operator.xor}
FETCH, EXCHANGE = 1, 0xe1
FRAME_POINTER, FRAME_BYTES = 10, 512
FIRST_FRAME, CONTEXT = 0x200, 0x210


class Fault(Exception):
    """The program did what the kernel would not allow, or what is not made up."""


@dataclass
class Region:
    name: str
    data: bytearray
    known: bytearray  # 1 for each byte that has a value
    fields: dict  # offset -> name
    guarded: bool  # may be gone: the kernel checks the address before it loads

    def name_at(self, offset):
        field = max((at for at in self.fields if at <= offset), default=None)
        return f"{self.name}.{self.fields[field]}" if field is not None else f"{self.name} at {offset}"


class Memory:
    def __init__(self):
        self._regions = {}

    def add(self, address, name, contents=b"", unknown=0, fields=(), guarded=False):
        """With these contents, or of so many unknown bytes."""
        self._regions[address >> 32] = Region(name, bytearray(contents or unknown), bytearray(b"\1" * len(contents) or unknown),
                                              dict(fields), guarded)

    def _find(self, address, size):
        region = self._regions.get(address >> 32)
        if not region:
            raise Fault(f"nothing is at {address:#x}")
        offset = address - region_start(address >> 32)
        if offset < 0 or offset + size > len(region.data):
            raise Fault(f"{region.name} has no {size} bytes at {offset}")
        return region, offset

    def is_guarded(self, address):
        return self._find(address, 1)[0].guarded

    def bytes(self, address, size):
        region, offset = self._find(address, size)
        if not all(region.known[offset:offset + size]):
            raise Fault(f"nobody made up {region.name_at(offset)}")
        return region.data[offset:offset + size]

    def load(self, address, size):
        return int.from_bytes(self.bytes(address, size), "little")

    def store(self, address, size, value):
        region, offset = self._find(address, size)
        region.data[offset:offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        region.known[offset:offset + size] = b"\1" * size


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


class Interpreter:
    """`helpers`: number, or name of a kernel's function -> function of the arguments r1 to r5."""

    def __init__(self, program, memory, helpers):
        self._program, self._memory, self._helpers = program, memory, helpers
        self.guarded = set()  # addresses of the loads from such memory

    def run(self, name, arguments):
        """Calls a program with a tracepoint's arguments; address -> how often it was executed."""
        self._memory.add(region_start(CONTEXT), "the context", b"".join((one & (1 << 64) - 1).to_bytes(8, "little") for one in arguments))
        executed, registers, callers = Counter(), [None] * 11, []
        registers[1], registers[FRAME_POINTER] = region_start(CONTEXT), self._frame(0)
        at = self._program.functions[name]
        while True:
            one = self._program.instructions[at]
            executed[at] += 1
            try:
                if one.missing:
                    raise Fault(f"this kernel has no {one.missing}")
                if one.opcode == EXIT:
                    if not callers:
                        return executed
                    at, registers[6:] = callers.pop()
                    registers[1:6] = [None] * 5
                elif one.function:
                    callers.append((at + 8, registers[6:]))
                    registers[6:] = [None] * 4 + [self._frame(len(callers))]
                    at = one.function
                else:
                    at = self._step(one, registers)
            except (Fault, KeyError, TypeError) as error:
                raise Fault(f"{':'.join(map(str, self._program.line_of(at)))}: opcode {one.opcode:#x}: {error!r}") from error

    def _frame(self, depth):
        """The end of a function's own stack."""
        start = region_start(FIRST_FRAME + depth)
        self._memory.add(start, "the stack", unknown=FRAME_BYTES)
        return start + FRAME_BYTES

    def _step(self, one, registers):
        """Executes anything that stays in its function; the address of the next instruction."""
        kind, after = one.opcode & 7, one.address + one.bytes
        if one.opcode == LOAD_IMMEDIATE:
            registers[one.target] = one.immediate
        elif kind == LOAD and one.opcode & 0xe0 == MEMORY:
            address = registers[one.source] + one.offset
            if self._memory.is_guarded(address):
                self.guarded.add(one.address)
            registers[one.target] = self._memory.load(address, BYTES[one.opcode & 0x18])
        elif kind in (STORE_IMMEDIATE, STORE) and one.opcode & 0xe0 == MEMORY:
            self._memory.store(registers[one.target] + one.offset, BYTES[one.opcode & 0x18],
                               one.immediate if kind == STORE_IMMEDIATE else registers[one.source])
        elif kind == STORE and one.opcode & 0xe0 == ATOMIC:
            self._atomic(one, registers)
        elif kind in (ALU32, ALU64):
            bits = 32 if kind == ALU32 else 64
            registers[one.target] = self._calculate(one, registers, bits)
        elif one.opcode == CALL:
            registers[0] = self._helpers[one.kernel_function or one.immediate](*registers[1:6])
            registers[1:6] = [None] * 5
        elif one.opcode == ALWAYS or kind in (JUMP, JUMP32) and self._holds(one, registers, 32 if kind == JUMP32 else 64):
            return after + 8 * one.offset
        elif kind not in (JUMP, JUMP32):
            raise Fault("unknown")
        return after

    @staticmethod
    def _operands(one, registers, bits):
        mask = (1 << bits) - 1
        return registers[one.target] & mask, (registers[one.source] if one.opcode & 8 else one.immediate) & mask

    def _calculate(self, one, registers, bits):
        operation = one.opcode & 0xf0
        if one.offset:
            raise Fault("an instruction of a later instruction set")
        if operation == MOVE:  # its target may be unknown
            return (registers[one.source] if one.opcode & 8 else one.immediate) & (1 << bits) - 1
        left, right = self._operands(one, registers, bits)
        if operation in SHIFTS:
            right &= bits - 1
        if operation == NEGATE:
            result = -left
        elif operation == SHIFT_SIGNED:
            result = signed(left, bits) >> right
        else:
            result = ALU[operation](left, right)
        return result & (1 << bits) - 1

    def _holds(self, one, registers, bits):
        operation = one.opcode & 0xf0
        left, right = self._operands(one, registers, bits)
        if operation in SIGNED_JUMPS:
            return SIGNED_JUMPS[operation](signed(left, bits), signed(right, bits))
        return JUMPS[operation](left, right)

    def _atomic(self, one, registers):
        size, address = BYTES[one.opcode & 0x18], registers[one.target] + one.offset
        before, operand = self._memory.load(address, size), registers[one.source] & (1 << 8 * size) - 1
        self._memory.store(address, size, operand if one.immediate == EXCHANGE else ATOMICS[one.immediate & ~FETCH](before, operand))
        if one.immediate & FETCH:
            registers[one.source] = before

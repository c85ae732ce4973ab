# SPDX-License-Identifier: Apache-2.0
"""Runs a BPF program as the kernel would, and counts its instructions. Whatever it does not know is an error."""
import operator
from collections import Counter

from bpf_object import CALL, LOAD_IMMEDIATE, region_start

LOAD, STORE_IMMEDIATE, STORE, ALU32, JUMP, JUMP32, ALU64 = 1, 2, 3, 4, 5, 6, 7
MEMORY, ATOMIC, ATOMIC_ADD, ALWAYS, EXIT = 0x60, 0xc0, 0, 0x05, 0x95
BYTES = {0x10: 1, 0x08: 2, 0x00: 4, 0x18: 8}
ALU = {0x00: operator.add, 0x10: operator.sub, 0x20: operator.mul, 0x40: operator.or_, 0x50: operator.and_, 0x60: operator.lshift,
       0x70: operator.rshift, 0x80: lambda a, _: -a, 0xa0: operator.xor, 0xb0: lambda _, b: b, 0xc0: operator.rshift}
NEGATE, MOVE, SHIFTS = 0x80, 0xb0, (0x60, 0x70, 0xc0)
CONDITIONS = {0x10: operator.eq, 0x20: operator.gt, 0x30: operator.ge, 0x40: lambda a, b: a & b != 0, 0x50: operator.ne,
              0x60: operator.gt, 0x70: operator.ge, 0xa0: operator.lt, 0xb0: operator.le, 0xc0: operator.lt, 0xd0: operator.le}
SIGNED_SHIFT, SIGNED_CONDITIONS = 0xc0, (0x60, 0x70, 0xc0, 0xd0)
FRAME_BYTES, FIRST_FRAME, CONTEXT = 512, 0x200, 0x210


class Fault(Exception):
    """The program did what the kernel would not allow, or what is not made up."""


class Memory:
    """Consists of regions; a byte that has no value is None."""

    def __init__(self):
        self._regions = {}

    def add(self, start, contents, guarded=False):
        """`guarded`: may be gone, so the kernel checks the address before it loads."""
        self._regions[start >> 32] = start, list(contents), guarded

    def _find(self, address, size):
        start, contents, _ = self._regions.get(address >> 32, (0, [], False))
        if not 0 <= address - start <= len(contents) - size:
            raise Fault(f"no {size} bytes are at {address:#x}")
        return contents, slice(address - start, address - start + size)

    def is_guarded(self, address):
        return address >> 32 in self._regions and self._regions[address >> 32][2]

    def bytes(self, address, size):
        contents, place = self._find(address, size)
        if None in contents[place]:
            raise Fault(f"nobody made up what is at {address:#x}")
        return contents[place]

    def load(self, address, size):
        return int.from_bytes(self.bytes(address, size), "little")

    def store(self, address, size, value):
        contents, place = self._find(address, size)
        contents[place] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


class Interpreter:
    """`helpers`: number, or name of a kernel's function -> function of the arguments r1 to r5."""

    def __init__(self, program, memory, helpers):
        self._program, self._memory, self._helpers = program, memory, helpers
        self.guarded = set()  # addresses of the loads from such memory

    def run(self, name, arguments):
        """Calls a program with a tracepoint's arguments; address -> how often it was executed."""
        self._memory.add(region_start(CONTEXT), b"".join((one & (1 << 64) - 1).to_bytes(8, "little") for one in arguments))
        executed, callers = Counter(), []
        registers = [None, region_start(CONTEXT), *[None] * 8, self._frame(0)]
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
        self._memory.add(start, [None] * FRAME_BYTES)
        return start + FRAME_BYTES

    def _step(self, one, registers):
        """Executes anything that stays in its function; the address of the next instruction."""
        kind, mode, size, after = one.opcode & 7, one.opcode & 0xe0, BYTES[one.opcode & 0x18], one.address + one.bytes
        if one.opcode == LOAD_IMMEDIATE:
            registers[one.target] = one.immediate
        elif kind == LOAD and mode == MEMORY:
            address = registers[one.source] + one.offset
            if self._memory.is_guarded(address):
                self.guarded.add(one.address)
            registers[one.target] = self._memory.load(address, size)
        elif kind in (STORE_IMMEDIATE, STORE) and mode == MEMORY:
            value = one.immediate if kind == STORE_IMMEDIATE else registers[one.source]
            self._memory.store(registers[one.target] + one.offset, size, value)
        elif kind == STORE and mode == ATOMIC and one.immediate == ATOMIC_ADD:
            address = registers[one.target] + one.offset
            self._memory.store(address, size, self._memory.load(address, size) + registers[one.source])
        elif kind in (ALU32, ALU64) and not one.offset:
            registers[one.target] = self._calculate(one, registers, 32 if kind == ALU32 else 64)
        elif one.opcode == CALL:
            registers[0] = self._helpers[one.kernel_function or one.immediate](*registers[1:6])
            registers[1:6] = [None] * 5
        elif one.opcode == ALWAYS or kind in (JUMP, JUMP32) and self._holds(one, registers, 32 if kind == JUMP32 else 64):
            return after + 8 * one.offset
        elif kind not in (JUMP, JUMP32):
            raise Fault("unknown")
        return after

    @staticmethod
    def _calculate(one, registers, bits):
        operation, mask = one.opcode & 0xf0, (1 << bits) - 1
        left = 0 if operation == MOVE else registers[one.target] & mask
        right = 0 if operation == NEGATE else (registers[one.source] if one.opcode & 8 else one.immediate) & mask
        if operation in SHIFTS:
            right &= bits - 1
        return ALU[operation](signed(left, bits) if operation == SIGNED_SHIFT else left, right) & mask

    @staticmethod
    def _holds(one, registers, bits):
        operation, mask = one.opcode & 0xf0, (1 << bits) - 1
        operands = registers[one.target] & mask, (registers[one.source] if one.opcode & 8 else one.immediate) & mask
        return CONDITIONS[operation](*(signed(value, bits) if operation in SIGNED_CONDITIONS else value for value in operands))

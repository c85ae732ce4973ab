# SPDX-License-Identifier: Apache-2.0
"""An NVMe controller that answers as a scenario wants: any log page, byte for byte, late, short, refused, or never.

It consists of threads in the scenario's own process behind a TCP port of this host, and a scenario can change it at any
moment by modifying the object. It records the requests it received (`requests`, `host`). It keeps no data: writes are
counted and forgotten, reads return zeroes. It is no test of the kernel's driver: it knows only the NVMe that Linux
uses.
"""
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass

import nvme_identify

GET_LOG_PAGE, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, ASYNC_EVENT, KEEP_ALIVE = 0x02, 0x06, 8, 9, 0x0A, 0x0C, 0x18
FLUSH, WRITE, READ, WRITE_ZEROES, DSM, IO_MANAGEMENT_RECEIVE = 0, 1, 2, 8, 9, 0x12
FABRICS, PROPERTY_SET, CONNECT, PROPERTY_GET = 0x7F, 0, 1, 4
IC_REQUEST, IC_RESPONSE, COMMAND, RESPONSE, H2C_DATA, C2H_DATA, R2T = 0, 1, 4, 5, 6, 7, 9  # types of PDU
DATA_LAST = 1 << 2
IN_CAPSULE = 0x01  # where the SGL says that the data come with the command; else they must be requested
MAX_H2C_DATA = 128 << 10
CAP, VS, CC, CSTS = 0x00, 0x08, 0x14, 0x1C
INVALID_OPCODE, INVALID_FIELD, INTERNAL_ERROR, SGL_LENGTH_INVALID, INVALID_LOG_PAGE, CONNECT_INVALID = (
    0x01, 0x02, 0x06, 0x0F, 0x109, 0x182)


SILENCE = object()  # no answer, ever


@dataclass(frozen=True)
class Refuse:
    """A status (SCT << 8 | SC). "Do not retry" is set, as otherwise Linux may retry by itself."""
    status: int = INVALID_LOG_PAGE
    retry: bool = False


@dataclass(frozen=True)
class Short:
    """Success, with exactly these data. If they are too few, Linux reports nothing and leaves the rest of the caller's
    buffer as it was. Too many end the connection, and the caller gets EINTR."""
    data: bytes


class Request:
    """A command as received at `time` (monotonic seconds)."""

    def __init__(self, capsule):
        self.time = time.monotonic()
        self.opcode, self.command_id, self.nsid = struct.unpack_from("<BxHI", capsule)
        self.size, self.place = struct.unpack_from("<I3xB", capsule, 32)  # of the data, as the SGL says
        self.capsule = capsule
        self.dwords = dict(zip(range(10, 16), struct.unpack_from("<6I", capsule, 40)))
        d10, d11, d12, d13, d14 = (self.dwords[number] for number in range(10, 15))
        self.cns = self.feature = self.lid = d10 & 0xFF
        self.lsp, self.rae = d10 >> 8 & 0x7F, bool(d10 >> 15 & 1)
        self.length = ((d10 >> 16 | (d11 & 0xFFFF) << 16) + 1) * 4  # of a log page
        self.lsi, self.offset = d11 >> 16, d12 | d13 << 32
        self.uuid_index, self.csi = d14 & 0x7F, d14 >> 24

    def __repr__(self):
        if self.opcode == GET_LOG_PAGE:
            return (f"<log page {self.lid:#04x} lsp={self.lsp} lsi={self.lsi} uuid={self.uuid_index} "
                    f"nsid={self.nsid:#x} length={self.length} offset={self.offset} rae={self.rae:d}>")
        return f"<admin command {self.opcode:#04x} nsid={self.nsid:#x} dword10={self.dwords[10]:#x}>"


class Controller:
    """One controller, its namespaces, and the port it listens on. What a scenario may change:

    `identify`, `namespaces[NSID]`: nvme_identify.Record. `uuids`, `endurance_groups`: lists, served whether or not
    ctratt announces them. `features[FID]`: a number or an answer. `pages[LID]` and `identifies[CNS]` (instead of the
    defaults) are answers: bytes (from the page's start on; zeroes after its end), Refuse, Short, SILENCE, or a function
    of the Request that returns one of these, in a thread of its own, so that it may take its time. `delay[LID]`:
    seconds by which this page is late. `mute`: while it is set, admin commands except Keep Alive and Fabrics are never
    answered; Linux then gives up after its admin timeout (60 s), ends the connection and makes a new one.
    `reclaim_units`: the status of the reclaim unit handles, which kernels with FDP request on an I/O queue.
    """

    def __init__(self, serial, size=256 << 20, shift=9, nqn=None, **identify):
        self.nqn = nqn or f"nqn.2014-08.org.nvmexpress:ssdpulse:{serial}"
        self.identify = nvme_identify.controller(serial, self.nqn, **identify)
        self.namespaces = {1: nvme_identify.namespace(size, shift)}
        self.uuids, self.endurance_groups = [], []
        self.pages = {0x02: lambda _: nvme_identify.smart(self.host)}
        self.identifies, self.delay, self.mute = {}, {}, False
        self.features = {number: 0 for number in (0x01, 0x02, 0x04, 0x05, 0x06, 0x0A, 0x0B, 0x0E, 0x0F, 0x16, 0x1D)}
        self.requests = []  # on the admin queue, except Fabrics commands
        self.host = Counter()  # read_ios, read_bytes, write_ios, write_bytes, flush_ios, dsm_ios, zero_ios, zero_bytes
        self.reclaim_units = bytes(16)
        self.io_seconds = lambda name, offset, size: 0  # by which a read, write, ... is answered late, one at a time
        self.connections = 0  # admin queues that were ever connected
        self.port = 0
        self._registers = {}
        self._lock, self._queues, self._listener = threading.Lock(), set(), None

    def log_reads(self, lid=None):
        """The log page requests so far, in the order they arrived."""
        return [r for r in list(self.requests) if r.opcode == GET_LOG_PAGE and lid in (None, r.lid)]

    def listen(self):
        """Takes a port permanently, and listens."""
        self._bind()
        self.come_back()

    def vanish(self):
        """Ends every connection and accepts no new one, until come_back(). Linux may then send SIGPIPE to a process
        submitting a command, and fails an I/O that met the dead connection more often than nvme_core.max_retries."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._bind()  # so that nothing else gets the port
        with self._lock:
            queues = list(self._queues)
        for queue in queues:
            queue.close()

    def come_back(self):
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self):
        if self._listener is not None:
            self.vanish()
            self._listener.close()
            self._listener = None

    def _bind(self):
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            queue = _Queue(self, connection)
            with self._lock:
                self._queues.add(queue)
            if listener is not self._listener:  # it vanished just now
                queue.close()
            queue.start()

    def forget(self, queue):
        with self._lock:
            self._queues.discard(queue)

    # The queues call these methods, which return bytes, a number for the completion, or one of the classes above.

    def fabrics(self, queue, request, data):
        kind = request.capsule[4]
        if kind == CONNECT:
            queue.number, queue.entries = struct.unpack_from("<HH", request.capsule, 42)
            queue.entries += 1
            nqn = data[256:512].rstrip(b"\0").decode()
            cntlid = struct.unpack_from("<H", data, 16)[0]
            own = self.identify.number("cntlid")
            if nqn != self.nqn or cntlid not in (own, 0xFFFF):
                return Refuse(CONNECT_INVALID)
            if queue.number == 0:
                self._registers = {CAP: 1 << 37 | 0x1E << 24 | 1 << 16 | self.identify.number("maxcmd") - 1,
                                   VS: self.identify.number("ver"), CC: 0, CSTS: 0}
                self.connections += 1
            return own
        register = struct.unpack_from("<I", request.capsule, 44)[0]
        if register not in self._registers:
            return Refuse(INVALID_FIELD)
        if kind == PROPERTY_GET:
            return self._registers[register]
        if kind == PROPERTY_SET and register == CC:
            value = struct.unpack_from("<Q", request.capsule, 48)[0]
            ready, shut_down = value & 1, 2 << 2 if value >> 14 & 3 else 0
            self._registers.update({CC: value, CSTS: ready | shut_down})
            return 0
        return Refuse(INVALID_FIELD)

    def admin(self, request):
        if request.opcode == ASYNC_EVENT or self.mute and request.opcode != KEEP_ALIVE:
            return SILENCE
        if request.opcode == GET_LOG_PAGE:
            return self._log_page(request)
        if request.opcode == IDENTIFY:
            return _resolve(self.identifies.get(request.cns, self._identify), request)
        if request.opcode == SET_FEATURES:
            return self._set_feature(request)
        if request.opcode == GET_FEATURES:
            return _resolve(self.features.get(request.feature, Refuse(INVALID_FIELD)), request)
        return {KEEP_ALIVE: 0, ABORT: 1}.get(request.opcode, Refuse(INVALID_OPCODE))

    def _log_page(self, request):
        time.sleep(self.delay.get(request.lid, 0))
        page = _resolve(self.pages.get(request.lid, Refuse(INVALID_LOG_PAGE)), request)
        if request.length > request.size:
            return Refuse(SGL_LENGTH_INVALID)
        if isinstance(page, (bytes, bytearray)):
            return bytes(page[request.offset:request.offset + request.length]).ljust(request.length, b"\0")
        return page

    def _identify(self, request):
        if request.cns == 0x00:
            return bytes(self.namespaces.get(request.nsid, nvme_identify.SIZE))
        if request.cns == 0x01:
            return bytes(self.identify)
        if request.cns == 0x02:
            return nvme_identify.namespace_list(self.namespaces, request.nsid)
        if request.cns == 0x03 and request.nsid in self.namespaces:
            return nvme_identify.namespace_descriptors(self.identify.text("serial"), request.nsid)
        if request.cns == 0x17:
            return nvme_identify.uuid_list(self.uuids)
        if request.cns == 0x19:
            return nvme_identify.endurance_group_list(self.endurance_groups, request.dwords[11] & 0xFFFF)
        return Refuse(INVALID_FIELD)

    def _set_feature(self, request):
        if request.feature == 0x07:  # queues: as many as the host wants
            return request.dwords[11]
        if request.feature not in self.features:
            return Refuse(INVALID_FIELD)
        self.features[request.feature] = request.dwords[11]
        return 0

    def io(self, request):
        if request.nsid not in self.namespaces and request.opcode != FLUSH:
            return Refuse(0x0B)
        first, blocks = struct.unpack_from("<QH", request.capsule, 40)
        size = 0
        if request.opcode in (READ, WRITE, WRITE_ZEROES):
            record = self.namespaces[request.nsid]
            size = blocks + 1 << record[130]  # of its only format
            if first + blocks >= record.number("nsze"):
                return Refuse(0x80)
        name = {FLUSH: "flush", WRITE: "write", READ: "read", WRITE_ZEROES: "zero", DSM: "dsm"}.get(request.opcode)
        if name is not None:
            with self._lock:
                self.host.update({f"{name}_ios": 1, f"{name}_bytes": size})
            late = self.io_seconds(name, first * (size // (blocks + 1)), size)
            if late:
                time.sleep(late)
            return bytes(size) if request.opcode == READ else 0
        if request.opcode == IO_MANAGEMENT_RECEIVE:
            return self.reclaim_units.ljust(request.size, b"\0")
        return Refuse(INVALID_OPCODE)


def _resolve(answer, request):
    return answer(request) if callable(answer) else answer


class _Queue(threading.Thread):
    """One connection: a submission and a completion queue."""

    def __init__(self, controller, connection):
        super().__init__(daemon=True)
        self.number, self.entries = 0, 1
        self._controller, self._socket, self._lock = controller, connection, threading.Lock()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = connection.makefile("rb", buffering=1 << 16)
        self._taken = 0  # commands
        self._writes = {}  # whose data are still arriving: {tag: [request, bytes to come]}

    def run(self):
        try:
            self._greet()
            while True:
                self._take_pdu()
        except (OSError, EOFError):
            pass  # the other side has gone, or this one
        finally:
            self.close()
            self._file.close()
            self._controller.forget(self)

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def _read(self, size):
        data = self._file.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def _read_pdu(self):
        """(type, header after the common one, data)"""
        kind, _, header, offset, whole = struct.unpack("<BBBBI", self._read(8))
        rest = self._read(whole - 8)
        return kind, rest[:header - 8], rest[offset - 8:] if offset else b""

    def _greet(self):
        kind, *_ = self._read_pdu()
        if kind != IC_REQUEST:
            raise EOFError
        self._socket.sendall(struct.pack("<BBBBI HBBI 112x", IC_RESPONSE, 0, 128, 0, 128, 0, 0, 0, MAX_H2C_DATA))

    def _take_pdu(self):
        kind, header, data = self._read_pdu()
        if kind == COMMAND:
            self._taken += 1
            request = Request(header)
            to_controller = request.opcode & 3 == 1
            if to_controller and request.size and request.place != IN_CAPSULE:
                self._writes[request.command_id] = [request, request.size]
                self._send(struct.pack("<BBBBIHHII4x", R2T, 0, 24, 0, 24, request.command_id, request.command_id, 0,
                                       request.size))
            else:
                self._execute(request, data)
        elif kind == H2C_DATA:
            tag = struct.unpack_from("<H", header, 2)[0]
            write = self._writes[tag]
            write[1] -= len(data)
            if write[1] <= 0:
                del self._writes[tag]
                self._execute(write[0], b"")
        else:
            raise EOFError  # the host ends the connection: nothing else is left

    def _execute(self, request, data):
        if request.opcode == FABRICS:
            self._answer(request, self._controller.fabrics(self, request, data))
        elif self.number:
            self._answer(request, self._controller.io(request))
        else:
            self._controller.requests.append(request)
            threading.Thread(target=self._execute_admin, args=(request,), daemon=True).start()

    def _execute_admin(self, request):
        try:
            answer = self._controller.admin(request)
        except Exception:  # in a scenario's function
            self._answer(request, Refuse(INTERNAL_ERROR))
            raise
        self._answer(request, answer)

    def _answer(self, request, answer):
        if answer is SILENCE:
            return
        result, status, data = 0, 0, b""
        if isinstance(answer, Refuse):
            status = answer.status | (0 if answer.retry else 0x4000)
        elif isinstance(answer, int):
            result = answer
        else:
            data = answer.data if isinstance(answer, Short) else answer[:request.size]
        pdus = b""
        if data:
            pdus = struct.pack("<BBBBIHHII4x", C2H_DATA, DATA_LAST, 24, 24, 24 + len(data), request.command_id, 0, 0,
                               len(data)) + data
        pdus += struct.pack("<BBBBIQHHHH", RESPONSE, 0, 24, 0, 24, result, self._taken % self.entries, self.number,
                            request.command_id, status << 1)
        try:
            self._send(pdus)
        except OSError:
            self.close()

    def _send(self, pdus):
        with self._lock:
            self._socket.sendall(pdus)

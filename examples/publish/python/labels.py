# SPDX-License-Identifier: Apache-2.0
"""Labels of threads for profilers: thread context (OTEP 4947) and process context (OTEP 4719).

One file for CPython 3.8 and newer on Linux, x86-64 and aarch64, without a compiler:

    import labels

    labels.describe(service="shop")
    with labels.scope(tenant="acme", route="/browse"):
        ...

A profiler looks for a thread-local variable, otel_thread_ctx_v1, among the dynamic symbols of the
libraries that a process has loaded. CPython has none to give away, so this file writes a shared
library of a few hundred bytes into memory, of nothing but that variable and a function that
returns its address, and has it loaded (memfd_create; where that may not be executed, load()
takes a directory for a file). Entering a scope is then a store.

Where nothing can be published (another system, memory that may not be executed), that is said once,
by a RuntimeWarning, and the program goes on without labels.

A scope belongs to its thread. Code that gives its thread to others inside of a scope, such as an
asyncio task at an await, gives them its labels, too: let scopes end before.
"""

import ctypes
import mmap
import os
import platform
import struct
import tempfile
import threading
import time
import warnings

__all__ = ["describe", "load", "scope"]

_MAX_NAMES = 256  # an index is a byte
_MAX_VALUE = 255  # so is a length
_MAX_RECORD = 640  # what OTEP 4947 recommends as the most
_HEAD = struct.Struct("=16s8sBBH")  # trace id, span id, valid, trace flags, bytes of attributes


# -- The library ----------------------------------------------------------------------------

_SYMBOLS = (b"otel_thread_ctx_v1", b"otel_thread_ctx_address")
_TEXT_TO_DATA = 0x10000  # a page of the largest size lies between code and data


def _library(machine):
    """The bytes of a shared library with a thread-local pointer, reached by a TLS descriptor."""
    if machine == "x86_64":
        elf_machine, relocation = 62, 36  # EM_X86_64, R_X86_64_TLSDESC
    elif machine == "aarch64":
        elf_machine, relocation = 183, 1031  # EM_AARCH64, R_AARCH64_TLSDESC
    else:
        raise OSError("no thread contexts on " + machine)
    names = b"\0" + b"".join(s + b"\0" for s in _SYMBOLS) + b"libotelctx.so\0"
    at = 64 + 5 * 56  # behind the ELF header and the program headers
    hash_at, at = at, at + 4 * 6
    symbols_at, at = at, at + 24 * 3
    names_at, at = at, at + -(-len(names) // 8) * 8
    relocations_at, at = at, at + 24
    code_at, at = at, at + 64
    text_end = at
    descriptor_at, at = at, at + 16
    dynamic_at, at = at, at + 16 * 10
    data, end = _TEXT_TO_DATA, at

    if machine == "x86_64":
        code = bytes.fromhex(
            "f30f1efa"  # endbr64
            "4883ec08"  # sub $8,%rsp
            "488d05"  # lea descriptor(%rip),%rax
        )
        code += struct.pack("<i", data + descriptor_at - (code_at + len(code) + 4))
        code += bytes.fromhex(
            "ff10"  # call *(%rax)
            "644803042500000000"  # add %fs:0,%rax
            "4883c408"  # add $8,%rsp
            "c3"  # ret
        )
    else:
        distance = data + descriptor_at - (code_at + 8)
        code = struct.pack(
            "<10I",
            0xD503245F,  # bti c
            0xA9BF7BFD,  # stp x29,x30,[sp,#-16]!
            0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5,  # adr x0,descriptor
            0xF9400001,  # ldr x1,[x0]
            0xD63F0020,  # blr x1
            0xD53BD041,  # mrs x1,tpidr_el0
            0x8B010000,  # add x0,x0,x1
            0xA8C17BFD,  # ldp x29,x30,[sp],#16
            0xD65F03C0,  # ret
            0xD503201F,  # nop
        )

    def segment(kind, flags, start, stop, address, align, memory=None):
        size = stop - start
        return struct.pack("<IIQQQQQQ", kind, flags, start, address, address, size, size if memory is None else memory, align)

    name_of = [names.index(s) for s in _SYMBOLS + (b"libotelctx.so",)]
    image = bytearray(end)

    def put(offset, data_):
        image[offset : offset + len(data_)] = data_

    put(0, b"\x7fELF\2\1\1" + bytes(9))
    put(16, struct.pack("<HHIQQQIHHHHHH", 3, elf_machine, 1, 0, 64, 0, 0, 64, 56, 5, 64, 0, 0))
    put(
        64,
        segment(1, 5, 0, text_end, 0, _TEXT_TO_DATA)  # PT_LOAD, to read and run
        + segment(1, 6, descriptor_at, end, data + descriptor_at, _TEXT_TO_DATA)  # PT_LOAD, to write
        + segment(2, 6, dynamic_at, end, data + dynamic_at, 8)  # PT_DYNAMIC
        + segment(7, 4, descriptor_at, descriptor_at, data + descriptor_at, 8, 8)  # PT_TLS: 8 bytes of 0
        + segment(0x6474E551, 6, 0, 0, 0, 16),  # PT_GNU_STACK: not to be run
    )
    put(hash_at, struct.pack("<6I", 1, 3, 1, 0, 2, 0))
    put(symbols_at + 24, struct.pack("<IBBHQQ", name_of[0], 1 << 4 | 6, 0, 1, 0, 8))  # STT_TLS
    put(symbols_at + 48, struct.pack("<IBBHQQ", name_of[1], 1 << 4 | 2, 0, 1, code_at, len(code)))  # STT_FUNC
    put(names_at, names)
    put(relocations_at, struct.pack("<QQq", data + descriptor_at, 1 << 32 | relocation, 0))
    put(code_at, code)
    dynamic = (
        (14, name_of[2]),  # DT_SONAME
        (4, hash_at),  # DT_HASH
        (5, names_at),  # DT_STRTAB
        (6, symbols_at),  # DT_SYMTAB
        (10, len(names)),  # DT_STRSZ
        (11, 24),  # DT_SYMENT
        (7, relocations_at),  # DT_RELA
        (8, 24),  # DT_RELASZ
        (9, 24),  # DT_RELAENT
        (0, 0),
    )
    put(dynamic_at, b"".join(struct.pack("<QQ", *entry) for entry in dynamic))
    return bytes(image)


_loading = threading.Lock()
_address = None  # the function of the library


def load(directory=None):
    """Loads the library, once. directory: write it there rather than into memory.

    OSError says that this machine or its policy does not allow it.
    """
    global _address
    with _loading:
        if _address is not None:
            return
        image = _library(platform.machine())
        if directory is None:
            fd = os.memfd_create("libotelctx.so", os.MFD_CLOEXEC)
            path = "/proc/self/fd/%d" % fd
        else:
            fd, path = tempfile.mkstemp(".so", "libotelctx", directory)
        try:
            os.write(fd, image)
            library = ctypes.CDLL(path)
        finally:
            os.close(fd)
            if directory is not None:
                os.unlink(path)
        function = library.otel_thread_ctx_address
        function.restype, function.argtypes = ctypes.c_void_p, ()
        _address = function


_silent = False  # nothing can be published, which has been said


def _able():
    """Whether anything can be published. Labels are for profilers: no program fails for them."""
    global _silent
    if _address is not None or _silent:
        return not _silent
    try:
        load()
        with _process.lock:
            if _process.header is None:
                _process.header = _map()
    except (OSError, AttributeError) as e:  # a policy; a system that has no such thing
        _silent = True
        warnings.warn("no labels for profilers: %s" % e, RuntimeWarning, stacklevel=3)
    return not _silent


# -- The process context --------------------------------------------------------------------


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(s):
    return _field(1, s.encode("utf-8", "replace"))  # AnyValue.string_value


def _pair(key, value):
    return _field(1, key.encode("utf-8", "replace")) + _field(2, value)  # KeyValue


class _Process:
    """What the process says of itself, and the names of attributes by index."""

    def __init__(self):
        self.lock = threading.RLock()
        self.resource = {}
        self.indexes = {}  # of names; an index never changes its name
        self.header = None
        self.kept = []  # memory that readers may be at, or that a parent has
        os.register_at_fork(before=self.lock.acquire, after_in_parent=self.lock.release, after_in_child=self._forked)

    def index(self, name):
        """The index of a name, which is published before it is used; None: there are too many."""
        index = self.indexes.get(name)
        if index is None:
            with self.lock:
                index = self.indexes.get(name)
                if index is None and len(self.indexes) < _MAX_NAMES:
                    index = len(self.indexes)
                    self._publish(list(self.indexes) + [name])
                    self.indexes[name] = index
        return index

    def describe(self, resource):
        with self.lock:
            self.resource.update(resource)
            self._publish(list(self.indexes))

    def _forked(self):
        """A child has no process context but its own: the mapping is not inherited."""
        self.kept.append(self.header)
        published, self.header = self.header is not None, None
        try:
            if published:
                self._publish(list(self.indexes))
        finally:
            self.lock.release()

    def _publish(self, names):
        payload = _field(1, b"".join(_field(1, _pair(k, _text(v))) for k, v in self.resource.items()))
        payload += _field(2, _pair("threadlocal.schema_version", _text("tls_v1")))
        array = b"".join(_field(1, _text(name)) for name in names)
        payload += _field(2, _pair("threadlocal.attribute_key_map", _field(5, array)))
        memory = ctypes.create_string_buffer(payload, len(payload))
        if self.header is None:
            self.header = _map()
        page, header = self.header[:2]
        published = ctypes.c_uint64.from_address(header + 16)
        published.value = 0  # being written
        self._barrier()
        ctypes.c_uint32.from_address(header + 8).value = 2  # version
        ctypes.c_uint32.from_address(header + 12).value = len(payload)
        ctypes.c_uint64.from_address(header + 24).value = ctypes.addressof(memory)
        self._barrier()
        page[0:8] = b"OTEL_CTX"
        published.value = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        # Tells readers that listen; that a kernel cannot name mappings does not matter.
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = (ctypes.c_int,) + (ctypes.c_ulong,) * 3 + (ctypes.c_char_p,)
        prctl(0x53564D41, 0, header, len(page), b"OTEL_CTX")  # PR_SET_VMA, PR_SET_VMA_ANON_NAME
        self.kept = self.kept[-8:] + [memory]  # the one before may be read right now

    def _barrier(self):
        with threading.Lock():
            pass


def _map():
    fd = os.memfd_create("OTEL_CTX", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, mmap.PAGESIZE)
        page = mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(fd)
    page.madvise(mmap.MADV_DONTFORK)
    view = ctypes.c_char.from_buffer(page)  # keeps it mapped
    return page, ctypes.addressof(view), view


_process = _Process()


def describe(service=None, **resource):
    """Publishes resource attributes of the process: describe(service="shop").

    Names with dots: describe(**{"service.version": "1.2"}).
    """
    if service is not None:
        resource["service.name"] = service
    if _able():
        _process.describe(resource)


# -- Scopes ---------------------------------------------------------------------------------

_thread = threading.local()


def _variable():
    try:
        return _thread.variable
    except AttributeError:
        _thread.variable = ctypes.c_void_p.from_address(_address())
        _thread.labels = {}
        return _thread.variable


def _cut(value):
    """The bytes of a value, as many as an attribute holds, cut between characters."""
    data = value.encode("utf-8", "replace")
    if len(data) > _MAX_VALUE:
        data = data[:_MAX_VALUE].decode("utf-8", "ignore").encode("utf-8")
    return data


class scope:
    """with scope(tenant="acme"): publishes labels, with those of the scopes around it.

    trace_id (16 bytes) and span_id (8 bytes) link samples to a span.
    """

    def __init__(self, trace_id=None, span_id=None, **labels):
        self._labels = labels
        self._ids = (trace_id, span_id) if trace_id and span_id else None
        self._record = None

    def __enter__(self):
        if not _able():
            return self
        variable = _variable()
        self._before = (variable.value, _thread.labels, getattr(_thread, "ids", None))
        labels = {**_thread.labels, **self._labels}
        ids = self._ids or self._before[2]
        trace, span = ids or (bytes(16), bytes(8))
        attributes = bytearray()
        for name, value in labels.items():
            index, data = _process.index(name), _cut(str(value))
            if index is not None and _HEAD.size + len(attributes) + 2 + len(data) <= _MAX_RECORD:
                attributes += bytes((index, len(data))) + data
        record = _HEAD.pack(trace, span, 1, 1 if ids else 0, len(attributes)) + attributes
        # Complete before it can be seen, and kept until another one is published.
        self._record = ctypes.create_string_buffer(record, len(record))
        _thread.labels, _thread.ids = labels, ids
        variable.value = ctypes.addressof(self._record)
        return self

    def __exit__(self, *_):
        if self._record is None:
            return
        _thread.variable.value, _thread.labels, _thread.ids = self._before
        self._record = None

// SPDX-License-Identifier: Apache-2.0
package labels;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;

/** Calls the library and reaches memory by the FFM API: for Java 22 and newer. */
final class FfmNative implements Labels.Native {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    private static final Linker LINKER = Linker.nativeLinker();
    private static final MethodHandle MALLOC = libc("malloc", FunctionDescriptor.of(LONG, LONG));
    private static final MethodHandle FREE = libc("free", FunctionDescriptor.ofVoid(LONG));

    private MethodHandle address;
    private MethodHandle syscall;

    private static MethodHandle libc(String name, FunctionDescriptor type) {
        return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(), type);
    }

    @Override
    public void load(Path library) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(library, Arena.global());
        address = LINKER.downcallHandle(
                symbols.find("Java_labels_JniNative_address").orElseThrow(), FunctionDescriptor.of(LONG, LONG, LONG));
        // Behind what JNI passes, and this does not: the environment and the object.
        syscall = LINKER.downcallHandle(
                symbols.find("Java_labels_JniNative_syscall").orElseThrow(),
                FunctionDescriptor.of(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG));
    }

    @Override
    public long address() {
        try {
            return (long) address.invokeExact(0L, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public long syscall(long number, long a, long b, long c, long d, long e, long f) {
        try {
            return (long) syscall.invokeExact(0L, 0L, number, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw new IllegalStateException(t);
        }
    }

    @Override
    public long allocate(long bytes) {
        try {
            return (long) MALLOC.invokeExact(bytes);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void free(long address) {
        try {
            FREE.invokeExact(address);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void putByte(long address, byte value) {
        MEMORY.set(ValueLayout.JAVA_BYTE, address, value);
    }

    @Override
    public void putInt(long address, int value) {
        MEMORY.set(ValueLayout.JAVA_INT, address, value);
    }

    @Override
    public void putLong(long address, long value) {
        MEMORY.set(LONG, address, value);
    }

    @Override
    public long getLong(long address) {
        return MEMORY.get(LONG, address);
    }

    @Override
    public void fence() {
        VarHandle.fullFence();
    }
}

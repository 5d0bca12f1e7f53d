// SPDX-License-Identifier: Apache-2.0
package labels;

import java.lang.reflect.Field;
import java.nio.file.Path;
import sun.misc.Unsafe;

/** Calls the library by JNI, and reaches memory by Unsafe: for Java 8 to 21. */
final class JniNative implements Labels.Native {
    private final Unsafe unsafe;

    JniNative() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            unsafe = (Unsafe) field.get(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("reach memory", e);
        }
    }

    @Override
    public void load(Path library) {
        System.load(library.toString());
    }

    @Override
    public native long address();

    @Override
    public native long syscall(long number, long a, long b, long c, long d, long e, long f);

    @Override
    public long allocate(long bytes) {
        return unsafe.allocateMemory(bytes);
    }

    @Override
    public void free(long address) {
        unsafe.freeMemory(address);
    }

    @Override
    public void putByte(long address, byte value) {
        unsafe.putByte(address, value);
    }

    @Override
    public void putInt(long address, int value) {
        unsafe.putInt(address, value);
    }

    @Override
    public void putLong(long address, long value) {
        unsafe.putLong(address, value);
    }

    @Override
    public long getLong(long address) {
        return unsafe.getLong(address);
    }

    @Override
    public void fence() {
        unsafe.fullFence();
    }
}

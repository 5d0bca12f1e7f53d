// SPDX-License-Identifier: Apache-2.0
package labels;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Labels of threads for profilers: thread context (OTEP 4947) and process context (OTEP 4719). For
 * Linux, x86-64 and aarch64, without a C compiler:
 *
 * <pre>
 *   Labels.describe("service.name", "shop");
 *   try (Labels.Scope scope = Labels.scope("tenant", "acme", "route", "/browse")) { ... }
 * </pre>
 *
 * A profiler looks for a thread-local variable, otel_thread_ctx_v1, among the dynamic symbols of the
 * libraries of a process. A JVM has none to give away, so this class writes a shared library of
 * a kilobyte to a file for a moment, of that variable, a function that returns its address, and one that
 * makes system calls. {@link FfmNative} calls it from Java 22 on, {@link JniNative} before.
 *
 * Where nothing can be published (another system, a temporary directory whose files may not be run),
 * that is logged once, and the program goes on without labels.
 *
 * A scope belongs to its platform thread. On a virtual thread, which changes its carrier without
 * a word, scopes publish nothing.
 */
public final class Labels {
    private static final int MAX_NAMES = 256; // an index is a byte
    private static final int MAX_VALUE = 255; // so is a length
    private static final int MAX_RECORD = 640; // what OTEP 4947 recommends as the most
    private static final int HEAD = 28; // trace id, span id, valid, trace flags, bytes of attributes
    private static final int VALID = 24;
    private static final int SIZE = 26;

    /** What Java cannot do by itself. */
    interface Native {
        /** Loads the library from a file. */
        void load(Path library);

        /** The address of the calling thread's variable. */
        long address();

        long syscall(long number, long a, long b, long c, long d, long e, long f);

        long allocate(long bytes);

        void free(long address);

        void putByte(long address, byte value);

        void putInt(long address, int value);

        void putLong(long address, long value);

        long getLong(long address);

        /** Stores before it come before those behind it. */
        void fence();
    }

    private static final Native NATIVE = loadNative(); // null: nothing can be published here
    private static final ThreadLocal<Scope> CURRENT = new ThreadLocal<>();
    private static final ThreadLocal<Long> VARIABLE = ThreadLocal.withInitial(() -> NATIVE.address());
    private static final Process PROCESS = new Process();

    private Labels() {}

    /** Publishes resource attributes of the process: name, value, name, value. */
    public static void describe(String... pairs) {
        if (NATIVE != null) {
            PROCESS.describe(pairs);
        }
    }

    /** Publishes labels, with those of the scopes around it, until it is closed: name, value, ... */
    public static Scope scope(String... pairs) {
        return new Scope(pairs);
    }

    /** Labels of a thread. It is closed on the thread that made it, the last one first. */
    public static final class Scope implements AutoCloseable {
        private final Scope outer;
        private final Map<String, String> labels = new LinkedHashMap<>();
        private final boolean published;
        private long record;
        private long before;

        private Scope(String... pairs) {
            outer = CURRENT.get();
            published = NATIVE != null && !"java.lang.VirtualThread".equals(Thread.currentThread().getClass().getName());
            if (!published) {
                return;
            }
            if (outer != null) {
                labels.putAll(outer.labels);
            }
            for (int i = 0; i + 1 < pairs.length; i += 2) {
                labels.put(pairs[i], pairs[i + 1]);
            }
            byte[] attributes = attributes();
            record = NATIVE.allocate(HEAD + attributes.length);
            for (int i = 0; i < HEAD; i++) {
                NATIVE.putByte(record + i, (byte) 0);
            }
            NATIVE.putByte(record + SIZE, (byte) attributes.length);
            NATIVE.putByte(record + SIZE + 1, (byte) (attributes.length >> 8));
            for (int i = 0; i < attributes.length; i++) {
                NATIVE.putByte(record + HEAD + i, attributes[i]);
            }
            NATIVE.putByte(record + VALID, (byte) 1);
            long variable = VARIABLE.get();
            before = NATIVE.getLong(variable);
            NATIVE.fence(); // complete before it can be seen
            NATIVE.putLong(variable, record);
            CURRENT.set(this);
        }

        private byte[] attributes() {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            for (Map.Entry<String, String> label : labels.entrySet()) {
                int index = PROCESS.index(label.getKey());
                byte[] value = cut(label.getValue());
                if (index >= 0 && HEAD + out.size() + 2 + value.length <= MAX_RECORD) {
                    out.write(index);
                    out.write(value.length);
                    out.write(value, 0, value.length);
                }
            }
            return out.toByteArray();
        }

        @Override
        public void close() {
            if (!published || record == 0) {
                return;
            }
            NATIVE.putLong(VARIABLE.get(), before);
            NATIVE.fence(); // another one is published before this one goes
            NATIVE.free(record);
            record = 0;
            if (outer == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(outer);
            }
        }
    }

    /** The bytes of a value, as many as an attribute holds, cut between characters. */
    private static byte[] cut(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= MAX_VALUE) {
            return bytes;
        }
        int end = MAX_VALUE;
        while ((bytes[end] & 0xc0) == 0x80) {
            end--;
        }
        return java.util.Arrays.copyOf(bytes, end);
    }

    /** Labels are for profilers: no program fails for them. */
    private static Native loadNative() {
        try {
            Native found;
            try {
                found = (Native) Class.forName("labels.FfmNative").getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException | LinkageError e) { // not there, or older than Java 22
                found = new JniNative();
            }
            Path file = Files.createTempFile("libotelctx", ".so");
            try {
                Files.write(file, Library.image(System.getProperty("os.arch")));
                found.load(file.toAbsolutePath());
            } finally {
                Files.delete(file);
            }
            return found;
        } catch (IOException | RuntimeException | LinkageError e) {
            warn(e);
            return null;
        }
    }

    private static void warn(Throwable e) {
        System.err.println("no labels for profilers: " + e);
    }

    /** What the process says of itself, and the names of attributes by index. */
    private static final class Process {
        private static final boolean ARM = "aarch64".equals(System.getProperty("os.arch"));
        private static final int PAGE = 65536; // of the largest kind
        private final Map<String, String> resource = new LinkedHashMap<>();
        private volatile Map<String, Integer> indexes = new LinkedHashMap<>(); // an index never changes its name
        private long header;
        private long last; // payload that a reader may be at
        private boolean refused; // by the kernel, which has been said

        /** The index of a name, which is published before it is used; -1: there are too many. */
        int index(String name) {
            Integer index = indexes.get(name);
            return index != null ? index : add(name);
        }

        private synchronized int add(String name) {
            Map<String, Integer> next = new LinkedHashMap<>(indexes);
            if (!next.containsKey(name)) {
                if (next.size() == MAX_NAMES) {
                    return -1;
                }
                next.put(name, next.size());
                if (!publish(next)) {
                    return -1;
                }
                indexes = next;
            }
            return next.get(name);
        }

        synchronized void describe(String... pairs) {
            for (int i = 0; i + 1 < pairs.length; i += 2) {
                resource.put(pairs[i], pairs[i + 1]);
            }
            publish(indexes);
        }

        private boolean publish(Map<String, Integer> names) {
            if (header == 0 && !refused) {
                try {
                    header = map();
                } catch (IllegalStateException e) {
                    refused = true;
                    warn(e);
                }
            }
            if (header == 0) {
                return false;
            }
            byte[] bytes = payload(names);
            long payload = NATIVE.allocate(bytes.length);
            for (int i = 0; i < bytes.length; i++) {
                NATIVE.putByte(payload + i, bytes[i]);
            }
            NATIVE.putLong(header + 16, 0); // being written
            NATIVE.fence();
            NATIVE.putInt(header + 8, 2); // version
            NATIVE.putInt(header + 12, bytes.length);
            NATIVE.putLong(header + 24, payload);
            putText(header, "OTEL_CTX");
            NATIVE.fence();
            NATIVE.putLong(header + 16, now());
            long name = NATIVE.allocate(9);
            putText(name, "OTEL_CTX\0");
            // Tells readers that listen; that a kernel cannot name mappings does not matter.
            NATIVE.syscall(ARM ? 167 : 157, 0x53564d41, 0, header, PAGE, name, 0);
            NATIVE.free(name);
            if (last != 0) {
                NATIVE.free(last);
            }
            last = payload;
            return true;
        }

        private byte[] payload(Map<String, Integer> names) {
            ByteArrayOutputStream attributes = new ByteArrayOutputStream();
            resource.forEach((key, value) -> field(attributes, 1, pair(key, text(value))));
            ByteArrayOutputStream array = new ByteArrayOutputStream();
            names.keySet().forEach(name -> field(array, 1, text(name)));
            ByteArrayOutputStream value = new ByteArrayOutputStream();
            field(value, 5, array.toByteArray()); // AnyValue.array_value
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            field(all, 1, attributes.toByteArray());
            field(all, 2, pair("threadlocal.schema_version", text("tls_v1")));
            field(all, 2, pair("threadlocal.attribute_key_map", value.toByteArray()));
            return all.toByteArray();
        }

        private static byte[] text(String s) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            field(out, 1, s.getBytes(StandardCharsets.UTF_8)); // AnyValue.string_value
            return out.toByteArray();
        }

        private static byte[] pair(String key, byte[] value) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            field(out, 1, key.getBytes(StandardCharsets.UTF_8));
            field(out, 2, value);
            return out.toByteArray();
        }

        private static void field(ByteArrayOutputStream out, int number, byte[] bytes) {
            out.write(number << 3 | 2);
            int n = bytes.length;
            for (; n > 127; n >>>= 7) {
                out.write(n & 127 | 128);
            }
            out.write(n);
            out.write(bytes, 0, bytes.length);
        }

        private static void putText(long address, String s) {
            for (int i = 0; i < s.length(); i++) {
                NATIVE.putByte(address + i, (byte) s.charAt(i));
            }
        }

        private static long call(String what, int arm, int x86, long a, long b, long c, long d, long e) {
            long result = NATIVE.syscall(ARM ? arm : x86, a, b, c, d, e, 0);
            if (result < 0) {
                throw new IllegalStateException(what + ": error " + -result);
            }
            return result;
        }

        private static long map() {
            long name = NATIVE.allocate(9);
            putText(name, "OTEL_CTX\0");
            long fd = call("memfd_create", 279, 319, name, 1, 0, 0, 0); // MFD_CLOEXEC
            NATIVE.free(name);
            call("ftruncate", 46, 77, fd, PAGE, 0, 0, 0);
            long at = call("mmap", 222, 9, 0, PAGE, 3, 2, fd); // to read and write, private
            call("madvise", 233, 28, at, PAGE, 10, 0, 0); // MADV_DONTFORK
            call("close", 57, 3, fd, 0, 0, 0, 0);
            return at;
        }

        private static long now() {
            long time = NATIVE.allocate(16);
            call("clock_gettime", 113, 228, 7, time, 0, 0, 0); // CLOCK_BOOTTIME
            long ns = NATIVE.getLong(time) * 1_000_000_000L + NATIVE.getLong(time + 8);
            NATIVE.free(time);
            return ns;
        }
    }

    /** The shared library, as an ELF file. */
    private static final class Library {
        private static final int DATA = 0x10000; // a page of the largest size lies between code and data
        private static final String[] NAMES = {
            "otel_thread_ctx_v1", "Java_labels_JniNative_address", "Java_labels_JniNative_syscall", "libotelctx.so",
        };
        private static final int HASH = 64 + 5 * 56; // behind the ELF header and the program headers
        private static final int SYMBOLS = HASH + 32;
        private static final int STRINGS = SYMBOLS + 4 * 24;
        private static final int RELOCATIONS = STRINGS + 128;
        private static final int ADDRESS = RELOCATIONS + 24; // the functions
        private static final int SYSCALL = ADDRESS + 64;
        private static final int DESCRIPTOR = SYSCALL + 64; // the TLS descriptor
        private static final int DYNAMIC = DESCRIPTOR + 16;
        private static final int END = DYNAMIC + 10 * 16;

        private static final int[] X86_ADDRESS = {
            0xf3, 0x0f, 0x1e, 0xfa, // endbr64
            0x48, 0x83, 0xec, 0x08, // sub $8,%rsp
            0x48, 0x8d, 0x05, 0, 0, 0, 0, // lea descriptor(%rip),%rax
            0xff, 0x10, // call *(%rax)
            0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, // add %fs:0,%rax
            0x48, 0x83, 0xc4, 0x08, // add $8,%rsp
            0xc3, // ret
        };
        // (environment, class, number, a, b, c, d, e, f)
        private static final int[] X86_SYSCALL = {
            0xf3, 0x0f, 0x1e, 0xfa, // endbr64
            0x48, 0x89, 0xd0, // mov %rdx,%rax
            0x48, 0x89, 0xcf, // mov %rcx,%rdi
            0x4c, 0x89, 0xc6, // mov %r8,%rsi
            0x4c, 0x89, 0xca, // mov %r9,%rdx
            0x4c, 0x8b, 0x54, 0x24, 0x08, // mov 8(%rsp),%r10
            0x4c, 0x8b, 0x44, 0x24, 0x10, // mov 16(%rsp),%r8
            0x4c, 0x8b, 0x4c, 0x24, 0x18, // mov 24(%rsp),%r9
            0x0f, 0x05, // syscall
            0xc3, // ret
        };
        private static final int[] ARM_ADDRESS = {
            0xd503245f, // bti c
            0xa9bf7bfd, // stp x29,x30,[sp,#-16]!
            0x10000000, // adr x0,descriptor
            0xf9400001, // ldr x1,[x0]
            0xd63f0020, // blr x1
            0xd53bd041, // mrs x1,tpidr_el0
            0x8b010000, // add x0,x0,x1
            0xa8c17bfd, // ldp x29,x30,[sp],#16
            0xd65f03c0, // ret
        };
        private static final int[] ARM_SYSCALL = {
            0xd503245f, // bti c
            0xaa0203e8, // mov x8,x2
            0xaa0303e0, // mov x0,x3
            0xaa0403e1, // mov x1,x4
            0xaa0503e2, // mov x2,x5
            0xaa0603e3, // mov x3,x6
            0xaa0703e4, // mov x4,x7
            0xf94003e5, // ldr x5,[sp]
            0xd4000001, // svc #0
            0xd65f03c0, // ret
        };

        static byte[] image(String arch) {
            boolean arm = arch.equals("aarch64");
            if (!arm && !arch.equals("amd64")) {
                throw new IllegalStateException("no thread contexts on " + arch);
            }
            ByteBuffer b = ByteBuffer.allocate(END).order(ByteOrder.LITTLE_ENDIAN);
            b.put(new byte[] {0x7f, 'E', 'L', 'F', 2, 1, 1});
            at(b, 16).putShort((short) 3).putShort((short) (arm ? 183 : 62)).putInt(1).putLong(0).putLong(64).putLong(0).putInt(0);
            b.putShort((short) 64).putShort((short) 56).putShort((short) 5).putShort((short) 64);
            at(b, 64);
            segment(b, 1, 5, 0, DESCRIPTOR, 0, DATA); // PT_LOAD, to read and run
            segment(b, 1, 6, DESCRIPTOR, END, DATA, DATA); // PT_LOAD, to write
            segment(b, 2, 6, DYNAMIC, END, DATA, 8); // PT_DYNAMIC
            segment(b, 7, 4, DESCRIPTOR, DESCRIPTOR, DATA, 8); // PT_TLS: 8 bytes of 0, which the file does not have
            b.putLong(b.position() - 16, 8);
            segment(b, 0x6474e551, 6, 0, 0, 0, 16); // PT_GNU_STACK: not to be run
            for (int n : new int[] {1, 4, 1, 0, 2, 3, 0}) { // DT_HASH: one bucket
                b.putInt(n);
            }
            List<Integer> names = new ArrayList<>();
            at(b, STRINGS + 1);
            for (String name : NAMES) {
                names.add(b.position() - STRINGS);
                b.put(name.getBytes(StandardCharsets.US_ASCII)).put((byte) 0);
            }
            int strings = b.position() - STRINGS;
            at(b, SYMBOLS + 24);
            symbol(b, names.get(0), 6, 0, 8); // STT_TLS
            symbol(b, names.get(1), 2, ADDRESS, 64); // STT_FUNC
            symbol(b, names.get(2), 2, SYSCALL, 64);
            at(b, RELOCATIONS).putLong(DATA + DESCRIPTOR).putLong(1L << 32 | (arm ? 1031 : 36)).putLong(0); // TLSDESC
            if (arm) {
                code(at(b, ADDRESS).slice().order(ByteOrder.LITTLE_ENDIAN), ARM_ADDRESS);
                code(at(b, SYSCALL).slice().order(ByteOrder.LITTLE_ENDIAN), ARM_SYSCALL);
                int distance = DATA + DESCRIPTOR - (ADDRESS + 8);
                b.putInt(ADDRESS + 8, 0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7ffff) << 5);
            } else {
                for (int i = 0; i < X86_ADDRESS.length; i++) {
                    b.put(ADDRESS + i, (byte) X86_ADDRESS[i]);
                }
                b.putInt(ADDRESS + 11, DATA + DESCRIPTOR - (ADDRESS + 15));
                for (int i = 0; i < X86_SYSCALL.length; i++) {
                    b.put(SYSCALL + i, (byte) X86_SYSCALL[i]);
                }
            }
            long[] dynamic = {
                14, names.get(3), // DT_SONAME
                4, HASH, 5, STRINGS, 6, SYMBOLS, 10, strings, 11, 24, // DT_HASH, STRTAB, SYMTAB, STRSZ, SYMENT
                7, RELOCATIONS, 8, 24, 9, 24, 0, 0, // DT_RELA, RELASZ, RELAENT
            };
            at(b, DYNAMIC);
            for (long n : dynamic) {
                b.putLong(n);
            }
            return b.array();
        }

        private static ByteBuffer at(ByteBuffer b, int position) {
            ((java.nio.Buffer) b).position(position);
            return b;
        }

        private static void code(ByteBuffer b, int[] words) {
            for (int word : words) {
                b.putInt(word);
            }
        }

        private static void segment(ByteBuffer b, int type, int flags, long from, long to, long base, long align) {
            b.putInt(type).putInt(flags).putLong(from).putLong(base + from).putLong(base + from);
            b.putLong(to - from).putLong(to - from).putLong(align);
        }

        private static void symbol(ByteBuffer b, int name, int type, long value, long size) {
            b.putInt(name).put((byte) (1 << 4 | type)).put((byte) 0).putShort((short) 1).putLong(value).putLong(size);
        }
    }
}

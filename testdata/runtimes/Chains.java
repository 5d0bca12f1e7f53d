// SPDX-License-Identifier: Apache-2.0
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import labels.Labels;

/**
 * Burns CPU in known call chains: java Chains [THREADS [virtual]]
 *
 * Each chain begins with a function that publishes its own name as label "function" while it
 * runs. "ready PID" tells that all has begun. TestRuntimesHotSpot has the chains.
 */
public final class Chains {
    static volatile int sink;

    static int burn(int turns) {
        int x = 1;
        for (int i = 0; i < turns; i++) {
            x = x * 31 + i ^ x >>> 3;
        }
        return x;
    }

    static int descend(int depth) {
        if (depth == 0) {
            return burn(100_000);
        }
        return descend(depth - 1) + 1;
    }

    static void recursion() {
        try (Labels.Scope scope = Labels.scope("function", "recursion")) {
            sink += descend(200);
        }
    }

    static int inner(int n) {
        int x = n;
        for (int i = 0; i < 20_000; i++) {
            x += i * x;
        }
        return x;
    }

    static int middle(int n) {
        return inner(n) + 1;
    }

    static int outer(int n) {
        return middle(n) + 1;
    }

    static void inlining() {
        try (Labels.Scope scope = Labels.scope("function", "inlining")) {
            for (int i = 0; i < 20; i++) {
                sink += outer(i);
            }
        }
    }

    static void lambdas() {
        try (Labels.Scope scope = Labels.scope("function", "lambdas")) {
            IntUnaryOperator twice = i -> burn(10_000 + i) * 2;
            sink += IntStream.range(0, 20).map(twice).sum();
        }
    }

    static void sorting() {
        try (Labels.Scope scope = Labels.scope("function", "sorting")) {
            Integer[] numbers = {5, 3, 1, 4, 2, 9, 7};
            Arrays.sort(numbers, Chains::compare);
            sink += numbers[0];
        }
    }

    static int compare(Integer a, Integer b) {
        sink += burn(10_000);
        return Integer.compare(a, b);
    }

    static int failing(int depth) {
        if (depth == 0) {
            burn(10_000);
            throw new IllegalStateException("known");
        }
        return failing(depth - 1) + 1;
    }

    static void exceptions() {
        try (Labels.Scope scope = Labels.scope("function", "exceptions")) {
            for (int i = 0; i < 10; i++) {
                try {
                    sink += failing(6);
                } catch (IllegalStateException e) {
                    sink += burn(10_000);
                }
            }
        }
    }

    interface Shape {
        int area(int n);
    }

    static final class Square implements Shape {
        public int area(int n) {
            return burn(n) + 1;
        }
    }

    static final class Circle implements Shape {
        public int area(int n) {
            return burn(n) + 3;
        }
    }

    static final class Line implements Shape {
        public int area(int n) {
            return burn(n);
        }
    }

    static final Shape[] SHAPES = {new Square(), new Circle(), new Line()};

    static void interfaces() {
        try (Labels.Scope scope = Labels.scope("function", "interfaces")) {
            for (int i = 0; i < 30; i++) {
                sink += SHAPES[i % SHAPES.length].area(10_000);
            }
        }
    }

    static void copying() {
        try (Labels.Scope scope = Labels.scope("function", "copying")) {
            byte[] from = new byte[64 << 10];
            byte[] to = new byte[64 << 10];
            for (int i = 0; i < 200; i++) {
                System.arraycopy(from, 0, to, 1, from.length - 1);
            }
            sink += to[5];
        }
    }

    static Object kept;

    static void garbage() {
        try (Labels.Scope scope = Labels.scope("function", "garbage")) {
            Object[] some = new Object[64];
            for (int i = 0; i < 4_000; i++) {
                some[i % some.length] = new int[i % 512];
            }
            kept = some;
        }
    }

    static void natives() {
        try (Labels.Scope scope = Labels.scope("function", "natives")) {
            long sum = 0;
            for (int i = 0; i < 2_000; i++) {
                sum += Runtime.getRuntime().freeMemory() + System.nanoTime();
            }
            sink += (int) sum;
        }
    }

    /** The stub of exp() has its frame where those of turned() and squared() were. */
    static void maths() {
        try (Labels.Scope scope = Labels.scope("function", "maths")) {
            double sum = 0;
            for (int i = 0; i < 20_000; i++) {
                sum += Math.exp(turned(-i));
            }
            sink += (int) sum;
        }
    }

    static double turned(double x) {
        return squared(x) - 1;
    }

    static double squared(double x) {
        return x * x / 1e9;
    }

    /** The virtual machine itself calls what its class runs at first. */
    static final class Called {
        static final int VALUE = burn(300_000);
    }

    static void callback() {
        try (Labels.Scope scope = Labels.scope("function", "callback");
                URLClassLoader loader = new URLClassLoader(classes(), null)) {
            Class.forName("Chains$Called", true, loader);
        } catch (ReflectiveOperationException | java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static URL[] classes() {
        return new URL[] {Chains.class.getProtectionDomain().getCodeSource().getLocation()};
    }

    /** So many that no compiler puts one into turn(). */
    static final Runnable[] CHAINS = {
        Chains::recursion, Chains::inlining, Chains::lambdas, Chains::sorting, Chains::exceptions,
        Chains::interfaces, Chains::copying, Chains::garbage, Chains::natives, Chains::maths,
        Chains::callback,
    };

    static void turn(int n) {
        CHAINS[n % CHAINS.length].run();
    }

    static final class Worker extends Thread {
        private final int first;

        Worker(int first) {
            this.first = first;
        }

        @Override
        public void run() {
            for (int i = first;; i++) {
                turn(i);
            }
        }
    }

    /** What a virtual thread runs: it gives way now and then, so that others have its carrier. */
    static void virtual(int first) {
        for (int i = first;; i++) {
            yielding(60);
            sink += descend(50);
        }
    }

    static void yielding(int depth) {
        if (depth > 0) {
            yielding(depth - 1);
            return;
        }
        Thread.yield();
        sink += burn(50_000);
    }

    /** Thread.ofVirtual().start(run), for Java 21 and newer. */
    static void startVirtual(Runnable run) throws ReflectiveOperationException {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class.forName("java.lang.Thread$Builder").getMethod("start", Runnable.class).invoke(builder, run);
    }

    public static void main(String[] args) throws Exception {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 4;
        for (int i = 0; i < threads; i++) {
            int first = 3 * i;
            if (args.length > 1) {
                startVirtual(() -> virtual(first));
            } else {
                new Worker(first).start();
            }
        }
        System.out.println("ready " + ProcessHandle.current().pid());
        System.out.flush();
        Thread.currentThread().join(); // virtual threads do not keep a program running
    }
}

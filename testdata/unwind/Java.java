// SPDX-License-Identifier: Apache-2.0

/** One stack of compiled methods, going down and up: java Java [SECONDS]. */
public final class Java {
  static final int DEPTH = 60;
  static volatile int sink;

  interface Step {
    int w_step(int n);
  }

  static final class Small implements Step {
    public int w_step(int n) {
      return w_A(n - 1) + 1;
    }
  }

  static int w_spin(int n) {
    int sum = n;
    for (int i = 0; i < 3000; i++) sum = sum * 31 + i;
    return sum;
  }

  static int w_A(int n) {
    return n <= 0 ? w_spin(n) : w_B(n - 1, new Small()) + 1;
  }

  static int w_B(int n, Step step) {
    return n <= 0 ? w_spin(n) : step.w_step(n) + 1;
  }

  static int w_turn() {
    int sum = 0;
    for (int i = 0; i < 50; i++) sum += w_A(DEPTH);
    return sum;
  }

  public static void main(String[] args) throws Exception {
    double seconds = args.length > 0 ? Double.parseDouble(args[0]) : 10;
    long end = System.nanoTime() + (long) (seconds * 1e9);
    System.out.println("ready " + ProcessHandle.current().pid());
    System.out.flush();
    while (System.nanoTime() < end) sink += w_turn();
  }
}

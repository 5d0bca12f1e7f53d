/** Spins at the end of calls of known depth: java Deep DEPTH */
final class Deep {
  private static int sum;

  private static int w_leaf() {
    int x = 1;
    for (int i = 0; i < 400_000; i++) {
      x = (x * 31 + i) & 0xffff;
    }
    return x;
  }

  private static int w_deep(int depth) {
    return depth > 1 ? w_deep(depth - 1) + 1 : w_leaf();
  }

  private static void w_turns(int depth) {
    while (true) {
      sum ^= w_deep(depth);
    }
  }

  public static void main(String[] args) {
    System.out.println("ready " + ProcessHandle.current().pid());
    w_turns(Integer.parseInt(args[0]));
  }
}

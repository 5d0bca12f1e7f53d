# Spins at the end of calls of known depth: deep.py DEPTH
import os
import sys


def w_leaf():
    x = 1
    for i in range(20000):
        x = (x * 31 + i) & 0xFFFF
    return x


def w_deep(depth):
    return w_deep(depth - 1) + 1 if depth > 1 else w_leaf()


def w_turns(depth):
    print("ready", os.getpid(), flush=True)
    while True:
        w_deep(depth)


sys.setrecursionlimit(int(sys.argv[1]) + 1000)
w_turns(int(sys.argv[1]))

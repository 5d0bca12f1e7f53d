"""Functions that a label of a thread context names: python3 labelled.py PUBLISHER

PUBLISHER is the folder with labels.py. "ready PID" tells that all has begun. TestRuntimesPythonLabels
compares the labels with the stacks.
"""

import os
import sys
import threading

sys.path.insert(0, sys.argv[1])
import labels


def burn(turns):
    x = 1
    for i in range(turns):
        x = (x * 31 + i) & 0xFFFF
    return x


def numbers():
    for _ in range(4):
        yield burn(4000)


def alpha():
    with labels.scope(function="alpha"):
        burn(16000)


def beta():
    with labels.scope(function="beta"):
        sum(numbers())


def gamma():
    with labels.scope(function="gamma"):
        sorted([3, 1, 2], key=lambda value: burn(5000) + value)


def delta():
    with labels.scope(function="delta"):
        try:
            burn(16000)
            raise ValueError("expected")
        except ValueError:
            pass


def worker():
    while True:
        for function in (alpha, beta, gamma, delta):
            function()


labels.describe(service="labelled")
threading.Thread(target=worker, daemon=True).start()
print("ready", os.getpid(), flush=True)
worker()

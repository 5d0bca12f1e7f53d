"""Burns CPU in known call chains: python3 chains.py FACTS [churn]

FACTS gets a line for each line of each code object: qualified name, file, line, first line,
with tabs between. "ready PID" tells that all has begun. TestRuntimesPython has the chains.
"""

import asyncio
import functools
import gc
import os
import signal
import sys
import threading
import types


def burn(turns):
    x = 1
    for i in range(turns):
        x = (x * 31 + i) & 0xFFFF
    return x


def descend(depth):
    if depth == 0:
        return burn(20000)
    return descend(depth - 1)


def recursion():
    descend(200)


def numbers():
    for _ in range(4):
        yield burn(4000)


def generator():
    for _ in numbers():
        pass


def native_generator():
    sum(numbers())


def key(value):
    burn(2000)
    return value


def callback():
    sorted([3, 1, 2], key=key)


def reducer(left, right):
    return functools.reduce(lambda a, b: a + burn(2000), (left, right, 1, 2))


def nested_callback():
    functools.reduce(reducer, [1, 2, 3])


def failing(depth):
    if depth == 0:
        raise ValueError("expected")
    try:
        failing(depth - 1)
    finally:
        burn(1000)


def exception():
    try:
        failing(5)
    except ValueError:
        burn(4000)


async def inner():
    burn(4000)
    await asyncio.sleep(0)
    burn(4000)


async def outer():
    await inner()
    await inner()


def coroutine():
    loop.run_until_complete(outer())


class Shape:
    @property
    def area(self):
        return burn(4000)

    def __lt__(self, other):
        return burn(2000) < 0

    @classmethod
    def make(cls):
        def closure():
            return burn(4000)

        return closure()


def methods():
    Shape().area
    Shape.make()
    sorted([Shape(), Shape()])


def comprehension():
    return [burn(2000) for _ in range(2)]


def größe():
    burn(4000)


SCENARIOS = (
    recursion, generator, native_generator, callback, nested_callback, exception, methods,
    comprehension, größe,
)


def worker():
    while not stopped:
        for scenario in SCENARIOS:
            scenario()


def churn():
    """Functions that are made and freed again and again, mostly in the same place."""
    n = 0
    while not stopped:
        n += 1
        space = {"burn": burn}
        exec(compile(f"def made_{n % 1000:03}():\n    burn(30000)\n", f"<made-{n % 1000:03}>", "exec"), space)
        space.popitem()[1]()


def codes(code, seen):
    if code not in seen:
        seen.add(code)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                codes(const, seen)
    return seen


def functions():
    return [thing for thing in gc.get_objects() if isinstance(thing, types.FunctionType)]


def write_facts(path, known):
    seen = set()
    codes(sys._getframe(1).f_code, seen)
    for module in list(sys.modules.values()):
        for thing in list(vars(module).values()):
            if isinstance(thing, types.FunctionType):
                codes(thing.__code__, seen)
    for thing in known + functions():
        codes(thing.__code__, seen)
    for program in SUBPROGRAM, SUBTHREAD.format(older=0, program=""):
        codes(compile(program, "<script>" if sys.version_info >= (3, 14) else "<string>", "exec"), seen)
    with open(path + ".new", "w", encoding="utf-8") as facts:
        for code in seen:
            for line in {line for _, _, line in code.co_lines() if line} | {0}:  # 0: of an instruction without one
                print(code.co_qualname, code.co_filename, line, code.co_firstlineno, sep="\t", file=facts)
    os.rename(path + ".new", path)


# What subinterpreters run, on the stack of the thread that has them run it.
SUBPROGRAM = """
def subburn(turns):
    x = 1
    for i in range(turns):
        x = (x * 31 + i) & 0xFFFF
    return x

def subdescend(depth):
    return subdescend(depth - 1) if depth else subburn(20000)

while True:
    subdescend(5)
"""

# What the newer of two runs before (3.13): a thread of its own that has the older one run it.
SUBTHREAD = """
import threading
import _interpreters as interpreters

def subthread():
    interpreters.run_string({older}, {program!r})

threading.Thread(target=subthread).start()
"""


def subinterpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # it never comes back
    if sys.version_info >= (3, 13):
        older, newer = interpreters.create(), interpreters.create("legacy")  # may have threads
        failed = interpreters.run_string(newer, SUBTHREAD.format(older=int(older), program=SUBPROGRAM))
        if failed:
            sys.exit(failed)
    interpreters.run_string(interpreters.create(), SUBPROGRAM)


def stop(*_):
    global stopped
    stopped = True


stopped = False
loop = asyncio.new_event_loop()
signal.signal(signal.SIGTERM, stop)
loop.run_until_complete(outer())
known = functions()  # a free-threaded 3.13 does not tell of them once a thread has started
if "subinterpreter" not in sys.argv:  # which in 3.11 waits for ever for a lock that a thread holds
    threading.Thread(target=worker, name="first", daemon=True).start()
write_facts(sys.argv[1], known)
print("ready", os.getpid(), flush=True)
if "churn" in sys.argv:
    churn()
elif "subinterpreter" in sys.argv:
    subinterpreter()
elif "fork" in sys.argv:
    parent = os.getpid()
    child = os.fork()
    while not stopped and (child or os.getppid() == parent):
        coroutine()
    if child:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
else:
    threading.Thread(target=worker, name="second", daemon=True).start()
    while not stopped:
        coroutine()

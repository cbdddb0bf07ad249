"""The engine's pool of threads on a machine of many processors: a simulation of one call.

It follows `native/pool.cpp` and `native/launch.cpp`. The threads take their seats one after
another, for the line of memory that counts them goes from one processor to the next; each computes
the pieces of its own share, then helps with others; each leaves by the same line; the caller
returns when all have left. How fast a piece is depends on who else uses the memory in that moment.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

#: As in launch.cpp: elements of a piece, the part of one that a thread begins with, pieces for each
#: thread where there is less work; elements under which the caller works alone; shares at most.
_PIECE, _FIRST_PART, _PIECES_EACH, _ALONE, _MOST_SHARES = 65_536, 16, 8, 32_768, 64
#: Elements of a block of a sum: a contiguous row.
_BLOCK = 8192
#: Several lines that are only read are on their way at once.
_AT_ONCE = 4
#: Bytes that stay in the caches of each processor, and in the last cache of a socket.
OWN_CACHE, LAST_CACHE = 1 << 20, 32 << 20


@dataclass(frozen=True)
class Machine:
    """Seconds, and bytes a second, of a machine's parts.

    Attributes:
        own, last, memory: what one processor reads and writes: in its own caches, in the last
            cache, in memory.
        transfer: a line of memory that another processor wrote.
        enter: from the caller's first step until an awake thread computes, and from its last until
            the caller knows, together, beside the line that all wait for.
        ring: the caller's part of waking one thread.
        wake: until the woken thread runs.
        call: a call that computes next to nothing.
        socket: what the memory of one socket gives.
        link: what two sockets give each other.
        farther: how many times as long a line takes between two sockets.
        sockets: how many there are.
    """

    own: float
    last: float
    memory: float
    transfer: float
    enter: float
    ring: float
    wake: float
    call: float
    socket: float
    link: float
    farther: float
    sockets: int = 1


@dataclass(frozen=True)
class Design:
    """A way to share out.

    Attributes:
        each: elements that each thread has at least, before a call asks for one more.
        reads_first: a thread reads whether a share is used up before it takes from it.
        wakes: threads that the caller, and each thread that has a seat, wakes; 0: the caller wakes
            all of them.
    """

    each: int
    reads_first: bool
    wakes: int


#: As in launch.cpp and pool.cpp.
NOW = Design(each=4096, reads_first=True, wakes=2)


@dataclass(frozen=True)
class Call:
    """One computation.

    Attributes:
        elements: of the result.
        bytes_each: read and written for an element.
        asleep: the threads sleep when it begins.
        one_socket: all its pages lie in the first socket.
    """

    elements: int
    bytes_each: int
    asleep: bool = False
    one_socket: bool = False


def seconds(machine: Machine, call: Call, cores: int, design: Design) -> float:
    """What the call takes."""
    if call.elements < _ALONE or cores == 1:
        return machine.call + _alone(machine, call)
    threads = max(1, min(cores, call.elements // design.each))
    return machine.call + _Simulation(machine, call, threads, design).run()


def _alone(machine: Machine, call: Call) -> float:
    bytes_used = call.elements * call.bytes_each
    return bytes_used / _cached_rate(machine, bytes_used, bytes_used)


def _cached_rate(machine: Machine, of_thread: float, of_socket: float) -> float:
    """Bytes a second of one thread, by what it and all threads of its socket use."""
    if of_thread <= OWN_CACHE:
        return machine.own
    return machine.last if of_socket <= LAST_CACHE else machine.memory


class _Simulation:
    """One call by several threads; thread 0 is the caller."""

    def __init__(self, machine: Machine, call: Call, threads: int, design: Design) -> None:
        self.machine, self.call, self.threads, self.design = machine, call, threads, design
        self.shares = min(threads, _MOST_SHARES)
        blocks = -(-call.elements // _BLOCK)
        self.piece = max(1, min(blocks // (_PIECES_EACH * threads), _PIECE // _BLOCK))
        self.left = [blocks // self.shares + (k < blocks % self.shares) for k in range(self.shares)]
        self.block_bytes = call.elements / blocks * call.bytes_each
        used = call.elements * call.bytes_each
        self.most = _cached_rate(machine, used / threads, used / machine.sockets)
        #: Threads that wait for a moment: (when, thread).
        self.waiting: list[tuple[float, int]] = []
        #: Bytes that the threads at work still have of their pieces.
        self.busy: dict[int, float] = {}
        self.share = [k % self.shares for k in range(threads)]
        self.used_up = [0] * threads  # shares that a thread has found used up
        self.blocks = [max(1, self.piece // _FIRST_PART)] * threads
        self.line_free = 0.0  # when the board's line can go to the next

    def run(self) -> float:
        machine, now = self.machine, 0.0
        if self.call.asleep:
            self.wake()
        else:
            self.waiting = [(0.0, 0), *((machine.enter, k) for k in range(1, self.threads))]
        entered = [False] * self.threads
        heapq.heapify(self.waiting)
        ended = 0.0
        while self.waiting or self.busy:
            rates = {k: self.rate(k) for k in self.busy}
            done = min(((self.busy[k] / rates[k], k) for k in self.busy), default=(1e9, -1))
            if self.waiting and self.waiting[0][0] <= now + done[0]:
                then, thread = heapq.heappop(self.waiting)
                self.advance(rates, then - now)
                now = max(now, then)
                if not entered[thread]:
                    entered[thread] = True
                    if thread > 0:  # a seat is taken before the first piece
                        heapq.heappush(self.waiting, (self.pass_line(now), thread))
                        continue
                if not self.begin(thread, now):
                    ended = max(ended, now if thread == 0 else self.pass_line(now))
                continue
            self.advance(rates, done[0])
            now += done[0]
            thread = done[1]
            del self.busy[thread]
            self.blocks[thread] = min(self.piece, 2 * self.blocks[thread])
            self.look(thread, now)
        return ended

    def wake(self) -> None:
        """When each thread wakes: the caller, or whoever is awake, rings for a few."""
        machine, wakes = self.machine, self.design.wakes or self.threads
        when = [0.0]
        for waker in range(self.threads):
            asleep = range(len(when), min(len(when) + wakes, self.threads))
            began = when[waker]
            when += [began + machine.ring * k + machine.wake for k, _ in enumerate(asleep, 1)]
            when[waker] += machine.ring * len(asleep)
        self.waiting = [(time, thread) for thread, time in enumerate(when)]

    def advance(self, rates: dict[int, float], elapsed: float) -> None:
        """Lets the threads at work compute for so long."""
        for thread, rate in rates.items():
            self.busy[thread] = max(0.0, self.busy[thread] - rate * max(0.0, elapsed))

    def rate(self, thread: int) -> float:
        """Bytes a second of a thread now."""
        machine = self.machine
        if self.most > machine.memory:
            return self.most
        here = self.socket(thread)
        others = len(self.busy) if self.call.one_socket else self.at_work(here)
        rate = min(machine.memory, machine.socket / others)
        if self.call.one_socket and here:
            rate = min(rate, machine.link / self.at_work(here))
        return rate

    def at_work(self, socket: int) -> int:
        """Threads of a socket that compute."""
        return sum(self.socket(k) == socket for k in self.busy)

    def socket(self, thread: int) -> int:
        return thread * self.machine.sockets // self.threads

    def transfer(self) -> float:
        """A line from some processor to another: between sockets as often as not."""
        machine = self.machine
        far = (machine.sockets - 1) / machine.sockets
        return machine.transfer * (1 - far + far * machine.farther)

    def pass_line(self, now: float) -> float:
        """When a thread has had the board's line, for which others wait as well."""
        self.line_free = max(self.line_free, now) + self.transfer()
        return self.line_free

    def look(self, thread: int, now: float) -> None:
        """Moves on to the next share that is not used up; that takes time."""
        spent = 0.0
        step = self.transfer() / (_AT_ONCE if self.design.reads_first else 1)
        while self.used_up[thread] < self.shares and not self.left[self.share[thread]]:
            self.used_up[thread] += 1
            self.share[thread] = (self.share[thread] + 1) % self.shares
            spent += step
        heapq.heappush(self.waiting, (now + spent, thread))

    def begin(self, thread: int, now: float) -> bool:
        """Takes the next piece; False if no share has one."""
        share = self.share[thread]
        if self.used_up[thread] >= self.shares:
            return False
        if not self.left[share]:
            self.look(thread, now)
            return True
        blocks = min(self.blocks[thread], self.left[share])
        self.left[share] -= blocks
        self.busy[thread] = blocks * self.block_bytes
        return True

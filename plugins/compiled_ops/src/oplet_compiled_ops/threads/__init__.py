"""Worker threads that share a kernel's work: division into parts, atomics, the thread pool. It knows kernels (compiled
functions), but no operators.

The kernels that run jobs are declared here, and explained where their sources are (`jobs`), with the memory of jobs, of graphs of them,
and of the thread pool.
"""

from __future__ import annotations

from oplet_compiled_ops.library.kernels import Kernel

#: The most parts of a job: a word has a bit for each, and its sign stays clear.
MOST_PARTS = 62

# Byte offsets in a job: the kernel, the first part's arguments, the stride to the next part's, the number of parts, the number of
# threads; for a job of a graph the graph, the addresses of the jobs that wait for it, their number, the number of jobs that it waits
# for; and, in a cache line of their own, since threads compete for them, the free parts, the number of parts that are not done, the
# number of jobs that it still waits for, and the jobs that wait for it, which only the thread that finishes it reads.
FUNCTION, WORDS, STRIDE, COUNT, THREADS, GRAPH, NEXTS, NEEDS = 0, 8, 16, 24, 32, 40, 48, 56
FREE, PENDING, WAITS, NEXT, JOB_BYTES = 64, 72, 80, 88, 128
# Byte offsets in a graph: the number of its jobs that are not finished; in a second cache line the position of the first of them, for
# helpers to look from; in a third one the numbers of jobs and of helpers; then the jobs' addresses, in an order in which they may run.
LEFT, LOW, JOBS, HELPERS, LIST = 0, 64, 128, 136, 192
#: The most jobs of a graph, from the first that is not finished on, that a thread looks through for one with a free part.
AHEAD = 64
# Byte offsets in a helper's mailbox: the job, the processor of the posting thread, whether the helper is to check that processor, the
# graph; in a cache line of their own whether it is to end, whether it returned in order to move, and whether it sleeps; in a third one
# the semaphore that it waits for.
POSTED, PROCESSOR, WATCHES, SHOWN, END, MOVES, SLEEPS, BELL, BOX_BYTES = 0, 8, 16, 24, 64, 72, 80, 128, 192
# Byte offsets in the team: the C library's functions that return the current processor, yield it, wait for a semaphore and post
# one, or 0; then the mailboxes.
WHERE, YIELD, WAIT, POST, BOXES = 0, 8, 16, 24, 128

#: The words of a job, and those that its maker writes, its first ones. A job of one thread needs no more.
JOB_WORDS, HEAD_WORDS = JOB_BYTES // 8, 5
#: The words of a job that only graphs use: graph, number of jobs that wait for it, number of jobs that it waits for, and their address.
LINK_WORDS = GRAPH // 8, NEXTS // 8, NEEDS // 8, NEXT // 8
#: The words of a graph: the number of jobs, that of helpers, and the first job's address.
GRAPH_WORDS = JOBS // 8, HELPERS // 8, LIST // 8
#: Offsets by name.
BOX = {
    "processor": PROCESSOR,
    "watches": WATCHES,
    "end": END,
    "moves": MOVES,
    "sleeps": SLEEPS,
    "bell": BELL,
    "size": BOX_BYTES,
}
TEAM = {"where": WHERE, "yield": YIELD, "wait": WAIT, "post": POST, "boxes": BOXES}

RUN = Kernel("threads.jobs:RUN", "void(i8, i8, i8)")
RUN_GRAPH = Kernel("threads.jobs:RUN_GRAPH", "void(i8, i8)")
CHAIN = Kernel("threads.jobs:CHAIN", "void(i8, i8)")
SERVE = Kernel("threads.jobs:SERVE", "void(i8, i8, i8, i8, i8)")

// Where the threads of a measurement run.
#pragma once
#define _GNU_SOURCE
#include <sched.h>

// Keeps the calling thread on the k-th of the processors that the process may use. Two threads that share one
// for some milliseconds, as new threads may, would be taken for a slow memory.
static void stay(int k) {
#if defined(__linux__)
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || k-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
#else
  (void)k;
#endif
}

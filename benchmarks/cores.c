// What a hand-over between two threads takes: a line of memory that goes from one processor to another, and
// a sleeping thread that is woken.
#include "stay.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Alignas(64) atomic_int ball;
static _Alignas(64) atomic_int bell;
static _Alignas(64) _Atomic double woken;
static int turns;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* throw_back(void* context) {
  (void)context;
  stay(1);
  for (int k = 0; k < turns; ++k) {
    while (atomic_load(&ball) != 2 * k + 1) {
    }
    atomic_store(&ball, 2 * k + 2);
  }
  return 0;
}

static void* throw_first(void* context) {
  double* seconds = context;
  pthread_t other;
  if (pthread_create(&other, 0, throw_back, 0) != 0) return 0;
  stay(0);
  const double began = now();
  for (int k = 0; k < turns; ++k) {
    while (atomic_load(&ball) != 2 * k) {
    }
    atomic_store(&ball, 2 * k + 1);
  }
  *seconds = (now() - began) / (2.0 * turns);
  pthread_join(other, 0);
  return 0;
}

// Seconds in which a line that one processor wrote is read and written by another; 0 if it failed.
double transfer_seconds(int count) {
  double seconds = 0;
  pthread_t thread;
  turns = count;
  atomic_store(&ball, 0);
  // In a thread of its own, so that the caller keeps its processors.
  if (pthread_create(&thread, 0, throw_first, &seconds) == 0) pthread_join(thread, 0);
  return seconds;
}

static void* sleeper(void* context) {
  (void)context;
  stay(1);
  syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
  atomic_store(&woken, now());
  return 0;
}

static void* waker(void* context) {
  double* seconds = context;  // of the call that wakes, and until the sleeper runs
  pthread_t thread;
  stay(0);
  atomic_store(&bell, 0);
  if (pthread_create(&thread, 0, sleeper, 0) != 0) return 0;
  nanosleep(&(struct timespec){0, 2000000}, 0);
  const double began = now();
  atomic_store(&bell, 1);
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
  seconds[0] = now() - began;
  pthread_join(thread, 0);
  seconds[1] = atomic_load(&woken) - began;
  return 0;
}

// Seconds of the system call that wakes a thread, and seconds until that thread runs; 0 if it failed.
void wake_seconds(double* seconds) {
  pthread_t thread;
  seconds[0] = seconds[1] = 0;
  if (pthread_create(&thread, 0, waker, seconds) == 0) pthread_join(thread, 0);
}

#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "shared_limits.h"
#include "sizes.h"

namespace zs {
namespace {

constexpr int kMaxThreads = limits::kMostThreads;  // a seat count has 16 bits

// How long a worker without work spins before it sleeps, and a caller before it sleeps until the
// last worker has returned. Measured on a virtual machine with 2 processors: a spinning worker takes a
// job in 0.4 us, a sleeping one in 15 to 30 us (median). Spinning about as long as a wake takes is at
// most twice as bad as knowing what comes.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kWakes = 2;  // threads that each thread wakes
constexpr int kPausesPerLook = 16;  // at the clock: 0.2 to 2 us between looks, by processor

// The state of a job in one word, so that taking a seat, taking seats back and leaving are one atomic
// step each: generation (32 bits), whether the caller sleeps (1), seats left (15), workers inside (16).
constexpr std::uint64_t kInside = 1;
constexpr std::uint64_t kSeat = std::uint64_t{1} << 16;
constexpr std::uint64_t kCallerSleeps = std::uint64_t{1} << 31;
constexpr std::uint64_t kSeats = kCallerSleeps - kSeat;

std::uint64_t inside(std::uint64_t board) { return board & (kSeat - 1); }
std::uint64_t seats(std::uint64_t board) { return board & kSeats; }
std::uint32_t generation(std::uint64_t board) { return static_cast<std::uint32_t>(board >> 32); }

using Word = std::atomic<std::uint32_t>;

// Trivially destroyed: workers may look at it until the process is gone, and none is ever joined.
struct Pool {
  alignas(kLine) std::atomic<bool> held{false};  // by the one caller that hands work out
  alignas(kLine) std::atomic<std::uint64_t> board{0};
  Task task = nullptr;  // these two belong to the holder; to be read from a seat only
  void* context = nullptr;
  alignas(kLine) std::atomic<int> workers{0};  // living threads
  std::atomic<int> sleepers{0};
  Word bell{0};  // counts calls to sleeping workers
  Word home{0};  // counts calls to a sleeping caller
  std::atomic<int> limit{0};  // num_threads(); 0: not yet asked for
  std::atomic<int> avoided{-1};            // the processor that the workers are kept off; -1: none
  std::atomic<int> worker[kMaxThreads]{};  // the workers' numbers to the system; 0: a free place
  bool forks_handled = false;
};

constinit Pool pool;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

// Waits until `word` is not `old` any more; may return early.
void wait(Word& word, std::uint32_t old) {
#ifdef __linux__
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
#else
  word.wait(old);
#endif
}

void ring(Word& word, int count) {
  word.fetch_add(1, std::memory_order_release);
#ifdef __linux__
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
#else
  if (count == 1) {
    word.notify_one();
  } else {
    word.notify_all();
  }
#endif
}

// Whether `happened` became true within kSpin.
template <class Condition>
bool spin(const Condition& happened) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (happened()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return happened();
}

// ---- Where workers run ----

// The scheduler may put a woken worker behind its waker, on the same processor, where its turn comes
// when the work is done. (Measured, 2 processors, calls of 200 us with sleeping workers: most took as
// long as with one thread, and half of that with the worker kept off the caller's processor.) So the
// workers are kept off the processor of the thread that wakes them, and may run on all others. Few workers
// are so at each call: the caller may have come to where one of them is, awake and waiting for its turn.
// (Among many processors that is rare, and to move many workers takes longer than the call.)
constexpr int kFewWorkers = 8;
#ifdef __linux__
void sign_on() {
  const int self = static_cast<int>(syscall(SYS_gettid));
  for (auto& place : pool.worker) {
    int free = 0;
    if (!place.compare_exchange_strong(free, self)) continue;
    pool.avoided.store(-1);  // this one is still where it began
    return;
  }
}

void sign_off() {
  const int self = static_cast<int>(syscall(SYS_gettid));
  for (auto& place : pool.worker) {
    int mine = self;
    if (place.compare_exchange_strong(mine, 0)) return;
  }
}

void keep_workers_off_this_processor() {
  const int here = sched_getcpu();
  if (here < 0 || here == pool.avoided.load(std::memory_order_relaxed)) return;
  pool.avoided.store(here);
  cpu_set_t others;
  if (sched_getaffinity(0, sizeof others, &others) != 0) return;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (CPU_COUNT(&others) == 0) return;
  int left = pool.workers.load();
  for (const auto& place : pool.worker) {
    if (left == 0) return;
    const int number = place.load();
    if (number == 0) continue;
    sched_setaffinity(number, sizeof others, &others);
    --left;
  }
}
#else
void sign_on() {}
void sign_off() {}
void keep_workers_off_this_processor() {}
#endif

// ---- Workers ----

// Whether the board offers a seat of a job that this worker has not been in.
bool offers(std::uint64_t board, std::uint32_t seen) {
  return seats(board) != 0 && generation(board) != seen;
}

// Takes a seat. The word is compared as a whole, so a job taken back in the meantime is not entered.
bool take_seat(std::uint32_t& seen) {
  std::uint64_t board = pool.board.load(std::memory_order_relaxed);
  while (offers(board, seen)) {
    if (pool.board.compare_exchange_weak(board, board - kSeat + kInside,
                                         std::memory_order_acquire, std::memory_order_relaxed)) {
      seen = generation(board);
      return true;
    }
  }
  return false;
}

void leave() {
  const std::uint64_t before = pool.board.fetch_sub(kInside, std::memory_order_acq_rel);
  if (inside(before) == 1 && (before & kCallerSleeps)) ring(pool.home, 1);
}

bool surplus() { return pool.workers.load() > pool.limit.load() - 1; }

// Whether this worker is one too many and has been signed off.
bool retire() {
  int workers = pool.workers.load();
  while (workers > pool.limit.load() - 1) {
    if (pool.workers.compare_exchange_weak(workers, workers - 1)) return true;
  }
  return false;
}

// Sleeps until the bell. A caller publishes and then reads the number of sleepers; a worker reports asleep
// and then looks at the board: in the one order of these (sequentially consistent) steps one of the two
// sees the other, so no call is missed.
void sleep_unless_offered(std::uint32_t seen) {
  const std::uint32_t bell = pool.bell.load();
  pool.sleepers.fetch_add(1);
  if (!offers(pool.board.load(), seen) && !surplus()) wait(pool.bell, bell);
  pool.sleepers.fetch_sub(1);
}

// The sleeping workers that a job has seats for beside those that are awake.
int wanted(std::uint64_t board) {
  const int asleep = pool.sleepers.load(), awake = pool.workers.load() - asleep;
  const int missing = static_cast<int>(seats(board) / kSeat + inside(board)) - awake;
  return missing < asleep ? missing : asleep;
}

// Wakes a few of them, who will wake more: among many processors the last one then wakes after as many steps
// as the number has bits, and the caller computes meanwhile.
void wake_some(int count) {
  if (count > 0) ring(pool.bell, count < kWakes ? count : kWakes);
}

void* work(void*) {
  std::uint32_t seen = 0;
  sign_on();
  for (;;) {
    if (spin([&] { return take_seat(seen); })) {
      wake_some(wanted(pool.board.load(std::memory_order_relaxed)));
      pool.task(pool.context);
      leave();
    } else if (retire()) {
      sign_off();
      return nullptr;
    } else {
      sleep_unless_offered(seen);
    }
  }
}

// ---- Starting them ----

// In a child only the forking thread lives: it has no workers, and no thread holds the pool.
void forget_workers() {
  pool.held.store(false);
  pool.board.store(0);
  pool.workers.store(0);
  pool.sleepers.store(0);
  pool.avoided.store(-1);
  for (auto& place : pool.worker) place.store(0);
}

bool start_worker() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Signals are for the threads that the program knows of.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, work, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

// Sees to it that there are `count` workers, or as many as the system grants. Only by the holder.
int grow(int count) {
  if (!pool.forks_handled) {
    if (pthread_atfork(nullptr, nullptr, forget_workers) != 0) return 0;
    pool.forks_handled = true;
  }
  while (pool.workers.load() < count) {
    pool.workers.fetch_add(1);
    if (!start_worker()) {
      pool.workers.fetch_sub(1);
      break;
    }
  }
  const int workers = pool.workers.load();
  return workers < count ? workers : count;
}

// ---- The caller ----

void publish(Task task, void* context, int count) {
  pool.task = task;
  pool.context = context;
  const std::uint64_t next = generation(pool.board.load(std::memory_order_relaxed)) + 1u;
  const std::uint64_t board = next << 32 | static_cast<std::uint64_t>(count) * kSeat;
  pool.board.store(board);
  const int sleeping = wanted(board);
  if (sleeping > 0 || pool.workers.load() <= kFewWorkers) keep_workers_off_this_processor();
  wake_some(sleeping);
}

// Takes the free seats back, and waits for the threads inside.
void take_back() {
  std::uint64_t board = pool.board.fetch_and(~kSeats, std::memory_order_acquire);
  if (inside(board) == 0) return;
  const auto left = [] { return inside(pool.board.load(std::memory_order_acquire)) == 0; };
  while (!spin(left)) {
    const std::uint32_t home = pool.home.load();
    board = pool.board.fetch_or(kCallerSleeps, std::memory_order_acq_rel);
    if (inside(board) == 0) return;
    wait(pool.home, home);
  }
}

// ---- How many ----

// The processors that this process may run on.
int processors() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// The processors' time that a container is granted, rounded up; INT_MAX without a limit.
int quota() {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return INT_MAX;
  long long granted = 0, period = 0;
  const int read = std::fscanf(file, "%lld %lld", &granted, &period);  // "max" reads nothing
  std::fclose(file);
  if (read != 2 || granted < 1 || period < 1) return INT_MAX;
  const long long whole = (granted - 1) / period + 1;
  return whole < INT_MAX ? static_cast<int>(whole) : INT_MAX;
}

int clamp(long count) {
  return count < 1 ? 1 : count > kMaxThreads ? kMaxThreads : static_cast<int>(count);
}

// The threads that the environment sets; 0 if it sets none, or no positive whole number.
int asked() {
  const char* text = std::getenv("ZEROSTRIDE_NUM_THREADS");
  if (text == nullptr) return 0;
  char* end;
  errno = 0;
  const long count = std::strtol(text, &end, 10);
  while (*end == ' ') ++end;
  return *end != '\0' || errno != 0 || count < 1 ? 0 : clamp(count);
}

int first_limit() {
  const int count = asked();
  if (count > 0) return count;
  const int granted = quota(), present = processors();
  return clamp(granted < present ? granted : present);
}

// ---- Scratch ----

struct Buffer {
  char* data = nullptr;
  std::int64_t size = 0;
  ~Buffer() { std::free(data); }
};

thread_local Buffer buffer;

}  // namespace

int num_threads() {
  int limit = pool.limit.load(std::memory_order_relaxed);
  if (limit != 0) return limit;
  const int first = first_limit();
  // Unless it has been set in the meantime.
  return pool.limit.compare_exchange_strong(limit, first) ? first : limit;
}

void set_num_threads(int count) {
  pool.limit.store(clamp(count));
  // Surplus threads wake up now and end.
  if (pool.sleepers.load() > 0 && surplus()) ring(pool.bell, INT_MAX);
}

void parallel(Task task, void* context, int threads) {
  const int limit = num_threads();
  int others = (threads < limit ? threads : limit) - 1;
  if (others < 1 || pool.held.load(std::memory_order_relaxed) ||
      pool.held.exchange(true, std::memory_order_acquire)) {
    task(context);
    return;
  }
  others = grow(others);
  if (others > 0) publish(task, context, others);
  task(context);
  take_back();
  pool.held.store(false, std::memory_order_release);
}

char* scratch(std::int64_t bytes) {
  if (bytes <= buffer.size && buffer.data != nullptr) return buffer.data;
  std::free(buffer.data);
  buffer.size = 0;
  const std::int64_t whole = (bytes / kLine + 1) * kLine;
  buffer.data = static_cast<char*>(std::aligned_alloc(kLine, static_cast<std::size_t>(whole)));
  if (buffer.data != nullptr) buffer.size = whole;
  return buffer.data;
}

}  // namespace zs

// The pool and the engine over it under stress, for ThreadSanitizer. Exits with 1 on a wrong result.
//
//   bash native/sanitize.sh thread [SCALE]    (a number that multiplies the jobs; 1 unless given)
//   test_harness SCALE no-forks               (an emulator with threads of its own may not survive one)
//
// native/develop.py builds it as test_harness, from this file and all of the engine but the binding.
// ThreadSanitizer cannot follow a fork of a process with threads: that part is left out under it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../nest.h"
#include "../pool.h"
#include "../run.h"

#if defined(__SANITIZE_THREAD__)
#define ZS_FORKS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ZS_FORKS 0
#endif
#endif
#ifndef ZS_FORKS
#define ZS_FORKS 1
#endif

namespace {

std::atomic<int> failures{0};

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  failures.fetch_add(1);
}

// A job as the engine's: pieces are taken from a counter, and each is written once.
struct Job {
  explicit Job(int pieces) : done(static_cast<std::size_t>(pieces)) {}
  std::vector<int> done;  // not atomic: the pool alone orders the writes and the reading
  std::atomic<int> next{0};
  std::atomic<int> visits{0};

  static void run(void* context) {
    Job& job = *static_cast<Job*>(context);
    job.visits.fetch_add(1);
    const int pieces = static_cast<int>(job.done.size());
    for (int at; (at = job.next.fetch_add(1)) < pieces;) job.done[static_cast<std::size_t>(at)] += at + 1;
  }
  bool right() const {
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (done[i] != static_cast<int>(i) + 1) return false;
    }
    return true;
  }
};

void one_job(int pieces, int threads) {
  Job job(pieces);
  zs::parallel(Job::run, &job, threads);
  expect(job.right(), "a piece was lost or done twice");
  expect(job.visits.load() <= threads, "more threads than asked for");
}

// A job that waits for a second thread: that workers do come, and are woken when asleep.
void company() {
  struct Meeting {
    std::atomic<int> here{0};
    static void run(void* context) {
      Meeting& meeting = *static_cast<Meeting*>(context);
      meeting.here.fetch_add(1);
      for (int ms = 0; meeting.here.load() < 2 && ms < 10000; ++ms) usleep(1000);
    }
  } meeting;
  zs::parallel(Meeting::run, &meeting, 2);
  expect(meeting.here.load() == 2, "nobody came");
}

void tiny_jobs(int jobs) {
  for (int i = 0; i < jobs; ++i) one_job(i % 5, 4);
}

// Jobs with pauses between them that let workers fall asleep, or catch them while they do.
void sleepy_jobs(int jobs) {
  for (int i = 0; i < jobs; ++i) {
    one_job(64, 4);
    usleep(static_cast<useconds_t>(i % 120));
    if (i % 100 == 0) company();
  }
}

void many_callers(int callers, int jobs) {
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([=] {
      for (int i = 0; i < jobs; ++i) one_job(1 + (i * 7 + t) % 50, 1 + (i + t) % 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void changing_count(int jobs) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop.load(); ++i) {
      zs::set_num_threads(1 + i % 7);
      if (i % 16 == 0) usleep(200);
    }
  });
  many_callers(4, jobs);
  stop.store(true);
  changer.join();
  zs::set_num_threads(3);
  expect(zs::num_threads() == 3, "num_threads() is not what was set");
  zs::set_num_threads(-5);
  expect(zs::num_threads() == 1, "fewer than one thread");
  zs::set_num_threads(4);
}

void nested_jobs(int jobs) {
  for (int i = 0; i < jobs; ++i) zs::parallel([](void*) { one_job(20, 4); }, nullptr, 4);
}

// A transposed matrix (gathered into scratch) plus a bias, into an output of this caller's own.
constexpr std::int64_t kRows = 300, kColumns = 257;
constexpr std::int64_t kFloat = sizeof(float);

void add_bias(std::vector<float>& matrix, std::vector<float>& bias, int threads) {
  const zs::Kernel* kernel = zs::find_kernel(zs::isa(), "add", zs::DType::F32);
  expect(kernel != nullptr, "no kernel");
  if (kernel == nullptr) return;
  const zs::DType memory[] = {zs::DType::F32, zs::DType::F32, zs::DType::F32};
  zs::Program program;
  zs::program_of(program, *kernel, memory);
  const std::int64_t shape[] = {kRows, kColumns};
  const std::int64_t strides[3][2] = {
      {kFloat, kRows * kFloat}, {0, kFloat}, {kColumns * kFloat, kFloat}};
  const zs::Layout layouts[] = {
      {strides[0], kFloat, true}, {strides[1], kFloat, true}, {strides[2], kFloat, true}};
  zs::Nest nest;
  zs::build(nest, 2, shape, 2, 3, layouts);
  std::vector<float> sum(matrix.size());
  char* const data[] = {reinterpret_cast<char*>(matrix.data()), reinterpret_cast<char*>(bias.data()),
                        reinterpret_cast<char*>(sum.data())};
  expect(zs::execute(nest, program, zs::isa(), data, threads, nullptr, nullptr), "not executed");
  std::size_t at = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column, ++at) {
      if (sum[at] == matrix[column * kRows + row] + bias[column]) continue;
      expect(false, "a wrong sum");
      return;
    }
  }
}

// Many callers with the same inputs, while the number of threads changes.
void engine_calls(int callers, int calls) {
  std::vector<float> matrix(kRows * kColumns), bias(kColumns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 1009);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i) * 0.25f;
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        if (t == 0) zs::set_num_threads(2 + i % 3);
        add_bias(matrix, bias, 1 + (i + t) % 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  zs::set_num_threads(4);
}

void scratch_is_private() {
  zs::parallel(
      [](void*) {
        for (const std::int64_t bytes : {0, 1, 64, 1000, 64, 100000}) {
          char* mine = zs::scratch(bytes);
          expect(mine != nullptr && reinterpret_cast<std::uintptr_t>(mine) % 64 == 0, "scratch");
          for (std::int64_t i = 0; i < bytes; ++i) mine[i] = static_cast<char>(i);
        }
      },
      nullptr, 4);
}

// Forks while other threads hold the pool; the child computes with workers of its own.
void forks(int count) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&] {
      while (!stop.load()) one_job(200, 4);
    });
  }
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that hangs is killed, which is no status of 0
      for (int j = 0; j < 20; ++j) one_job(100, 4);
      company();
      // At most the one grandchild, which begins with workers asleep.
      if (i == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          one_job(100, 4);
          _exit(failures.load() != 0);
        }
        int status = 1;
        waitpid(grandchild, &status, 0);
        expect(status == 0, "grandchild");
      }
      _exit(failures.load() != 0);
    }
    int status = 1;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child");
  }
  stop.store(true);
  for (std::thread& thread : busy) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  const int scale = count > 1 ? std::atoi(arguments[1]) : 1;
  zs::set_num_threads(4);
  tiny_jobs(100000 * scale);
  sleepy_jobs(2000 * scale);
  many_callers(8, 2000 * scale);
  changing_count(2000 * scale);
  nested_jobs(1000 * scale);
  scratch_is_private();
  engine_calls(6, 40 * scale);
  const bool forking = count < 3 || std::strcmp(arguments[2], "no-forks") != 0;
  if (ZS_FORKS && forking) forks(50 * scale);
  std::printf(failures.load() == 0 ? "harness: all right\n" : "harness: FAILED\n");
  return failures.load() != 0;  // with workers spinning, asleep and about to sleep
}

// What the memory allows: threads that read some streams and write another, and do nothing else.
// Every byte of the inputs is read once (xor of whole vectors), every byte of the output written once,
// in turns of one block, as an element-wise op must do it. What is written differs from line to line and
// within a line, as results do: AMD's EPYC of 2024 stores lines of one repeated number past the caches at
// twice the speed of others.
#include "stay.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// As wide as the processor's registers: compilers split wider ones badly (GCC 12, for AVX2: an eighth of the
// speed).
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
typedef uint64_t Vector __attribute__((vector_size(VECTOR_BYTES), may_alias));

// Parts begin at whole lines.
enum { kMaxInputs = 8, kMaxThreads = 256, kLine = 64 };

typedef struct {
  const char* input[kMaxInputs];
  int64_t input_bytes[kMaxInputs];
  int inputs;
  char* output;
  int64_t output_bytes;
  int64_t block;  // bytes of output between two turns of reading
  int64_t passes;
  int around;  // whether stores go around the caches
  int number;  // of the thread
  atomic_int* waiting;
} Job;

static Vector read_all(Vector sum, const char* from, const char* end) {
  Vector a = sum, b = sum, c = sum, d = sum;
  const Vector* p = (const Vector*)from;
  const Vector* stop = (const Vector*)end;
  for (; p + 4 <= stop; p += 4) a ^= p[0], b ^= p[1], c ^= p[2], d ^= p[3];
  for (; p < stop; ++p) a ^= *p;
  return a ^ b ^ c ^ d;
}

// What is added from vector to vector: odd numbers, of digits that look random.
static const uint64_t kNext[8] __attribute__((aligned(64))) = {
    0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93,
    0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3};

static void write_all(Vector value, char* from, char* end) {
  const Vector next = *(const Vector*)kNext;
  for (Vector* p = (Vector*)from; p < (Vector*)end; ++p) *p = value += next;
}

static void write_around(Vector value, char* from, char* end) {
  const Vector next = *(const Vector*)kNext;
  for (Vector* p = (Vector*)from; p < (Vector*)end; ++p) {
    value += next;
#if defined(__AVX512F__)
    _mm512_stream_si512((void*)p, (__m512i)value);
#elif defined(__AVX2__)
    _mm256_stream_si256((__m256i*)p, (__m256i)value);
#elif defined(__x86_64__)
    _mm_stream_si128((__m128i*)p, (__m128i)value);
#else
    *p = value;
#endif
  }
}

// Where the k-th of n parts of so many bytes begins: at a whole line.
static int64_t cut(int64_t bytes, int64_t k, int64_t n) {
  const int64_t lines = bytes / kLine;
  return (lines / n * k + lines % n * k / n) * kLine;
}

static void* run(void* context) {
  const Job* job = (const Job*)context;
  stay(job->number);
  // All begin at once, so that a thread's start is no part of what is measured.
  atomic_fetch_sub(job->waiting, 1);
  while (atomic_load(job->waiting) > 0) sched_yield();
  const int64_t blocks = job->output_bytes / job->block > 0 ? job->output_bytes / job->block : 1;
  const int64_t step = cut(job->output_bytes, 1, blocks);
  int64_t steps[kMaxInputs];
  for (int i = 0; i < job->inputs; ++i) steps[i] = cut(job->input_bytes[i], 1, blocks);
  for (int64_t pass = 0; pass < job->passes; ++pass) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int last = block == blocks - 1;  // takes what is left
      Vector sum = {(uint64_t)pass};
      for (int i = 0; i < job->inputs; ++i) {
        const char* from = job->input[i] + block * steps[i];
        sum = read_all(sum, from, last ? job->input[i] + job->input_bytes[i] : from + steps[i]);
      }
      char* from = job->output + block * step;
      char* end = last ? job->output + job->output_bytes : from + step;
      if (job->around) {
        write_around(sum, from, end);
      } else {
        write_all(sum, from, end);
      }
    }
  }
  return 0;
}

// Seconds of one pass over everything, by so many threads, each over its part again and again. Less
// than 0 if they cannot be had. The calling thread may run on one processor after it.
static double seconds_of_pass(const char* const* inputs, const int64_t* input_bytes, int count, char* output,
                      int64_t output_bytes, int threads, int64_t passes, int64_t block, int around) {
  static Job jobs[kMaxThreads];
  pthread_t ids[kMaxThreads];
  atomic_int waiting = threads;
  if (threads > kMaxThreads || count > kMaxInputs) return -1;
  for (int t = 0; t < threads; ++t) {
    Job* job = &jobs[t];
    job->inputs = count;
    for (int i = 0; i < count; ++i) {
      const int64_t from = cut(input_bytes[i], t, threads);
      job->input[i] = inputs[i] + from;
      job->input_bytes[i] = cut(input_bytes[i], t + 1, threads) - from;
    }
    const int64_t from = cut(output_bytes, t, threads);
    job->output = output + from;
    job->output_bytes = cut(output_bytes, t + 1, threads) - from;
    job->block = block;
    job->passes = passes;
    job->around = around;
    job->number = t;
    job->waiting = &waiting;
  }
  int started = 1;
  while (started < threads && pthread_create(&ids[started], 0, run, &jobs[started]) == 0) ++started;
  if (started < threads) {
    atomic_store(&waiting, 0);
    while (--started) pthread_join(ids[started], 0);
    return -1;
  }
  while (atomic_load(&waiting) > 1) sched_yield();
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  run(&jobs[0]);
  for (int t = 1; t < threads; ++t) pthread_join(ids[t], 0);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  return ((double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec)) /
         (double)passes;
}

// The same, and the calling thread may run where it could before.
double stream_seconds(const char* const* inputs, const int64_t* input_bytes, int count, char* output,
                      int64_t output_bytes, int threads, int64_t passes, int64_t block, int around) {
#if defined(__linux__)
  cpu_set_t before;
  const int known = sched_getaffinity(0, sizeof before, &before) == 0;
#endif
  const double seconds = seconds_of_pass(inputs, input_bytes, count, output, output_bytes, threads, passes,
                                         block, around);
#if defined(__linux__)
  if (known) sched_setaffinity(0, sizeof before, &before);
#endif
  return seconds;
}

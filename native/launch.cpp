// Shares blocks out over threads; and the program that a single op is.
#include "launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "pool.h"
#include "run.h"
#include "stage.h"

namespace zs {
namespace {

// Elements under which a hand-over to another thread costs more than it saves.
constexpr std::int64_t kAlone = 32768;
// Elements that each thread has at least: a thread more costs some hundred nanoseconds of all others', for the
// seats are taken one after another. (benchmarks/CORES.md; no matter with a few processors.)
constexpr std::int64_t kEach = 4096;
// Elements of a piece: some ten microseconds of a cheap op, so that no thread waits long for the last.
constexpr std::int64_t kPiece = 65536;
// A thread's first piece is this part of one. The slowest ops take 30 us an element (fmod of 1e308
// and 1e-300): a thread takes larger pieces only after a quick one, so that a poll is never late.
constexpr std::int64_t kFirstPart = 16;
constexpr auto kQuick = std::chrono::milliseconds(5);
// Pieces for each thread where there is less work than that.
constexpr std::int64_t kPiecesEach = 8;
constexpr auto kPollEvery = std::chrono::milliseconds(100);
// Elements that an operand is widened to where a kernel lacks the form for a splat.
constexpr std::int64_t kWidened = 512;

// Blocks that one thread computes first, and others help with when their own are done.
struct alignas(kLine) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

// Shares of a computation, at most; further threads help from the beginning.
constexpr int kMostShares = 64;

// A computation on its way: what its threads share.
struct Job {
  const Work& work;
  std::int64_t piece;  // blocks, at most
  bool (*poll)(void*);
  void* poll_context;
  std::thread::id caller;
  int shares;
  bool stopped = false;  // the caller's own
  Share share[kMostShares] = {};
};

// Which share this thread begins with. The same in every call: what it read and wrote in the last one
// may still be in its own cache. (Measured, sum of 256 K float32 over and over: 1.5 times as fast as
// pieces that the first free thread takes.)
int first_share(const Job& job) {
  static std::atomic<int> workers{0};
  if (std::this_thread::get_id() == job.caller) return 0;
  static thread_local const int number = 1 + workers.fetch_add(1, std::memory_order_relaxed);
  return number % job.shares;
}

using Clock = std::chrono::steady_clock;

// One thread's pieces.
class Pieces {
 public:
  Pieces(Job& job, char* memory)
      : job_(job),
        memory_(memory),
        share_(first_share(job)),
        blocks_(std::max<std::int64_t>(1, job.piece / kFirstPart)) {}

  // Computes the next one. Returns false where none is left.
  bool next() {
    for (; done_ < job_.shares; ++done_, share_ = (share_ + 1) % job_.shares) {
      Share& share = job_.share[share_];
      // Many threads may read a line at once, but take from it one after another.
      if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
      const std::int64_t first = share.next.fetch_add(blocks_, std::memory_order_relaxed);
      if (first >= share.end) continue;
      compute(first, std::min(share.end, first + blocks_));
      return true;
    }
    return false;
  }
  Clock::time_point ended() const { return ended_; }
  void use(char* memory) { memory_ = memory; }

 private:
  void compute(std::int64_t first, std::int64_t last) {
    job_.work.compute(job_.work.context, first, last, memory_);
    const auto now = Clock::now();
    blocks_ = now - ended_ < kQuick ? std::min(job_.piece, 2 * blocks_) : (blocks_ + 1) / 2;
    ended_ = now;
  }

  Job& job_;
  char* memory_;
  int share_;
  int done_ = 0;  // shares that are used up
  std::int64_t blocks_;
  Clock::time_point ended_ = Clock::now();
};

// Deals the blocks out evenly, in order.
void deal(Job& job) {
  std::int64_t first = 0;
  for (int i = 0; i < job.shares; ++i) {
    Share& share = job.share[i];
    const std::int64_t left = job.work.blocks - first;
    share.next.store(first, std::memory_order_relaxed);
    share.end = first += left / (job.shares - i);
  }
}

// The caller's share: piece after piece, and a look at the clock after each.
void compute_polling(Job& job, char* memory) {
  Pieces pieces(job, memory);
  auto polled = pieces.ended();
  while (pieces.next()) {
    if (pieces.ended() - polled < kPollEvery) continue;
    polled = pieces.ended();
    // It may have run a signal handler, and that a computation, which has grown the scratch, or lost it
    // where there was no memory to grow it by.
    if (job.poll(job.poll_context) && (!memory || (memory = scratch(job.work.scratch_bytes)))) {
      pieces.use(memory);
      continue;
    }
    job.stopped = true;
    // Beyond the end: no thread begins another piece.
    for (Share& share : job.share) share.next.store(share.end, std::memory_order_relaxed);
  }
}

// One thread's share.
void compute_share(void* context) {
  Job& job = *static_cast<Job*>(context);
  char* memory = nullptr;
  if (job.work.scratch_bytes) {
    memory = scratch(job.work.scratch_bytes);
    if (!memory) return;  // the caller has had its own before it called the others
  }
  if (job.poll && std::this_thread::get_id() == job.caller) return compute_polling(job, memory);
  Pieces pieces(job, memory);
  while (pieces.next()) {
  }
}

void copy_element(void* to, const void* from, std::int64_t size) {
  std::memcpy(to, from, static_cast<std::size_t>(size));
}

// n elements, each as the first. Doubling: memcpy is the fastest code for this processor.
void spread(char* first, std::int64_t size, std::int64_t n) {
  const std::int64_t bytes = size * n;
  for (std::int64_t done = size; done < bytes;) {
    const std::int64_t more = std::min(done, bytes - done);
    std::memcpy(first + done, first, static_cast<std::size_t>(more));
    done += more;
  }
}

// Operands that are one element each where the kernel lacks such a form: widened, some hundred
// elements at a time.
void run_widened(const Kernel& kernel, const void* const* in, unsigned splats, void* out,
                 std::int64_t n, char* buffers) {
  const unsigned form = best_form(kernel, splats);
  const void* row[kMaxInputs];
  for (int k = 0; k < kernel.inputs; ++k) {
    row[k] = in[k];
    if (!((splats & ~form) >> k & 1)) continue;
    char* wide = buffers + k * kWidened * kWidest;
    copy_element(wide, in[k], size_of(kernel.in[k]));
    spread(wide, size_of(kernel.in[k]), std::min(n, kWidened));
    row[k] = wide;
  }
  char* to = static_cast<char*>(out);
  for (std::int64_t done = 0; done < n; done += kWidened) {
    kernel.form[form](row, to, std::min(kWidened, n - done));
    to += kWidened * size_of(kernel.out);
    for (int k = 0; k < kernel.inputs; ++k) {
      if (!(splats >> k & 1)) {
        row[k] = static_cast<const char*>(row[k]) + kWidened * size_of(kernel.in[k]);
      }
    }
  }
}

}  // namespace

void run_kernel(const Isa& isa, const void* context, const void* const* in, unsigned splats,
                void* const* out, std::int64_t n, char* scratch_memory) {
  const Kernel& kernel = *static_cast<const Kernel*>(context);
  if (splats == (1u << kernel.inputs) - 1) {
    // One result, for the whole row. By way of its own place: the output may be an input.
    alignas(kWidest) char result[kWidest];
    kernel.form[0](in, result, 1);
    const void* const one = result;
    const auto bytes = static_cast<unsigned>(size_of(kernel.out));
    isa.fill[__builtin_ctz(bytes)](&one, out[0], n);
  } else if (kernel.form[splats]) {
    kernel.form[splats](in, out[0], n);
  } else {
    run_widened(kernel, in, splats, out[0], n, scratch_memory);
  }
}

void program_of(Program& program, const Kernel& kernel, const DType* memory) {
  program.inputs = kernel.inputs;
  program.outputs = 1;
  for (int k = 0; k <= kernel.inputs; ++k) {
    program.memory[k] = memory[k];
    program.compute[k] = k < kernel.inputs ? kernel.in[k] : kernel.out;
  }
  program.body = run_kernel;
  program.context = &kernel;
  // Every form but the one where all are splats, which run_kernel does itself.
  program.body_scratch = 0;
  for (unsigned form = 1; form + 1 < 1u << kernel.inputs; ++form) {
    if (!kernel.form[form]) {
      program.body_scratch = kMaxInputs * kWidened * kWidest;
    }
  }
}

std::int64_t scratch_bytes(const Nest& nest, const Program& program) {
  std::int64_t bytes = program.body_scratch;
  for (int k = 0; k < nest.operands; ++k) bytes += stage_bytes(nest, program, k);
  return bytes;
}

namespace {

// The parts from which a nest is computed.
struct Run {
  const Nest& nest;
  const Program& program;
  const Isa& isa;
  char* const* data;
};

void run_blocks(const void* context, std::int64_t first, std::int64_t last, char* memory) {
  const Run& run = *static_cast<const Run*>(context);
  run.isa.run(run.nest, run.program, run.data, first, last, memory);
}

}  // namespace

bool share_out(const Work& work, int threads, bool (*poll)(void*), void* poll_context) {
  char* memory = nullptr;
  if (work.scratch_bytes && !(memory = scratch(work.scratch_bytes))) return false;
  if (work.elements < kAlone) {
    work.compute(work.context, 0, work.blocks, memory);
    return true;
  }
  threads = static_cast<int>(std::min<std::int64_t>(threads, work.elements / kEach));
  const std::int64_t block = std::max<std::int64_t>(1, work.elements / work.blocks);
  const std::int64_t even = work.blocks / (kPiecesEach * std::max(threads, 1));
  const std::int64_t piece = std::max<std::int64_t>(1, std::min(even, kPiece / block));
  Job job{work, piece, poll, poll_context, std::this_thread::get_id(),
          std::clamp(threads, 1, kMostShares)};
  deal(job);
  if (threads > 1) {
    parallel(compute_share, &job, threads);
  } else {
    compute_share(&job);
  }
  return !job.stopped;
}

bool execute(const Nest& nest, const Program& program, const Isa& isa, char* const* data,
             int threads, bool (*poll)(void*), void* poll_context) {
  const Run run{nest, program, isa, data};
  const Work work{run_blocks, &run, nest.blocks, nest.elements, scratch_bytes(nest, program)};
  return share_out(work, threads, poll, poll_context);
}

}  // namespace zs

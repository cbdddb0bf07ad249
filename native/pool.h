// The threads. They spin before they sleep, so a hand-over takes microseconds; none is started before
// it is needed, and a forked child starts its own.
#pragma once

#include <cstdint>

namespace zs {

using Task = void (*)(void* context);

// How many threads a computation may use, the caller's included: at first ZEROSTRIDE_NUM_THREADS, or
// the processors that this process may run on.
int num_threads();
void set_num_threads(int count);  // at least 1

// Runs the task on the caller and on up to threads - 1 others, and returns when all have returned. A
// task shares its work out itself, so that it is complete however many come: where another caller has
// the pool, only this one.
void parallel(Task task, void* context, int threads);

// A buffer of this thread's own, aligned to 64 and kept for its next call. Null if there is no memory.
char* scratch(std::int64_t bytes);

}  // namespace zs

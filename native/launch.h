// Work that is shared out over threads.
#pragma once

#include <cstdint>

namespace zs {

// Blocks that may be computed in any order, on any thread.
struct Work {
  // Computes blocks first..last-1. `scratch` has scratch_bytes, aligned to 64; null where that is 0.
  void (*compute)(const void* context, std::int64_t first, std::int64_t last, char* scratch);
  const void* context;
  std::int64_t blocks;
  std::int64_t elements;  // of all blocks: how much work they are
  std::int64_t scratch_bytes;
};

// Computes all of it on up to `threads` threads; `poll` and the result are as execute's in run.h.
bool share_out(const Work& work, int threads, bool (*poll)(void*), void* poll_context);

}  // namespace zs

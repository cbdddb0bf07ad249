// Shared by the programs of random cases: numbers of one seed a case, and the loop over cases.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "../kernels.h"
#include "../nest.h"
#include "../sizes.h"

namespace {

using std::int64_t;
using zs::DType;
using zs::size_of;

inline std::mt19937_64 generator;

inline int64_t below(int64_t n) {
  return static_cast<int64_t>(generator() % static_cast<std::uint64_t>(n));
}
inline bool chance(int64_t percent) { return below(100) < percent; }
inline std::size_t as_size(int64_t i) { return static_cast<std::size_t>(i); }

// The arguments of a program: [SEED [CASES]].
struct Asked {
  Asked(int count, char** arguments, unsigned long long most)
      : seed(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1),
        cases(count > 2 ? std::strtoull(arguments[2], nullptr, 10) : most) {}

  unsigned long long seed, cases;
};

// Cases under each instruction set, until five went wrong; `streaming` percent of them store their
// outputs past the caches. agrees(seed) makes a case and says whether it was right. The status to exit
// with.
template <class Agrees>
int run_cases(const Asked& asked, const char* what, int64_t streaming, const Agrees& agrees) {
  int wrong = 0;
  for (const char* const* name = zs::available_isas(); *name; ++name) {
    if (!zs::choose_isa(*name)) return 2;
    for (unsigned long long i = 0; i < asked.cases && wrong < 5; ++i) {
      generator.seed(asked.seed + i);
      zs::stream_from(chance(streaming) ? 1 : std::numeric_limits<int64_t>::max(),
                      chance(50) ? 1 : 1024);
      wrong += !agrees(asked.seed + i);
    }
    std::printf("%s: %llu %s\n", *name, asked.cases, what);
  }
  return wrong ? 1 : 0;
}

}  // namespace

// Prints the best instruction set of this processor. CMakeLists.txt compiles and runs it.
#include <cstdio>

#include "processor.h"

int main() {
#if defined(__x86_64__)
  const zs::Processor processor;
  std::fputs(processor.avx512 ? "avx512" : processor.avx2 ? "avx2" : "baseline", stdout);
#elif defined(__aarch64__)
  std::fputs("neon", stdout);
#else
  std::fputs("baseline", stdout);
#endif
}

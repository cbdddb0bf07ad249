// Which instruction sets this processor can run.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace zs {

// The features that the processor has and the operating system saves: a register that is not saved on
// a switch of threads cannot be used.
struct Processor {
  bool avx2 = false;
  bool avx512 = false;

  Processor() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    constexpr unsigned kFma = 1u << 12, kOsxsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
    constexpr unsigned kFirst = kFma | kOsxsave | kAvx | kF16c;
    if ((c & kFirst) != kFirst || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    // XCR0: bits 1 and 2 are the xmm and ymm registers, 5 to 7 the masks and the zmm registers.
    constexpr unsigned kYmm = 0x6, kZmm = 0xe6;
    unsigned saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    constexpr unsigned kBmi = 1u << 3, kAvx2 = 1u << 5, kBmi2 = 1u << 8;
    constexpr unsigned kSecond = kBmi | kAvx2 | kBmi2;
    avx2 = (saved & kYmm) == kYmm && (b & kSecond) == kSecond;
    constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kCd = 1u << 28, kBw = 1u << 30, kVl = 1u << 31;
    constexpr unsigned kThird = kF | kDq | kCd | kBw | kVl;
    avx512 = avx2 && (saved & kZmm) == kZmm && (b & kThird) == kThird;
  }
};

}  // namespace zs
#endif

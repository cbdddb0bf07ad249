// Which of the compiled instruction sets this process computes with.
#include <strings.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace zs {

// One object set each; the build says which ones there are (ZS_SET_...).
namespace baseline { extern const Isa table; }
namespace avx2 { extern const Isa table; }
namespace avx512 { extern const Isa table; }
namespace neon { extern const Isa table; }

namespace {

#if defined(__x86_64__)
// What the processor has and the operating system saves: a register that is not saved on a switch of
// threads is no register to compute with.
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
#endif

// The sets that this processor can run, best first.
struct Usable {
  static constexpr int kMost = 4;
  const Isa* table[kMost] = {};
  const char* name[kMost + 1] = {};
  int count = 0;

  Usable() {
#if defined(__x86_64__)
    [[maybe_unused]] const Processor processor;
#endif
#if defined(ZS_SET_AVX512)
    if (processor.avx512) put(avx512::table);
#endif
#if defined(ZS_SET_AVX2)
    if (processor.avx2) put(avx2::table);
#endif
#if defined(ZS_SET_NEON)
    put(neon::table);
#endif
#if defined(ZS_SET_BASELINE)
    put(baseline::table);
#endif
  }

  void put(const Isa& set) {
    table[count] = &set;
    name[count++] = set.name;
  }

  const Isa* find(const char* wanted) const {
    for (int k = 0; k < count; ++k) {
      if (strcasecmp(name[k], wanted) == 0) return table[k];
    }
    return nullptr;
  }
};

const Usable& usable() {
  static const Usable sets;
  return sets;
}

// ZEROSTRIDE_ISA, or null where it is unset or empty.
const char* wish() {
  const char* name = std::getenv("ZEROSTRIDE_ISA");
  return name && *name ? name : nullptr;
}

const Isa* at_first() {
  const char* name = wish();
  const Isa* set = name ? usable().find(name) : nullptr;
  return set ? set : usable().table[0];
}

std::atomic<const Isa*>& chosen() {
  static std::atomic<const Isa*> set{at_first()};
  return set;
}

}  // namespace

const Isa& isa() { return *chosen().load(std::memory_order_relaxed); }

bool choose_isa(const char* name) {
  const Isa* set = usable().find(name);
  if (set) chosen().store(set, std::memory_order_relaxed);
  return set != nullptr;
}

const char* const* available_isas() { return usable().name; }

const char* refused_isa() {
  const char* name = wish();
  return name && !usable().find(name) ? name : nullptr;
}

const Kernel* find_kernel(const Isa& set, const char* op, DType dtype) {
  for (int k = 0; k < set.count; ++k) {
    const Kernel& kernel = set.kernels[k];
    if (kernel.in[kernel.inputs - 1] == dtype && std::strcmp(kernel.op, op) == 0) return &kernel;
  }
  return nullptr;
}

unsigned best_form(const Kernel& kernel, unsigned splats) {
  unsigned best = 0;
  for (unsigned form = splats; form; form = (form - 1) & splats) {
    if (kernel.form[form] && __builtin_popcount(form) > __builtin_popcount(best)) best = form;
  }
  return best;
}

}  // namespace zs

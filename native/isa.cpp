// Which of the compiled instruction sets this process computes with.
#include <strings.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "kernels.h"
#include "processor.h"

namespace zs {

// One object set each; ZS_SET_... name the built ones.
namespace baseline { extern const Isa table; }
namespace avx2 { extern const Isa table; }
namespace avx512 { extern const Isa table; }
namespace neon { extern const Isa table; }

namespace {

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

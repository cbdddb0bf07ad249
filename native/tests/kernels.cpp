// Every kernel of an instruction set on a few thousand elements, beside scalar code. Exits with 1 on a
// wrong result. It needs no Python, so it runs wherever the engine cross-compiles to.
//
//   test_kernels [INSTRUCTION SET]
//   test_kernels --list             the instruction sets that there are
//
// Prints a line for each kernel: its op, its dtype, and a checksum of its results. Kernels that are
// exact have one checksum on every processor.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.h"
#include "oracle/oracle.h"

namespace {

using namespace zs;
using Bytes = std::vector<unsigned char>;

// More than a vector of any width, several times over, and no multiple of one.
constexpr std::int64_t kElements = 4099;

int faults = 0;

void fault(const Kernel& kernel, const std::string& what) {
  std::fprintf(stderr, "%s %s: %s\n", kernel.op, kName[static_cast<int>(kernel.in[kernel.inputs - 1])],
               what.c_str());
  ++faults;
}

std::size_t bytes_of(DType dtype, std::int64_t n) {
  return static_cast<std::size_t>(kSize[static_cast<int>(dtype)] * n);
}

// A kernel's operands, and where its result goes.
struct Call {
  const Kernel* kernel;
  std::vector<Bytes> operands;
  Bytes result;

  explicit Call(const Kernel& k) : kernel(&k), result(bytes_of(k.out, kElements)) {
    for (int i = 0; i < k.inputs; ++i) operands.push_back(oracle::operand(k.in[i], i, kElements));
  }

  const void* at(int input, std::int64_t element) const {
    return operands[static_cast<std::size_t>(input)].data() + bytes_of(kernel->in[input], element);
  }

  // Elements first..first+n-1; operands of `ones` are their element `one` alone.
  Bytes run(std::int64_t first, std::int64_t n, unsigned ones = 0, std::int64_t one = 0) const {
    const void* in[kMaxInputs] = {};
    for (int i = 0; i < kernel->inputs; ++i) in[i] = at(i, (ones >> i) & 1 ? one : first);
    Bytes out(bytes_of(kernel->out, n) + 1, 0xcd);
    kernel->form[ones](in, out.data(), n);
    if (out.back() != 0xcd) fault(*kernel, "wrote past its row");
    out.pop_back();
    return out;
  }
};

bool same(const Kernel& kernel, const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && oracle::same(kernel.out, a.data(), b.data(), a.size());
}

// An element's value depends on its operands, not on where in a row it stands.
void check_positions(const Call& call) {
  const std::size_t size = bytes_of(call.kernel->out, 1);
  for (std::int64_t n = 0; n <= 70; ++n) {
    const std::int64_t first = n % 5 + 37 * n;
    const auto from = call.result.begin() + static_cast<std::ptrdiff_t>(bytes_of(call.kernel->out, first));
    const Bytes expected(from, from + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(n)));
    if (!same(*call.kernel, call.run(first, n), expected)) {
      return fault(*call.kernel, "differs in a row of " + std::to_string(n));
    }
  }
}

// An operand that is one element is a row of that element.
void check_forms(const Call& call) {
  const Kernel& kernel = *call.kernel;
  constexpr std::int64_t kSome = 203;
  for (unsigned ones = 1; ones < 1u << kernel.inputs; ++ones) {
    if (!kernel.form[ones]) continue;
    for (std::int64_t one = 0; one < kElements; one += 83) {
      Call wide = call;
      for (int i = 0; i < kernel.inputs; ++i) {
        if (!((ones >> i) & 1)) continue;
        const std::size_t size = bytes_of(kernel.in[i], 1);
        auto* row = wide.operands[static_cast<std::size_t>(i)].data();
        for (std::size_t k = 0; k < kSome; ++k) std::memcpy(row + k * size, call.at(i, one), size);
      }
      if (!same(kernel, call.run(0, kSome, ones, one), wide.run(0, kSome))) {
        return fault(kernel, "form " + std::to_string(ones) + " differs from the row's");
      }
    }
  }
}

// The result may take the place of an operand.
void check_in_place(const Call& call) {
  const Kernel& kernel = *call.kernel;
  for (int i = 0; i < kernel.inputs; ++i) {
    if (bytes_of(kernel.in[i], 1) != bytes_of(kernel.out, 1)) continue;
    Call again = call;
    Bytes& place = again.operands[static_cast<std::size_t>(i)];
    const void* in[kMaxInputs] = {};
    for (int k = 0; k < kernel.inputs; ++k) in[k] = again.at(k, 0);
    kernel.form[0](in, place.data(), kElements);
    if (!same(kernel, place, call.result)) fault(kernel, "differs in the place of an operand");
  }
}

// The values themselves, where the oracle knows the op. False if it does not.
bool check_values(const Call& call) {
  const Kernel& kernel = *call.kernel;
  for (std::int64_t k = 0; k < kElements; ++k) {
    const void* in[kMaxInputs] = {};
    for (int i = 0; i < kernel.inputs; ++i) in[i] = call.at(i, k);
    std::string wrong;
    if (!oracle::check(kernel, in, call.result.data() + bytes_of(kernel.out, k), wrong)) return false;
    if (!wrong.empty()) {
      fault(kernel, wrong);
      return true;
    }
  }
  return true;
}

std::uint64_t checksum(const Call& call) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const unsigned char byte : oracle::canonical(call.kernel->out, call.result)) {
    hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}

void check_conversions(const Isa& set) {
  for (int from = 0; from < kDTypes; ++from) {
    for (int to = 0; to < kDTypes; ++to) {
      const Kernel kernel{"convert", 1, {static_cast<DType>(from)}, static_cast<DType>(to),
                          {set.convert[from][to]}};
      if (!kernel.form[0]) continue;
      Call call(kernel);
      call.result = call.run(0, kElements);
      if (!check_values(call)) fault(kernel, "the oracle knows no conversion");
      check_positions(call);
      std::printf("convert %s-%s %016" PRIx64 "\n", kName[from], kName[to], checksum(call));
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && std::strcmp(words[1], "--list") == 0) {
    for (const char* const* name = available_isas(); *name; ++name) std::puts(*name);
    return 0;
  }
  if (count > 1 && !choose_isa(words[1])) {
    std::fprintf(stderr, "no instruction set %s here\n", words[1]);
    return 2;
  }
  int known = 0;
  const Isa& set = isa();
  for (int k = 0; k < set.count; ++k) {
    const Kernel& kernel = set.kernels[k];
    Call call(kernel);
    call.result = call.run(0, kElements);
    known += check_values(call);
    check_positions(call);
    check_forms(call);
    check_in_place(call);
    std::printf("%s %s %016" PRIx64 "\n", kernel.op,
                kName[static_cast<int>(kernel.in[kernel.inputs - 1])], checksum(call));
  }
  check_conversions(set);
  std::fprintf(stderr, "%s: %d kernels, %d of them beside scalar code, %d faults\n", set.name, set.count,
               known, faults);
  return faults ? 1 : 0;
}

// The program of one kernel where the kernel lacks forms, and a computation that is stopped.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "../run.h"

namespace {

using std::int64_t;

int wrong = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}

// a - 2 b + 3 c on rows; kOnes as a kernel's form.
template <unsigned kOnes>
void combine_row(const void* const* in, void* out, int64_t n) {
  const auto* a = static_cast<const double*>(in[0]);
  const auto* b = static_cast<const double*>(in[1]);
  const auto* c = static_cast<const double*>(in[2]);
  auto* result = static_cast<double*>(out);
  for (int64_t i = 0; i < n; ++i) {
    result[i] = a[kOnes & 1 ? 0 : i] - 2 * b[kOnes & 2 ? 0 : i] + 3 * c[kOnes & 4 ? 0 : i];
  }
}

void test_widening() {
  using zs::DType;
  const zs::Row forms[] = {combine_row<0>, combine_row<1>, combine_row<2>, combine_row<3>,
                           combine_row<4>, combine_row<5>, combine_row<6>};
  std::vector<double> operand[3];
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 3000; ++i) operand[k].push_back(i % (17 + k) + k);
  }
  // With every choice of forms that a kernel may have, and every choice of splats.
  for (unsigned present = 0; present < 64; ++present) {
    zs::Kernel kernel{"combine", 3, {DType::F64, DType::F64, DType::F64}, DType::F64, {forms[0]}};
    for (unsigned form = 1; form < 7; ++form) {
      if (present >> (form - 1) & 1) kernel.form[form] = forms[form];
    }
    const DType memory[] = {DType::F64, DType::F64, DType::F64, DType::F64};
    zs::Program program;
    zs::program_of(program, kernel, memory);
    std::vector<double> scratch(static_cast<std::size_t>(program.body_scratch) / sizeof(double));
    for (unsigned splats = 0; splats < 8; ++splats) {
      for (const int64_t n : {1, 2, 511, 512, 513, 3000}) {
        std::vector<double> out(static_cast<std::size_t>(n) + 1, -1);
        const void* in[] = {operand[0].data(), operand[1].data(), operand[2].data()};
        void* outs[] = {out.data()};
        program.body(zs::isa(), program.context, in, splats, outs, n,
                     reinterpret_cast<char*>(scratch.data()));
        bool right = out[static_cast<std::size_t>(n)] == -1;
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
          const double a = operand[0][splats & 1 ? 0 : i], b = operand[1][splats & 2 ? 0 : i],
                       c = operand[2][splats & 4 ? 0 : i];
          right &= out[i] == a - 2 * b + 3 * c;
        }
        expect(right, "an operand that is widened");
      }
    }
  }
}

std::atomic<int64_t> rows_computed{0};

void slow_body(const zs::Isa&, const void*, const void* const*, unsigned, void* const*, int64_t,
               char*) {
  ++rows_computed;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool stop(void* context) {
  ++*static_cast<int*>(context);
  return false;
}

bool go_on(void* context) {
  ++*static_cast<int*>(context);
  return true;
}

void test_poll() {
  const int64_t shape[] = {int64_t{1} << 20}, strides[] = {1};
  std::vector<char> memory(1 << 20);
  const zs::Layout layouts[] = {{strides, 1, true}, {strides, 1, true}};
  zs::Nest nest;
  zs::build(nest, 1, shape, 1, 2, layouts);
  zs::Program program{};
  program.inputs = program.outputs = 1;
  program.memory[0] = program.memory[1] = program.compute[0] = program.compute[1] = zs::DType::I8;
  program.body = slow_body;
  char* data[] = {memory.data(), memory.data()};
  for (const int threads : {1, 2}) {
    int polls = 0;
    rows_computed = 0;
    expect(!zs::execute(nest, program, zs::isa(), data, threads, stop, &polls), "a stop is told");
    expect(polls == 1, "a stopped computation polls no more");
    expect(rows_computed < nest.blocks, "a stopped computation ends early");
    polls = 0;
    rows_computed = 0;
    expect(zs::execute(nest, program, zs::isa(), data, threads, go_on, &polls),
           "no stop, complete");
    expect(polls >= 1, "a long computation polls");
    expect(rows_computed == nest.blocks, "each block once");
  }
}

}  // namespace

int main() {
  test_widening();
  test_poll();
  return wrong ? 1 : 0;
}

// Everything that one instruction set computes, as data: nothing runs to set it up, so a processor
// without the set may hold it.
#include "activations.h"
#include "arithmetic.h"
#include "bits.h"
#include "chain.h"
#include "comparison.h"
#include "convert.h"
#include "elementary.h"
#include "float_division.h"
#include "fold.h"
#include "integer_division.h"
#include "power.h"
#include "rounding.h"
#include "select.h"
#include "sixteen.h"

namespace zs {

struct Nest;
struct Program;
struct FoldNest;

namespace ZS_ISA {

// In run.cpp.
void run(const Nest& nest, const Program& program, char* const* data, int64_t first, int64_t last,
         char* scratch);
// In run_folds.cpp.
void run_folds(const FoldNest& folds, char* const* data, int64_t first, int64_t last, char* parts,
               char* scratch);
void join_folds(const FoldNest& folds, char* const* data, char* parts, char* scratch);

namespace {

constexpr auto kKernels =
    join(arithmetic(), integer_division(), float_division(), power(), comparison(), logic(), bits(),
         rounding(), elementary(), elementary_of_two(), activations(), select(), sixteen());
constexpr Conversions kConversions = conversions();

#define ZS_TEXT(name) #name
#define ZS_TEXT_OF(name) ZS_TEXT(name)

constexpr Isa make_table() {
  Isa isa{};
  isa.name = ZS_TEXT_OF(ZS_ISA);
  isa.kernels = kKernels.row;
  isa.count = kKernels.kCount;
  for (int from = 0; from < kDTypes; ++from) {
    for (int to = 0; to < kDTypes; ++to) isa.convert[from][to] = kConversions.row[from][to];
  }
  isa.fill[0] = fill_row<uint8_t>;
  isa.fill[1] = fill_row<uint16_t>;
  isa.fill[2] = fill_row<uint32_t>;
  isa.fill[3] = fill_row<uint64_t>;
  const auto chain = [&](DType dtype, Chain row) { isa.chain[static_cast<int>(dtype)] = row; };
  chain(DType::F32, chain_floats);
  chain(DType::F64, chain_doubles);
  chain(DType::I32, chain_words);
  chain(DType::U32, chain_words);
  chain(DType::I64, chain_longs);
  chain(DType::U64, chain_longs);
  isa.run = run;
  isa.fold = folders.row;
  isa.run_folds = run_folds;
  isa.join_folds = join_folds;
  return isa;
}

}  // namespace

extern constexpr Isa table = make_table();

}  // namespace ZS_ISA
}  // namespace zs

// Chains of cheap kernels: one pass over their rows, a value in registers all the way.
#pragma once

#include "kernels.h"
#include "types.h"

namespace zs::ZS_ISA {

void chain_floats(const ChainLink* links, int count, int64_t n);
void chain_doubles(const ChainLink* links, int count, int64_t n);
void chain_words(const ChainLink* links, int count, int64_t n);
void chain_longs(const ChainLink* links, int count, int64_t n);

}  // namespace zs::ZS_ISA

#include "bits.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto bits_rows = bits();

}  // namespace zs::ZS_ISA

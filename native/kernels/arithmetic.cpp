#include "arithmetic.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto arithmetic_rows = arithmetic();

}  // namespace zs::ZS_ISA

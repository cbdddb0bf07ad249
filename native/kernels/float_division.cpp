#include "float_division.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto float_division_rows = float_division();

}  // namespace zs::ZS_ISA

#include "integer_division.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto integer_division_rows = integer_division();

}  // namespace zs::ZS_ISA

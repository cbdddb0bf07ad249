#include "rounding.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto rounding_rows = rounding();

}  // namespace zs::ZS_ISA

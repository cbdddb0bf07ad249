#include "comparison.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto comparison_rows = comparison();

}  // namespace zs::ZS_ISA

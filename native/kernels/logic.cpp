#include "comparison.h"
#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto logic_rows = logic();

}  // namespace zs::ZS_ISA

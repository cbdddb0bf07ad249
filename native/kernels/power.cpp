#include "power.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto power_rows = power();

}  // namespace zs::ZS_ISA

#include "sixteen.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto sixteen_rows = sixteen();

}  // namespace zs::ZS_ISA

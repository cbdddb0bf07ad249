#include "select.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto select_rows = select();

}  // namespace zs::ZS_ISA

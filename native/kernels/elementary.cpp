#include "elementary.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto elementary_rows = elementary();

}  // namespace zs::ZS_ISA

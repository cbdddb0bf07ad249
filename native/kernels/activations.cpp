#include "activations.h"

#include "rows.h"

namespace zs::ZS_ISA {

// Compiles the functions that table.cpp has the addresses of.
extern constexpr auto activations_rows = activations();

}  // namespace zs::ZS_ISA

// The compiled and the wanted machine code of phases. Bodies use compiled code if it exists.
#pragma once

#include <vector>

#include "program.h"

namespace zs {

// The entry of a wanted body; makes an entry without code if there was none.
Machine machine_for(const Phase& phase, const Machine& wanted);

// The compiled and the wanted code of a phase. Any thread may call these.
std::vector<Machine> machines_of(const Phase& phase);
// Bodies made from now on run `code`, which must stay in place. False if the body is not wanted.
bool install(const Phase& phase, const Machine& machine);

}  // namespace zs

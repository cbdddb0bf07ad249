// The machine code that there is of phases, and that is wanted: bodies are made of it where there is some.
#pragma once

#include <vector>

#include "program.h"

namespace zs {

// What is known of a body that is wanted; it is wanted from now on, and has no code, where nothing was.
Machine machine_for(const Phase& phase, const Machine& wanted);

// What is compiled of a phase, and what is wanted. Any thread may ask.
std::vector<Machine> machines_of(const Phase& phase);
// Bodies made from now on run `code`, which stays where it is. False if nobody wants it.
bool install(const Phase& phase, const Machine& machine);

}  // namespace zs

// Strict mode (core/strict_mode.py): calls within it are Python's, which looks at their plans.
#pragma once

#include "python.h"

#include <atomic>

namespace zs {

// The number of strict contexts that may still be in force; see core/strict_mode.py.
extern std::atomic<long> strict_contexts;

// Whether this thread, or this asynchronous task, is in one.
bool in_strict_context();

// Whether a call is to be left to Python. Outside strict mode that is one load.
inline bool leaves_to_python() {
  return strict_contexts.load(std::memory_order_relaxed) != 0 && in_strict_context();
}

// Adds watch_context(variable) and hold_context(count) to the module. Negative with an error set if
// that fails.
int add_strictness(PyObject* module);

}  // namespace zs

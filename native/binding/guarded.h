// C++ under Python's C frames, which an exception must not cross.
#pragma once

#include "python.h"

#include <new>
#include <type_traits>

namespace zs {

// The result of a function; if memory ran out, null or -1 with an error set. The lock is held.
template <class Function>
auto guarded(const Function& function) -> decltype(function()) {
  using Result = decltype(function());
  try {
    return function();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return -1;
  }
}

}  // namespace zs

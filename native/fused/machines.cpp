#include "machines.h"

#include <mutex>

namespace zs {
namespace {

std::mutex machines_lock;
// A phase has few layouts. For callers with more layouts compiling does not pay.
constexpr std::size_t kMostMachines = 16;

bool is_same(const Machine& a, const Machine& b) {
  return a.isa == b.isa && a.splats == b.splats && a.results == b.results &&
         a.streamed == b.streamed && a.row == b.row;
}

Machine* find(const Phase& phase, const Machine& wanted) {
  for (Machine& one : phase.machines) {
    if (is_same(one, wanted)) return &one;
  }
  return nullptr;
}

}  // namespace

Machine machine_for(const Phase& phase, const Machine& wanted) {
  const std::lock_guard<std::mutex> guard(machines_lock);
  const Machine* known = find(phase, wanted);
  if (known) return *known;
  if (phase.machines.size() < kMostMachines) phase.machines.push_back(wanted);
  return wanted;
}

std::vector<Machine> machines_of(const Phase& phase) {
  const std::lock_guard<std::mutex> guard(machines_lock);
  return phase.machines;
}

bool install(const Phase& phase, const Machine& machine) {
  const std::lock_guard<std::mutex> guard(machines_lock);
  Machine* wanted = find(phase, machine);
  if (wanted) *wanted = machine;
  return wanted != nullptr;
}

}  // namespace zs

#include "execute.h"

#include <cstdlib>

#include "elementwise.h"

namespace zs {

struct Prepared {
  const FusedProgram& program;
  const Isa& isa;
  std::vector<std::unique_ptr<Elementwise>> phases;  // null: nothing to compute
  std::vector<std::vector<std::int64_t>> strides;    // of temporaries, by slot
};

namespace {

constexpr std::int64_t kLine = 64;

bool is_empty(const Phase& phase) {
  for (int axis = 0; axis < phase.rank; ++axis) {
    if (phase.shape[axis] == 0) return true;
  }
  return false;
}

// The strides of a temporary, in C order. Returns its bytes.
std::int64_t lay_out(const Slot& slot, std::int64_t* strides) {
  std::int64_t bytes = kSize[static_cast<int>(slot.dtype)];
  for (int axis = slot.rank - 1; axis >= 0; --axis) {
    strides[axis] = bytes;
    bytes *= slot.shape[axis];
  }
  return bytes;
}

// Memory of temporaries, all in one.
class Temporaries {
 public:
  explicit Temporaries(const Prepared& prepared) {
    const auto& slots = prepared.program.slots;
    std::int64_t bytes = 0;
    for (const Slot& slot : slots) {
      std::int64_t strides[kMaxAxes];
      begin_.push_back(bytes);
      if (slot.kind != SlotKind::Temp) continue;
      bytes += (lay_out(slot, strides) + kLine - 1) / kLine * kLine;
    }
    if (bytes) memory_ = static_cast<char*>(std::aligned_alloc(kLine, static_cast<std::size_t>(bytes)));
    failed_ = bytes && !memory_;
  }
  ~Temporaries() { std::free(memory_); }
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;

  bool failed() const { return failed_; }
  char* of(std::size_t slot) const { return memory_ + begin_[slot]; }

 private:
  std::vector<std::int64_t> begin_;
  char* memory_ = nullptr;
  bool failed_ = false;
};

std::vector<Spot> with_temporaries(const Prepared& prepared, const Spot* spots,
                                   const Temporaries* temporaries) {
  const auto& slots = prepared.program.slots;
  std::vector<Spot> all(spots, spots + slots.size());
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].kind != SlotKind::Temp) continue;
    all[s] = {temporaries ? temporaries->of(s) : nullptr, prepared.strides[s].data(), true};
  }
  return all;
}

}  // namespace

void DeletePrepared::operator()(const Prepared* prepared) const { delete prepared; }

PreparedPointer prepare(const FusedProgram& program, const Spot* spots, const Isa& isa) {
  std::unique_ptr<Prepared> made(new Prepared{program, isa, {}, {}});
  for (const Slot& slot : program.slots) {
    made->strides.emplace_back(static_cast<std::size_t>(slot.rank));
    lay_out(slot, made->strides.back().data());
  }
  const std::vector<Spot> all = with_temporaries(*made, spots, nullptr);
  for (const Phase& phase : program.phases) {
    made->phases.emplace_back(is_empty(phase) ? nullptr : new Elementwise);
    if (made->phases.back()) prepare(*made->phases.back(), program, phase, all.data(), isa);
  }
  return PreparedPointer(made.release());
}

bool execute(const Prepared& prepared, const Spot* spots, int threads, bool (*poll)(void*),
             void* poll_context) {
  const auto& phases = prepared.program.phases;
  if (phases.size() == 1) {  // no temporaries
    return !prepared.phases[0] || execute(*prepared.phases[0], phases[0], spots, prepared.isa,
                                          threads, poll, poll_context);
  }
  const Temporaries temporaries(prepared);
  if (temporaries.failed()) return false;
  const std::vector<Spot> all = with_temporaries(prepared, spots, &temporaries);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (prepared.phases[i] && !execute(*prepared.phases[i], phases[i], all.data(), prepared.isa,
                                       threads, poll, poll_context)) {
      return false;
    }
  }
  return true;
}

bool execute(const FusedProgram& program, const Spot* spots, const Isa& isa, int threads,
             bool (*poll)(void*), void* poll_context) {
  return execute(*prepare(program, spots, isa), spots, threads, poll, poll_context);
}

}  // namespace zs

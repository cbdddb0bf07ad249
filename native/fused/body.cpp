#include "body.h"

#include <algorithm>
#include <cstring>

#include "../shared_limits.h"
#include "../sizes.h"
#include "machines.h"

namespace zs {
namespace {

// Elements of a block, and the bytes that all of its rows may take: they stay in a first cache of
// 32 KB and more.
constexpr std::int64_t kMostBlock = limits::kMostBlock;
constexpr std::int64_t kLeastBlock = limits::kLeastBlock;
constexpr std::int64_t kBlockBytes = limits::kBlockBytes;
constexpr int kNowhere = -1;

Row convert(const Isa& isa, DType from, DType to) {
  return isa.convert[static_cast<int>(from)][static_cast<int>(to)];
}

Row fill(const Isa& isa, DType dtype) {
  return isa.fill[__builtin_ctz(static_cast<unsigned>(size_of(dtype)))];
}

// The facts of a value in interpret().
struct Value {
  DType dtype;
  bool splat;
  bool needed = false;
  int last_use = kNowhere;  // the last step that reads it; all of them, if it stays
  int place = kNowhere;     // where it lies
  int wide = kNowhere;      // a splat: where it lies as a row, if somewhere
};

// The links of each kernel, by the operand that holds the value. Shifts are by one count.
struct LinkRow {
  const char* op;
  Link first, second;
  bool floats, integers;
};
constexpr Link kNoLink = Link::Load;
constexpr LinkRow kLinks[] = {
    {"add", Link::Add, Link::Add, true, true},
    {"subtract", Link::Subtract, Link::SubtractFrom, true, true},
    {"multiply", Link::Multiply, Link::Multiply, true, true},
    {"divide", Link::Divide, Link::DivideInto, true, false},
    {"maximum", Link::Maximum, Link::MaximumOf, true, false},
    {"minimum", Link::Minimum, Link::MinimumOf, true, false},
    {"squared_difference", Link::SquaredDifference, Link::SquaredDifference, true, true},
    {"square", Link::Multiply, kNoLink, true, true},
    {"negative", Link::Negative, kNoLink, true, true},
    {"abs", Link::Abs, kNoLink, true, false},
    {"relu", Link::Relu, kNoLink, true, false},
    {"reciprocal", Link::Reciprocal, kNoLink, true, false},
    {"bitwise_and", Link::And, Link::And, false, true},
    {"bitwise_or", Link::Or, Link::Or, false, true},
    {"bitwise_xor", Link::Xor, Link::Xor, false, true},
    {"bitwise_left_shift", Link::ShiftLeft, kNoLink, false, true},
    {"bitwise_right_shift", Link::ShiftRight, kNoLink, false, true},
};
// Links of one chain, at most.
constexpr int kMostLinks = 48;

bool is_shift(Link link) { return link == Link::ShiftLeft || link == Link::ShiftRight; }

// The row for a step whose arguments `splats` (a bit each) are one element; or null.
const LinkRow* links_of(const Step& step, unsigned splats) {
  if (step.op == nullptr || step.args > 2) return nullptr;
  const DType dtype = step.dtype[step.args];
  const bool real = dtype == DType::F32 || dtype == DType::F64;
  for (int i = 0; i < step.args; ++i) {
    if (step.dtype[i] != dtype) return nullptr;
  }
  for (const LinkRow& row : kLinks) {
    if (std::strcmp(row.op, step.op) != 0) continue;
    if (!(real ? row.floats : row.integers)) return nullptr;
    return is_shift(row.first) && splats != 2 ? nullptr : &row;
  }
  return nullptr;
}

class Compiler {
 public:
  Compiler(Body& body, const Phase& phase, const Isa& isa, unsigned splats)
      : body_(body), phase_(phase), isa_(isa), loads_(static_cast<int>(phase.loads.size())) {
    collect(splats);
  }

  void compile(const int* results, int count) {
    mark(results, count);
    place_operands(results, count);
    for (int s = 0; s < static_cast<int>(phase_.steps.size()); ++s) {
      if (values_[first_step() + index(s)].needed) add_step(s);
    }
    for (int j = 0; j < count; ++j) deliver(results[j], loads_ + j);
    chain();
    lay_out();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t first_step() const { return phase_.loads.size() + phase_.literals.size(); }
  Value& value(int number) { return values_[index(number)]; }

  void collect(unsigned splats) {
    for (const Load& load : phase_.loads) {
      values_.push_back({load.dtype, (splats >> values_.size() & 1) != 0});
    }
    for (const Literal& literal : phase_.literals) values_.push_back({literal.dtype, true});
    for (const Step& step : phase_.steps) {
      bool splat = true;
      for (int i = 0; i < step.args; ++i) splat &= value(step.arg[i]).splat;
      values_.push_back({step.dtype[step.args], splat});
    }
  }

  // The values that the results need, and their last use.
  void mark(const int* results, int count) {
    for (int j = 0; j < count; ++j) {
      value(results[j]).needed = true;
      value(results[j]).last_use = static_cast<int>(phase_.steps.size());
    }
    for (int s = static_cast<int>(phase_.steps.size()) - 1; s >= 0; --s) {
      if (!values_[first_step() + index(s)].needed) continue;
      const Step& step = phase_.steps[index(s)];
      for (int i = 0; i < step.args; ++i) {
        Value& arg = value(step.arg[i]);
        arg.needed = true;
        arg.last_use = std::max(arg.last_use, s);
      }
    }
  }

  void place_operands(const int* results, int count) {
    for (int k = 0; k < loads_; ++k) {
      value(k).place = k;
      if (!value(k).splat) body_.moving.push_back({k, size_of(value(k).dtype)});
    }
    body_.outputs = count;
    body_.operands = loads_ + count;
    for (int j = 0; j < count; ++j) {
      Value& result = value(results[j]);
      body_.moving.push_back({loads_ + j, size_of(result.dtype)});
      const bool computed = index(results[j]) >= first_step() && !result.splat;
      if (computed && result.place == kNowhere) result.place = loads_ + j;
    }
    next_place_ = body_.operands;
  }

  void add_step(int s) {
    const Step& step = phase_.steps[index(s)];
    Value& result = values_[first_step() + index(s)];
    Instruction made{};
    unsigned splats = 0;
    for (int i = 0; i < step.args; ++i) {
      made.in[i] = place_of(step.arg[i]);
      splats |= static_cast<unsigned>(value(step.arg[i]).splat) << i;
    }
    if (step.op == nullptr) {
      made.row = convert(isa_, step.dtype[0], step.dtype[1]);
    } else {
      const Kernel& kernel = *kernel_of(isa_, step);
      const unsigned form = result.splat ? 0 : best_form(kernel, splats);
      made.row = kernel.form[form];
      for (int i = 0; i < step.args && !result.splat; ++i) {
        if ((splats & ~form) >> i & 1) made.in[i] = widened(step.arg[i]);
      }
    }
    if (result.splat) {
      made.out = result.place = add_cell();
      body_.cells.push_back(made);
      return;
    }
    // The result may use the buffer of an operand without further readers, if the sizes are equal.
    const std::int64_t size = size_of(result.dtype);
    for (int i = 0; i < step.args; ++i) {
      if (size_of(step.dtype[i]) == size) release(step.arg[i], s);
    }
    if (result.place == kNowhere) result.place = take_register(size);
    for (int i = 0; i < step.args; ++i) {
      if (size_of(step.dtype[i]) != size) release(step.arg[i], s);
    }
    made.out = result.place;
    body_.each.push_back(made);
    const Chain run = isa_.chain[static_cast<int>(result.dtype)];
    const LinkRow* links = run ? links_of(step, splats) : nullptr;
    candidates_.push_back({links, run, result.dtype, step.args, splats});
  }

  // The chain links of `each`'s instructions; instructions without a row have none.
  struct Candidate {
    const LinkRow* links;
    Chain run;
    DType dtype;
    int args;
    unsigned splats;
  };

  // Makes chains of instructions that follow one another and hand a value on.
  void chain() {
    candidates_.resize(body_.each.size());
    std::vector<Instruction> all;
    all.swap(body_.each);
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      while (candidates_[i].links && end < all.size() && follows(all, end) &&
             static_cast<int>(end - i) * 2 < kMostLinks - 4) {
        ++end;
      }
      if (end == i + 1) {
        body_.each.push_back(all[i]);
      } else {
        body_.each.push_back(linked(all, i, end));
      }
      i = end;
    }
  }

  // Whether instruction `i` goes on with the value of the one before it.
  bool follows(const std::vector<Instruction>& all, std::size_t i) const {
    const Candidate& one = candidates_[i];
    if (!one.links || one.dtype != candidates_[i - 1].dtype) return false;
    const int value = all[i - 1].out;
    return all[i].in[0] == value ||
           (one.args == 2 && one.links->second != kNoLink && all[i].in[1] == value);
  }

  // Instructions begin..end-1 as a chain.
  Instruction linked(const std::vector<Instruction>& all, std::size_t begin, std::size_t end) {
    Instruction made{};
    made.chain = candidates_[begin].run;
    made.first = static_cast<int>(body_.links.size());
    // The first one's value is a row, if the other operand can be the other one.
    const bool turned = (candidates_[begin].splats & 1) != 0;
    int value = all[begin].in[turned ? 1 : 0];
    body_.links.push_back({Link::Load, Other::Each, value});
    for (std::size_t i = begin; i < end; ++i) {
      add_link(all[i], candidates_[i], value);
      value = all[i].out;
      if (i + 1 == end || is_read(all, i + 1, value)) {
        body_.links.push_back({Link::Store, Other::Each, value});
      }
    }
    made.count = static_cast<int>(body_.links.size()) - made.first;
    return made;
  }

  // The effect of an instruction on the value at a place.
  void add_link(const Instruction& one, const Candidate& candidate, int value) {
    const bool first = one.in[0] == value;
    Link link = first ? candidate.links->first : candidate.links->second;
    const bool is_signed = candidate.dtype == DType::I32 || candidate.dtype == DType::I64;
    if (link == Link::ShiftRight && is_signed) link = Link::ShiftRightSigned;
    const int other = one.in[first ? 1 : 0];
    if (candidate.args == 1 || other == value) {
      body_.links.push_back({link, Other::Self, value});
      return;
    }
    const bool is_one = (candidate.splats >> (first ? 1 : 0) & 1) != 0;
    body_.links.push_back({link, is_one ? Other::One : Other::Each, other});
  }

  // Whether an instruction after `i`, or the caller, reads the value at a place. Instruction `i` reads it, too.
  bool is_read(const std::vector<Instruction>& all, std::size_t i, int at) const {
    if (at < body_.operands) return true;
    for (std::size_t k = i; k < all.size(); ++k) {
      for (int a = 0; a < kMaxInputs && k > i; ++a) {
        if (all[k].in[a] == at) return true;
      }
      if (all[k].out == at) return false;
    }
    return false;
  }

  // Result `number` as the output at `place`, unless it is computed there.
  void deliver(int number, int place) {
    const Value& result = value(number);
    const int from = place_of(number);
    if (from == place) return;
    const Row row = result.splat ? fill(isa_, result.dtype)
                                 : convert(isa_, result.dtype, result.dtype);
    body_.each.push_back({row, {from}, place});
  }

  int place_of(int number) {
    Value& one = value(number);
    if (one.place != kNowhere) return one.place;
    const Literal& literal = phase_.literals[index(number - loads_)];
    body_.literals.push_back(literal);
    literal_places_.push_back(one.place = next_place_++);
    return one.place;
  }

  int add_cell() {
    cells_.push_back(next_place_);
    return next_place_++;
  }

  // The row of a splat. It keeps its register: it is filled once for all blocks.
  int widened(int number) {
    Value& one = value(number);
    if (one.wide == kNowhere) {
      one.wide = add_register(size_of(one.dtype));
      body_.wide.push_back({fill(isa_, one.dtype), {place_of(number)}, one.wide});
    }
    return one.wide;
  }

  struct Register {
    int place;
    std::int64_t size;  // bytes of its widest element
    bool free;
  };

  int add_register(std::int64_t size) {
    registers_.push_back({next_place_, size, false});
    return next_place_++;
  }

  // The free register that fits best.
  int take_register(std::int64_t size) {
    Register* best = nullptr;
    for (Register& one : registers_) {
      if (one.free && (!best || distance(one, size) < distance(*best, size))) best = &one;
    }
    if (best == nullptr) return add_register(size);
    best->free = false;
    best->size = std::max(best->size, size);
    return best->place;
  }

  static std::int64_t distance(const Register& one, std::int64_t size) {
    return one.size < size ? size - one.size : one.size - size;
  }

  // Frees the register of a value that step s reads last.
  void release(int number, int s) {
    const Value& one = value(number);
    if (one.last_use != s || one.splat) return;
    for (Register& each : registers_) each.free |= each.place == one.place;
  }

  // Puts places into an order (those in scratch, then the literals), and chooses the block.
  void lay_out() {
    std::int64_t element = 0;  // bytes of all rows' elements
    for (const Moving& row : body_.moving) element += row.size;
    for (const Register& one : registers_) element += one.size;
    const std::int64_t fits = kBlockBytes / std::max<std::int64_t>(element, 1) / kLine * kLine;
    body_.block = std::clamp(fits, kLeastBlock, kMostBlock);

    std::vector<int> renamed(index(next_place_));
    for (int p = 0; p < body_.operands; ++p) renamed[index(p)] = p;
    int next = body_.operands;
    std::int64_t at = aligned(next_place_ * static_cast<std::int64_t>(sizeof(void*)));
    for (const int place : cells_) {
      renamed[index(place)] = next++;
      body_.offset.push_back(at);
      at += kWidest;  // a cell has room for any element
    }
    at = aligned(at);
    for (const Register& one : registers_) {
      renamed[index(one.place)] = next++;
      body_.offset.push_back(at);
      // A line more: rows that lie 4 KB apart are in each other's way.
      at += aligned(body_.block * one.size) + kLine;
    }
    for (const int place : literal_places_) renamed[index(place)] = next++;
    body_.scratch_bytes = at;
    for (auto* list : {&body_.cells, &body_.wide, &body_.each}) {
      for (Instruction& one : *list) {
        for (int& place : one.in) place = renamed[index(place)];
        one.out = renamed[index(one.out)];
      }
    }
    for (PlacedLink& link : body_.links) link.place = renamed[index(link.place)];
  }

  Body& body_;
  const Phase& phase_;
  const Isa& isa_;
  int loads_;
  std::vector<Value> values_;
  std::vector<Candidate> candidates_;
  std::vector<Register> registers_;
  std::vector<int> cells_, literal_places_;
  int next_place_ = 0;
};

void run_chain(const Body& body, const Instruction& one, char* const* at, std::int64_t n) {
  ChainLink links[kMostLinks];
  const PlacedLink* placed = body.links.data() + one.first;
  for (int i = 0; i < one.count; ++i) links[i] = {placed[i].link, placed[i].other, at[placed[i].place]};
  one.chain(links, one.count, n);
}

void run_all(const Body& body, const std::vector<Instruction>& instructions, char* const* at,
             std::int64_t n) {
  for (const Instruction& one : instructions) {
    if (one.chain) {
      run_chain(body, one, at, n);
      continue;
    }
    const void* const in[kMaxInputs] = {at[one.in[0]], at[one.in[1]], at[one.in[2]]};
    one.row(in, at[one.out], n);
  }
}

// Blocks of about one size for n elements.
std::int64_t even_block(std::int64_t n, std::int64_t most) {
  if (n <= most) return n;
  const std::int64_t count = (n + most - 1) / most;
  return aligned((n + count - 1) / count);
}

}  // namespace

const Kernel* kernel_of(const Isa& isa, const Step& step) {
  const Kernel* kernel = find_kernel(isa, step.op, step.dtype[step.args - 1]);
  if (kernel == nullptr || kernel->inputs != step.args || kernel->out != step.dtype[step.args]) {
    return nullptr;
  }
  for (int i = 0; i < step.args; ++i) {
    if (kernel->in[i] != step.dtype[i]) return nullptr;
  }
  return kernel;
}

DType dtype_of(const Phase& phase, int value) {
  auto rest = static_cast<std::size_t>(value);
  if (rest < phase.loads.size()) return phase.loads[rest].dtype;
  rest -= phase.loads.size();
  if (rest < phase.literals.size()) return phase.literals[rest].dtype;
  const Step& step = phase.steps[rest - phase.literals.size()];
  return step.dtype[step.args];
}

bool take_code(Body& body, const Phase& phase, const int* results, int count, const Isa& isa,
               unsigned splats, bool streamed, int row) {
  const Machine known =
      machine_for(phase, {&isa, splats, {results, results + count}, streamed, row, nullptr, 0, false});
  if (known.code == nullptr) return false;
  body = Body{};
  body.code = known.code;
  body.past = known.past;
  body.scratch_bytes = aligned(known.scratch);
  return true;
}

void interpret(Body& body, const Phase& phase, const int* results, int count, const Isa& isa,
               unsigned splats) {
  body = Body{};
  Compiler(body, phase, isa, splats).compile(results, count);
}

void run_rows(const void* context, const void* const* in, void* const* out, std::int64_t n,
              char* scratch, std::int64_t rows, const std::int64_t* steps, bool past) {
  static_cast<const Body*>(context)->code(in, out, n, scratch, rows, steps, past);
}

void run_body(const Isa&, const void* context, const void* const* in, unsigned, void* const* out,
              std::int64_t n, char* scratch) {
  const Body& body = *static_cast<const Body*>(context);
  if (body.code) return body.code(in, out, n, scratch, 1, nullptr, 0);
  char** const at = reinterpret_cast<char**>(scratch);
  const int inputs = body.operands - body.outputs;
  char** next = at;
  // One at a time: what was stored one at a time is not to be had in pairs until it is in the cache, and
  // before it there may be stores to memory. (Measured: a seventh of a normalisation's time.)
  for (int k = 0; k < inputs; ++k) {
    *next++ = static_cast<char*>(const_cast<void*>(in[k]));
    __asm__ volatile("");
  }
  for (int j = 0; j < body.outputs; ++j) *next++ = static_cast<char*>(out[j]);
  for (const std::int64_t offset : body.offset) *next++ = scratch + offset;
  for (const Literal& literal : body.literals) *next++ = const_cast<char*>(literal.bytes);
  run_all(body, body.cells, at, 1);
  const std::int64_t block = even_block(n, body.block);
  run_all(body, body.wide, at, block);
  for (std::int64_t done = 0;;) {
    run_all(body, body.each, at, std::min(block, n - done));
    if ((done += block) >= n) return;
    for (const Moving& one : body.moving) at[one.place] += block * one.size;
  }
}

}  // namespace zs

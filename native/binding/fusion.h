// A fused program and the known facts of its calls, kept for later calls.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "operand.h"

#include "../fused/execute.h"

namespace zs {

// One way in which a call's arrays lie.
struct Lie {
  std::vector<npy_intp> key;
  std::vector<std::vector<npy_intp>> outputs;  // strides of new outputs
  std::shared_ptr<const Prepared> prepared;    // null: there is nothing to compute
};

class Fusion {
 public:
  explicit Fusion(FusedProgram program);
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  const FusedProgram& program() const { return program_; }
  // Steps times elements of a call.
  double work() const { return work_; }
  // Whether a new layout appeared since the last query.
  bool take_news() { return std::exchange(news_, false); }
  // As if the layouts so far were new.
  void renew() { news_ = !lies_.empty(); }
  // Prepares the calls again, because machine code is now available.
  void forget() { lies_.clear(); }
  bool fits_output(int output, PyObject* object) const;
  // Runs it; see run_program.
  bool run(PyObject* const* operands, Py_ssize_t count, PyObject* const* outs, PyObject** results);

 private:
  struct Call;
  bool read(Call& call, PyObject* const* operands, Py_ssize_t count) const;
  bool read_outs(Call& call, PyObject* const* outs) const;
  bool is_safe(const Call& call, std::size_t output) const;
  std::shared_ptr<const Lie> find(Call& call);
  std::shared_ptr<const Lie> make(const Call& call) const;
  bool make_outputs(Call& call, const Lie& lie) const;
  bool compute(Call& call, const Lie& lie) const;
  bool finish(Call& call, PyObject** results) const;
  void lay_out_output(const Call& call, std::size_t slot, npy_intp* strides) const;

  const FusedProgram program_;
  std::vector<std::size_t> slot_of_output_;
  std::vector<bool> in_place_;  // [input slot, output]: whether they may be one memory
  std::size_t longest_key_;
  double work_;
  bool short_;                  // keeps Python's lock
  bool news_ = false;
  bool empty_;                  // no output has an element
  std::vector<std::shared_ptr<const Lie>> lies_;
  std::size_t oldest_ = 0;
};

}  // namespace zs

// PastValues: how a graph's values depend on the length of the past, by two lengths.
//
// A graph whose past has one length is specialised at two of them. A value that is computed of
// weights and sizes alone, not of inputs per token, is the same for every token at one length: it
// is fixed, or it depends on the past.
//
// Ownership: borrows the graph and the traces. Threads: pure.
#pragma once

#include <optional>

#include "runtime/base/hash_map.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// A graph specialised with some length of the past, for `rows` tokens.
struct PastTrace {
  int64_t past = 0;
  int64_t rows = 0;
  SpecializeTrace trace;
};

class PastValues {
 public:
  // Both traces are of graphs with the ids of `graph`. Values that are added to it later are
  // nothing that a trace knows.
  PastValues(const Graph& graph, const PastTrace& a, const PastTrace& b)
      : graph_(graph), a_(a), b_(b) {}

  const PastTrace& a() const { return a_; }
  const PastTrace& b() const { return b_; }

  // Returns the value in one of the traces, where it folded away; else null.
  static const Tensor* ConstantAt(const PastTrace& at, ValueId value);
  bool IsKnown(ValueId value) const {
    return ConstantAt(a_, value) != nullptr && ConstantAt(b_, value) != nullptr;
  }

  // Returns its shape, where that is the same at both lengths.
  std::optional<Shape> ShapeOf(ValueId value) const;
  static std::optional<Shape> ShapeAt(const PastTrace& at, ValueId value);
  // Returns the one dim in which its shape differs, where it has as many elements more there as
  // the past is longer; nullopt where the shape is the same, or differs in another way.
  std::optional<int64_t> GrowingDim(ValueId value) const;

  // Computed of weights and sizes alone.
  bool IsStatic(ValueId value);
  // Static, and another tensor at another length.
  bool Depends(ValueId value);

  // Returns the number that each element is above the length of the past; nullopt where they
  // differ.
  std::optional<double> OffsetOf(ValueId value) const;
  // The place that input `input` of a Slice begins at along its one axis, as an offset to the
  // length of the past, or as a place that is the same at both lengths.
  struct Begin {
    int64_t place = 0;
    bool from_past = false;
  };
  std::optional<Begin> BeginOf(const Node& slice, int64_t axis) const;

 private:
  const Graph& graph_;
  const PastTrace &a_, &b_;
  HashMap<ValueId, bool> static_, depends_;
};

}  // namespace reprise

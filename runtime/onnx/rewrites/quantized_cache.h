// The steps of a cache of keys and values that holds integers, as GroupQueryAttention has it: 8
// bits, or 4 with two neighbours in a byte, the first in its low half with 8 added. A number is a
// cell times a scale, one for all (PER_TENSOR) or one for each head and element (PER_CHANNEL).
#pragma once

#include "runtime/onnx/kit/steps.h"

namespace reprise {

class QuantizedCache : public Steps {
 public:
  QuantizedCache(NodeDraft& draft, Graph& graph, int64_t kv_heads)
      : Steps(draft, graph), kv_heads_(kv_heads) {}

  // UNIMPLEMENTED naming the attributes of a form that has no steps. `scale`: the index of the
  // input of keys' scales; the input of values' scales comes next.
  absl::Status Read(size_t scale);

  bool exists() const { return bits_ > 0; }
  // Input `scale`, as it meets rows [batch, heads, rows, size].
  ValueId Scale(size_t scale);
  // Returns the cells nearest to `rows`, as floats.
  ValueId Nearest(ValueId rows, ValueId scale);
  // Cells of the file as floats, and back.
  ValueId Unpacked(ValueId stored);
  ValueId Packed(ValueId cells);

 private:
  const int64_t kv_heads_;
  int64_t bits_ = 0;
  bool per_channel_ = false;
};

}  // namespace reprise

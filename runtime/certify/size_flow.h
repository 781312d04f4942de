// FindSizeChoices: where a model lets the size of an axis decide something.
//
// A number that follows a size evenly (twice the length, one over it) differs between any two
// sizes, so that a walk at two of them (axis_flow.h) sees it. A decision that a size makes does not
// show: a comparison with 100, a remainder, the smaller of two sizes. Specialising folds such nodes
// away, and no measurement at a few sizes finds the one where they change their mind. So they are
// looked for in the symbolic model, where sizes are still computed.
//
// Numbers made of sizes are followed from each Shape on. While they are sums and products of sizes
// they are known exactly, for all sizes at once, from a few samples; a comparison that comes out
// the same wherever the sizes lie (a shape with -1, a length with the largest one) decides nothing.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// The symbolic model as it is at one binding.
struct SizeSample {
  std::vector<int64_t> sizes;                    // one size per axis
  std::vector<std::optional<Tensor>> constants;  // per value of the graph: what folded away
  std::vector<std::optional<Shape>> shapes;      // what is known of the shapes
};

struct SizeQuestion {
  const Graph* graph = nullptr;  // symbolic, its nodes in topological order
  std::string axis;              // what people call it
  size_t position = 0;           // index of the axis
  std::vector<int64_t> largest;  // per axis: the largest that a request may have
  // All combinations of two sizes of each axis (bit i of the index: the second one of axis i), then
  // any number of others. Fewer than that: nothing can be said of comparisons.
  std::vector<SizeSample> samples;
  // Asks as well whether the form of what nodes compute with may hang on the size (size_forms.h).
  bool forms = false;
};

// Without one of a few ops a model holds no number that sizes decide; this one may hold some.
bool MayHoldSizeChoices(const Graph& graph);

//   proved     no size decides anything
//   undecided  a shape follows it in steps; the form of something may hang on it, if that is asked
//   mixes      numbers that the model computes with, or which branch it takes, hang on a comparison
//              (or may, where samples are too few to tell)
AxisFinding FindSizeChoices(const SizeQuestion& question);

}  // namespace reprise

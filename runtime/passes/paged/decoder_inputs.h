// Values that take the place of a decoder's inputs: known numbers, and rows of caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace reprise {

// `values` in the dtype of an input: int32, int64 or bool (not 0).
Tensor NumbersAs(DType dtype, const Shape& shape, const std::vector<int64_t>& values);

// `value` takes the place of input `name`, which goes.
void TakeInput(Graph& graph, const std::string& name, ValueId value);

// Returns the result of a reprise.CachedRows for `tokens`: rows that stand for cached ones.
ValueId AddCachedRows(Graph& graph, ValueId tokens, Attributes attributes);
// Pages hold float32, whatever clients would carry.
ValueId CastRows(Graph& graph, ValueId rows, DType dtype);

}  // namespace reprise

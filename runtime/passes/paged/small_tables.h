// TakeSmallTables: biases by distance that a decoder keeps in a parameter, as constants.
#pragma once

#include <functional>
#include <optional>

#include "runtime/graph/graph.h"

namespace reprise {

using ParameterValueOf = std::function<std::optional<Tensor>(const ParameterExpr&)>;

// Small tables of `graph`, specialised, that are looked up or cut at known places become constants:
// they are added to scores. `value_of` gives the elements of a parameter; null: there are none.
// Returns whether one has.
bool TakeSmallTables(Graph& graph, const ParameterValueOf& value_of);

}  // namespace reprise

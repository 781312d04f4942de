// Helpers that rewrites share: reading constants, adding nodes with their shapes, replacing.
//
// Passes match on values, not on node order: Replace() removes a dead producer at once, so that
// Graph::HasOneUse() stays right within a pass.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace reprise {

// Returns the bytes of a constant that no request can override, else nullptr.
const Tensor* KnownConstant(const Graph& graph, ValueId value);

// Returns the value of a constant of one element (any rank), as double.
std::optional<double> KnownScalar(const Graph& graph, ValueId value);
// Returns whether `value` is a one-element constant within a relative 1e-5 of `expected`.
bool IsScalar(const Graph& graph, ValueId value, double expected);
bool IsNear(double value, double expected);

// Returns the shape of a value in a specialised graph; empty optional in a symbolic one.
const std::optional<Shape>& ShapeOf(const Graph& graph, ValueId value);
// Returns whether its shape is known to have one element.
bool HasOneElement(const Graph& graph, ValueId value);
bool HasShape(const Graph& graph, ValueId value, absl::Span<const int64_t> shape);
bool SameShape(const Graph& graph, ValueId a, ValueId b);
// Returns whether both dtype and shape are known and the dtype is float32.
bool IsFloat32(const Graph& graph, ValueId value);
bool IsParameter(const Graph& graph, ValueId value);
// Returns whether it is a parameter or a constant: the same in every replay.
bool IsWeight(const Graph& graph, ValueId value);

// Returns the only node that uses `value`, when it has one use and is no output of the graph; else
// kNone.
NodeId OnlyUser(const Graph& graph, ValueId value);
// Returns the producer of `value`, kNone when it is no result.
inline NodeId ProducerOf(const Graph& graph, ValueId value) {
  return value == kNone ? kNone : graph.value(value).producer;
}
// Returns the `perm` of a Transpose of `rank` dims, two or more, that swaps the last two alone.
std::vector<int64_t> LastDimsSwapped(size_t rank);
// Returns the value that a chain of Identity nodes ending in `value` starts from; `value` without
// one.
ValueId BeforeIdentities(const Graph& graph, ValueId value);
// Returns the same of a chain of Reshapes: the same elements in the same order.
ValueId BeforeReshapes(const Graph& graph, ValueId value);
// Returns the input of a two-input node that is not `value`; kNone when the node reads it twice.
ValueId OtherInput(const Node& node, ValueId value);

// Adds a node and infers its results; returns result 0. Errors as of the shape rule.
absl::StatusOr<ValueId> AddInferred(Graph& graph, absl::string_view op, std::vector<ValueId> inputs,
                                    Attributes attributes = {}, absl::string_view name = "");
absl::StatusOr<ValueId> AddCast(Graph& graph, ValueId value, DType to);
// `value` under another shape with the same number of elements; `value` itself when it has that
// shape. A constant or parameter stays one.
absl::StatusOr<ValueId> AddReshape(Graph& graph, ValueId value, const Shape& shape);
// `ids` as rows of a table of `rows`, in which none counts from the end: a reprise.CheckRange,
// unless they are known.
absl::StatusOr<ValueId> AddRangeCheck(Graph& graph, ValueId ids, int64_t rows);
// Returns `op` over weights: a parameter expression when one is a parameter, else a folded
// constant. `dtype` and `shape` describe the result; kNone inputs are not allowed.
absl::StatusOr<ValueId> AddWeight(Graph& graph, absl::string_view op, Attributes attributes,
                                  const std::vector<ValueId>& inputs, DType dtype, Shape shape);

// Returns a parameter or constant for an expression over weights; kNone for none.
ValueId AddExpression(Graph& graph, const ParameterExprPtr& expression);

// Replaces every use of `from` by `to`, and removes the producer of `from` when nothing uses it
// any more, with whatever fed it alone.
void Replace(Graph& graph, ValueId from, ValueId to);
// Removes `node` when none of its results is used, and then its producers likewise.
void RemoveIfDead(Graph& graph, NodeId node);

}  // namespace reprise

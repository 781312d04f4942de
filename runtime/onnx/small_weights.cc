#include "runtime/onnx/small_weights.h"

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/quantized/quantize_op.h"

namespace reprise {
namespace {

// Scores are scaled, biased and masked before anything else is made of them.
constexpr int kMostSteps = 5;

bool IsKnown(const Graph& graph, ValueId id) {
  const Value::Kind kind = graph.value(id).kind;
  return kind == Value::Kind::kParameter || kind == Value::Kind::kConstant;
}

bool IsArithmetic(const Node& node) {
  return node.op == MulOp::kName || node.op == AddOp::kName || node.op == SubOp::kName ||
         node.op == DivOp::kName;
}

// Returns whether the value is a product of data with data, or made of one: scores, to which masks
// are added.
bool IsMadeOfScores(const Graph& graph, ValueId id, int steps = kMostSteps) {
  const NodeId producer = graph.value(id).producer;
  if (producer == kNone || steps == 0) return false;
  const Node& node = graph.node(producer);
  const OpFacts& facts = FactsOf(node.op);
  const auto known = [&](ValueId input) { return input != kNone && IsKnown(graph, input); };
  if (facts.Is(kMultipliesWeights)) return absl::c_none_of(node.inputs, known);
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || !row->Has(kElementwise)) return false;
  return absl::c_any_of(node.inputs, [&](ValueId input) {
    return input != kNone && IsMadeOfScores(graph, input, steps - 1);
  });
}

// Returns whether the node adds a line of numbers to products with weights, one to each of
// `columns`.
bool AddsBias(const Graph& graph, const Node& node, int64_t columns, ValueId other) {
  const NodeId producer = graph.value(other).producer;
  if (node.op != AddOp::kName || producer == kNone) return false;
  const Node& product = graph.node(producer);
  if (!FactsOf(product.op).Is(kMultipliesWeights)) return false;
  return absl::c_any_of(product.inputs, [&](ValueId input) {
    if (input == kNone || !IsKnown(graph, input)) return false;
    const Shape& weights = *graph.value(input).shape;
    return columns > 1 || (!weights.empty() && weights.back() == columns);
  });
}

// Returns whether sines are taken of the value: its numbers are positions, which passes may read.
bool MakesAngles(const Graph& graph, ValueId id, int steps = kMostSteps) {
  return absl::c_any_of(graph.value(id).users, [&](NodeId user) {
    const Node& node = graph.node(user);
    if (node.op == "Sin" || node.op == "Cos") return true;
    const bool moves = node.op == ConcatOp::kName || node.op == UnsqueezeOp::kName ||
                       node.op == ReshapeOp::kName || node.op == TransposeOp::kName ||
                       node.op == CastOp::kName || node.op == ExpandOp::kName;
    return moves && steps > 0 && MakesAngles(graph, node.outputs[0], steps - 1);
  });
}

// Returns whether the node scales or shifts data by a line of numbers, one for each feature: the
// scale of a norm that is written out. Scalars and single numbers belong to forms (an epsilon,
// the 0.5 of a GELU), and masks and slopes of positions are numbers that certificates read.
bool ScalesOrShifts(const Graph& graph, const Node& node, const Shape& shape, ValueId other) {
  if (!IsArithmetic(node) || shape.empty() || shape.back() <= 1 ||
      NumElements(shape) != shape.back()) {
    return false;
  }
  return !IsMadeOfScores(graph, other) && !MakesAngles(graph, node.outputs[0]);
}

// Returns whether the value is made of products with weights, of looked up rows or of a norm:
// features, to which no mask is added.
bool IsMadeOfFeatures(const Graph& graph, ValueId id, int steps = kMostSteps) {
  const NodeId producer = graph.value(id).producer;
  if (producer == kNone || steps == 0) return false;
  const Node& node = graph.node(producer);
  const OpFacts& facts = FactsOf(node.op);
  const auto known = [&](ValueId input) { return input != kNone && IsKnown(graph, input); };
  if (facts.Is(kMultipliesWeights) || facts.map == ops::LastDimsNormMap) {
    return absl::c_any_of(node.inputs, known);
  }
  if (node.op == GatherOp::kName) {
    return known(node.inputs[0]) && IsFloating(graph.value(node.inputs[0]).dtype);
  }
  const OpRow* row = FindOp(node.op);
  const bool passes =
      facts.OnlyMoves() || (row != nullptr && row->Has(kElementwise) && !facts.Is(kComparison));
  return passes && absl::c_any_of(node.inputs, [&](ValueId input) {
           return input != kNone && IsMadeOfFeatures(graph, input, steps - 1);
         });
}

// Returns whether the node adds a table to features, rows of numbers for each position.
bool AddsTable(const Graph& graph, const Node& node, const Shape& shape, ValueId other) {
  return node.op == AddOp::kName && shape.size() >= 2 && shape.back() > 1 &&
         IsMadeOfFeatures(graph, other) && !IsMadeOfScores(graph, other) &&
         !MakesAngles(graph, node.outputs[0]);
}

// Returns whether the value is an input of the model, or one that only known numbers were applied
// to: a picture.
bool IsOfInput(const Graph& graph, ValueId id, int steps = kMostSteps) {
  const Value& value = graph.value(id);
  constexpr size_t kPictureDims = 3;
  if (value.kind == Value::Kind::kInput) return value.dims.size() >= kPictureDims;
  if (value.producer == kNone || steps == 0) return false;
  const Node& node = graph.node(value.producer);
  if (!IsArithmetic(node) && node.op != CastOp::kName && node.op != TransposeOp::kName) {
    return false;
  }
  return absl::c_all_of(node.inputs, [&](ValueId input) {
    return IsKnown(graph, input) || IsOfInput(graph, input, steps - 1);
  });
}

// Returns whether the node takes mean or spread from the channels of a picture.
bool NormalisesChannels(const Graph& graph, const Node& node, const Shape& shape, ValueId other) {
  const auto channels = absl::c_count_if(shape, [](int64_t size) { return size > 1; });
  return IsArithmetic(node) && shape.size() >= 3 && channels == 1 && IsOfInput(graph, other);
}

// Returns whether a number follows that shifts or scales all of the value, or nothing but moves, up
// to outputs.
bool AreLogits(const Graph& graph, ValueId id, int steps = kMostSteps) {
  const Value& value = graph.value(id);
  if (value.users.empty()) return graph.IsOutput(id);
  return steps > 0 && absl::c_all_of(value.users, [&](NodeId user) {
           const Node& node = graph.node(user);
           const bool by_number =
               IsArithmetic(node) && absl::c_any_of(node.inputs, [&](ValueId input) {
                 return IsKnown(graph, input) && NumElements(*graph.value(input).shape) == 1;
               });
           return (by_number || node.op == TransposeOp::kName || node.op == IdentityOp::kName) &&
                  AreLogits(graph, node.outputs[0], steps - 1);
         });
}

// Returns whether a layer made the value, with a bias at most.
bool IsOfLayer(const Graph& graph, ValueId id, int steps = 2) {
  const NodeId producer = graph.value(id).producer;
  if (producer == kNone || steps == 0) return false;
  const Node& node = graph.node(producer);
  const auto known = [&](ValueId input) { return input != kNone && IsKnown(graph, input); };
  if (FactsOf(node.op).Is(kMultipliesWeights)) return absl::c_any_of(node.inputs, known);
  return node.op == AddOp::kName && absl::c_any_of(node.inputs, known) &&
         absl::c_any_of(node.inputs, [&](ValueId input) {
           return !known(input) && IsOfLayer(graph, input, steps - 1);
         });
}

// Returns whether `node` takes a learnt number: the scale or shift of logits, the scale of a layer
// before it is added to the residual, or the scale of weights, which multiplies the scale of
// quantised rows. All other numbers belong to forms.
bool IsLearntNumber(const Graph& graph, const Node& node, ValueId other) {
  if (!IsArithmetic(node)) return false;
  const NodeId producer = graph.value(other).producer;
  if (producer != kNone && graph.node(producer).op == DynamicQuantizeLinearOp::kName) return true;
  const ValueId result = node.outputs[0];
  if (IsMadeOfScores(graph, other) && AreLogits(graph, result)) return true;
  const std::vector<NodeId>& users = graph.value(result).users;
  return node.op == MulOp::kName && IsOfLayer(graph, other) && !users.empty() &&
         absl::c_all_of(users, [&](NodeId user) {
           const Node& sum = graph.node(user);
           return sum.op == AddOp::kName &&
                  absl::c_none_of(sum.inputs, [&](ValueId input) { return IsKnown(graph, input); });
         });
}

// Returns whether every reader of the value takes it as a weight. `shape`: the initialiser's, whose
// last dim each move on the way has kept.
bool IsTakenAsWeight(const Graph& graph, ValueId id, const Shape& shape, int steps);

// Rows of a table, another rank, or as many rows as a batch has: elements move, features stay last.
bool KeepsFeaturesLast(const Graph& graph, const Node& node, const Shape& shape) {
  if (node.op == GatherOp::kName) {
    return shape.size() >= 2 && node.attributes.Int("axis", 0) == 0 &&
           IsKnown(graph, node.inputs[1]);
  }
  if (node.op == UnsqueezeOp::kName || node.op == ExpandOp::kName || node.op == IdentityOp::kName) {
    return true;
  }
  if (node.op != SliceOp::kName) return false;
  const Tensor* axes = node.input(3) == kNone ? nullptr : graph.ConstantOf(node.input(3));
  if (axes == nullptr) return false;
  const absl::StatusOr<std::vector<int64_t>> numbers = axes->ToInt64s();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  return numbers.ok() &&
         absl::c_all_of(*numbers, [&](int64_t axis) { return axis >= 0 && axis < last; });
}

// Returns whether the node joins `value` with other tensors: a class token before the patches, a
// mask token in place of some.
bool JoinsFeatures(const Graph& graph, const Node& node, ValueId value, const Shape& shape) {
  if (shape.empty() || shape.back() <= 1) return false;
  const bool is_concat = node.op == ConcatOp::kName;
  // A line of numbers in the place of some may be a mask's.
  const bool is_where = node.op == WhereOp::kName && node.inputs[0] != value && shape.size() >= 2;
  if (!is_concat && !is_where) return false;
  return absl::c_any_of(node.inputs, [&](ValueId input) {
    return input != kNone && IsMadeOfFeatures(graph, input) && !IsMadeOfScores(graph, input);
  });
}

bool IsWeightOf(const Graph& graph, const Node& node, ValueId value, const Shape& shape,
                int steps) {
  if (node.inputs.size() == 2) {
    const ValueId other = node.inputs[0] == value ? node.inputs[1] : node.inputs[0];
    const bool of_data = other != kNone && other != value && !IsKnown(graph, other);
    if (of_data) {
      if (NumElements(shape) == 1 && IsLearntNumber(graph, node, other)) return true;
      if (!shape.empty() && AddsBias(graph, node, shape.back(), other)) return true;
      if (ScalesOrShifts(graph, node, shape, other) || AddsTable(graph, node, shape, other) ||
          NormalisesChannels(graph, node, shape, other)) {
        return true;
      }
      // Rows of a table that data choose.
      if (node.op == GatherOp::kName && node.inputs[0] == value && !shape.empty()) return true;
    }
  }
  if (JoinsFeatures(graph, node, value, shape)) return true;
  // The scale of weights; scales of data stay, since tables of bytes are made of them.
  if (node.op == DequantizeLinearOp::kName && node.inputs[1] == value) {
    return IsKnown(graph, node.inputs[0]);
  }
  if (steps > 0 && node.inputs[0] == value && KeepsFeaturesLast(graph, node, shape)) {
    return IsTakenAsWeight(graph, node.outputs[0], shape, steps - 1);
  }
  // The exponential of a learnt number, which exporters leave in the graph.
  if (steps > 0 && NumElements(shape) == 1 &&
      (node.op == ExpOp::kName || node.op == TanhOp::kName)) {
    return IsTakenAsWeight(graph, node.outputs[0], shape, steps - 1);
  }
  if (shape.empty()) return false;
  const OpFacts& facts = FactsOf(node.op);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == value && !facts.IsWeight(i)) return false;
  }
  return true;
}

bool IsTakenAsWeight(const Graph& graph, ValueId id, const Shape& shape, int steps) {
  const Value& value = graph.value(id);
  return !value.users.empty() && !graph.IsOutput(id) &&
         absl::c_all_of(value.users, [&](NodeId user) {
           return IsWeightOf(graph, graph.node(user), id, shape, steps);
         });
}

bool IsSmallWeight(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const Tensor* constant = graph.ConstantOf(id);
  return constant != nullptr && !value.overridable && IsFloating(constant->dtype()) &&
         constant->num_elements() > 0 && IsTakenAsWeight(graph, id, constant->shape(), kMostSteps);
}

}  // namespace

void KeepSmallWeights(FileValues& values) {
  Graph& graph = values.model.graph;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    if (!IsSmallWeight(graph, id)) continue;
    const Tensor tensor = *graph.ConstantOf(id);
    const int index = values.KeepParameter(tensor);
    graph.ReplaceWithParameter(id, ParameterExpr::Leaf(index, tensor.dtype(), tensor.shape()));
  }
}

}  // namespace reprise

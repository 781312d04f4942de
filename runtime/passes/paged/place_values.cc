#include "runtime/passes/paged/place_values.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/reduce/rotary_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

constexpr int kMaxOffsetSteps = 16;

bool IsNumber(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kFloat32;
}

class Places {
 public:
  Places(Graph& graph, ValueId positions, const PastTrace& a, const PastTrace& b)
      : graph_(graph), positions_(positions), a_(a), b_(b) {}

  absl::Status Run() {
    for (const NodeId id : graph_.NodeIds()) {
      if (IsKnown(graph_.node(id).output(0))) continue;
      const OpRow* row = FindOp(graph_.node(id).op);
      if (row == nullptr) continue;
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId input = graph_.node(id).inputs[i];
        const bool decides_shape = i < 32 && (row->value_inputs >> i & 1) != 0;
        if (decides_shape || !IsKnown(input) || !Differs(input)) continue;
        if (const ValueId computed = Compute(input); computed != kNone) {
          graph_.SetInput(id, i, computed);
        }
      }
    }
    TakeWholeTables();
    return absl::OkStatus();
  }

 private:
  static const Tensor* At(const PastTrace& at, ValueId value) {
    const auto& known = at.trace.constants;
    if (value == kNone || value >= static_cast<ValueId>(known.size())) return nullptr;
    return known[value].has_value() ? &*known[value] : nullptr;
  }
  bool IsKnown(ValueId value) const { return At(a_, value) != nullptr && At(b_, value) != nullptr; }

  // Another number at another length; one of another shape is none of a token.
  bool Differs(ValueId value) const {
    const Tensor &a = *At(a_, value), &b = *At(b_, value);
    return a.shape() == b.shape() && !(a == b);
  }

  // All elements are the length of the past, plus what this returns.
  std::optional<double> OffsetOf(ValueId value) const {
    const Tensor &a = *At(a_, value), &b = *At(b_, value);
    if (!IsNumber(a.dtype()) || a.num_elements() == 0) return std::nullopt;
    const std::vector<double> at_a = a.ToDoubles(), at_b = b.ToDoubles();
    const double offset = at_a[0] - static_cast<double>(a_.past);
    const auto holds = [offset](const std::vector<double>& values, int64_t past) {
      return absl::c_all_of(values, [&](double one) { return one == past + offset; });
    };
    if (std::abs(offset) > 1024 || !holds(at_a, a_.past) || !holds(at_b, b_.past)) {
      return std::nullopt;
    }
    return offset;
  }

  // kNone where that cannot be done: the value stays, and the check of the whole graph tells.
  ValueId Compute(ValueId value) {
    if (!IsKnown(value) || At(a_, value)->shape() != At(b_, value)->shape()) return kNone;
    if (!Differs(value)) return value;
    const auto [known, added] = computed_.try_emplace(value, kNone);
    if (!added) return known->second;
    ValueId result = kNone;
    if (const std::optional<double> offset = OffsetOf(value); offset.has_value()) {
      result = FromPositions(*At(a_, value), *offset);
    } else {
      result = Again(value);
    }
    computed_[value] = result;
    return result;
  }

  // Its producer, of values computed from positions.
  ValueId Again(ValueId value) {
    const NodeId producer = ProducerOf(graph_, value);
    if (producer == kNone) return kNone;
    const Node node = graph_.node(producer);  // A copy: adding nodes moves them.
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kShapeOnly) || node.outputs.size() != 1) return kNone;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(input == kNone ? kNone : Compute(input));
      if (input != kNone && inputs.back() == kNone) return kNone;
    }
    const NodeId again = graph_.AddNode(node.op, std::move(inputs), node.attributes, 1, node.name);
    return graph_.node(again).outputs[0];
  }

  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const NodeId node = graph_.AddNode(op, std::move(inputs), std::move(attributes));
    return graph_.node(node).outputs[0];
  }

  // Tokens are rows: they come first, and have one place each in every dim after.
  ValueId FromPositions(const Tensor& like, double offset) {
    const size_t rank = std::max<size_t>(like.shape().size(), 1);
    const bool by_row = like.shape().size() == 1 && like.shape()[0] > 1;
    std::vector<int64_t> shape(by_row ? 1 : std::max<size_t>(rank, 2), 1);
    shape[0] = -1;
    ValueId value = positions_;
    if (offset != 0) {
      const ValueId more =
          graph_.AddConstant("", Tensor::Int64Scalar(static_cast<int64_t>(offset)));
      value = Add(AddOp::kName, {value, more});
    }
    if (like.dtype() != DType::kInt64) {
      value = Add(CastOp::kName, {value}, {{"to", ops::OnnxNumber(like.dtype())}});
    }
    return Add(ReshapeOp::kName, {value, graph_.AddConstant("", Tensor::Int64s(shape))});
  }

  // A table that is cut to the length of the whole sequence before it is looked up.
  void TakeWholeTables() {
    const auto shape = [](const PastTrace& at, ValueId value) -> const std::optional<Shape>& {
      static const std::optional<Shape> none;
      return value < static_cast<ValueId>(at.trace.shapes.size()) ? at.trace.shapes[value] : none;
    };
    for (const NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (node.op != GatherOp::kName || node.attributes.Int("axis", 0) != 0) continue;
      const ValueId table = node.inputs[0];
      const Node* slice = graph_.ProducerIf(table, SliceOp::kName);
      if (slice == nullptr || !IsWeight(graph_, slice->inputs[0])) continue;
      const auto &at_a = shape(a_, table), &at_b = shape(b_, table);
      const Tensor* starts = At(a_, slice->input(1));
      if (!at_a.has_value() || !at_b.has_value() || starts == nullptr || *at_a == *at_b) continue;
      const Shape& whole = *graph_.value(slice->inputs[0]).shape;
      const bool only_rows = at_a->size() == whole.size() &&
                             std::equal(whole.begin() + 1, whole.end(), at_a->begin() + 1);
      const bool from_first =
          absl::c_all_of(starts->ToDoubles(), [](double start) { return start == 0; });
      if (only_rows && from_first) graph_.SetInput(id, 0, slice->inputs[0]);
    }
  }

  Graph& graph_;
  const ValueId positions_;
  const PastTrace &a_, &b_;
  HashMap<ValueId, ValueId> computed_;
};

// The number that is added to positions on the way to `value`; nullopt where it is none of them.
std::optional<int64_t> OffsetFrom(const Graph& graph, ValueId value, ValueId positions) {
  int64_t offset = 0;
  for (int step = 0; step < kMaxOffsetSteps; ++step) {
    if (value == positions) return offset;
    const NodeId producer = ProducerOf(graph, value);
    if (producer == kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    if (node.op == AddOp::kName) {
      const auto left = KnownScalar(graph, node.inputs[0]);
      const auto right = KnownScalar(graph, node.inputs[1]);
      if (left.has_value() == right.has_value()) return std::nullopt;
      offset += static_cast<int64_t>(left.has_value() ? *left : *right);
      value = node.inputs[left.has_value() ? 1 : 0];
      continue;
    }
    const bool same = FactsOf(node.op).HoldsAllOfFirst() || node.op == CastOp::kName ||
                      node.op == CheckRangeOp::kName;
    if (!same) return std::nullopt;
    value = node.inputs[0];
  }
  return std::nullopt;
}

}  // namespace

absl::Status ComputeFromPositions(Graph& graph, ValueId positions, const PastTrace& a,
                                  const PastTrace& b) {
  return Places(graph, positions, a, b).Run();
}

int64_t PositionsOfTables(const Graph& graph, ValueId positions) {
  int64_t smallest = 0;
  const auto look = [&](ValueId table, ValueId index) {
    if (table == kNone || index == kNone || !IsWeight(graph, table)) return;
    const std::optional<Shape>& shape = graph.value(table).shape;
    const std::optional<int64_t> offset = OffsetFrom(graph, index, positions);
    if (!shape.has_value() || shape->empty() || !offset.has_value()) return;
    const int64_t rows = (*shape)[0] - *offset;
    smallest = smallest == 0 ? rows : std::min(smallest, rows);
  };
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op == GatherOp::kName && node.attributes.Int("axis", 0) == 0) {
      look(node.inputs[0], node.inputs[1]);
    } else if (node.op == MicrosoftRotaryEmbeddingOp::kName) {
      look(node.inputs[2], node.inputs[1]);
    } else if (node.op == RotaryEmbeddingOp::kName) {
      look(node.inputs[1], node.input(3));
    }
  }
  return smallest;
}

}  // namespace reprise

#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

// Returns the operand of a Reshape that keeps the last dim of a value of rank two or more; else
// kNone.
ValueId BeforeReshape(const Graph& graph, ValueId value) {
  const Node* reshape = graph.ProducerIf(value, ReshapeOp::kName);
  if (reshape == nullptr || !ShapeOf(graph, reshape->inputs[0]).has_value()) return kNone;
  const Shape& in = *ShapeOf(graph, reshape->inputs[0]);
  const Shape& out = *ShapeOf(graph, value);
  if (in.size() < 2 || out.size() < 2 || in.back() != out.back()) return kNone;
  return reshape->inputs[0];
}

// Broadcasts along the last dim of `size` elements alone, whatever the other dims are.
bool IsPerFeature(const Graph& graph, ValueId value, int64_t size) {
  if (!IsWeight(graph, value)) return false;
  const Shape& shape = *ShapeOf(graph, value);
  const int64_t elements = NumElements(shape);
  return elements == 1 ? shape.size() <= 1 : shape.size() == 1 && elements == size;
}

// Returns the operands of an elementwise node with each Reshape taken off; empty when they do
// not all come from values of one shape, or broadcast other than along the last dim.
std::vector<ValueId> OperandsBeforeReshape(const Graph& graph, const Node& node) {
  std::vector<ValueId> operands;
  std::optional<Shape> shape;
  const int64_t features = ShapeOf(graph, node.outputs[0])->back();
  for (ValueId input : node.inputs) {
    if (input == kNone || IsPerFeature(graph, input, features)) {
      operands.push_back(input);
      continue;
    }
    const ValueId before = BeforeReshape(graph, input);
    if (before == kNone || !SameShape(graph, input, node.outputs[0])) return {};
    if (shape.has_value() && shape != ShapeOf(graph, before)) return {};
    shape = ShapeOf(graph, before);
    operands.push_back(before);
  }
  return shape.has_value() ? operands : std::vector<ValueId>();
}

}  // namespace

absl::StatusOr<ValueId> GemmRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != GemmOp::kName || !IsFloat32(graph, node.inputs[0]) ||
      !IsFloat32(graph, node.outputs[0]) || !IsParameter(graph, node.inputs[1])) {
    return kNone;
  }
  const bool has_bias = node.input(2) != kNone;
  const GemmOp gemm = GemmOp::From(node.attributes);
  if (gemm.alpha != 1 || gemm.trans_a || (has_bias && gemm.beta != 1)) {
    return kNone;
  }
  ValueId weight = node.inputs[1];
  if (gemm.trans_b) {
    const Shape shape = *ShapeOf(graph, weight);
    ASSIGN_OR_RETURN(weight, AddWeight(graph, TransposeOp::kName, {{"perm", LastDimsSwapped(2)}},
                                       {weight}, DType::kFloat32, {shape[1], shape[0]}));
  }
  ASSIGN_OR_RETURN(ValueId result,
                   AddInferred(graph, MatMulOp::kName, {node.inputs[0], weight}, {}, node.name));
  if (!has_bias) return result;
  ValueId bias = node.inputs[2];
  const Shape bias_shape = *ShapeOf(graph, bias);
  const int64_t columns = ShapeOf(graph, result)->back();
  if (IsWeight(graph, bias) && NumElements(bias_shape) == columns && bias_shape.back() == columns) {
    ASSIGN_OR_RETURN(bias, AddReshape(graph, bias, {columns}));
  }
  return AddInferred(graph, AddOp::kName, {result, bias});
}

absl::StatusOr<ValueId> FusedMatMulRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != FusedMatMulOp::kName || !IsFloat32(graph, node.inputs[0]) ||
      !IsFloat32(graph, node.inputs[1])) {
    return kNone;
  }
  const auto rank = [&](size_t i) { return ShapeOf(graph, node.inputs[i])->size(); };
  const bool weight = IsWeight(graph, node.inputs[1]) && rank(1) == 2;
  const FusedMatMulOp fused = FusedMatMulOp::From(node.attributes);
  const bool transposed_a = fused.trans_a && rank(0) >= 2;
  if (!weight && !transposed_a) return kNone;
  ValueId a = node.inputs[0], b = node.inputs[1];
  if (transposed_a) {
    ASSIGN_OR_RETURN(
        a, AddInferred(graph, TransposeOp::kName, {a}, {{"perm", LastDimsSwapped(rank(0))}}));
  }
  Attributes rest = node.attributes;
  rest.Set("transA", int64_t{0});
  if (!weight) return AddInferred(graph, node.op, {a, b}, std::move(rest), node.name);
  if (fused.trans_b) {
    const Shape shape = *ShapeOf(graph, b);
    ASSIGN_OR_RETURN(b, AddWeight(graph, TransposeOp::kName, {{"perm", LastDimsSwapped(2)}}, {b},
                                  DType::kFloat32, {shape[1], shape[0]}));
  }
  ASSIGN_OR_RETURN(const ValueId product,
                   AddInferred(graph, MatMulOp::kName, {a, b}, {}, node.name));
  const float alpha = fused.alpha;
  if (alpha == 1) return product;
  const ValueId factor =
      graph.AddConstant("", Tensor::FromVector(DType::kFloat32, {}, std::vector<float>{alpha}));
  return AddInferred(graph, MulOp::kName, {product, factor});
}

absl::StatusOr<ValueId> FlattenedRowsRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.outputs.size() != 1 || node.outputs[0] == kNone) return kNone;
  const ValueId output = node.outputs[0];
  if (!ShapeOf(graph, output).has_value() || ShapeOf(graph, output)->size() < 2) return kNone;
  const OpRow* row = FindOp(node.op);
  std::vector<ValueId> operands;
  if (node.op == MatMulOp::kName) {
    const ValueId before = BeforeReshape(graph, node.inputs[0]);
    if (before == kNone || !IsWeight(graph, node.inputs[1]) ||
        ShapeOf(graph, node.inputs[1])->size() != 2) {
      return kNone;
    }
    operands = {before, node.inputs[1]};
  } else if (row != nullptr && row->Has(kElementwise) && !row->Has(kNoFold) &&
             node.op != DropoutOp::kName && !node.inputs.empty()) {
    operands = OperandsBeforeReshape(graph, node);
  }
  if (operands.empty()) return kNone;
  const std::string op = node.op;
  const std::string name = node.name;
  Attributes attributes = node.attributes;
  const Shape shape = *ShapeOf(graph, output);
  ASSIGN_OR_RETURN(const ValueId result,
                   AddInferred(graph, op, std::move(operands), std::move(attributes), name));
  return AddReshape(graph, result, shape);
}

namespace {

// Returns one slice of a constant whose slices along dim 0 are all equal, where `other` has the
// same size along it: an Expand made the copies, and was folded.
ValueId WithoutCopies(Graph& graph, ValueId value, const Shape& other) {
  const Tensor* constant = KnownConstant(graph, value);
  if (constant == nullptr || constant->shape().size() != other.size() || other[0] < 2 ||
      constant->shape()[0] != other[0]) {
    return value;
  }
  const size_t bytes = constant->bytes() / static_cast<size_t>(other[0]);
  const auto* data = static_cast<const std::byte*>(constant->data());
  if (std::memcmp(data, data + bytes, constant->bytes() - bytes) != 0) return value;
  Shape shape = constant->shape();
  shape[0] = 1;
  const DType dtype = constant->dtype();
  return graph.AddConstant(
      "", Tensor::Make(dtype, shape, [&](void* to) { std::memcpy(to, data, bytes); }));
}

// Returns whether all slices of a constant along dim `dim` are equal.
bool RepeatsAlong(const Tensor& constant, size_t dim) {
  const absl::Span<const int64_t> shape = constant.shape();
  const int64_t outer = NumElements(shape.first(dim)), copies = shape[dim];
  if (copies < 2 || constant.bytes() == 0) return false;
  const size_t slice = constant.bytes() / static_cast<size_t>(outer * copies);
  const auto* data = static_cast<const std::byte*>(constant.data());
  for (int64_t i = 0; i < outer; ++i, data += copies * slice) {
    if (std::memcmp(data, data + slice, (copies - 1) * slice) != 0) return false;
  }
  return true;
}

Tensor FirstAlong(const Tensor& constant, size_t dim) {
  Shape shape = constant.shape();
  const int64_t outer = NumElements(absl::MakeConstSpan(shape).first(dim));
  const size_t pitch = constant.bytes() / static_cast<size_t>(outer);
  const size_t slice = pitch / static_cast<size_t>(shape[dim]);
  shape[dim] = 1;
  const auto* from = static_cast<const std::byte*>(constant.data());
  return Tensor::Make(constant.dtype(), shape, [&](void* data) {
    auto* to = static_cast<std::byte*>(data);
    for (int64_t i = 0; i < outer; ++i) std::memcpy(to + i * slice, from + i * pitch, slice);
  });
}

}  // namespace

absl::StatusOr<ValueId> RepeatedRowsRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != MatMulOp::kName || !IsWeight(graph, node.inputs[1])) return kNone;
  const Tensor* rows = KnownConstant(graph, node.inputs[0]);
  const std::optional<Shape> weight = ShapeOf(graph, node.inputs[1]);
  const std::optional<Shape> out = ShapeOf(graph, node.outputs[0]);
  if (rows == nullptr || !out.has_value() || !weight.has_value() || weight->size() != 2) {
    return kNone;
  }
  for (size_t dim = 0; dim + 1 < rows->shape().size(); ++dim) {
    if (!RepeatsAlong(*rows, dim)) continue;
    const std::string name = node.name;
    const ValueId right = node.inputs[1];
    const ValueId first = graph.AddConstant("", FirstAlong(*rows, dim));
    ASSIGN_OR_RETURN(const ValueId product,
                     AddInferred(graph, MatMulOp::kName, {first, right}, {}, name));
    const ValueId sizes =
        graph.AddConstant("", Tensor::Int64s(std::vector<int64_t>(out->begin(), out->end())));
    return AddInferred(graph, ExpandOp::kName, {product, sizes});
  }
  return kNone;
}

absl::StatusOr<ValueId> OuterProductRule(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != MatMulOp::kName || !IsFloat32(graph, node.inputs[0]) ||
      !IsFloat32(graph, node.inputs[1]) || IsParameter(graph, node.inputs[0]) ||
      IsParameter(graph, node.inputs[1])) {
    return kNone;
  }
  const ValueId columns = node.inputs[0], rows = node.inputs[1];
  if (KnownConstant(graph, columns) == nullptr && KnownConstant(graph, rows) == nullptr) {
    return kNone;  // Attention of one key, or of heads of one element.
  }
  const Shape a = *ShapeOf(graph, columns), b = *ShapeOf(graph, rows);
  if (a.size() < 2 || b.size() < 2 || a.back() != 1 || b[b.size() - 2] != 1) return kNone;
  const std::string name = node.name;
  const ValueId left = WithoutCopies(graph, columns, b);
  // One of the two keeps the copies.
  const ValueId right = WithoutCopies(graph, rows, *ShapeOf(graph, left));
  return AddInferred(graph, MulOp::kName, {left, right}, {}, name);
}

}  // namespace reprise

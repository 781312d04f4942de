// The three projections of one attention, over the same rows and with weights of equal shapes,
// become one reprise.Linear or reprise.IntegerLinear whose columns are [q, k, v].
#include <cstring>
#include <iterator>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/quantized/linear_form.h"
#include "runtime/ops/weights/narrowed_weights.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

struct Projections {
  const Node* nodes[3];
  const ops::LinearForm* form;
  int64_t rows;     // rows of one weight
  int64_t columns;  // columns of one weight
};

// Operands that go with the rows of a quantised operand; those that go with columns of weights.
constexpr size_t kRowOperands[] = {2, 4};
constexpr size_t kColumnOperands[] = {3, 5};

bool IsQuantized(const Projections& match) { return match.form->op == IntegerLinearOp::kName; }

bool IsOfFloats(const ParameterExpr& weight) {
  if (weight.is_leaf()) return weight.dtype() == DType::kFloat32;
  return absl::c_all_of(weight.inputs(), [](const ParameterExprPtr& input) {
    return input == nullptr || IsOfFloats(*input);
  });
}

// Made of parameters of the same dtypes in the same way, where they are not of floats. Others would
// be joined as the floats that they stand for, where kernels read each of them as it is stored.
bool AreStoredAlike(const ParameterExpr& a, const ParameterExpr& b) {
  if (IsOfFloats(a) && IsOfFloats(b)) return true;
  if (a.op() != b.op() || a.dtype() != b.dtype() || a.inputs().size() != b.inputs().size() ||
      PrintAttributes(a.attributes()) != PrintAttributes(b.attributes())) {
    return false;
  }
  for (size_t i = 0; i < a.inputs().size(); ++i) {
    const ParameterExprPtr &x = a.inputs()[i], &y = b.inputs()[i];
    if (x == nullptr || y == nullptr ? x != y : !AreStoredAlike(*x, *y)) return false;
  }
  return true;
}

bool HaveOneInput(const Graph& graph, const Projections& match, const Node& node) {
  const Node& first = *match.nodes[0];
  if (node.op != first.op || node.inputs[0] != first.inputs[0] ||
      !SameShape(graph, node.inputs[1], first.inputs[1]) ||
      graph.value(node.inputs[1]).dtype != graph.value(first.inputs[1]).dtype) {
    return false;
  }
  const auto stored = [&](const Node& of) {
    return ops::WithoutNarrowing(graph.value(of.inputs[1]).parameter);
  };
  if (!AreStoredAlike(*stored(node), *stored(first))) return false;
  if (!IsQuantized(match)) return true;
  return absl::c_all_of(kRowOperands, [&](size_t i) { return node.input(i) == first.input(i); });
}

std::optional<Projections> MatchProjections(const Graph& graph, const Node& attention) {
  if (attention.op != AttentionOp::kName || AttentionOp::From(attention.attributes).packed_qkv ||
      attention.input(AttentionOp::kSinks) != kNone) {
    return std::nullopt;
  }
  Projections found{};
  for (int i = 0; i < 3; ++i) {
    const ValueId value = attention.inputs[i];
    if (ProducerOf(graph, value) == kNone || OnlyUser(graph, value) == kNone) return std::nullopt;
    const Node& linear = graph.node(ProducerOf(graph, value));
    found.form = ops::LinearFormOf(linear.op);
    if (found.form == nullptr || linear.input(found.form->residual) != kNone ||
        linear.attributes.String("activation", "none") != "none" ||
        !IsParameter(graph, linear.inputs[1])) {
      return std::nullopt;
    }
    std::vector<size_t> weights = {found.form->bias};
    if (IsQuantized(found)) absl::c_copy(kColumnOperands, std::back_inserter(weights));
    for (const size_t weight : weights) {
      if (linear.input(weight) != kNone && !IsWeight(graph, linear.inputs[weight])) {
        return std::nullopt;
      }
    }
    found.nodes[i] = &linear;
    if (i > 0 && !HaveOneInput(graph, found, linear)) return std::nullopt;
  }
  found.rows = ShapeOf(graph, found.nodes[0]->inputs[1])->front();
  found.columns = ShapeOf(graph, found.nodes[0]->inputs[1])->back();
  return found;
}

// Operand `i` of the projections, an element a column or one for all, as [q, k, v] columns. A
// projection without it has zeros there; kNone when none has it, and the one element when it is
// the same for all.
absl::StatusOr<ValueId> PackedColumns(Graph& graph, const std::vector<Node>& nodes, size_t i,
                                      int64_t columns) {
  DType dtype = DType::kUndefined;
  bool one = true;
  for (const Node& node : nodes) {
    if (node.input(i) == kNone) continue;
    dtype = graph.value(node.inputs[i]).dtype;
    one &= NumElements(*ShapeOf(graph, node.inputs[i])) == 1;
  }
  if (dtype == DType::kUndefined) return kNone;
  const auto alike = [&](const Node& node) { return node.input(i) == nodes[0].input(i); };
  if (one && absl::c_all_of(nodes, alike)) return nodes[0].inputs[i];
  std::vector<ValueId> parts;
  for (const Node& node : nodes) {
    if (node.input(i) == kNone) {
      parts.push_back(graph.AddConstant("", Tensor::Make(dtype, {columns}, [&](void* data) {
                                          std::memset(data, 0, columns * DTypeSize(dtype));
                                        })));
      continue;
    }
    ValueId part = node.inputs[i];
    if (!HasShape(graph, part, {columns})) {
      const ValueId wide = graph.AddConstant("", Tensor::Int64s({columns}));
      ASSIGN_OR_RETURN(part, AddReshape(graph, part, {1}));
      ASSIGN_OR_RETURN(part, AddWeight(graph, ExpandOp::kName, {}, {part, wide}, dtype, {columns}));
    }
    parts.push_back(part);
  }
  return AddWeight(graph, ConcatOp::kName, {{"axis", int64_t{0}}}, parts, dtype, {3 * columns});
}

absl::Status JoinProjections(Graph& graph, NodeId id, const Projections& match) {
  std::vector<Node> nodes;  // Copies: adding values and nodes moves them.
  std::vector<ValueId> weights;
  for (const Node* node : match.nodes) {
    nodes.push_back(*node);
    weights.push_back(node->inputs[1]);
  }
  std::vector<ValueId> inputs = nodes[0].inputs;
  inputs.resize(match.form->bias + 1, kNone);
  ASSIGN_OR_RETURN(inputs[1],
                   AddWeight(graph, ConcatOp::kName, {{"axis", int64_t{1}}}, weights,
                             graph.value(weights[0]).dtype, {match.rows, 3 * match.columns}));
  std::vector<size_t> packed_columns = {match.form->bias};
  if (IsQuantized(match)) absl::c_copy(kColumnOperands, std::back_inserter(packed_columns));
  for (const size_t i : packed_columns) {
    ASSIGN_OR_RETURN(inputs[i], PackedColumns(graph, nodes, i, match.columns));
  }
  while (inputs.back() == kNone) inputs.pop_back();
  ASSIGN_OR_RETURN(const ValueId packed,
                   AddInferred(graph, match.form->op, std::move(inputs),
                               {{"activation", std::string("none")}}, nodes[0].name));
  const Node attention = graph.node(id);
  Attributes attributes = attention.attributes;
  attributes.Set("packed_qkv", int64_t{1});
  inputs = {packed};
  if (attention.input(3) != kNone) inputs = {packed, kNone, kNone, attention.inputs[3]};
  ASSIGN_OR_RETURN(const ValueId fused, AddInferred(graph, AttentionOp::kName, std::move(inputs),
                                                    std::move(attributes), attention.name));
  Replace(graph, attention.outputs[0], fused);
  return absl::OkStatus();
}

absl::StatusOr<bool> FuseQkvAt(Graph& graph, NodeId id) {
  const std::optional<Projections> match = MatchProjections(graph, graph.node(id));
  if (!match.has_value()) return false;
  RETURN_IF_ERROR(JoinProjections(graph, id, *match));
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseQkv() { return PassOfNodes("fuse_qkv", FuseQkvAt); }

}  // namespace reprise

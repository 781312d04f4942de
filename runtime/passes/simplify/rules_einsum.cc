#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/simplify/rules.h"

namespace reprise {
namespace {

bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

bool AllDistinct(std::string labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) == labels.end();
}

// "abc,cd->abd" as labels of the operands and the result.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

// Gives the dims of an ellipsis labels that nothing else has: the last one the first of these, as
// they are aligned at their ends. False where the operands have other numbers of dims.
bool NameEllipses(const Graph& graph, const Node& node, Equation& equation) {
  constexpr absl::string_view kEllipsis = "...";
  const std::string given = absl::StrCat(absl::StrJoin(equation.operands, ""), equation.result);
  std::string fresh;
  for (char label = 'z'; label >= 'a'; --label) {
    if (!Has(given, label)) fresh += label;
  }
  size_t most = 0;
  const auto name = [&](std::string& labels, size_t dims) {
    std::string names = fresh.substr(0, dims);
    std::reverse(names.begin(), names.end());
    labels = absl::StrReplaceAll(labels, {{kEllipsis, names}});
  };
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    std::string& labels = equation.operands[i];
    const std::optional<Shape> shape = ShapeOf(graph, node.inputs[i]);
    if (!shape.has_value()) return false;
    if (absl::StrContains(labels, kEllipsis)) {
      const size_t own = labels.size() - kEllipsis.size();
      if (shape->size() < own || shape->size() - own > fresh.size()) return false;
      most = std::max(most, shape->size() - own);
      name(labels, shape->size() - own);
    }
    if (labels.size() != shape->size() || Has(labels, '.')) return false;
  }
  name(equation.result, most);
  return !Has(equation.result, '.');
}

// Returns the equation; nullopt for a diagonal or no arrow.
std::optional<Equation> ParseEquation(const Graph& graph, const Node& node) {
  const std::string text = absl::StrReplaceAll(node.attributes.String("equation", ""), {{" ", ""}});
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  Equation equation = {absl::StrSplit(text.substr(0, arrow), ','), text.substr(arrow + 2)};
  if (equation.operands.size() != node.inputs.size() || !NameEllipses(graph, node, equation)) {
    return std::nullopt;
  }
  const bool distinct =
      AllDistinct(equation.result) && absl::c_all_of(equation.operands, AllDistinct);
  return distinct ? std::make_optional(equation) : std::nullopt;
}

// Returns the dims of `value` with labels `from`, in the order `to`.
absl::StatusOr<ValueId> Permute(Graph& graph, ValueId value, const std::string& from,
                                const std::string& to) {
  if (from == to) return value;
  std::vector<int64_t> perm;
  Shape shape;
  for (char label : to) {
    perm.push_back(static_cast<int64_t>(from.find(label)));
    shape.push_back((*ShapeOf(graph, value))[perm.back()]);
  }
  if (IsWeight(graph, value)) {
    return AddWeight(graph, TransposeOp::kName, {{"perm", perm}}, {value}, graph.value(value).dtype,
                     shape);
  }
  return AddInferred(graph, TransposeOp::kName, {value}, {{"perm", perm}});
}

int64_t Product(const Graph& graph, ValueId value, const std::string& labels,
                const std::string& wanted) {
  int64_t product = 1;
  for (char label : wanted) product *= (*ShapeOf(graph, value))[labels.find(label)];
  return product;
}

// `value` with a dim for each label of `result`, of size 1 where it has none, so that it
// broadcasts.
absl::StatusOr<ValueId> Spread(Graph& graph, ValueId value, const std::string& labels,
                               const std::string& result) {
  std::string order;
  Shape shape;
  for (char label : result) {
    const bool own = Has(labels, label);
    if (own) order += label;
    shape.push_back(own ? Product(graph, value, labels, std::string(1, label)) : 1);
  }
  ASSIGN_OR_RETURN(value, Permute(graph, value, labels, order));
  return AddReshape(graph, value, shape);
}

// Returns the sums over all dims from `first` on.
absl::StatusOr<ValueId> SumBehind(Graph& graph, ValueId value, size_t first,
                                  const std::string& name) {
  std::vector<int64_t> axes(ShapeOf(graph, value)->size() - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  const ValueId over = graph.AddConstant("", Tensor::Int64s(axes));
  return AddInferred(graph, ReduceSumOp::kName, {value, over}, {{"keepdims", int64_t{0}}}, name);
}

// Returns the labels of `left` times `right` after summing over those that neither `equation`'s
// result nor another operand has; in the order of the two.
std::string LeftOf(const Equation& equation, size_t left, size_t right) {
  std::string labels;
  for (char label : equation.operands[left] + equation.operands[right]) {
    bool wanted = Has(equation.result, label);
    for (size_t i = 0; i < equation.operands.size(); ++i) {
      wanted = wanted || (i != left && i != right && Has(equation.operands[i], label));
    }
    if (wanted && !Has(labels, label)) labels += label;
  }
  return labels;
}

// Multiplies the two operands first whose product is the smallest.
absl::StatusOr<ValueId> MultiplyTwo(Graph& graph, const Node& node, Equation equation) {
  size_t left = 0, right = 0;
  double least = 0;
  std::vector<ValueId> values = node.inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      double size = 1;
      for (char label : LeftOf(equation, i, j)) {
        const size_t one = Has(equation.operands[i], label) ? i : j;
        size *= static_cast<double>(
            Product(graph, values[one], equation.operands[one], std::string(1, label)));
      }
      if (right != 0 && size >= least) continue;
      left = i;
      right = j;
      least = size;
    }
  }
  const std::string labels = LeftOf(equation, left, right);
  const std::string first =
      absl::StrCat(equation.operands[left], ",", equation.operands[right], "->", labels);
  ASSIGN_OR_RETURN(values[left], AddInferred(graph, EinsumOp::kName, {values[left], values[right]},
                                             {{"equation", first}}, node.name));
  equation.operands[left] = labels;
  values.erase(values.begin() + static_cast<int64_t>(right));
  equation.operands.erase(equation.operands.begin() + static_cast<int64_t>(right));
  const std::string rest =
      absl::StrCat(absl::StrJoin(equation.operands, ","), "->", equation.result);
  return AddInferred(graph, EinsumOp::kName, std::move(values), {{"equation", rest}}, node.name);
}

}  // namespace

absl::StatusOr<ValueId> EinsumRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != EinsumOp::kName || node.inputs.size() < 2 || !IsFloat32(graph, node.outputs[0])) {
    return kNone;
  }
  std::optional<Equation> equation = ParseEquation(graph, node);
  if (!equation.has_value() || equation->result.empty()) return kNone;
  if (node.inputs.size() > 2) return MultiplyTwo(graph, node, *std::move(equation));
  ValueId left = node.inputs[0];
  ValueId right = node.inputs[1];
  std::string &left_labels = equation->operands[0], &right_labels = equation->operands[1];
  // The result's last dim comes from the right operand: rows on the left, columns on the right.
  if (!Has(right_labels, equation->result.back())) {
    std::swap(left, right);
    std::swap(left_labels, right_labels);
  }
  std::string batch, rows, inner, columns;
  for (char label : left_labels) {
    const bool shared = Has(right_labels, label);
    const bool kept = Has(equation->result, label);
    if (!shared && !kept) return kNone;  // A sum over one operand alone.
    (shared ? kept ? batch : inner : rows) += label;
    if (shared && Product(graph, left, left_labels, std::string(1, label)) !=
                      Product(graph, right, right_labels, std::string(1, label))) {
      return kNone;  // One of them is repeated.
    }
  }
  for (char label : right_labels) {
    if (Has(left_labels, label)) continue;
    if (!Has(equation->result, label)) return kNone;
    columns += label;
  }
  if (inner.empty()) {
    ASSIGN_OR_RETURN(left, Spread(graph, left, left_labels, equation->result));
    ASSIGN_OR_RETURN(right, Spread(graph, right, right_labels, equation->result));
    return AddInferred(graph, MulOp::kName, {left, right}, {}, node.name);
  }
  if (columns.empty()) {
    const std::string kept = batch + rows;
    ASSIGN_OR_RETURN(left, Spread(graph, left, left_labels, kept + inner));
    ASSIGN_OR_RETURN(right, Spread(graph, right, right_labels, kept + inner));
    ASSIGN_OR_RETURN(const ValueId products, AddInferred(graph, MulOp::kName, {left, right}));
    ASSIGN_OR_RETURN(const ValueId sums, SumBehind(graph, products, kept.size(), node.name));
    return Permute(graph, sums, kept, equation->result);
  }

  const int64_t k = Product(graph, left, left_labels, inner);
  Shape left_shape, right_shape, result_shape;
  for (char label : batch) {
    left_shape.push_back(Product(graph, left, left_labels, std::string(1, label)));
  }
  right_shape = left_shape;
  result_shape = left_shape;
  // Where there is no batch, rows keep their dims, so that they stay rows of tokens.
  for (char label : rows) {
    const int64_t size = Product(graph, left, left_labels, std::string(1, label));
    result_shape.push_back(size);
    if (batch.empty()) left_shape.push_back(size);
  }
  if (!batch.empty()) left_shape.push_back(Product(graph, left, left_labels, rows));
  left_shape.push_back(k);
  right_shape.push_back(k);
  right_shape.push_back(Product(graph, right, right_labels, columns));
  for (char label : columns) {
    result_shape.push_back(Product(graph, right, right_labels, std::string(1, label)));
  }
  if (left_shape.size() < 2) return kNone;

  ASSIGN_OR_RETURN(left, Permute(graph, left, left_labels, batch + rows + inner));
  ASSIGN_OR_RETURN(left, AddReshape(graph, left, left_shape));
  ASSIGN_OR_RETURN(right, Permute(graph, right, right_labels, batch + inner + columns));
  ASSIGN_OR_RETURN(right, AddReshape(graph, right, right_shape));
  ASSIGN_OR_RETURN(ValueId result,
                   AddInferred(graph, MatMulOp::kName, {left, right}, {}, node.name));
  ASSIGN_OR_RETURN(result, AddReshape(graph, result, result_shape));
  return Permute(graph, result, batch + rows + columns, equation->result);
}

absl::StatusOr<ValueId> SplitFeaturesRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if ((node.op != AddOp::kName && node.op != MulOp::kName) || !IsFloat32(graph, node.outputs[0]))
    return kNone;
  for (int side = 0; side < 2; ++side) {
    const Node* reshape = graph.ProducerIf(node.inputs[side], ReshapeOp::kName);
    const ValueId weight = node.inputs[1 - side];
    if (reshape == nullptr || !IsWeight(graph, weight)) continue;
    const Shape before = *ShapeOf(graph, reshape->inputs[0]);
    const Shape after = *ShapeOf(graph, node.inputs[side]);
    const Shape split = *ShapeOf(graph, weight);
    const ValueId source = reshape->inputs[0];
    if (split.size() < 2 || split.size() >= after.size() || before.size() < 2 ||
        before.back() != NumElements(split) ||
        !std::equal(split.rbegin(), split.rend(), after.rbegin()) ||
        !HasShape(graph, node.outputs[0], after)) {
      continue;
    }
    ASSIGN_OR_RETURN(const ValueId flat, AddReshape(graph, weight, {before.back()}));
    ASSIGN_OR_RETURN(const ValueId result,
                     AddInferred(graph, node.op, {source, flat}, {}, node.name));
    return AddReshape(graph, result, after);
  }
  return kNone;
}

}  // namespace reprise

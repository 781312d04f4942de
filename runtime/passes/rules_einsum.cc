#include <algorithm>

#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "runtime/passes/rewrite.h"
#include "runtime/passes/rules.h"

namespace reprise {
namespace {

bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

bool AllDistinct(std::string labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) == labels.end();
}

// "abc,cd->abd" as labels of left, right and result; nullopt for another number of operands, a
// diagonal, an ellipsis or no arrow.
struct Equation {
  std::string left, right, result;
};
std::optional<Equation> ParseEquation(const Node& node) {
  const std::string text = absl::StrReplaceAll(node.attributes.String("equation", ""), {{" ", ""}});
  const size_t comma = text.find(',');
  const size_t arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      text.find(',', comma + 1) != std::string::npos || Has(text, '.')) {
    return std::nullopt;
  }
  Equation equation = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1),
                       text.substr(arrow + 2)};
  const bool distinct =
      AllDistinct(equation.left) && AllDistinct(equation.right) && AllDistinct(equation.result);
  return distinct ? std::make_optional(equation) : std::nullopt;
}

// The dims of `value` with labels `from`, in the order `to`.
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
    return AddWeight(graph, "Transpose", {{"perm", perm}}, {value}, graph.value(value).dtype,
                     shape);
  }
  return AddInferred(graph, "Transpose", {value}, {{"perm", perm}});
}

int64_t Product(const Graph& graph, ValueId value, const std::string& labels,
                const std::string& wanted) {
  int64_t product = 1;
  for (char label : wanted) product *= (*ShapeOf(graph, value))[labels.find(label)];
  return product;
}

}  // namespace

absl::StatusOr<ValueId> EinsumRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (node.op != "Einsum" || node.inputs.size() != 2 || !IsFloat32(graph, node.outputs[0])) {
    return kNone;
  }
  std::optional<Equation> equation = ParseEquation(node);
  if (!equation.has_value() || equation->result.empty()) return kNone;
  ValueId left = node.inputs[0];
  ValueId right = node.inputs[1];
  // The result's last dim comes from the right operand: rows on the left, columns on the right.
  if (!Has(equation->right, equation->result.back())) {
    std::swap(left, right);
    std::swap(equation->left, equation->right);
  }
  std::string batch, rows, inner, columns;
  for (char label : equation->left) {
    const bool shared = Has(equation->right, label);
    const bool kept = Has(equation->result, label);
    if (!shared && !kept) return kNone;  // A sum over one operand alone.
    (shared ? kept ? batch : inner : rows) += label;
    if (shared && Product(graph, left, equation->left, std::string(1, label)) !=
                      Product(graph, right, equation->right, std::string(1, label))) {
      return kNone;  // One of them is repeated.
    }
  }
  for (char label : equation->right) {
    if (Has(equation->left, label)) continue;
    if (!Has(equation->result, label)) return kNone;
    columns += label;
  }
  if (inner.empty() || columns.empty()) return kNone;

  const int64_t k = Product(graph, left, equation->left, inner);
  Shape left_shape, right_shape, result_shape;
  for (char label : batch) {
    left_shape.push_back(Product(graph, left, equation->left, std::string(1, label)));
  }
  right_shape = left_shape;
  result_shape = left_shape;
  // Without a batch the rows keep their dims, so that they stay rows of tokens.
  for (char label : rows) {
    const int64_t size = Product(graph, left, equation->left, std::string(1, label));
    result_shape.push_back(size);
    if (batch.empty()) left_shape.push_back(size);
  }
  if (!batch.empty()) left_shape.push_back(Product(graph, left, equation->left, rows));
  left_shape.push_back(k);
  right_shape.push_back(k);
  right_shape.push_back(Product(graph, right, equation->right, columns));
  for (char label : columns) {
    result_shape.push_back(Product(graph, right, equation->right, std::string(1, label)));
  }
  if (left_shape.size() < 2) return kNone;

  ASSIGN_OR_RETURN(left, Permute(graph, left, equation->left, batch + rows + inner));
  ASSIGN_OR_RETURN(left, AddReshape(graph, left, left_shape));
  ASSIGN_OR_RETURN(right, Permute(graph, right, equation->right, batch + inner + columns));
  ASSIGN_OR_RETURN(right, AddReshape(graph, right, right_shape));
  ASSIGN_OR_RETURN(ValueId result, AddInferred(graph, "MatMul", {left, right}, {}, node.name));
  ASSIGN_OR_RETURN(result, AddReshape(graph, result, result_shape));
  return Permute(graph, result, batch + rows + columns, equation->result);
}

absl::StatusOr<ValueId> SplitFeaturesRule(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if ((node.op != "Add" && node.op != "Mul") || !IsFloat32(graph, node.outputs[0])) return kNone;
  for (int side = 0; side < 2; ++side) {
    const Node* reshape = graph.ProducerIf(node.inputs[side], "Reshape");
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

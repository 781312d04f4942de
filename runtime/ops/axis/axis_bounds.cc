// Bounds of an op's numbers, whatever the inputs of the model hold: never negative, never below
// one, never zero, never infinite.
#include <cmath>
#include <set>

#include "absl/algorithm/container.h"
#include "runtime/ops/axis/axis_rule.h"

namespace reprise {
namespace {

using Source = AxisFlowValue::Source;

// Producers that are looked through for a bound.
constexpr int kDeepest = 6;
// Powers that make nothing infinite of what models compute with.
constexpr double kLargestPower = 4;

}  // namespace

bool AxisContext::IsAtLeastOne(size_t i) const {
  const auto is_bound = [&](ValueId value) {
    const Tensor* tensor = graph_.ConstantOf(value);
    return tensor != nullptr &&
           absl::c_all_of(tensor->ToDoubles(), [](double one) { return one >= 1; });
  };
  const ValueId value = node_.input(i);
  if (value == kNone) return false;
  if (is_bound(value)) return true;
  for (const absl::string_view op : {"Add", "Max", "Clip", "Exp"}) {
    const Node* node = graph_.ProducerIf(value, op);
    if (node == nullptr) continue;
    const auto nonnegative = [&](size_t k) {
      return node->input(k) != kNone && flows_[node->inputs[k]].nonnegative;
    };
    if (op == "Exp") return nonnegative(0);
    if (op == "Clip") return node->input(1) != kNone && is_bound(node->input(1));
    bool any_bound = false, all_nonnegative = true;
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      any_bound = any_bound || is_bound(node->inputs[k]);
      all_nonnegative = all_nonnegative && nonnegative(k);
    }
    return any_bound && (op == "Max" || all_nonnegative);
  }
  return false;
}

bool AxisContext::IsNonnegative(size_t output) const {
  static const auto* const kAlways =
      new std::set<absl::string_view>{"Relu",        "Abs",         "Sigmoid",
                                      "HardSigmoid", "Exp",         "Sqrt",
                                      "Softplus",    "Equal",       "Less",
                                      "Greater",     "LessOrEqual", "GreaterOrEqual",
                                      "Not",         "And",         "Or",
                                      "Xor",         "IsNaN",       "IsInf",
                                      "ArgMax",      "ArgMin",      "Shape",
                                      "Size",        "NonZero",     "Softmax",
                                      "ReduceL1",    "ReduceL2",    "ReduceSumSquare",
                                      "Hardmax"};
  // Ops whose results are not negative where no operand is negative.
  static const auto* const kOfThem =
      new std::set<absl::string_view>{"Mul",           "Add",
                                      "Div",           "Sum",
                                      "Mean",          "Min",
                                      "Max",           "ReduceSum",
                                      "ReduceMean",    "ReduceMax",
                                      "ReduceMin",     "ReduceProd",
                                      "Concat",        "Transpose",
                                      "Reshape",       "Squeeze",
                                      "Unsqueeze",     "Flatten",
                                      "Identity",      "Dropout",
                                      "Expand",        "Tile",
                                      "Slice",         "Split",
                                      "Gather",        "GatherElements",
                                      "GatherND",      "CumSum",
                                      "Where",         "Cast",
                                      "MaxPool",       "AveragePool",
                                      "GlobalMaxPool", "GlobalAveragePool",
                                      "Pow",           "MatMul",
                                      "Floor",         "Ceil",
                                      "Round"};
  const std::string& op = node_.op;
  const DType dtype = graph_.value(node_.outputs[output]).dtype;
  if (IsNeverNegative(dtype) || kAlways->contains(op)) return true;
  if (op == "Mul" && node_.inputs[0] == node_.inputs[1]) return true;
  if (op == "TopK" && output == 1) return true;
  if (op == "Log") return IsAtLeastOne(0);
  // Remainders have the sign of what is divided by; with `fmod` that of what is divided.
  if (op == "Mod") return input(attributes().Int("fmod", 0) != 0 ? 0 : 1).nonnegative;
  if (op == "Pow") {
    const std::optional<double> power = Uniform(1);
    if (power.has_value() && std::fmod(*power, 2) == 0) return true;
  }
  if (op == "Clip" || op == "Max") {
    for (size_t i = 0; i < num_inputs(); ++i) {
      const bool bound = op == "Max" || i == 1;
      if (bound && has_input(i) && input(i).nonnegative) return true;
    }
  }
  if (!kOfThem->contains(op)) return false;
  const OpRow* row = FindOp(op);
  for (size_t i = 0; i < num_inputs(); ++i) {
    const bool places =
        i == 1 && (op == "Gather" || op == "GatherElements" || op == "GatherND" || op == "CumSum");
    const bool counts =
        has_input(i) && !row->IsValueInput(i) && !(op == "Where" && i == 0) && !places;
    if (counts && !input(i).nonnegative) return false;
  }
  return true;
}

bool AxisContext::IsPositive(ValueId value, int depth) const {
  if (value == kNone || depth > kDeepest) return false;
  if (const Tensor* tensor = graph_.ConstantOf(value)) {
    return absl::c_all_of(tensor->ToDoubles(), [](double one) { return one > 0; });
  }
  const NodeId producer = graph_.value(value).producer;
  if (producer == kNone) return false;
  const Node& node = graph_.node(producer);
  static const auto* const kKeep = new std::set<absl::string_view>{
      "Sqrt", "Identity",  "Cast",       "Unsqueeze", "Squeeze",   "Reshape",   "Expand",
      "Pow",  "Transpose", "ReduceMean", "Dropout",   "ReduceMax", "ReduceMin", "ReduceSum"};
  const auto is_positive = [&](ValueId input) { return IsPositive(input, depth + 1); };
  if (node.op == "Exp" || kKeep->contains(node.op)) {
    return node.op == "Exp" || is_positive(node.input(0));
  }
  if (node.op == "Clip") return is_positive(node.input(1));
  if (node.op == "Max") return absl::c_any_of(node.inputs, is_positive);
  if (node.op == "Mul" || node.op == "Where") {
    const size_t first = node.op == "Where" ? 1 : 0;
    return is_positive(node.input(first)) && is_positive(node.input(first + 1));
  }
  if (node.op != "Add") return false;
  return absl::c_any_of(node.inputs, is_positive) &&
         absl::c_all_of(node.inputs, [&](ValueId input) {
           return flows_[input].nonnegative || is_positive(input);
         });
}

bool AxisContext::IsNotPositive(ValueId value) const {
  if (const Node* negated = graph_.ProducerIf(value, "Neg")) {
    return flows_[negated->inputs[0]].nonnegative;
  }
  // Less the largest of them.
  const Node* difference = graph_.ProducerIf(value, "Sub");
  if (difference == nullptr) return false;
  const Node* largest = graph_.ProducerIf(difference->inputs[1], "ReduceMax");
  return largest != nullptr && largest->inputs[0] == difference->inputs[0];
}

bool AxisContext::MayOverflow() const {
  const std::string& op = node_.op;
  if (op == "Exp") return !IsNotPositive(node_.inputs[0]);
  if (op == "Log") return !IsAtLeastOne(0) && !IsPositive(node_.inputs[0]);
  if (op == "Sqrt") return !input(0).nonnegative && !IsPositive(node_.inputs[0]);
  if (op == "Reciprocal") return !IsPositive(node_.inputs[0]);
  if (op == "Div") {
    const Tensor* by = graph_.ConstantOf(node_.inputs[1]);
    const bool by_none = by != nullptr && !absl::c_linear_search(by->ToDoubles(), 0.0);
    return !by_none && !IsPositive(node_.inputs[1]);
  }
  if (op == "Pow") {
    const std::optional<double> power = Uniform(1);
    if (!power.has_value() || std::abs(*power) > kLargestPower) return true;
    const bool whole = *power == std::round(*power);
    if (*power >= 0) return !whole && !input(0).nonnegative && !IsPositive(node_.inputs[0]);
    return !IsPositive(node_.inputs[0]);
  }
  static const auto* const kOthers = new std::set<absl::string_view>{
      "Tan", "Sinh", "Cosh", "Atanh", "Acosh", "Acos", "Asin", "ReduceLogSum"};
  return kOthers->contains(op);
}

bool AxisContext::MayBeUnbounded() const {
  const OpRow* row = FindOp(node_.op);
  // A number that is divided by an infinite one becomes zero.
  const bool divides =
      (node_.op == "Div" && IsPositive(node_.inputs[1])) || node_.op == "Reciprocal";
  bool data = false;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!has_input(i) || row->IsValueInput(i)) continue;
    data = data || input(i).source == Source::kData;
    const bool divisor = divides && (i == 1 || node_.op == "Reciprocal");
    if (input(i).unbounded && !divisor) return true;
  }
  const bool floats = has_output(0) && IsFloating(graph_.value(node_.outputs[0]).dtype);
  return data && floats && MayOverflow();
}

bool AxisContext::MayBeInfiniteAt(size_t i, int64_t dim) const {
  const Positions* positions = input(i).At(dim);
  return positions != nullptr && input(i).unbounded && !positions->settled &&
         positions->padding.kind == PaddingValue::Kind::kUnknown;
}

}  // namespace reprise

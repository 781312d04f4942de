#include "tests/fuzz/random_models/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "tests/fuzz/random_models/tensor_numbers.h"

namespace reprise::fuzz {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 28;
constexpr int64_t kMostTurns = 4096;

// Ops whose float results are elements of their operands, or exact functions of them.
bool RoundsNothing(const OpRow& row) {
  static constexpr absl::string_view kExact[] = {"Abs",
                                                 "Neg",
                                                 "Sign",
                                                 "Relu",
                                                 "Ceil",
                                                 "Floor",
                                                 "Round",
                                                 "Identity",
                                                 "Max",
                                                 "Min",
                                                 "Where",
                                                 "Clip",
                                                 "CastLike",
                                                 "Dropout",
                                                 "Transpose",
                                                 "Concat",
                                                 "Split",
                                                 "Slice",
                                                 "Expand",
                                                 "Tile",
                                                 "Pad",
                                                 "Trilu",
                                                 "DepthToSpace",
                                                 "SpaceToDepth",
                                                 "ReverseSequence",
                                                 "Gather",
                                                 "GatherElements",
                                                 "GatherND",
                                                 "OneHot",
                                                 "ReduceMax",
                                                 "ReduceMin",
                                                 "TopK",
                                                 "MaxPool",
                                                 "GlobalMaxPool",
                                                 "Compress",
                                                 "Unique",
                                                 "Hardmax",
                                                 "Range",
                                                 "ConstantOfShape",
                                                 "EyeLike"};
  if (row.Has(kView)) return true;
  for (const absl::string_view op : kExact) {
    if (row.name == op) return true;
  }
  return false;
}

// Ops that only add and multiply: their results are exact where these are small binary fractions.
bool AddsAndMultiplies(absl::string_view op) {
  static constexpr absl::string_view kOps[] = {
      "Add",      "Sub",    "Mul",  "Sum",           "MatMul",     "com.microsoft.FusedMatMul",
      "Gemm",     "Einsum", "Conv", "ConvTranspose", "ReduceSum",  "ReduceSumSquare",
      "ReduceL1", "CumSum", "Cast", "Det",           "ReduceProd", "CumProd"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Ops whose results jump where an operand changes by little.
bool JumpsAt(const Node& node, const Graph& graph) {
  static constexpr absl::string_view kOps[] = {"Sign",
                                               "Ceil",
                                               "Floor",
                                               "Round",
                                               "Mod",
                                               "ArgMax",
                                               "ArgMin",
                                               "TopK",
                                               "Hardmax",
                                               "Unique",
                                               "NonZero",
                                               "NonMaxSuppression",
                                               "Compress",
                                               "Shrink",
                                               "ThresholdedRelu",
                                               "QuantizeLinear",
                                               "DynamicQuantizeLinear",
                                               "com.microsoft.DynamicQuantizeMatMul",
                                               "com.microsoft.DynamicQuantizeLSTM"};
  if (FactsOf(node.op).Is(kComparison) || absl::StrContains(node.op, "QLinear")) return true;
  if (node.op == "Cast" || node.op == "CastLike") {
    return !IsFloating(graph.value(node.outputs[0]).dtype);
  }
  return absl::c_linear_search(kOps, node.op);
}

// Ops of single elements that round each by itself: by how much its own size says.
bool RoundsByElement(absl::string_view op) {
  return op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Sum";
}

double StepOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 1.0 / 1024;
    case DType::kBFloat16:
      return 1.0 / 128;
    case DType::kFloat64:
      return 1e-15;
    default:
      return 1.2e-7;
  }
}

// Sums and products of small binary fractions are exact in whatever order they are taken.
bool IsShortFraction(double value) {
  return std::fabs(value) < 4096 && value * 256 == std::rint(value * 256);
}

}  // namespace

std::vector<bool> DependsOnData(const Graph& graph) {
  std::vector<bool> data(graph.num_values());
  for (const ValueId id : graph.inputs()) data[id] = true;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpRow* row = FindOp(node.op);
    bool any = row != nullptr && row->Has(kNoFold);
    if (row == nullptr || !row->Has(kShapeOnly)) {
      for (const ValueId input : node.inputs) any = any || (input != kNone && data[input]);
    }
    for (const ValueId output : node.outputs) {
      if (output != kNone) data[output] = any;
    }
  }
  return data;
}

Tensor Noise::Disturb(const Tensor& tensor, absl::string_view op) {
  Numbers numbers = FromTensor(tensor);
  if (AddsAndMultiplies(op) && absl::c_all_of(numbers.values, IsShortFraction)) return tensor;
  std::uniform_real_distribution<double> shift(-4, 4);
  const double step = StepOf(tensor.dtype());
  // Numbers that a mask made low are no measure of the other scores.
  const double largest = RoundsByElement(op) ? 0 : LargestOf(tensor);
  // Terms may be far larger than their sum.
  for (double& value : numbers.values) {
    value += step * (value * shift(random_) + largest * shift(random_) / 4);
  }
  return ToTensor(numbers);
}

Tensor Noise::DisturbAtStep(const Tensor& tensor) {
  Numbers numbers = FromTensor(tensor);
  const double largest = LargestOf(tensor);
  std::uniform_real_distribution<double> shift(-at_steps_, at_steps_);
  // Elements that are equal fall on one side of a step in any one way to compute them.
  enum class Which { kEach, kEqualAlike, kAllAlike };
  const auto which = static_cast<Which>(random_() % 3);
  const double factor = shift(random_), offset = shift(random_);
  std::map<int64_t, double> of_equal;
  for (double& value : numbers.values) {
    if (which == Which::kAllAlike || !std::isfinite(value) || largest == 0) {
      value += factor * value + offset * largest;
    } else if (which == Which::kEach) {
      value += shift(random_) * largest;
    } else {
      const auto alike = of_equal.try_emplace(std::llrint(value / largest / at_steps_ / 16));
      if (alike.second) alike.first->second = shift(random_);
      value += alike.first->second * largest;
    }
  }
  return ToTensor(numbers);
}

Evaluation::Evaluation(const Graph& graph, const std::vector<Tensor>& inputs, Noise* noise)
    : graph_(graph), noise_(noise), values_(graph.num_values()) {
  if (noise_ != nullptr) data_ = DependsOnData(graph);
  for (size_t i = 0; i < inputs.size(); ++i) values_[graph.inputs()[i]] = inputs[i];
}

absl::StatusOr<std::vector<Tensor>> Evaluation::Outputs() {
  std::vector<Tensor> outputs;
  for (const ValueId id : graph_.outputs()) {
    ASSIGN_OR_RETURN(outputs.emplace_back(), ValueOf(id));
  }
  return outputs;
}

absl::StatusOr<Tensor> Evaluation::ValueOf(ValueId id) {
  if (values_[id].has_value()) return *values_[id];
  const Value& value = graph_.value(id);
  if (value.kind == Value::Kind::kConstant) return value.constant;
  if (value.producer == kNone) {
    return absl::InvalidArgumentError(absl::StrCat("'", value.name, "' has no value"));
  }
  RETURN_IF_ERROR(Run(value.producer));
  if (!values_[id].has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("'", value.name, "' is left out"));
  }
  return *values_[id];
}

absl::Status Evaluation::Run(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op == "If") return RunIf(node);
  if (node.op == "Loop") return RunLoop(node);
  std::vector<std::optional<Tensor>> operands;
  for (const ValueId input : node.inputs) {
    operands.emplace_back();
    if (input == kNone) continue;
    ASSIGN_OR_RETURN(operands.back(), ValueOf(input));
  }
  if (noise_ != nullptr && noise_->disturbs_steps() && JumpsAt(node, graph_)) {
    for (auto& operand : operands) {
      if (operand.has_value() && IsFloating(operand->dtype())) {
        operand = noise_->DisturbAtStep(*operand);
      }
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
  looked_up_nothing_ =
      looked_up_nothing_ || (FactsOf(node.op).Is(kLooksUp) && results[0].num_elements() == 0);
  const bool rounds = noise_ != nullptr && !RoundsNothing(*FindOp(node.op));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNone) continue;
    const bool noisy = rounds && IsFloating(results[i].dtype()) && data_[id];
    values_[id] = noisy ? noise_->Disturb(results[i], node.op) : results[i];
  }
  return absl::OkStatus();
}

absl::Status Evaluation::RunIf(const Node& node) {
  ASSIGN_OR_RETURN(const Tensor condition, ValueOf(node.inputs[0]));
  ASSIGN_OR_RETURN(const std::vector<int64_t> taken, condition.ToInt64s());
  if (taken.size() != 1) return absl::InvalidArgumentError("a condition of several elements");
  const size_t results = node.outputs.size();
  for (size_t i = 0; i < results; ++i) {
    const ValueId from = node.inputs[1 + i + (taken[0] != 0 ? 0 : results)];
    ASSIGN_OR_RETURN(values_[node.outputs[i]], ValueOf(from));
  }
  return absl::OkStatus();
}

// Carried values alone: no drawn loop stacks the results of its turns.
absl::Status Evaluation::RunLoop(const Node& node) {
  const LoopParts parts(node);
  const NodeId step = StepOf(graph_, node);
  int64_t turns = kMostTurns;
  if (node.inputs[LoopParts::kTripCount] != kNone) {
    ASSIGN_OR_RETURN(const Tensor count, ValueOf(node.inputs[LoopParts::kTripCount]));
    ASSIGN_OR_RETURN(const std::vector<int64_t> counts, count.ToInt64s());
    turns = std::min(counts.at(0), kMostTurns);
  }
  std::vector<Tensor> carried;
  for (size_t i = 0; i < parts.carried; ++i) {
    ASSIGN_OR_RETURN(carried.emplace_back(), ValueOf(node.inputs[LoopParts::kFirstCarried + i]));
  }
  bool goes_on = true;
  for (int64_t turn = 0; goes_on && turn < turns; ++turn) {
    const std::vector<std::optional<Tensor>> outside = values_;
    if (step != kNone) {
      const std::vector<ValueId>& given = graph_.node(step).outputs;
      const auto give = [&](size_t i, const Tensor& tensor) {
        if (given[i] != kNone) values_[given[i]] = tensor;
      };
      give(LoopParts::kStepIteration, Tensor::Int64Scalar(turn));
      give(LoopParts::kStepCondition, Tensor::FromVector<uint8_t>(DType::kBool, {}, {1}));
      for (size_t i = 0; i < carried.size(); ++i)
        give(LoopParts::kStepFirstCarried + i, carried[i]);
    }
    ASSIGN_OR_RETURN(const Tensor condition, ValueOf(node.inputs[parts.first_result]));
    ASSIGN_OR_RETURN(const std::vector<int64_t> keep, condition.ToInt64s());
    goes_on = keep.at(0) != 0;
    std::vector<Tensor> next;
    for (size_t i = 0; i < parts.carried; ++i) {
      ASSIGN_OR_RETURN(next.emplace_back(), ValueOf(node.inputs[parts.first_result + 1 + i]));
    }
    carried = std::move(next);
    values_ = outside;
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    if (node.outputs[i] != kNone) values_[node.outputs[i]] = carried[i];
  }
  return absl::OkStatus();
}

}  // namespace reprise::fuzz

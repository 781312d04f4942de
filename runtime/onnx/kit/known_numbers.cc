#include "runtime/onnx/kit/known_numbers.h"

#include <utility>

#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

constexpr int kMaxNodesRun = 64;          // the nodes that are run for one value
constexpr int64_t kMaxBytes = 64 * 1024;  // the limit for the result of each of them

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {}

  std::optional<Tensor> Of(ValueId id) {
    const Value& value = graph_.value(id);
    if (value.overridable) return std::nullopt;
    if (const Tensor* constant = graph_.ConstantOf(id)) return *constant;
    if (value.kind != Value::Kind::kResult || --nodes_left_ < 0) return std::nullopt;
    const Node& node = graph_.node(value.producer);
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || row->Has(kNoFold) || node.outputs.size() != 1) return std::nullopt;
    std::vector<std::optional<Tensor>> operands;
    for (const ValueId input : node.inputs) {
      operands.emplace_back();
      if (input == kNone) continue;
      operands.back() = Of(input);
      if (!operands.back().has_value()) return std::nullopt;
    }
    auto results = Evaluate(node, operands, kMaxBytes);
    if (!results.ok()) return std::nullopt;
    return std::move(results->front());
  }

 private:
  const Graph& graph_;
  int nodes_left_ = kMaxNodesRun;
};

}  // namespace

std::optional<std::vector<int64_t>> KnownNumbers(const Graph& graph, ValueId value) {
  const std::optional<Tensor> tensor = Walk(graph).Of(value);
  if (!tensor.has_value() || IsFloating(tensor->dtype())) return std::nullopt;
  const auto numbers = tensor->ToInt64s();
  if (!numbers.ok()) return std::nullopt;
  return std::vector<int64_t>(numbers->begin(), numbers->end());
}

std::optional<int64_t> KnownRank(const Value& value) {
  if (value.kind == Value::Kind::kInput) return static_cast<int64_t>(value.dims.size());
  if (!value.shape.has_value()) return std::nullopt;
  return static_cast<int64_t>(value.shape->size());
}

std::optional<int64_t> KnownDim(const Value& value, int64_t axis) {
  const int64_t rank = KnownRank(value).value_or(0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  if (value.kind != Value::Kind::kInput) return (*value.shape)[axis];
  const Dim& dim = value.dims[axis];
  return dim.symbol.empty() ? std::optional(dim.size) : std::nullopt;
}

}  // namespace reprise

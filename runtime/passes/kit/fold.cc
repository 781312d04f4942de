#include "runtime/passes/kit/fold.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/products/matmul_op.h"

namespace reprise {
namespace {

// Results that are folded whatever was folded before.
constexpr int64_t kSmallBytes = 4096;
constexpr double kSmallWork = 4096;

// Returns an upper bound of the steps that `node` takes over `inputs`, except for making the
// result.
double WorkOf(const Node& node, const std::vector<std::optional<Tensor>>& inputs) {
  if (!FactsOf(node.op).Is(kHeavy)) {
    double elements = 0;
    for (const std::optional<Tensor>& input : inputs) {
      if (input.has_value()) elements += static_cast<double>(input->num_elements());
    }
    return elements;
  }
  if (node.op == MatMulOp::kName && inputs.size() == 2 && inputs[1]->shape().size() >= 2) {
    const auto left = static_cast<double>(inputs[0]->num_elements());
    const auto right = static_cast<double>(inputs[1]->num_elements());
    const Shape& shape = inputs[0]->shape();
    const double rows = shape.size() < 2 ? 1 : static_cast<double>(shape[shape.size() - 2]);
    return std::max(left * static_cast<double>(inputs[1]->shape().back()), right * rows);
  }
  // Each element of one operand with each of the others.
  double work = 1;
  for (const std::optional<Tensor>& input : inputs) {
    if (input.has_value()) work *= std::max<double>(1, static_cast<double>(input->num_elements()));
  }
  // Windows lie over one operand.
  return inputs.size() == 1 ? work * work : work;
}

// Beside its operands and its result a node that is folded holds no more than this.
constexpr int64_t kMostScratchBytes = int64_t{256} << 20;

// Questions of a watch after which a node is left to the graph's runs: some 0.2 s of plain loops.
// WorkOf only guesses.
constexpr int kMostLooks = (int64_t{1} << 28) / WorkWatch::kStepsPerLook;

// Watches a node that is folded: it ends when the walk does that folds it.
class FoldWatch final : public WorkWatch {
 public:
  FoldWatch() : FoldWatch(WorkWatch::current()) {}
  bool Ends() const override {
    return ++looks_ > kMostLooks || (walk_ != nullptr && walk_->Ends());
  }

 private:
  explicit FoldWatch(const WorkWatch* walk) : WorkWatch(kMostScratchBytes), walk_(walk) {}

  const WorkWatch* const walk_;
  mutable int looks_ = 0;
};

}  // namespace

FoldAllowance::FoldAllowance(const Graph& graph, int64_t largest, int64_t total)
    : largest_(largest), left_(total) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != Value::Kind::kConstant) continue;
    const auto bytes = static_cast<int64_t>(value.constant.bytes());
    if (bytes > kSmallBytes) left_ -= bytes;
  }
}

absl::StatusOr<bool> FoldAllowance::Fold(Graph& graph, NodeId id) {
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  const int64_t most = std::min(largest_, std::max(kSmallBytes, left_));
  ASSIGN_OR_RETURN(const bool folded, FoldNode(graph, id, most, &work_left_));
  if (!folded) return false;
  for (const ValueId output : outputs) {
    if (output == kNone || graph.value(output).kind != Value::Kind::kConstant) continue;
    const auto bytes = static_cast<int64_t>(graph.value(output).constant.bytes());
    if (bytes > kSmallBytes) left_ -= bytes;
  }
  return true;
}

absl::StatusOr<bool> FoldNode(Graph& graph, NodeId id, int64_t max_bytes, double* work_left) {
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  if (row == nullptr || row->Has(kNoFold)) return false;
  std::vector<std::optional<Tensor>> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId input : node.inputs) {
    if (input == kNone) {
      inputs.emplace_back();
      continue;
    }
    const Value& value = graph.value(input);
    if (value.kind == Value::Kind::kConstant && !value.overridable) {
      inputs.emplace_back(value.constant);
    } else if (row->Has(kShapeOnly) && value.shape.has_value() && !value.overridable &&
               value.dtype != DType::kUndefined) {
      inputs.emplace_back(Tensor(value.dtype, *value.shape, nullptr));
    } else {
      return false;
    }
  }
  const double work = row->Has(kShapeOnly) ? 0 : WorkOf(node, inputs);
  const bool small = work <= kSmallWork;
  if (!small && work > (work_left == nullptr ? FoldAllowance::kMostWork : *work_left)) return false;
  if (!small && work_left != nullptr) *work_left -= work;
  bool ended = false;
  const auto evaluate = [&] {
    FoldWatch watch;
    auto results = Evaluate(node, inputs, max_bytes);
    ended = !results.ok() && watch.ended();
    return results;
  };
  auto outputs = evaluate();
  if (ended && work_left != nullptr) *work_left = 0;
  if (!outputs.ok()) {
    const absl::StatusCode code = outputs.status().code();
    if (code == absl::StatusCode::kInvalidArgument) return outputs.status();
    return false;  // Too large, or no kernel: it is computed when the graph runs.
  }
  const std::vector<ValueId> results = node.outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == kNone || graph.value(results[i]).kind != Value::Kind::kResult) continue;
    graph.ReplaceWithConstant(results[i], std::move((*outputs)[i]));
  }
  return true;
}

}  // namespace reprise

#include "runtime/lazy/numbers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise::lazy {
namespace {

// Runs of the passes that finding out may cost; numbers that are not decided by then are held.
constexpr int kMostRuns = 64;

// Arithmetic of two operands and moves, which passes put into canonical forms whatever the numbers
// are.
bool IsPlain(const Node& node) {
  const OpRow* row = FindOp(node.op);
  return (row != nullptr && row->Has(kElementwise) && node.inputs.size() == 2) ||
         FactsOf(node.op).OnlyMoves();
}

// Ops that passes made of others, and how many; empty where the graph cannot be compiled.
using FusedOps = std::map<std::string, int>;

FusedOps FusedOf(const std::vector<TracedValuePtr>& wanted, const std::vector<bool>& held) {
  Graph symbolic = GraphOf(wanted, {.held = &held}).graph;
  std::set<std::string> before;
  for (const NodeId id : symbolic.NodeIds()) before.insert(symbolic.node(id).op);
  if (symbolic.NodeIds().size() < 2 || !symbolic.Compact() ||
      !RunLoadPasses(symbolic, {.verify = false}).ok())
    return {};
  absl::StatusOr<Graph> graph = Specialize(symbolic, {});
  if (!graph.ok() || !RunCapturePasses(*graph, {.verify = false}).ok()) return {};
  FusedOps fused;
  for (const NodeId id : graph->NodeIds()) {
    const Node& node = graph->node(id);
    if (!before.contains(node.op) && !IsPlain(node)) ++fused[node.op];
  }
  return fused;
}

// Releases numbers of [begin, end) from `held` where the passes make `wished` without them.
class Releaser {
 public:
  Releaser(const std::vector<TracedValuePtr>& wanted, const FusedOps& wished,
           std::vector<bool>& held)
      : wanted_(wanted), wished_(wished), held_(held) {}

  void Release(size_t begin, size_t end) {
    if (begin == end || runs_ == kMostRuns) return;
    const auto set = [&](bool value) {
      std::fill(held_.begin() + static_cast<int64_t>(begin),
                held_.begin() + static_cast<int64_t>(end), value);
    };
    set(false);
    ++runs_;
    if (FusedOf(wanted_, held_) == wished_) return;
    set(true);
    if (end - begin == 1) return;
    const size_t middle = begin + (end - begin) / 2;
    Release(begin, middle);
    Release(middle, end);
  }

 private:
  const std::vector<TracedValuePtr>& wanted_;
  const FusedOps& wished_;
  std::vector<bool>& held_;
  int runs_ = 0;
};

}  // namespace

reprise::Tensor ScalarOf(double number, DType dtype) {
  return reprise::Tensor::Make(dtype, {}, [&](void* to) {
    const auto set = [&]<typename T>(T value) { std::memcpy(to, &value, sizeof(value)); };
    switch (dtype) {
      case DType::kFloat64:
        return set(number);
      case DType::kFloat16:
        return set(FloatToHalf(static_cast<float>(number)));
      case DType::kBFloat16:
        return set(FloatToBFloat16(static_cast<float>(number)));
      case DType::kInt64:
        return set(static_cast<int64_t>(number));
      case DType::kUInt64:
        return set(static_cast<uint64_t>(number));
      case DType::kInt32:
        return set(static_cast<int32_t>(number));
      case DType::kUInt32:
        return set(static_cast<uint32_t>(number));
      case DType::kInt16:
        return set(static_cast<int16_t>(number));
      case DType::kUInt16:
        return set(static_cast<uint16_t>(number));
      case DType::kInt8:
        return set(static_cast<int8_t>(number));
      case DType::kUInt8:
        return set(static_cast<uint8_t>(number));
      case DType::kBool:
        return set(static_cast<uint8_t>(number != 0));
      default:
        return set(static_cast<float>(number));
    }
  });
}

std::vector<bool> NumbersToHold(const std::vector<TracedValuePtr>& wanted, size_t numbers) {
  std::vector<bool> held(numbers, true);
  const FusedOps wished = FusedOf(wanted, held);
  if (wished.empty()) return std::vector<bool>(numbers, false);
  Releaser(wanted, wished, held).Release(0, numbers);
  return held;
}

}  // namespace reprise::lazy

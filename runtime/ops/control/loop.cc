#include "runtime/ops/control/loop.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/control/control_op.h"

namespace reprise {
namespace ops {
namespace {

constexpr char kNotHere[] = "it runs iteration by iteration, in no recipe";

}  // namespace

absl::Status LoopRule(InferContext&) { return absl::FailedPreconditionError(kNotHere); }
absl::Status LoopKernel(const KernelContext&) { return absl::FailedPreconditionError(kNotHere); }
absl::Status LoopStepRule(InferContext&) { return absl::FailedPreconditionError(kNotHere); }
absl::Status LoopStepKernel(const KernelContext&) {
  return absl::FailedPreconditionError(kNotHere);
}

}  // namespace ops

namespace {

int64_t NumberOf(const Node& node, absl::string_view name) {
  const std::vector<int64_t> values = node.attributes.Ints(name);
  return values.empty() ? 0 : values[0];
}

}  // namespace

int64_t LoopNumber(const Node& node) { return NumberOf(node, "loop"); }

LoopParts::LoopParts(const Node& loop)
    : carried(static_cast<size_t>(NumberOf(loop, "carried"))),
      scanned(loop.inputs.size() - (kFirstCarried + 2 * carried + 1)),
      first_result(kFirstCarried + carried) {}

std::vector<ValueId> BodyResults(const Node& loop) {
  const size_t first = LoopParts(loop).first_result;
  return {loop.inputs.begin() + static_cast<std::ptrdiff_t>(first), loop.inputs.end()};
}

NodeId StepOf(const Graph& graph, const Node& loop) {
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op == LoopStepOp::kName && LoopNumber(node) == LoopNumber(loop)) return id;
  }
  return kNone;
}

}  // namespace reprise

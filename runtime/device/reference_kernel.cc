// The bridge from reference kernels (tensor views) to launches (addresses).
#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Everything a reference kernel needs but the addresses, which each replay fills into copies.
struct ReferenceParams {
  Node node;
  ReferenceKernel kernel = nullptr;
  std::vector<TensorView> inputs;
  std::vector<MutableTensorView> outputs;
};

class ForwardErrors final : public DataErrors {
 public:
  explicit ForwardErrors(const LaunchArgs& args) : args_(args) {}
  void Report(int input, int64_t element, int64_t value, int64_t low, int64_t high) override {
    args_.frame->errors->Report(args_.launch, input, element, value, low, high);
  }

 private:
  const LaunchArgs& args_;
};

// Reference loops are not partitioned: part 0 does all.
void RunReference(const LaunchArgs& args) {
  if (args.part != 0) return;
  const auto& params = *static_cast<const ReferenceParams*>(args.params);
  std::vector<TensorView> inputs = params.inputs;
  std::vector<MutableTensorView> outputs = params.outputs;
  size_t operand = 0;
  for (TensorView& input : inputs) input.data = args.operands[operand++];
  for (MutableTensorView& output : outputs) output.data = args.operands[operand++];
  ForwardErrors errors(args);
  const absl::Status status =
      params.kernel({.node = params.node, .inputs = inputs, .outputs = outputs, .errors = errors});
  if (status.ok()) return;
  // Shape rules refuse at capture any call that a kernel cannot run, and `errors` takes most data
  // errors. Any other error belongs to the requests whose data caused it, just like those.
  for (const MutableTensorView& output : outputs) {
    if (output.data != nullptr) std::memset(output.data, 0, output.bytes());
  }
  args.frame->errors->Fail(args.launch, status);
}

}  // namespace

absl::StatusOr<BoundKernel> BindReference(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const OpRow* row = FindOp(node.op);
  REPRISE_CHECK(row != nullptr);
  auto params = std::make_shared<ReferenceParams>();
  params->node = node;
  params->kernel = row->reference;
  BoundKernel bound;
  for (ValueId input : node.inputs) {
    TensorView& view = params->inputs.emplace_back();
    if (input == kNone) continue;
    view.dtype = graph.value(input).dtype;
    view.shape = *graph.value(input).shape;
    bound.work.bytes += view.bytes();
  }
  for (ValueId output : node.outputs) {
    MutableTensorView& view = params->outputs.emplace_back();
    if (output == kNone) continue;
    view.dtype = graph.value(output).dtype;
    view.shape = *graph.value(output).shape;
    bound.work.bytes += view.bytes();
    if (!bound.detail.empty()) bound.detail += ", ";
    bound.detail += ShapeToString(view.shape);
  }
  bound.run = RunReference;
  bound.params = std::move(params);
  return bound;
}

absl::StatusOr<Tensor> PrepareWithReference(const std::string& op, const Attributes& attributes,
                                            absl::Span<const std::optional<Tensor>> inputs) {
  Node node;
  node.op = op;
  node.attributes = attributes;
  for (const std::optional<Tensor>& input : inputs) {
    node.inputs.push_back(input.has_value() ? 0 : kNone);
  }
  node.outputs = {0};
  // Parameters are as large as the model is; its own file bounds them.
  constexpr int64_t kNoLimit = INT64_MAX;
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Evaluate(node, inputs, kNoLimit));
  return std::move(outputs[0]);
}

}  // namespace reprise

#include "tests/conformance/execute.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/reference/reference_device.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/result_types.h"
#include "runtime/passes/kit/branches.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/recipe/compiler.h"

namespace reprise {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

// Returns the value of a parameter expression.
absl::StatusOr<Tensor> EvaluateParameter(const ParameterExpr& expr,
                                         const std::vector<Tensor>& parameters) {
  if (expr.is_leaf()) return parameters[expr.index()].Aligned();
  if (expr.is_constant()) return expr.constant();
  std::vector<std::optional<Tensor>> operands;
  Node node;
  node.op = expr.op();
  node.attributes = expr.attributes();
  for (const ParameterExprPtr& input : expr.inputs()) {
    node.inputs.push_back(input == nullptr ? kNone : 0);
    operands.emplace_back();
    if (input == nullptr) continue;
    ASSIGN_OR_RETURN(operands.back(), EvaluateParameter(*input, parameters));
  }
  node.outputs = {0};
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
  return results[0];
}

// Runs the nodes that the wanted values need by their reference kernels; an If runs one branch.
class Interpreter {
 public:
  Interpreter(const Graph& graph, std::vector<std::optional<Tensor>>& values)
      : graph_(graph), values_(values), done_(graph.num_nodes(), false) {}

  absl::Status Need(ValueId id) {
    if (id == kNone || values_[id].has_value()) return absl::OkStatus();
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone || done_[producer]) return absl::OkStatus();
    done_[producer] = true;
    const Node& node = graph_.node(producer);
    if (node.op == "If") {
      RETURN_IF_ERROR(Need(node.input(0)));
      ASSIGN_OR_RETURN(const std::vector<int64_t> condition, values_[node.input(0)]->ToInt64s());
      const std::vector<ValueId> taken = BranchTaken(graph_, producer, condition[0] != 0);
      for (size_t i = 0; i < taken.size(); ++i) {
        RETURN_IF_ERROR(Need(taken[i]));
        if (node.outputs[i] != kNone) values_[node.outputs[i]] = values_[taken[i]];
      }
      return absl::OkStatus();
    }
    std::vector<std::optional<Tensor>> operands;
    for (ValueId input : node.inputs) {
      RETURN_IF_ERROR(Need(input));
      operands.push_back(input == kNone ? std::nullopt : values_[input]);
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, operands, kMaxBytes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values_[node.outputs[i]] = std::move(results[i]);
    }
    return absl::OkStatus();
  }

 private:
  const Graph& graph_;
  std::vector<std::optional<Tensor>>& values_;
  std::vector<bool> done_;
};

absl::StatusOr<std::vector<Tensor>> EvaluateGraph(const Graph& graph, const ImportedModel& model,
                                                  const std::vector<Tensor>& inputs) {
  std::vector<std::optional<Tensor>> values(graph.num_values());
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == Value::Kind::kConstant) values[id] = value.constant;
    if (value.kind == Value::Kind::kParameter) {
      ASSIGN_OR_RETURN(values[id], EvaluateParameter(*value.parameter, model.parameters));
    }
  }
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ValueId id = graph.FindValue(model.inputs[i].name);
    if (i < inputs.size() && id != kNone) values[id] = inputs[i];
  }
  Interpreter interpreter(graph, values);
  std::vector<Tensor> outputs;
  for (ValueId id : graph.outputs()) {
    RETURN_IF_ERROR(interpreter.Need(id));
    if (!values[id].has_value()) return absl::InternalError("an output has no value");
    outputs.push_back(*values[id]);
  }
  const std::vector<DType> types = ResultTypes(graph);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    if (!values[id].has_value() || values[id]->dtype() == types[id]) continue;
    return absl::InternalError(absl::StrCat("'", graph.value(id).name, "' is ",
                                            DTypeName(values[id]->dtype()), ", said to be ",
                                            DTypeName(types[id])));
  }
  return outputs;
}

// Returns the sizes of all symbols, and the values of the inputs that decide shapes, as the engine
// finds them.
Binding BindingOf(const ImportedModel& model, const std::vector<Tensor>& inputs) {
  Binding binding;
  for (size_t i = 0; i < inputs.size() && i < model.inputs.size(); ++i) {
    const ModelIo& io = model.inputs[i];
    for (size_t d = 0; d < io.dims.size() && d < inputs[i].shape().size(); ++d) {
      if (!io.dims[d].is_constant()) binding.axes[io.dims[d].symbol] = inputs[i].shape()[d];
    }
  }
  for (const size_t i : FindShapeInputs(model.graph, model.inputs)) {
    if (i < inputs.size()) binding.shape_inputs.emplace(model.inputs[i].name, inputs[i]);
  }
  return binding;
}

absl::StatusOr<std::vector<Tensor>> ExecutePasses(ImportedModel model,
                                                  const std::vector<Tensor>& inputs) {
  RETURN_IF_ERROR(RunLoadPasses(model.graph));
  ASSIGN_OR_RETURN(Graph graph, Specialize(model.graph, BindingOf(model, inputs)));
  RETURN_IF_ERROR(Verify(graph, /*specialized=*/true));
  RETURN_IF_ERROR(RunCapturePasses(graph));
  return EvaluateGraph(graph, model, inputs);
}

class AnyError : public ReplayErrors {
 public:
  void Report(int launch, int operand, int64_t element, int64_t value, int64_t low,
              int64_t high) override {
    reported_ = true;
  }
  void Fail(int launch, const absl::Status& status) override { reported_ = true; }
  bool reported() const { return reported_; }

 private:
  bool reported_ = false;
};

absl::StatusOr<std::vector<Tensor>> ExecuteOnDevice(ImportedModel model,
                                                    const std::vector<Tensor>& inputs,
                                                    const Device& device) {
  RETURN_IF_ERROR(RunLoadPasses(model.graph));
  const SteadyClock clock;
  const GraphFingerprint fingerprint = FingerprintGraph(model.graph);
  ASSIGN_OR_RETURN(
      std::shared_ptr<const Recipe> recipe,
      Compile(model.graph, MakeKey(fingerprint, BindingOf(model, inputs), device.fingerprint()),
              {.device = &device, .clock = &clock}));
  ParameterStore store(model.parameters, {.device = &device});
  ASSIGN_OR_RETURN(const auto table, store.TableFor(recipe));
  HelperPool cores(2);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                   Stream::Create({.cores = &cores, .max_threads = 2}));
  RETURN_IF_ERROR(stream->Reserve(*recipe));
  AnyError errors;
  Frame frame = stream->MakeFrame(*recipe, table->addresses(), &errors);
  for (const TensorSlot& slot : recipe->inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (model.inputs[i].name != slot.name || slot.bytes == 0) continue;
      std::memcpy(stream->inputs() + slot.offset, inputs[i].data(), slot.bytes);
      if (!slot.shape.empty()) frame.live_rows = std::max(frame.live_rows, slot.shape[0]);
    }
  }
  stream->Replay(*recipe, frame);
  if (errors.reported()) return absl::InvalidArgumentError("an index is out of range");
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < recipe->outputs.size(); ++i) {
    const TensorSlot& slot = recipe->outputs[i];
    outputs.push_back(Tensor::Make(slot.dtype, slot.shape, [&](void* data) {
      if (slot.bytes > 0) std::memcpy(data, frame.outputs[i], slot.bytes);
    }));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Execute(const ImportedModel& model,
                                            const std::vector<Tensor>& inputs,
                                            const std::string& device) {
  if (device == "rows") return EvaluateGraph(model.graph, model, inputs);
  if (device == "passes") return ExecutePasses(model, inputs);
  if (device == "reference") return ExecuteOnDevice(model, inputs, ReferenceDevice());
  if (device == "cpu") {
    static const CpuDevice* const cpu = new CpuDevice();
    return ExecuteOnDevice(model, inputs, *cpu);
  }
  if (device == "baseline") {
    static const CpuDevice* const baseline = new CpuDevice(Isa::kBaseline);
    return ExecuteOnDevice(model, inputs, *baseline);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown way to run '", device, "'"));
}

}  // namespace reprise

#include "runtime/engine/tail_run.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/data_error.h"
#include "runtime/ops/op.h"

namespace reprise {
namespace {

// Kernels read aligned elements; clients send what they like.
constexpr uintptr_t kAlignment = alignof(int64_t);

// Up to so much, reference kernels take less time than a capture does (about a millisecond).
constexpr size_t kLittleBytes = 4 << 20;

// The largest result of a node that runs by itself.
constexpr int64_t kMaxResultBytes = int64_t{1} << 30;

Tensor Copied(DType dtype, const Shape& shape, const void* data) {
  return Tensor::Make(dtype, shape, [&](void* to) {
    const size_t bytes = NumElements(shape) * DTypeSize(dtype);
    if (bytes > 0) std::memcpy(to, data, bytes);
  });
}

// A tensor over bytes that outlive the run.
Tensor Borrowed(DType dtype, const Shape& shape, const void* data) {
  const bool usable = data != nullptr && reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
  if (!usable) return Copied(dtype, shape, data);
  return Tensor(dtype, shape, std::shared_ptr<const void>(data, [](const void*) {}));
}

absl::Status InSection(const GraphSection& section, const absl::Status& status) {
  if (section.label.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(section.label, ": ", status.message()));
}

}  // namespace

void TailRun::Run(const Request& request, const Recipe& front, Response& response) {
  const int64_t start_ns = options_.clock->NowNs();
  absl::Status status = RunAll(request, front, response);
  if (!status.ok()) {
    response.outputs.clear();
    response.status = std::move(status);
  }
  response.info.capture = Harder(response.info.capture, outcome_);
  response.info.replay_ns += options_.clock->NowNs() - start_ns;
}

absl::Status TailRun::RunAll(const Request& request, const Recipe& front, Response& response) {
  TakeInputs(request);
  const std::vector<OutputTensor> given = std::move(response.outputs);
  response.outputs.clear();
  for (size_t i = 0; i < given.size(); ++i) {
    values_[tail_.front_outputs()[i].name] =
        Borrowed(front.outputs[i].dtype, given[i].shape, given[i].bytes.data());
  }
  RETURN_IF_ERROR(RunGraph(tail_.graph()));
  response.outputs.resize(tail_.outputs().size());
  for (size_t i = 0; i < tail_.outputs().size(); ++i) {
    if (!request.wanted_outputs.empty() && !request.wanted_outputs[i]) continue;
    const ModelIo& output = tail_.outputs()[i];
    ASSIGN_OR_RETURN(const Tensor value, ValueOf(tail_.graph(), tail_.graph().outputs[i]));
    if (value.dtype() != output.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("the model declares output '", output.name,
                                                     "' as ", DTypeName(output.dtype),
                                                     ", and it is ", DTypeName(value.dtype())));
    }
    response.outputs[i].shape = value.shape();
    if (value.bytes() > 0) {
      response.outputs[i].bytes.assign(static_cast<const char*>(value.data()), value.bytes());
    }
  }
  return absl::OkStatus();
}

void TailRun::TakeInputs(const Request& request) {
  for (size_t i = 0; i < tail_.inputs().size(); ++i) {
    const InputTensor& input = request.inputs[i];
    if (tail_.inputs()[i].optional && input.data == nullptr) continue;
    values_[tail_.inputs()[i].name] = Borrowed(tail_.inputs()[i].dtype, input.shape, input.data);
  }
}

absl::Status TailRun::RunGraph(const CutGraph& graph) {
  for (const CutGraph::Stage& stage : graph.stages) {
    const bool is_front = &stage == &tail_.graph().stages.front();
    if (!is_front && !stage.section.outputs.empty()) {
      RETURN_IF_ERROR(InSection(stage.section, RunSection(stage.section)));
    }
    for (const EagerNode& node : stage.nodes) {
      RETURN_IF_ERROR(node.then_branch == nullptr ? RunNode(graph, node) : RunBranch(graph, node));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TailRun::ValueOf(const CutGraph& graph, const std::string& name) {
  if (const auto it = values_.find(name); it != values_.end()) return it->second;
  if (const auto it = graph.constants.find(name); it != graph.constants.end()) return it->second;
  if (const auto it = graph.parameters.find(name); it != graph.parameters.end()) {
    return model_.owner()->parameters().ValueOf(*it->second);
  }
  return absl::InternalError(absl::StrCat("nothing made the value '", name, "'"));
}

absl::Status TailRun::RunNode(const CutGraph& graph, const EagerNode& node) {
  std::vector<std::optional<Tensor>> inputs(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    ASSIGN_OR_RETURN(inputs[i], ValueOf(graph, node.inputs[i]));
  }
  const int64_t start_ns = options_.clock->NowNs();
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node.node, inputs, kMaxResultBytes));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = std::move(results[i]);
  }
  if (node.is_cut) {
    model_.owner()->observer().OnEagerNode(node.node.op, options_.clock->NowNs() - start_ns);
  }
  return absl::OkStatus();
}

absl::Status TailRun::RunBranch(const CutGraph& graph, const EagerNode& node) {
  ASSIGN_OR_RETURN(const Tensor condition, ValueOf(graph, node.inputs[0]));
  if (condition.dtype() != DType::kBool || condition.num_elements() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        NodeLabel(node.node), ": its condition '", node.inputs[0], "' is ",
        DTypeName(condition.dtype()), ShapeToString(condition.shape()), ", not one bool"));
  }
  const CutGraph& taken = condition.span<uint8_t>()[0] != 0 ? *node.then_branch : *node.else_branch;
  model_.owner()->observer().OnEagerNode(node.node.op, 0);
  RETURN_IF_ERROR(RunGraph(taken));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    ASSIGN_OR_RETURN(values_[node.outputs[i]], ValueOf(taken, taken.outputs[i]));
  }
  return absl::OkStatus();
}

absl::Status TailRun::RunSection(const GraphSection& section) {
  for (const ValueId id : section.graph.inputs()) {
    const std::string& name = section.graph.value(id).name;
    if (values_.contains(name)) continue;
    return absl::InternalError(absl::StrCat("nothing made the value '", name, "'"));
  }
  const int64_t start_ns = options_.clock->NowNs();
  RETURN_IF_ERROR(RunsNodeByNode(section) ? RunNodeByNode(section) : Replay(section));
  model_.owner()->observer().OnSection(options_.clock->NowNs() - start_ns);
  return absl::OkStatus();
}

bool TailRun::RunsNodeByNode(const GraphSection& section) const {
  if (!section.is_light) return false;
  size_t bytes = 0;
  for (const ValueId id : section.graph.inputs()) {
    const std::string& name = section.graph.value(id).name;
    if (!section.shape_only.contains(name)) bytes += values_.at(name).bytes();
  }
  return bytes <= kLittleBytes;
}

absl::Status TailRun::RunNodeByNode(const GraphSection& section) {
  const Graph& graph = section.graph;
  std::vector<std::optional<Tensor>> values(graph.num_values());
  const auto value_of = [&](ValueId id) -> absl::StatusOr<Tensor> {
    const Value& value = graph.value(id);
    if (values[id].has_value()) return *values[id];
    if (value.kind == Value::Kind::kConstant) return value.constant;
    if (value.kind == Value::Kind::kInput) return values_.at(value.name);
    return model_.owner()->parameters().ValueOf(*value.parameter);
  };
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    std::vector<std::optional<Tensor>> inputs(node.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      ASSIGN_OR_RETURN(inputs[i], value_of(node.inputs[i]));
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> results, Evaluate(node, inputs, kMaxResultBytes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values[node.outputs[i]] = std::move(results[i]);
    }
  }
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    ASSIGN_OR_RETURN(values_[section.outputs[i]], value_of(graph.outputs()[i]));
  }
  return absl::OkStatus();
}

absl::Status TailRun::Replay(const GraphSection& section) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe, RecipeFor(section));
  RETURN_IF_ERROR(stream_.Reserve(*recipe));
  ASSIGN_OR_RETURN(const auto parameters, model_.owner()->parameters().TableFor(recipe));
  FirstDataError error(*recipe);
  const Frame frame = stream_.MakeFrame(*recipe, parameters->addresses(), &error);
  for (const TensorSlot& slot : recipe->inputs) {
    if (slot.bytes == 0 || section.shape_only.contains(slot.name)) continue;
    std::memcpy(const_cast<std::byte*>(frame.inputs) + slot.offset, values_.at(slot.name).data(),
                slot.bytes);
  }
  stream_.Replay(*recipe, frame);
  if (const DataError* found = error.get(); found != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        found->input < 0 ? "an index" : absl::StrCat("'", recipe->inputs[found->input].name, "'"),
        ": ", RangeText(*found)));
  }
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    const TensorSlot& slot = recipe->outputs[i];
    values_[section.outputs[i]] = Copied(slot.dtype, slot.shape, frame.outputs + slot.offset);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Recipe>> TailRun::RecipeFor(const GraphSection& section) {
  std::vector<std::pair<DType, size_t>> types;
  Binding binding;
  for (const ValueId id : section.graph.inputs()) {
    const std::string& name = section.graph.value(id).name;
    const Tensor& value = values_.at(name);
    types.emplace_back(value.dtype(), value.shape().size());
    for (size_t d = 0; d < value.shape().size(); ++d) {
      binding.axes[Tail::SymbolOf(name, d)] = value.shape()[d];
    }
  }
  for (const std::string& name : section.shape_inputs) {
    binding.shape_inputs[name] = shape_.shape_inputs.at(name);
  }
  CaptureTarget target = {.bucket = "exact", .exact = true, .section = section.label};
  target.variant = tail_.SectionFor(section, types);
  target.key =
      MakeKey(target.variant->fingerprint, std::move(binding), options_.device->fingerprint());
  std::shared_ptr<const Recipe> recipe = cache_.Find(target.key);
  model_.owner()->observer().OnCacheRequest(recipe != nullptr);
  if (recipe != nullptr) return recipe;
  return Miss(target);
}

// Sizes that come once would only drive out those that come again.
bool TailRun::IsOneTooMany(const RecipeKey& key) const {
  ModelOwner& owner = *model_.owner();
  const bool usual =
      shape_.on_miss == OnMiss::kDefault && model_.options().capture == CapturePolicy::kQuick;
  return !owner.WantedBefore(key.hash) && usual && cache_.NumExact(owner) >= owner.max_exact();
}

absl::StatusOr<std::shared_ptr<const Recipe>> TailRun::Miss(const CaptureTarget& target) {
  const bool frozen = options_.frozen || model_.options().frozen;
  const bool is_default = shape_.on_miss == OnMiss::kDefault;
  if (shape_.on_miss == OnMiss::kReject) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model_.id().name, "' has no recipe for the section ", target.section, " at ",
        target.key.binding.ToString(), ", and reprise.on_miss is reject"));
  }
  const bool behind = is_default && model_.options().capture == CapturePolicy::kBackground;
  if (frozen || behind || IsOneTooMany(target.key) ||
      (!is_default && shape_.on_miss != OnMiss::kWait)) {
    if (behind && !frozen) {
      captures_.Begin(model_.shared_from_this(), target, CaptureUrgency::kBehind,
                      {.done = [](absl::Status) {}});
    }
    Note(CaptureOutcome::kEager);
    ASSIGN_OR_RETURN(std::unique_ptr<Recipe> compiled,
                     model_.CompileAt(target.key, target.variant.get(), options_));
    return std::shared_ptr<const Recipe>(std::move(compiled));
  }
  const int64_t since_ns = options_.clock->NowNs();
  ASSIGN_OR_RETURN(CaptureResult result, CaptureRecipe(options_, cache_, model_, target, stream_));
  Note(result.outcome == RecipeCache::Outcome::kCaptured ? CaptureOutcome::kCaptured
                                                         : CaptureOutcome::kWaited);
  if (result.record.has_value()) {
    result.record->AddWaiter(shape_.id, options_.clock->NowNs() - since_ns);
    options_.on_capture(*result.record);
    misses_.Add(*std::move(result.record));
  }
  return std::move(result.recipe);
}

void TailRun::Note(CaptureOutcome outcome) { outcome_ = Harder(outcome_, outcome); }

}  // namespace reprise

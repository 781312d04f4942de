#include "tools/bisect/trial.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/passes/pipeline.h"
#include "runtime/recipe/compiler.h"

namespace reprise::cli {
namespace {

// Has some nodes run on kernels of another device, and notes which kernels there are for each.
class MixedDevice final : public Device {
 public:
  MixedDevice(const Device& device, const KernelChoice& choice)
      : device_(device), choice_(choice) {}

  absl::string_view name() const override { return "mixed"; }
  std::string fingerprint() const override { return "mixed"; }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override {
    std::vector<KernelOption> options = device_.Options(graph, node);
    {
      MutexLock lock(mutex_);
      SeenNode& seen = seen_[node];
      seen.id = node;
      seen.label = NodeLabel(graph.node(node));
      seen.kernels.clear();
      for (const KernelOption& option : options) seen.kernels.push_back(option.kernel);
    }
    const bool chosen = choice_.nodes.contains(node);
    if (!choice_.all && !chosen) return {};
    if (chosen && !choice_.kernel.empty()) {
      std::erase_if(options,
                    [&](const KernelOption& option) { return option.kernel != choice_.kernel; });
    }
    return options;
  }
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption& option) const override {
    return device_.Bind(graph, node, option);
  }
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override {
    return device_.Prepare(op, attributes, inputs);
  }

  std::vector<SeenNode> Seen() const {
    MutexLock lock(mutex_);
    std::vector<SeenNode> all;
    all.reserve(seen_.size());
    for (const auto& [id, seen] : seen_) all.push_back(seen);
    return all;
  }

 private:
  const Device& device_;
  const KernelChoice& choice_;
  mutable Mutex mutex_;
  mutable std::map<NodeId, SeenNode> seen_ GUARDED_BY(mutex_);
};

// Notes which nodes a pass has made: those whose labels were not there before it.
class MadeNodes {
 public:
  void Look(absl::string_view pass, const Graph& graph) {
    std::set<std::string> now;
    for (const NodeId node : graph.NodeIds()) now.insert(NodeLabel(graph.node(node)));
    for (const std::string& label : now) {
      if (!pass.empty() && !before_.contains(label)) made_[std::string(pass)].push_back(label);
    }
    before_ = std::move(now);
  }
  std::map<std::string, std::vector<std::string>> Take() { return std::move(made_); }

 private:
  std::set<std::string> before_;
  std::map<std::string, std::vector<std::string>> made_;
};

absl::StatusOr<std::vector<Tensor>> OutputsOf(const Recipe& recipe,
                                              const ParameterTable& parameters,
                                              const std::map<std::string, Tensor>& inputs) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({}));
  RETURN_IF_ERROR(stream->Reserve(recipe));
  FirstDataError errors(recipe);
  const Frame frame = stream->MakeFrame(recipe, parameters.addresses(), &errors);
  for (const TensorSlot& slot : recipe.inputs) {
    const auto input = inputs.find(slot.name);
    if (input == inputs.end() || input->second.bytes() != slot.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", slot.name, "' takes ", slot.bytes, " bytes, the request has ",
                       input == inputs.end() ? 0 : input->second.bytes()));
    }
    if (slot.bytes > 0) {
      std::memcpy(stream->inputs() + slot.offset, input->second.data(), slot.bytes);
    }
  }
  stream->Replay(recipe, frame);
  if (const DataError* error = errors.get(); error != nullptr) {
    return ErrorOf(*error, "the request's data");
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < recipe.outputs.size(); ++i) {
    const TensorSlot& slot = recipe.outputs[i];
    outputs.push_back(Tensor::Make(slot.dtype, slot.shape, [&](void* data) {
      if (slot.bytes > 0) std::memcpy(data, frame.outputs[i], slot.bytes);
    }));
  }
  return outputs;
}

}  // namespace

Trial::Trial(const BisectSubject& subject, const Device& device)
    : subject_(subject),
      device_(device),
      parameters_(subject.parameters, {.device = &device, .files = subject.files}) {}

absl::StatusOr<TrialResult> Trial::Run(const TrialOptions& options) {
  const MixedDevice device(device_, options.kernels);
  MadeNodes made;
  PipelineOptions passes = {.disabled = options.without};
  passes.observer = [&made](absl::string_view pass, const Graph& graph, int64_t) {
    made.Look(pass, graph);
  };
  Graph graph = subject_.graph;
  made.Look("", graph);
  RETURN_IF_ERROR(RunLoadPasses(graph, passes));
  const RecipeKey key = MakeKey(FingerprintGraph(graph), subject_.binding, device.fingerprint());
  const CompileOptions compile = {.device = &device, .clock = &clock_, .passes = passes};
  ASSIGN_OR_RETURN(std::shared_ptr<const Recipe> recipe, Compile(graph, key, compile));
  ASSIGN_OR_RETURN(const auto table, parameters_.TableFor(recipe));
  TrialResult result;
  ASSIGN_OR_RETURN(result.outputs, OutputsOf(*recipe, *table, subject_.inputs));
  result.nodes = device.Seen();
  result.made = made.Take();
  return result;
}

}  // namespace reprise::cli

#include "runtime/recipe/compiler.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/memory/lifetime.h"
#include "runtime/memory/planner.h"
#include "runtime/recipe/batch_rows.h"
#include "runtime/recipe/index_sources.h"
#include "runtime/recipe/node_kernels.h"

namespace reprise {
namespace {

class Compilation {
 public:
  // `kernels`: chosen before, by node; null: they are to be chosen.
  Compilation(const Graph& graph, const CompileOptions& options,
              const std::vector<std::string>* kernels, Recipe& recipe)
      : graph_(graph),
        device_(*options.device),
        options_(options),
        kernels_(kernels),
        recipe_(recipe) {}

  absl::Status Plan() {
    ASSIGN_OR_RETURN(chosen_, ChooseKernels(graph_, options_, kernels_));
    recipe_.timeable = chosen_.timeable;
    recipe_.untimed = chosen_.untimed;
    RETURN_IF_ERROR(LayOutSlots());
    return PlanOffsets();
  }

  absl::Status Bind() {
    for (NodeId id : graph_.NodeIds()) {
      if (!chosen_.nodes[id].view) RETURN_IF_ERROR(BindNode(id));
    }
    return absl::OkStatus();
  }

  // By node; empty for a view.
  std::vector<std::string> Kernels() const {
    std::vector<std::string> kernels;
    for (NodeId id : graph_.NodeIds()) {
      kernels.push_back(KernelOf(graph_.node(id), chosen_.nodes[id]));
    }
    return kernels;
  }

  std::vector<CompiledPlan::Question> TakeQuestions() { return std::move(chosen_.questions); }

 private:
  absl::Status LayOutSlots() {
    RETURN_IF_ERROR(LayOut(graph_.inputs(), recipe_.inputs, recipe_.input_bytes));
    return LayOut(graph_.outputs(), recipe_.outputs, recipe_.output_bytes);
  }

  absl::Status LayOut(const std::vector<ValueId>& values, std::vector<TensorSlot>& slots,
                      size_t& total) {
    for (ValueId id : values) {
      const Value& value = graph_.value(id);
      ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(*value.shape));
      const size_t bytes = elements * DTypeSize(value.dtype);
      slots.push_back({value.name, value.dtype, *value.shape, total, bytes});
      total += AlignUp(bytes);
    }
    return absl::OkStatus();
  }

  absl::Status PlanOffsets() {
    std::vector<NodeMemory> memory(graph_.num_nodes());
    for (NodeId id : graph_.NodeIds()) {
      const NodeKernel& choice = chosen_.nodes[id];
      memory[id].view = choice.view;
      if (choice.option.has_value()) {
        memory[id].in_place = choice.option->in_place;
        memory[id].workspace_bytes = choice.option->workspace_bytes;
      }
    }
    ASSIGN_OR_RETURN(lifetimes_, AnalyzeLifetimes(graph_, memory));

    places_.resize(lifetimes_.buffers.size());
    PlaceBuffers();
    PlaceWorkspaces();
    FillConstants();
    return absl::OkStatus();
  }

  // All but workspaces. Parameters have no place of their own, but one in the form in which they
  // are used: see PlaceOf and ParameterFor.
  void PlaceBuffers() {
    std::vector<BufferRequest> requests;
    std::vector<size_t> buffer_of_request;
    size_t constant_bytes = 0;
    std::vector<bool> is_workspace(lifetimes_.buffers.size(), false);
    for (const int workspace : lifetimes_.workspace_of_node) {
      if (workspace >= 0) is_workspace[workspace] = true;
    }
    for (size_t i = 0; i < lifetimes_.buffers.size(); ++i) {
      if (is_workspace[i]) continue;
      const Buffer& buffer = lifetimes_.buffers[i];
      switch (buffer.home) {
        case Buffer::Home::kArena:
          requests.push_back({buffer.bytes, buffer.first, buffer.last});
          buffer_of_request.push_back(i);
          break;
        case Buffer::Home::kInput:
          places_[i] = {Space::kInput, recipe_.inputs[buffer.index].offset};
          break;
        case Buffer::Home::kOutput:
          places_[i] = {Space::kOutput, recipe_.outputs[buffer.index].offset};
          break;
        case Buffer::Home::kConstant:
          places_[i] = {Space::kConstant, constant_bytes};
          constant_bytes += AlignUp(buffer.bytes);
          break;
        case Buffer::Home::kParameter:
          break;
      }
    }
    const MemoryPlan plan = PlanMemory(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      places_[buffer_of_request[i]] = {Space::kArena, plan.offsets[i]};
    }
    recipe_.arena_bytes = plan.bytes;
    recipe_.constants = AlignedBuffer(constant_bytes);
  }

  // Workspaces have room for more threads than most machines have, and are never needed two at a
  // time: they lie behind all else, where what nobody uses is no memory.
  void PlaceWorkspaces() {
    const size_t begin = recipe_.arena_bytes;
    for (const int workspace : lifetimes_.workspace_of_node) {
      if (workspace < 0) continue;
      places_[workspace] = {Space::kArena, begin};
      recipe_.arena_bytes =
          std::max(recipe_.arena_bytes, begin + AlignUp(lifetimes_.buffers[workspace].bytes));
    }
  }

  void FillConstants() {
    for (size_t i = 0; i < places_.size(); ++i) {
      const Buffer& buffer = lifetimes_.buffers[i];
      if (buffer.home != Buffer::Home::kConstant || buffer.bytes == 0) continue;
      std::memcpy(recipe_.constants.data() + places_[i].offset,
                  graph_.value(buffer.index).constant.data(), buffer.bytes);
    }
  }

  // One slot for each distinct expression.
  Operand ParameterPlace(const ParameterExprPtr& expression, bool unaligned = false) {
    auto [it, added] = slot_by_text_.try_emplace(expression->text(), recipe_.parameters.size());
    if (added) {
      recipe_.parameters.push_back(expression);
      recipe_.unaligned.push_back(unaligned);
    } else if (!unaligned) {
      recipe_.unaligned[it->second] = false;
    }
    return {Space::kParameter, it->second};
  }

  Operand PlaceOf(ValueId value) {
    if (value == kNone) return {};
    const size_t buffer = lifetimes_.buffer_of_value[value];
    if (lifetimes_.buffers[buffer].home == Buffer::Home::kParameter) {
      return ParameterPlace(graph_.value(lifetimes_.buffers[buffer].index).parameter);
    }
    return places_[buffer];
  }

  absl::Status BindNode(NodeId id) {
    const Node& node = graph_.node(id);
    const std::optional<KernelOption>& option = chosen_.nodes[id].option;
    Launch launch;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      launch.operands.push_back(InputPlace(node, i, option));
    }
    for (ValueId output : node.outputs) launch.operands.push_back(PlaceOf(output));
    if (const int workspace = lifetimes_.workspace_of_node[id]; workspace >= 0) {
      launch.operands.push_back(places_[workspace]);
    }
    std::vector<OperandNote> notes = Notes(id, launch.operands);
    if (launch.operands.size() > kMaxOperands) {
      return absl::UnimplementedError(absl::StrCat(NodeLabel(node), " has ", launch.operands.size(),
                                                   " operands; at most ", kMaxOperands,
                                                   " are supported"));
    }
    ASSIGN_OR_RETURN(BoundKernel bound,
                     WithinMemory([&] { return NodeLabel(node); },
                                  [&]() -> absl::StatusOr<BoundKernel> {
                                    return option.has_value() ? device_.Bind(graph_, id, *option)
                                                              : BindReference(graph_, id);
                                  }));
    launch.kernel = KernelOf(node, chosen_.nodes[id]);
    launch.node = NodeLabel(node);
    launch.detail = std::move(bound.detail);
    launch.run = bound.run;
    launch.params = std::move(bound.params);
    launch.reference = !option.has_value();
    launch.foreign = bound.foreign;
    launch.work = bound.work;
    recipe_.flops += bound.work.flops;
    recipe_.launches.push_back(std::move(launch));
    recipe_.index_sources.push_back(IndexSources(graph_, node));
    recipe_.operand_notes.push_back(std::move(notes));
    return absl::OkStatus();
  }

  // One for each of `operands`: the node's inputs, its outputs, a workspace if it has one.
  std::vector<OperandNote> Notes(NodeId node_id, const std::vector<Operand>& operands) const {
    const Node& node = graph_.node(node_id);
    std::vector<OperandNote> notes;
    auto add = [&](OperandNote::Role role, DType dtype, const Shape& shape) {
      notes.push_back({role, dtype, NumElements(shape) * DTypeSize(dtype)});
    };
    auto add_value = [&](OperandNote::Role role, ValueId id) {
      if (operands[notes.size()].space == Space::kNone) {
        notes.push_back({role});
      } else if (operands[notes.size()].space == Space::kParameter) {
        const ParameterExprPtr& expression = recipe_.parameters[operands[notes.size()].offset];
        add(role, expression->dtype(), expression->shape());
      } else {
        add(role, graph_.value(id).dtype, *graph_.value(id).shape);
      }
    };
    for (ValueId id : node.inputs) add_value(OperandNote::Role::kInput, id);
    for (ValueId id : node.outputs) add_value(OperandNote::Role::kOutput, id);
    if (operands.size() > notes.size()) {
      const int workspace = lifetimes_.workspace_of_node[node_id];
      notes.push_back(
          {OperandNote::Role::kWorkspace, DType::kUndefined, lifetimes_.buffers[workspace].bytes});
    }
    return notes;
  }

  Operand InputPlace(const Node& node, size_t i, const std::optional<KernelOption>& option) {
    const ValueId input = node.inputs[i];
    const ParameterExprPtr expression =
        ParameterFor(graph_, node, i, option.has_value() ? &*option : nullptr);
    if (expression == nullptr) return PlaceOf(input);
    const bool unaligned = option.has_value() && absl::c_linear_search(option->unaligned_inputs, i);
    return ParameterPlace(expression, unaligned);
  }

  const Graph& graph_;
  const Device& device_;
  const CompileOptions& options_;
  const std::vector<std::string>* const kernels_;
  Recipe& recipe_;
  NodeKernels chosen_;
  Lifetimes lifetimes_;
  std::vector<Operand> places_;  // by buffer; not those of parameters
  HashMap<std::string, uint64_t> slot_by_text_;
};

// Choose, plan, bind: from a graph that the passes have rewritten. `recipe->times` gets these two.
absl::Status Finish(Graph& graph, const std::vector<std::string>* kernels,
                    const CompileOptions& options, Recipe& recipe) {
  const int64_t start = options.clock->NowNs();
  if (options.plan != nullptr) options.plan->graph = Print(graph, {.part_types = true});
  const auto size_of = [&](const std::string& symbol) {
    const auto axis = recipe.key.binding.axes.find(symbol);
    return axis == recipe.key.binding.axes.end() ? 0 : axis->second;
  };
  recipe.rows = size_of(options.batch_symbol);
  MarkBatchRows(graph, recipe.rows);
  recipe.segments = size_of(options.segments_symbol);
  MarkSegments(graph, recipe.segments);
  Compilation compilation(graph, options, kernels, recipe);
  RETURN_IF_ERROR(compilation.Plan());
  const int64_t planned = options.clock->NowNs();
  RETURN_IF_ERROR(compilation.Bind());
  recipe.times.plan_ns = planned - start;
  recipe.times.bind_ns = options.clock->NowNs() - planned;
  if (options.plan != nullptr) {
    options.plan->kernels = compilation.Kernels();
    options.plan->questions = compilation.TakeQuestions();
  }
  return absl::OkStatus();
}

// The graph of `plan`, if it can be one of `symbolic`.
absl::StatusOr<Graph> GraphOf(const CompiledPlan& plan, const Graph& symbolic) {
  absl::StatusOr<Graph> graph = Parse(plan.graph);
  absl::Status status = graph.ok() ? Verify(*graph, /*specialized=*/true) : graph.status();
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat("its graph is none: ", std::string(status.message())));
  }
  const auto differs = [](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("its graph has other ", what, " than the model"));
  };
  if (graph->outputs().size() != symbolic.outputs().size()) return differs("outputs");
  for (const ValueId id : graph->inputs()) {
    const ValueId known = symbolic.FindValue(graph->value(id).name);
    if (known == kNone || symbolic.value(known).dtype != graph->value(id).dtype) {
      return differs("inputs");
    }
  }
  for (const NodeId id : graph->NodeIds()) {
    if (FindOp(graph->node(id).op) == nullptr) return differs("operators");
  }
  if (plan.kernels.size() != graph->NodeIds().size()) return differs("nodes");
  return graph;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recipe>> Compile(const Graph& symbolic, RecipeKey key,
                                                const CompileOptions& options) {
  const int64_t start = options.clock->NowNs();
  ASSIGN_OR_RETURN(Graph graph, Specialize(symbolic, key.binding, options.specialize));
  const int64_t specialized = options.clock->NowNs();
  PipelineOptions passes = options.passes;
  const std::optional<Precision> precision = ParsePrecision(key.precision);
  REPRISE_CHECK(precision.has_value());
  passes.precision = *precision;
  RETURN_IF_ERROR(RunCapturePasses(graph, passes));
  const int64_t rewritten = options.clock->NowNs();

  auto recipe = std::make_unique<Recipe>();
  recipe->key = std::move(key);
  recipe->times = {.specialize_ns = specialized - start, .passes_ns = rewritten - specialized};
  RETURN_IF_ERROR(Finish(graph, /*kernels=*/nullptr, options, *recipe));
  return recipe;
}

absl::StatusOr<std::unique_ptr<Recipe>> Rebind(const CompiledPlan& plan, const Graph& symbolic,
                                               RecipeKey key, const CompileOptions& options) {
  const int64_t start = options.clock->NowNs();
  ASSIGN_OR_RETURN(Graph graph, GraphOf(plan, symbolic));
  auto recipe = std::make_unique<Recipe>();
  recipe->key = std::move(key);
  recipe->times = {.specialize_ns = options.clock->NowNs() - start};
  RETURN_IF_ERROR(Finish(graph, &plan.kernels, options, *recipe));
  return recipe;
}

}  // namespace reprise

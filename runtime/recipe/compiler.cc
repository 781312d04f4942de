#include "runtime/recipe/compiler.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/go_on.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/rank_error.h"
#include "runtime/graph/text.h"
#include "runtime/graph/verifier.h"
#include "runtime/ops/weights/narrowed_weights.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/recipe/batch_rows.h"
#include "runtime/recipe/index_sources.h"
#include "runtime/recipe/memory_layout.h"
#include "runtime/recipe/node_kernels.h"
#include "runtime/recipe/pass_log.h"
#include "runtime/recipe/row_walks.h"

namespace reprise {
namespace {

// A longer text of a symbolic graph is not kept in a plan.
constexpr size_t kMostSymbolicText = size_t{1} << 20;

class Compilation {
 public:
  // `kernels`: chosen before, by node; null: they are still to be chosen.
  Compilation(const Graph& graph, const CompileOptions& options,
              const std::vector<std::string>* kernels, Recipe& recipe)
      : graph_(graph),
        device_(*options.device),
        options_(options),
        kernels_(kernels),
        walks_(graph, recipe.rows),
        recipe_(recipe) {}

  absl::Status Plan() {
    {
      const Phase phase(options_.debug, LogModule::kCapture, [] { return "phase kernels"; });
      ASSIGN_OR_RETURN(chosen_, ChooseKernels(graph_, walks_, options_, kernels_));
    }
    const Phase phase(options_.debug, LogModule::kCapture, [] { return "phase plan"; });
    recipe_.timeable = chosen_.timeable;
    recipe_.untimed = chosen_.untimed;
    RETURN_IF_ERROR(LayOutSlots());
    RETURN_IF_ERROR(layout_.Plan(chosen_.nodes));
    recipe_.arena_bytes = layout_.arena_bytes();
    recipe_.constants = layout_.TakeConstants();
    return absl::OkStatus();
  }

  absl::Status Bind() {
    const Phase phase(options_.debug, LogModule::kCapture, [] { return "phase bind"; });
    launches_.assign(graph_.num_nodes(), -1);
    int walk = -1;
    for (NodeId id : graph_.NodeIds()) {
      if (!chosen_.nodes[id].has_launch()) continue;
      RETURN_IF_ERROR(GoesOn(options_.go_on));
      if (walks_.Of(id) < 0) {
        ASSIGN_OR_RETURN(BoundNode bound, BindNode(id));
        launches_[id] = static_cast<int>(recipe_.launches.size());
        Append(std::move(bound));
      } else if (walks_.Of(id) != walk) {
        walk = walks_.Of(id);
        RETURN_IF_ERROR(BindWalk(walks_.walks()[walk]));
      }
    }
    recipe_.SetSteps();
    return absl::OkStatus();
  }

  // Returns kernels, indexed by node; empty for a view.
  std::vector<std::string> Kernels() const {
    std::vector<std::string> kernels;
    for (NodeId id : graph_.NodeIds()) {
      kernels.push_back(KernelOf(graph_.node(id), chosen_.nodes[id]));
    }
    return kernels;
  }

  std::vector<CompiledPlan::Question> TakeQuestions() { return std::move(chosen_.questions); }
  std::vector<int> TakeLaunches() { return std::move(launches_); }

 private:
  // A node that becomes a launch, or one launch a row.
  struct BoundNode {
    Launch launch;
    std::vector<IndexSource> sources;  // Recipe::index_sources
    std::vector<OperandNote> notes;    // Recipe::operand_notes
    std::vector<uint64_t> row_bytes;   // one an operand: from its place for one row to the next
  };

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

  // Returns the operand of `expression`: one slot for each distinct expression.
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
    const ValueId parameter = layout_.ParameterAt(value);
    if (parameter == kNone) return layout_.PlaceOf(value);
    return ParameterPlace(ops::WithoutNarrowing(graph_.value(parameter).parameter));
  }

  // Binds all nodes of a walk for row 0, for row 1, and so on.
  absl::Status BindWalk(const RowWalk& walk) {
    std::vector<BoundNode> nodes;
    for (NodeId id = walk.first; id <= walk.last; ++id) {
      if (!chosen_.nodes[id].has_launch()) continue;
      ASSIGN_OR_RETURN(BoundNode bound, BindNode(id));
      const auto add = [&](ValueId value) { bound.row_bytes.push_back(layout_.RowStride(value)); };
      absl::c_for_each(graph_.node(id).inputs, add);
      absl::c_for_each(graph_.node(id).outputs, add);
      bound.row_bytes.resize(bound.launch.operands.size(), 0);  // a workspace
      launches_[id] = static_cast<int>(recipe_.launches.size() + nodes.size());
      nodes.push_back(std::move(bound));
    }
    for (int64_t row = 0; row < walks_.rows(); ++row) {
      for (const BoundNode& node : nodes) {
        BoundNode of_row = node;
        of_row.launch.row = row;
        absl::StrAppend(&of_row.launch.detail, ", row ", row + 1, " of ", walks_.rows());
        for (size_t i = 0; i < of_row.row_bytes.size(); ++i) {
          of_row.launch.operands[i].offset += static_cast<uint64_t>(row) * of_row.row_bytes[i];
        }
        Append(std::move(of_row));
      }
    }
    return absl::OkStatus();
  }

  void Append(BoundNode bound) {
    recipe_.work += bound.launch.work.in_flops();
    recipe_.launches.push_back(std::move(bound.launch));
    recipe_.index_sources.push_back(std::move(bound.sources));
    recipe_.operand_notes.push_back(std::move(bound.notes));
  }

  absl::StatusOr<BoundNode> BindNode(NodeId id) {
    const Graph& graph = walks_.GraphOf(id);
    const Node& node = graph.node(id);
    const std::optional<KernelOption>& option = chosen_.nodes[id].option;
    BoundNode result;
    Launch& launch = result.launch;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      launch.operands.push_back(InputPlace(node, i, option));
    }
    for (ValueId output : node.outputs) launch.operands.push_back(PlaceOf(output));
    if (const auto workspace = layout_.WorkspaceOf(id)) {
      launch.operands.push_back(workspace->place);
    }
    result.notes = Notes(id, launch.operands);
    static_assert(kMostPieces + 4 <= kMaxOperands);  // and the other operands of such a node
    if (launch.operands.size() > kMaxOperands) {
      return absl::UnimplementedError(absl::StrCat(NodeLabel(node), " has ", launch.operands.size(),
                                                   " operands; at most ", kMaxOperands,
                                                   " are supported"));
    }
    ASSIGN_OR_RETURN(BoundKernel bound, WithinMemory([&] { return NodeLabel(node); },
                                                     [&]() -> absl::StatusOr<BoundKernel> {
                                                       return option.has_value()
                                                                  ? device_.Bind(graph, id, *option)
                                                                  : BindReference(graph, id);
                                                     }));
    launch.kernel = KernelOf(node, chosen_.nodes[id]);
    launch.node = NodeLabel(node);
    launch.detail = std::move(bound.detail);
    launch.run = bound.run;
    launch.params = std::move(bound.params);
    launch.phases = bound.phases;
    launch.reference = !option.has_value();
    launch.foreign = bound.foreign;
    launch.work = bound.work;
    result.sources = IndexSources(graph_, node);
    return result;
  }

  // Returns one note for each of `operands`: the node's inputs, its outputs, a workspace if it has
  // one.
  std::vector<OperandNote> Notes(NodeId node_id, const std::vector<Operand>& operands) const {
    const Graph& graph = walks_.GraphOf(node_id);
    const Node& node = graph.node(node_id);
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
        add(role, graph.value(id).dtype, *graph.value(id).shape);
      }
    };
    for (ValueId id : node.inputs) add_value(OperandNote::Role::kInput, id);
    for (ValueId id : node.outputs) add_value(OperandNote::Role::kOutput, id);
    if (operands.size() > notes.size()) {
      notes.push_back(
          {OperandNote::Role::kWorkspace, DType::kUndefined, layout_.WorkspaceOf(node_id)->bytes});
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
  const RowWalks walks_;
  Recipe& recipe_;
  NodeKernels chosen_;
  MemoryLayout layout_{graph_, walks_};
  std::vector<int> launches_;  // CompiledPlan::launches
  HashMap<std::string, uint64_t> slot_by_text_;
};

// Chooses, plans and binds, from a graph that the passes have rewritten. `recipe->times` gets these
// two.
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
    options.plan->launches = compilation.TakeLaunches();
  }
  return absl::OkStatus();
}

// Returns the graph of `symbolic` at `binding`; how long it took is in the log.
absl::StatusOr<Graph> SpecializeLogged(const Graph& symbolic, const Binding& binding,
                                       const CompileOptions& options) {
  const Phase phase(options.debug, LogModule::kCapture, [] { return "phase specialise"; });
  return Specialize(symbolic, binding, options.specialize);
}

// Returns `status` of a graph in which inputs that decide shapes have become constants, with their
// values: a node may refuse such a value under a name of its own, so this adds the value that was
// sent, and as which input.
absl::Status WithValues(const absl::Status& status, const Binding& binding) {
  if (binding.shape_inputs.empty()) return status;
  const Binding values = {.shape_inputs = binding.shape_inputs};
  return WithMessage(status, absl::StrCat(status.message(), " (where ", values.ToString(), ")"));
}

// Returns the graph of `plan`, if it can be one of `symbolic`.
absl::StatusOr<Graph> GraphOf(const CompiledPlan& plan, const Graph& symbolic) {
  absl::StatusOr<Graph> graph = Parse(plan.graph);
  absl::Status status = graph.ok() ? Verify(*graph, /*specialized=*/true) : graph.status();
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat("its graph is invalid: ", std::string(status.message())));
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

absl::StatusOr<Rewritten> Rewrite(const Graph& symbolic, const RecipeKey& key,
                                  const CompileOptions& options) {
  const int64_t start = options.clock->NowNs();
  absl::StatusOr<Graph> bound = SpecializeLogged(symbolic, key.binding, options);
  if (!bound.ok()) return WithValues(bound.status(), key.binding);
  Graph graph = *std::move(bound);
  RETURN_IF_ERROR(GoesOn(options.go_on));
  const int64_t specialized = options.clock->NowNs();
  PipelineOptions passes = options.passes;
  passes.precision = PrecisionOfText(key.precision);
  if (const absl::Status passed = RunPassesLogged(graph, passes, options.debug); !passed.ok()) {
    return WithValues(passed, key.binding);
  }
  return Rewritten{.graph = std::move(graph),
                   .times = {.specialize_ns = specialized - start,
                             .passes_ns = options.clock->NowNs() - specialized}};
}

absl::StatusOr<std::unique_ptr<Recipe>> Assemble(Rewritten rewritten, RecipeKey key,
                                                 const CompileOptions& options) {
  auto recipe = std::make_unique<Recipe>();
  recipe->key = std::move(key);
  recipe->times = rewritten.times;
  RETURN_IF_ERROR(Finish(*rewritten.graph, /*kernels=*/nullptr, options, *recipe));
  return recipe;
}

absl::StatusOr<std::unique_ptr<Recipe>> Compile(const Graph& symbolic, RecipeKey key,
                                                const CompileOptions& options) {
  ASSIGN_OR_RETURN(Rewritten rewritten, Rewrite(symbolic, key, options));
  if (options.plan != nullptr) {
    options.plan->symbolic = Print(symbolic);
    if (options.plan->symbolic.size() > kMostSymbolicText) options.plan->symbolic.clear();
  }
  return Assemble(std::move(rewritten), std::move(key), options);
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

// TraceRecompilations: a model run step by step, compared with a static graph.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/module_shapes.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/recipe/record_file.h"
#include "tools/files/file_bytes.h"
#include "tools/files/static_forms.h"
#include "tools/local_engine.h"
#include "tools/recompiles.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

std::string SlotText(const std::string& name, const OutputTensor& tensor) {
  return absl::StrCat(name, ": ", ShapeToString(tensor.shape));
}

// Indices of the results of dynamic nodes in the model's outputs, by node.
using DynamicOutputs = std::map<std::string, size_t>;

// Adds the first results of the nodes that `model` is cut at to its outputs, after its own.
DynamicOutputs ShowDynamic(const Model& model, ImportedModel& imported) {
  DynamicOutputs shown;
  if (model.tail() == nullptr) return shown;
  for (const Cut& cut : model.tail()->cuts()) {
    for (const NodeId id : imported.graph.NodeIds()) {
      const Node& node = imported.graph.node(id);
      const bool is_it = node.name == cut.node && node.op == cut.op;
      if (!is_it || node.op == "If" || node.op == "Loop" || node.output(0) == kNone) continue;
      if (imported.graph.IsOutput(node.output(0)) || shown.contains(cut.node)) continue;
      shown[cut.node] = imported.outputs.size();
      imported.outputs.push_back({.name = imported.graph.value(node.output(0)).name});
      imported.graph.AddOutput(node.output(0));
    }
  }
  return shown;
}

class Tracer {
 public:
  // `shown`: the results of dynamic nodes are outputs after these first ones, see ShowDynamic.
  Tracer(LocalEngine& local, const Model& model, NodePlaces places,
         const std::vector<StaticForm>& forms, const DynamicOutputs& shown)
      : local_(local), model_(model), history_(std::move(places)), shown_(shown) {
    for (const StaticForm& form : forms) forms_[form.node] = form.words;
    if (model.tail() == nullptr) return;
    for (const CutGraph::Stage& stage : model.tail()->graph().stages) {
      eager_nodes_ += static_cast<int64_t>(stage.nodes.size());
    }
  }

  absl::StatusOr<Recompilations> Run(const std::vector<AxisSizes>& steps) {
    ASSIGN_OR_RETURN(stream_, Stream::Create({.cores = &local_.cores, .max_threads = 1}));
    for (const AxisSizes& sizes : steps) RETURN_IF_ERROR(Step(sizes));
    for (const auto& [module, counts] : history_.counts()) {
      table_.modules.push_back({.module = module,
                                .type = counts.type,
                                .recompilations = counts.recompilations,
                                .at_fault = counts.at_fault});
    }
    std::stable_sort(
        table_.modules.begin(), table_.modules.end(),
        [](const ModuleRow& a, const ModuleRow& b) { return a.recompilations > b.recompilations; });
    return std::move(table_);
  }

 private:
  absl::Status Step(const AxisSizes& sizes) {
    const int64_t step = ++table_.steps;
    std::map<std::string, int64_t> by_symbol;
    for (const ModelAxis& axis : model_.axes()) by_symbol[axis.symbol] = sizes.at(axis.label);
    const absl::StatusOr<Graph> graph =
        Specialize(Engine::SymbolicGraph(model_, /*packed=*/false), {.axes = by_symbol});
    if (!graph.ok()) return WithStep(step, graph.status());
    const absl::Status ran = Serve(sizes, step);
    if (!ran.ok()) return WithStep(step, ran);
    const bool new_inputs = Compare(*graph, step);
    const bool new_inside = Cuts(step);
    if (step > 1 && (new_inputs || new_inside)) ++table_.recompiled;
    return absl::OkStatus();
  }

  static absl::Status WithStep(int64_t step, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("step ", step, ": ", status.message()));
  }

  // Finds out how the engine serves a request of these sizes.
  absl::Status Serve(const AxisSizes& sizes, int64_t step) {
    const int64_t before = local_.engine.misses().last_sequence();
    ASSIGN_OR_RETURN(const MadeUpRequest made,
                     MakeUpRequest(model_, sizes, kMadeUpIds, static_cast<uint64_t>(step)));
    const Response response = local_.engine.RunOne(model_, made.request, *stream_);
    RETURN_IF_ERROR(response.status);
    served_ = absl::StrCat(CaptureOutcomeName(response.info.capture), " ", response.info.bucket);
    evicted_ = false;
    for (const MissRecord& record : local_.engine.misses().Since(before)) {
      ++table_.captured;
      evicted_ = evicted_ || record.reason == CompileReason::kEvicted;
    }
    std::vector<std::string> outputs;
    for (size_t i = 0; i < response.outputs.size() - shown_.size(); ++i) {
      outputs.push_back(SlotText(model_.outputs()[i].name, response.outputs[i]));
    }
    inside_.clear();
    for (const auto& [node, output] : shown_) {
      inside_[node] = SlotText(model_.outputs()[output].name, response.outputs[output]);
    }
    outputs_ = absl::StrJoin(outputs, ", ");
    return absl::OkStatus();
  }

  // Returns whether a static graph would be recompiled for the sizes of the inputs.
  bool Compare(const Graph& graph, int64_t step) {
    const ModuleHistory::Step seen = history_.Next(graph);
    std::vector<RecompileRow> rows;
    for (const ModuleAtFault& module : seen.at_fault) {
      rows.push_back({.step = step,
                      .module = module.module,
                      .op = module.op,
                      .new_in = module.new_in,
                      .new_out = module.new_out,
                      .cause = kCauseNewInput,
                      .type = module.place.type,
                      .location = module.place.location});
    }
    if (step == 1) {
      std::vector<std::string> inputs;
      for (const ValueId id : graph.inputs()) inputs.push_back(ValueText(graph.value(id)));
      rows.push_back({.step = 1,
                      .module = "(model)",
                      .new_in = absl::StrJoin(inputs, ", "),
                      .new_out = outputs_,
                      .cause = kCauseFirst});
    }
    for (RecompileRow& row : rows) {
      row.comment = absl::StrCat("here: ", served_);
      if (evicted_) row.cause = kCauseEviction;
      if (seen.followers > 0) {
        absl::StrAppend(
            &row.comment, "; ", seen.followers,
            seen.followers == 1 ? " module after it follows" : " modules after it follow");
      }
      table_.rows.push_back(std::move(row));
    }
    if (rows.empty() && evicted_) {
      table_.rows.push_back(
          {.step = step,
           .module = "(model)",
           .cause = kCauseEviction,
           .comment = absl::StrCat("here: ", served_, "; a larger reprise.max_exact keeps it")});
    }
    return seen.is_new;
  }

  // Checks the nodes after which data decide the sizes: a static graph is recompiled whenever
  // these differ. Returns whether some are.
  bool Cuts(int64_t step) {
    if (model_.tail() == nullptr) return false;
    bool any_new = false;
    for (const Cut& cut : model_.tail()->cuts()) {
      const NodePlace place = history_.places().Of(cut.node);
      // The results of control flow are not known, only the model's outputs.
      const auto inside = inside_.find(cut.node);
      const std::string& made = inside == inside_.end() ? outputs_ : inside->second;
      if (!seen_data_[cut.node].insert(made).second) continue;
      any_new = true;
      history_.CountInside(cut.node, step == 1);
      RecompileRow row = {
          .step = step,
          .module = place.module,
          .op = absl::StrCat(cut.op, " '", cut.node, "'"),
          .new_out = made,
          .cause = kCauseData,
          .type = place.type,
          .location = place.location,
          .comment = absl::StrCat("would recompile in a static graph; here: cut, eager nodes ",
                                  eager_nodes_)};
      const auto form = forms_.find(cut.node);
      if (form != forms_.end()) absl::StrAppend(&row.comment, "; static form: ", form->second);
      table_.rows.push_back(std::move(row));
    }
    return any_new;
  }

  LocalEngine& local_;
  const Model& model_;
  ModuleHistory history_;
  const DynamicOutputs shown_;
  std::map<std::string, std::string> forms_;  // words, by dynamic node
  int64_t eager_nodes_ = 0;
  std::unique_ptr<Stream> stream_;
  Recompilations table_;
  std::map<std::string, std::set<std::string>> seen_data_;  // keyed by node of a cut
  // The last step's.
  std::string served_, outputs_;
  std::map<std::string, std::string> inside_;  // results of nodes of cuts, keyed by node
  bool evicted_ = false;
};

}  // namespace

absl::StatusOr<Recompilations> TraceRecompilations(const std::string& path,
                                                   const std::vector<AxisSizes>& steps) {
  LocalEngine local(kEveryIsa);
  ASSIGN_OR_RETURN(std::shared_ptr<Model> model,
                   local.engine.Load({.id = {.name = path}, .path = path}));
  DynamicOutputs shown;
  if (model->tail() != nullptr) {
    ModelOptions options = {.id = {.name = path}, .path = path};
    options.extend = [&, plain = model](ImportedModel& imported) {
      shown = ShowDynamic(*plain, imported);
      return absl::OkStatus();
    };
    // Without a look inside, the model's outputs have to do.
    absl::StatusOr<std::shared_ptr<Model>> open = local.engine.Load(std::move(options));
    if (open.ok()) {
      model = *std::move(open);
    } else {
      shown.clear();
    }
  }
  for (const AxisSizes& sizes : steps) {
    for (const ModelAxis& axis : model->axes()) {
      if (!sizes.contains(axis.label)) {
        return absl::InvalidArgumentError(
            absl::StrCat("a step names no size for axis ", axis.label));
      }
    }
  }
  ASSIGN_OR_RETURN(NodePlaces places, NodePlaces::Read(path));
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostFileBytes));
  onnx::ModelProto file;
  if (!file.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an ONNX model"));
  }
  return Tracer(local, *model, std::move(places), FindStaticForms(file.graph()), shown).Run(steps);
}

}  // namespace reprise::cli

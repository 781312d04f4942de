// TraceRecompilations: a model run step by step, beside what a static graph would do.

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
#include "runtime/passes/specialize/specialize.h"
#include "runtime/recipe/record_file.h"
#include "tools/files/node_places.h"
#include "tools/files/static_forms.h"
#include "tools/local_engine.h"
#include "tools/made_up_request.h"
#include "tools/recompiles.h"

namespace reprise::cli {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 31;
constexpr int64_t kMaxId = 1000;

std::string ValueText(const Value& value) {
  return absl::StrCat(value.name, ": ", DTypeName(value.dtype),
                      value.shape.has_value() ? ShapeToString(*value.shape) : "[?]");
}

std::string SlotText(const std::string& name, const OutputTensor& tensor) {
  return absl::StrCat(name, ": ", ShapeToString(tensor.shape));
}

// The values that go into a module and come out of it at one step.
struct ModuleShapes {
  std::set<std::string> in, out;
  std::string first_op;        // the first of its nodes that reads an input of the model
  std::string first_location;  // and where that was made
  std::set<std::string> model_inputs;

  std::string In() const { return absl::StrJoin(in, ", "); }
  std::string Out() const { return absl::StrJoin(out, ", "); }
};

std::map<std::string, ModuleShapes> ShapesOfModules(const Graph& graph, const NodePlaces& places) {
  std::map<std::string, ModuleShapes> modules;
  std::vector<std::string> module_of(graph.num_nodes());
  for (const NodeId id : graph.NodeIds()) module_of[id] = places.Of(graph.node(id).name).module;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    ModuleShapes& module = modules[module_of[id]];
    for (const ValueId input : node.inputs) {
      if (input == kNone) continue;
      const Value& value = graph.value(input);
      if (value.kind == Value::Kind::kInput) {
        module.in.insert(ValueText(value));
        module.model_inputs.insert(value.name);
        if (module.first_op.empty()) {
          module.first_op = NodeLabel(node);
          module.first_location = places.Of(node.name).location;
        }
      } else if (value.producer != kNone && module_of[value.producer] != module_of[id]) {
        module.in.insert(ValueText(value));
      }
    }
    for (const ValueId output : node.outputs) {
      if (output == kNone) continue;
      const Value& value = graph.value(output);
      const bool leaves = graph.IsOutput(output) ||
                          std::any_of(value.users.begin(), value.users.end(), [&](NodeId user) {
                            return module_of[user] != module_of[id];
                          });
      if (leaves) module.out.insert(ValueText(value));
    }
  }
  return modules;
}

class Tracer {
 public:
  Tracer(LocalEngine& local, const Model& model, NodePlaces places,
         const std::vector<StaticForm>& forms)
      : local_(local), model_(model), places_(std::move(places)) {
    for (const StaticForm& form : forms) forms_[form.node] = form.words;
    if (model.tail() == nullptr) return;
    for (const CutGraph::Stage& stage : model.tail()->graph().stages) {
      eager_nodes_ += static_cast<int64_t>(stage.nodes.size());
    }
  }

  absl::StatusOr<Recompilations> Run(const std::vector<AxisSizes>& steps) {
    ASSIGN_OR_RETURN(stream_, Stream::Create({.cores = &local_.cores, .max_threads = 1}));
    for (const AxisSizes& sizes : steps) RETURN_IF_ERROR(Step(sizes));
    for (const auto& [module, counts] : counts_) {
      table_.modules.push_back({module, counts.first, counts.second});
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
    const bool is_new = Compare(*graph, step);
    Cuts(step);
    const bool data = model_.tail() != nullptr;
    if (step > 1 && (is_new || data)) ++table_.recompiled;
    return absl::OkStatus();
  }

  static absl::Status WithStep(int64_t step, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("step ", step, ": ", status.message()));
  }

  // Finds out how the engine serves a request of these sizes.
  absl::Status Serve(const AxisSizes& sizes, int64_t step) {
    const int64_t before = local_.engine.misses().last_sequence();
    ASSIGN_OR_RETURN(const MadeUpRequest made,
                     MakeUpRequest(model_, sizes, kMaxId, static_cast<uint64_t>(step)));
    const Response response = local_.engine.RunOne(model_, made.request, *stream_);
    RETURN_IF_ERROR(response.status);
    served_ = absl::StrCat(CaptureOutcomeName(response.info.capture), " ", response.info.bucket);
    evicted_ = false;
    behind_cuts_.clear();
    for (const MissRecord& record : local_.engine.misses().Since(before)) {
      ++table_.captured;
      evicted_ = evicted_ || record.reason == CompileReason::kEvicted;
      if (!record.section.empty()) behind_cuts_.push_back(record);
    }
    std::vector<std::string> outputs;
    for (size_t i = 0; i < response.outputs.size(); ++i) {
      outputs.push_back(SlotText(model_.outputs()[i].name, response.outputs[i]));
    }
    outputs_ = absl::StrJoin(outputs, ", ");
    return absl::OkStatus();
  }

  // Whether a static graph would be compiled anew for the sizes of the inputs.
  bool Compare(const Graph& graph, int64_t step) {
    bool is_new = false;
    int64_t others = 0;
    std::vector<RecompileRow> rows;
    for (auto& [name, module] : ShapesOfModules(graph, places_)) {
      const bool new_in = seen_in_[name].insert(module.In()).second;
      const bool new_out = seen_out_[name].insert(module.Out()).second;
      counts_.try_emplace(name, 0, 0);
      if (!new_in) continue;
      is_new = true;
      if (step == 1) continue;
      ++counts_[name].first;
      if (module.model_inputs.empty()) {
        ++others;
        continue;
      }
      ++counts_[name].second;
      rows.push_back({.step = step,
                      .module = name,
                      .op = module.first_op,
                      .new_in = module.In(),
                      .new_out = new_out ? module.Out() : "",
                      .cause = kCauseNewInput,
                      .location = module.first_location});
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
      if (others > 0 && step > 1) {
        absl::StrAppend(&row.comment, "; ", others,
                        others == 1 ? " module behind it follows" : " modules behind it follow");
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
    return is_new;
  }

  // The nodes behind which data decide the sizes: a static graph is compiled anew whenever these
  // are others.
  void Cuts(int64_t step) {
    if (model_.tail() == nullptr) return;
    const bool new_out = seen_data_.insert(outputs_).second || !behind_cuts_.empty();
    for (const Cut& cut : model_.tail()->cuts()) {
      const NodePlace place = places_.Of(cut.node);
      auto& [recompilations, at_fault] = counts_[place.module];
      if (step > 1 && new_out) {
        ++recompilations;
        ++at_fault;
      }
      if (!new_out) continue;
      RecompileRow row = {
          .step = step,
          .module = place.module,
          .op = absl::StrCat(cut.op, " '", cut.node, "'"),
          .cause = kCauseData,
          .location = place.location,
          .comment = absl::StrCat("would recompile in a static graph; here: cut, eager nodes ",
                                  eager_nodes_)};
      for (const MissRecord& record : behind_cuts_) {
        if (record.section != absl::StrCat("behind ", cut.op, " '", cut.node, "'")) continue;
        row.new_out = absl::StrJoin(record.inputs, ", ");
      }
      if (row.new_out.empty()) row.new_out = outputs_;
      const auto form = forms_.find(cut.node);
      if (form != forms_.end()) absl::StrAppend(&row.comment, "; static form: ", form->second);
      table_.rows.push_back(std::move(row));
    }
  }

  LocalEngine& local_;
  const Model& model_;
  const NodePlaces places_;
  std::map<std::string, std::string> forms_;  // words, by dynamic node
  int64_t eager_nodes_ = 0;
  std::unique_ptr<Stream> stream_;
  Recompilations table_;
  std::map<std::string, std::set<std::string>> seen_in_, seen_out_;  // keyed by module
  std::set<std::string> seen_data_;
  std::map<std::string, std::pair<int64_t, int64_t>> counts_;  // recompilations, at fault
  // The last step's.
  std::string served_, outputs_;
  bool evicted_ = false;
  std::vector<MissRecord> behind_cuts_;
};

}  // namespace

absl::StatusOr<Recompilations> TraceRecompilations(const std::string& path,
                                                   const std::vector<AxisSizes>& steps) {
  LocalEngine local(kEveryIsa);
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.engine.Load({.id = {.name = path}, .path = path}));
  for (const AxisSizes& sizes : steps) {
    for (const ModelAxis& axis : model->axes()) {
      if (!sizes.contains(axis.label)) {
        return absl::InvalidArgumentError(
            absl::StrCat("a step names no size for axis ", axis.label));
      }
    }
  }
  ASSIGN_OR_RETURN(NodePlaces places, NodePlaces::Read(path));
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostBytes));
  onnx::ModelProto file;
  if (!file.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no ONNX model"));
  }
  return Tracer(local, *model, std::move(places), FindStaticForms(file.graph())).Run(steps);
}

}  // namespace reprise::cli

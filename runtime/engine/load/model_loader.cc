#include "runtime/engine/load/model_loader.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/axes.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/policy_maker.h"
#include "runtime/engine/load/refusal.h"
#include "runtime/engine/load/size_check.h"
#include "runtime/engine/model/mask_inputs.h"
#include "runtime/engine/model/tail.h"
#include "runtime/engine/types/input_signature.h"
#include "runtime/graph/dim_expression.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/load_passes.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

// A Squeeze of whatever dims are 1.
bool SizesDecideRanks(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.removed && node.op == "Squeeze" &&
           (node.inputs.size() < 2 || node.inputs[1] == kNone);
  });
}

// Of the constants that elementwise ops broadcast with, the smallest first.
std::vector<int64_t> BroadcastSizes(const Graph& graph) {
  std::set<int64_t> sizes;
  for (const NodeId id : graph.NodeIds()) {
    if (!FindOp(graph.node(id).op)->Has(kElementwise)) continue;
    for (const ValueId input : graph.node(id).inputs) {
      if (input == kNone || graph.value(input).kind == Value::Kind::kInput) continue;
      const std::optional<Shape>& shape = graph.value(input).shape;
      if (shape.has_value()) sizes.insert(shape->begin(), shape->end());
    }
  }
  return {sizes.begin(), sizes.end()};
}

// Whether `graph` takes `sizes`; asks nothing once the time of the load is over.
absl::Status SpecializeWithin(const LoadBudget& budget, const Graph& graph,
                              const std::map<std::string, int64_t>& sizes) {
  RETURN_IF_ERROR(budget.CheckTime("finding the axes"));
  return Specialize(graph, {.axes = sizes}).status();
}

// 0 where it cannot be told: reading the file says why.
int64_t FileBytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ModelLoader::Load(ModelOptions options) const {
  std::unique_ptr<Model> model(new Model());
  model->options_ = std::move(options);
  const int64_t start = context_.clock->NowNs();
  Graph as_imported;
  std::optional<LoadBudget> budget;
  if (const absl::Status status = Import(*model, as_imported, budget); !status.ok()) {
    return ExplainRefusal(model->options_.path, model->options_.ranks, status);
  }
  const int64_t imported = context_.clock->NowNs();
  if (const absl::Status status = FindAxes(*model, std::move(as_imported), *budget); !status.ok()) {
    return ExplainRefusal(model->options_.path, model->options_.ranks, status);
  }
  model->fingerprint_ = FingerprintGraph(model->graph_);
  model->device_fingerprint_ = context_.device->fingerprint();
  model->padding_.Start(model->axes_.size());
  const int64_t analysed = context_.clock->NowNs();
  Certifier::StoreLookup lookup;
  RETURN_IF_ERROR(Certifier(context_).FindOut(*model, lookup));
  // What was measured was measured exactly; recipes want other forms.
  if (model->options_.precision != Precision::kExact) model->owner_->parameters().DropUnused();
  const int64_t certified = context_.clock->NowNs();
  FindUsage(*model);
  RETURN_IF_ERROR(PolicyMaker(context_).SetPolicy(*model));
  MakeSlices(*model);
  ModelObserverSpec spec = {.id = model->id(), .buckets = model->BucketLabels()};
  spec.buckets.push_back("exact");
  if (model->tail_ != nullptr) {
    for (const Cut& cut : model->tail_->cuts()) spec.eager_ops.push_back(cut.op);
  }
  int64_t runs = 0;
  for (const ModelAxis& axis : model->axes_) {
    spec.axes.push_back(axis.label);
    const bool off = model->options_.no_padding.contains(axis.label);
    spec.padding.push_back(axis.certificate.proved      ? AxisPadding::kProved
                           : axis.certificate.certified ? AxisPadding::kMeasured
                           : off                        ? AxisPadding::kOff
                                                        : AxisPadding::kRefused);
    spec.mixing.push_back(axis.certificate.mixing);
    runs += axis.certificate.runs;
  }
  std::unique_ptr<ModelObserver> observer = context_.observer->ForModel(spec);
  if (lookup.tried && lookup.found) observer->OnStoreHit();
  if (lookup.tried && !lookup.found) observer->OnStoreMiss(lookup.miss);
  if (runs > 0) observer->OnProbe(certified - analysed);
  model->owner_->SetObserver(std::move(observer));
  context_.log(FormatText(
      "model %s: loaded with precision %s in %.1f ms: import %.1f, axes %.1f, certificate %.1f in "
      "%d runs",
      model->id().name, std::string(PrecisionName(model->options_.precision)),
      (context_.clock->NowNs() - start) / 1e6, (imported - start) / 1e6,
      (analysed - imported) / 1e6, (certified - analysed) / 1e6, runs));
  LogRounding(*model);
  return model;
}

absl::Status ModelLoader::Import(Model& model, Graph& as_imported,
                                 std::optional<LoadBudget>& budget) const {
  const int64_t file_bytes = FileBytesOf(model.options_.path);
  LoadBudget of_import(file_bytes);
  ASSIGN_OR_RETURN(ImportedModel imported,
                   ImportOnnxFile(model.options_.path, &of_import, model.options_.ranks));
  model.graph_ = std::move(imported.graph);
  model.inputs_ = std::move(imported.inputs);
  model.recipe_outputs_ = std::move(imported.outputs);
  model.vocabulary_ = std::move(imported.vocabulary);
  model.owner_ = std::make_shared<ModelOwner>(
      std::make_unique<ParameterStore>(
          std::move(imported.parameters),
          ParameterStore::Options{.device = context_.device,
                                  .cores = context_.cores,
                                  .max_bytes = model.options_.max_parameter_bytes,
                                  .all_stores = context_.parameter_budget,
                                  .files = std::move(imported.files)}),
      model.options_.max_exact, model.options_.max_recipe_bytes);
  model.eager_share_ = std::make_shared<EagerCache::Share>(model.owner_);
  RETURN_IF_ERROR(model.owner_->parameters().CountLeaves());
  // Weights may lie in other files.
  budget.emplace(std::max(file_bytes, model.parameter_bytes()));
  // Without a request that overrides them, initialisers are constants.
  if (absl::c_any_of(model.inputs_, [](const ModelIo& input) { return input.optional; })) {
    as_imported = model.graph_;
    for (const ModelIo& input : model.inputs_) {
      const ValueId value = model.graph_.FindValue(input.name);
      if (value != kNone) model.graph_.value(value).overridable = false;
    }
  }
  RETURN_IF_ERROR(RunLoadPassesWithin(model.graph_, *budget));
  model.shape_inputs_ = FindShapeInputs(model.graph_, model.inputs_);
  RETURN_IF_ERROR(CutAtData(model));
  for (size_t i = 0; i < model.inputs_.size(); ++i) {
    const auto& shape_inputs = model.shape_inputs_;
    const bool is_shape_input =
        std::find(shape_inputs.begin(), shape_inputs.end(), i) != shape_inputs.end();
    if (!model.inputs_[i].optional && !is_shape_input) model.recipe_inputs_.push_back(i);
  }
  return absl::OkStatus();
}

absl::Status ModelLoader::CutAtData(Model& model) const {
  const std::shared_ptr<const Tail> tail =
      CutModel(model.graph_, model.inputs_, model.shape_inputs_, model.recipe_outputs_);
  if (tail == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CheckOutputTypes(*tail));
  model.recipe_outputs_ = tail->front_outputs();
  model.tail_ = tail;
  for (const Cut& cut : tail->cuts()) {
    context_.log(absl::StrCat("model ", model.id().name, ": cut at ", cut.op, " '", cut.node,
                              "': ", cut.why, "; what follows runs at each request's own sizes"));
  }
  return absl::OkStatus();
}

SizeMeasure ModelLoader::MeasureOf(const Model& model) {
  std::vector<std::vector<size_t>> inputs;
  for (const ModelIo& input : model.inputs_) {
    if (input.optional) continue;
    std::vector<size_t>& axes = inputs.emplace_back();
    for (size_t i = 0; i < model.axes_.size(); ++i) {
      const auto along = [&](const Dim& dim) { return dim.symbol == model.axes_[i].symbol; };
      if (absl::c_any_of(input.dims, along)) axes.push_back(i);
    }
  }
  return SizeMeasure(model.axes_.size(), inputs);
}

absl::Status ModelLoader::FindAxes(Model& model, Graph as_imported,
                                   const LoadBudget& budget) const {
  std::vector<std::vector<Dim>> dims;
  for (const ModelIo& input : model.inputs_) {
    if (!input.optional) dims.push_back(input.dims);
  }
  // Values of shape inputs are unknown yet, so that such a model cannot be tried at other sizes.
  const bool can_try = model.shape_inputs_.empty();
  absl::Status first_error;
  const auto accepts = [&](const std::map<std::string, int64_t>& sizes) {
    if (!can_try) return true;
    const absl::Status status = SpecializeWithin(budget, model.graph_, sizes);
    if (first_error.ok()) first_error = status;
    return status.ok();
  };
  const MergedSymbols merged = MergeSymbols(dims, accepts, BroadcastSizes(model.graph_));
  RETURN_IF_ERROR(budget.CheckTime("finding the axes"));
  if (!merged.note.empty()) {
    context_.log(absl::StrCat("model ", model.id().name, ": ", merged.note,
                              first_error.ok() ? "" : absl::StrCat(": ", first_error.message())));
  }
  if (absl::IsFailedPrecondition(first_error) || absl::IsUnimplemented(first_error)) {
    return first_error;  // No binding will do better.
  }
  if (can_try && !merged.note.empty() && !SizesDecideRanks(model.graph_)) {
    std::vector<ModelIo> wanted;
    absl::c_copy_if(model.inputs_, std::back_inserter(wanted),
                    [](const ModelIo& input) { return !input.optional; });
    const absl::Status some =
        CheckSomeSizes(wanted, [&](const std::map<std::string, int64_t>& sizes) {
          return SpecializeWithin(budget, model.graph_, sizes);
        });
    RETURN_IF_ERROR(budget.CheckTime("finding sizes that the model takes"));
    RETURN_IF_ERROR(some);
  }
  for (size_t i = 0; i < model.inputs_.size(); ++i) {
    const ModelIo& input = model.inputs_[i];
    if (input.optional || input.dims.empty()) continue;
    if (merged.one_row.contains(input.dims[0].symbol)) model.one_row_inputs_.insert(i);
  }
  for (ModelIo& input : model.inputs_) {
    input.dims = merged.Apply(input.dims);
    if (input.optional) continue;
    const ValueId value = model.graph_.FindValue(input.name);
    if (value != kNone) model.graph_.value(value).dims = input.dims;
  }
  if (absl::c_any_of(model.inputs_, [](const ModelIo& input) { return input.optional; })) {
    model.variants_ =
        std::make_unique<ModelVariants>(std::move(as_imported), model.inputs_, model.outputs());
  }
  model.signature_ = InputSignature(model.inputs_);
  for (ModelIo& output : model.recipe_outputs_) output.dims = merged.Apply(output.dims);
  for (const Axis& axis : merged.axes) {
    if (axis.is_batch) model.batch_axis_ = static_cast<int>(model.axes_.size());
    model.axes_.push_back({.label = axis.label,
                           .symbol = axis.symbol,
                           .is_batch = axis.is_batch,
                           .counts_rows = axis.counts_rows});
  }
  model.measure_ = MeasureOf(model);
  for (size_t i = 0; i < model.inputs_.size(); ++i) {
    const ValueId value = model.graph_.FindValue(model.inputs_[i].name);
    if (value != kNone && IsMaskInput(model.graph_, value)) model.mask_inputs_.insert(i);
  }
  return absl::OkStatus();
}

void ModelLoader::MakeSlices(Model& model) {
  if (model.certified_.empty()) return;
  std::vector<int64_t> alike_up_to;
  for (const ModelAxis& axis : model.axes_) {
    const bool decides = !axis.decision.words.empty();
    const bool padded = model.certified_.contains(axis.label);
    alike_up_to.push_back(!decides ? SizeSlices::kDecidesNothing
                          : padded ? axis.decision.alike_up_to
                                   : 0);
  }
  const auto decides = [](int64_t size) { return size != SizeSlices::kDecidesNothing; };
  if (absl::c_none_of(alike_up_to, decides)) return;
  model.slices_ = std::make_unique<SizeSlices>(std::move(alike_up_to));
}

void ModelLoader::LogRounding(const Model& model) const {
  const Precision precision = model.options_.precision;
  if (precision == Precision::kExact) return;
  absl::StatusOr<Graph> graph = Specialize(model.graph_, PolicyMaker::SmallSizes(model));
  if (!graph.ok() || !RunCapturePasses(*graph, {.precision = precision}).ok()) return;
  const RoundedProducts products = CountRoundedProducts(*graph);
  context_.log(
      FormatText("model %s: %s applies to %d of %d products with weights, and to %d attentions",
                 model.id().name, std::string(PrecisionName(precision)), products.rounded,
                 products.all, products.attentions));
}

void ModelLoader::FindUsage(Model& model) const {
  if (context_.store == nullptr) return;
  const RecordName name = UsageNameOf(model.id(), model.fingerprint_);
  const RecipeStore::Found found = context_.store->Read(name);
  if (!found.payload.has_value()) return;  // Nobody used it yet, or the store has warned.
  absl::StatusOr<ModelUsage> usage =
      DecodeUsage(*found.payload, model.id(), model.fingerprint_, context_.device->fingerprint());
  if (usage.ok()) {
    model.usage_ = *std::move(usage);
  } else {
    context_.store->NoteCorrupt(name, std::string(usage.status().message()));
  }
}

}  // namespace reprise

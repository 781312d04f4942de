#include "runtime/engine/load/model_loader.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/engine/load/axes_finder.h"
#include "runtime/engine/load/axis_names.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/live_loader.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/load/policy_maker.h"
#include "runtime/engine/load/precision_chooser.h"
#include "runtime/engine/load/promotion.h"
#include "runtime/engine/load/refusal.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/result_types.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/load_passes.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/kit/precision_rules.h"
#include "runtime/passes/pipeline.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/mask_inputs.h"

namespace reprise {
namespace {

// Returns 0 where it cannot be told: reading the file says why.
int64_t FileBytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Watches single long steps while a model is read.
class LoadWatch final : public WorkWatch {
 public:
  explicit LoadWatch(const LoadBudget& budget) : budget_(budget) {}
  bool Ends() const override { return !budget_.CheckTime("").ok(); }

 private:
  const LoadBudget& budget_;
};

// Returns the status of `work()`, or the status of `budget` where the watch ended a long step.
template <typename Work>
absl::Status WithinTime(const LoadBudget& budget, const Work& work) {
  LoadWatch watch(budget);
  try {
    return work();
  } catch (const WorkEnded&) {
    return budget.CheckTime("a node that runs as a whole");
  }
}

// Returns the facts that an observer is told of a model before its first replay.
ModelObserverSpec SpecOf(const Model& model) {
  ModelObserverSpec spec = {.id = model.id(), .buckets = model.BucketLabels()};
  spec.buckets.push_back("exact");
  if (model.tail() != nullptr) {
    for (const Cut& cut : model.tail()->cuts()) spec.eager_ops.push_back(cut.op);
  }
  for (const ModelAxis& axis : model.axes()) {
    spec.axes.push_back(axis.label);
    const bool off = model.options().no_padding.contains(axis.label);
    spec.padding.push_back(axis.certificate.certified ? AxisPadding::kProved
                           : off                      ? AxisPadding::kOff
                                                      : AxisPadding::kRefused);
    spec.mixing.push_back(axis.certificate.mixing);
  }
  return spec;
}

// Packs requests along axes that they are not padded along, where the model is packed.
void PackRefused(ModelDraft& model) {
  const ModelProof& proof = *model.proof;
  if (proof.packing == nullptr || proof.packing->has_request_scales()) return;
  for (ModelAxis& axis : model.proof->axes) {
    const bool asked = model.options.no_padding.contains(axis.label);
    if (!axis.is_batch && !axis.certificate.certified && !asked) PackOnly(axis);
  }
}

// Returns INVALID_ARGUMENT for an entry of ModelOptions::cut that names no node.
absl::Status CheckNamedNodes(const ModelDraft& model) {
  const Graph& graph = *model.program->graph;
  const std::vector<NodeId> nodes = graph.NodeIds();
  const std::vector<std::string> unused = model.options.cut.Unused(graph, nodes);
  if (unused.empty()) return absl::OkStatus();
  constexpr size_t kShown = 5;
  std::vector<std::string> names;
  for (size_t i = 0; i < nodes.size() && names.size() < kShown; ++i) {
    names.push_back(
        absl::StrCat(SourceOp(graph.node(nodes[i])), " '", NameOf(graph, nodes[i]), "'"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("reprise.cut and reprise.eager_ops: no node is called '", unused[0],
                   "', nor any op; the first nodes are ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ModelLoader::Load(ModelOptions options,
                                                         std::optional<ImportedModel> given) const {
  ModelDraft draft = {.options = std::move(options)};
  // Joining requests is joining nodes, too.
  if (!draft.options.fusion || draft.options.capture == CapturePolicy::kOff) {
    draft.options.packing = PackingMode::kOff;
  }
  const auto explain = [path = given.has_value() ? "" : draft.options.path,
                        ranks = draft.options.ranks,
                        before = times_without_memory.load()](const absl::Status& status) {
    const bool of_model = absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
    if (of_model && times_without_memory != before) return NoMemoryStatus(status.message(), 0);
    return path.empty() ? status : ExplainRefusal(path, ranks, status);
  };
  const int64_t start = context_.clock->NowNs();
  const auto name_of = [&](absl::string_view step) {
    return absl::StrCat(step, " of model ", draft.id().name);
  };
  const Phase load(context_.debug, LogModule::kLoad, [&] { return name_of("load"); });
  Graph as_imported, plain;
  std::optional<LoadBudget> budget;
  Phase importing(context_.debug, LogModule::kLoad, [&] { return name_of("phase import"); });
  if (const absl::Status status = Import(draft, std::move(given), as_imported, plain, budget);
      !status.ok()) {
    return explain(status);
  }
  importing.End();
  const int64_t imported = context_.clock->NowNs();
  Phase axes(context_.debug, LogModule::kLoad, [&] { return name_of("phase axes"); });
  if (const absl::Status status = WithinTime(
          *budget,
          [&] { return AxesFinder(context_).Find(draft, std::move(as_imported), *budget); });
      !status.ok()) {
    return explain(status);
  }
  RETURN_IF_ERROR(NameAxes(draft));
  draft.program->fingerprint = FingerprintGraph(*draft.program->graph);
  const Device& device = draft.options.one_order ? context_.device->one_order() : *context_.device;
  draft.program->device_fingerprint = device.fingerprint();
  axes.End();
  RETURN_IF_ERROR(PrecisionChooser(context_).Choose(draft));
  const int64_t analysed = context_.clock->NowNs();
  Phase certificate(context_.debug, LogModule::kCertificate,
                    [&] { return name_of("phase certificate"); });
  Certifier::StoreLookup lookup;
  RETURN_IF_ERROR(Certifier(context_).FindOut(draft, lookup));
  LiveLoader(context_).Improve(draft, lookup);
  PackRefused(draft);
  RETURN_IF_ERROR(CheckCertificates(draft, plain));
  // Measurements ran exactly; recipes need other forms of the parameters.
  if (MayRound(draft.options) || draft.options.weights != WeightBits::kStored)
    draft.program->owner->parameters().DropUnused();
  certificate.End();
  LogAxes(draft.view());
  LogCertificates(draft.view());
  const int64_t certified = context_.clock->NowNs();
  if (context_.store != nullptr) {
    draft.traffic.usage = FindUsage(*context_.store, draft.id(), draft.program->fingerprint,
                                    context_.device->fingerprint());
  }
  RETURN_IF_ERROR(PolicyMaker(context_).SetPolicy(draft));
  MakeSlices(draft);
  draft.traffic.ready = context_.index_of(draft.program->fingerprint);
  if (draft.proof->packing != nullptr) {
    draft.traffic.packed_ready = context_.index_of(draft.proof->packing->fingerprint());
  }
  draft.traffic.graph_change = context_.change_since(draft.id().name, *draft.program);
  std::unique_ptr<Model> model = std::move(draft).Finish(context_.log);
  std::unique_ptr<ModelObserver> observer = context_.observer->ForModel(SpecOf(*model));
  if (lookup.tried && lookup.found) observer->On(StoreRequest{});
  if (lookup.tried && !lookup.found) observer->On(StoreRequest{lookup.miss});
  model->owner()->SetObserver(std::move(observer));
  context_.log(FormatText(
      "model %s: loaded with precision %s in %.1f ms: import %.1f, axes %.1f, certificate "
      "%.1f",
      model->id().name, PrecisionWords(model->options()), (context_.clock->NowNs() - start) / 1e6,
      (imported - start) / 1e6, (analysed - imported) / 1e6, (certified - analysed) / 1e6));
  LogRounding(model->view());
  return model;
}

absl::Status ModelLoader::Import(ModelDraft& model, std::optional<ImportedModel> given,
                                 Graph& as_imported, Graph& plain,
                                 std::optional<LoadBudget>& budget) const {
  const int64_t file_bytes = given.has_value() ? 0 : FileBytesOf(model.options.path);
  ImportedModel imported;
  if (given.has_value()) {
    imported = *std::move(given);
  } else {
    LoadBudget of_import(file_bytes);
    RETURN_IF_ERROR(WithinTime(of_import, [&]() -> absl::Status {
      if (const auto import = std::exchange(model.options.import, nullptr)) {
        ASSIGN_OR_RETURN(imported, import());
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(imported,
                       ImportOnnxFile(model.options.path, &of_import, model.options.ranks));
      return absl::OkStatus();
    }));
  }
  // The model keeps its options, and the objects that this points into go when the load is over.
  if (const auto extend = std::exchange(model.options.extend, nullptr)) {
    RETURN_IF_ERROR(extend(imported));
  }
  RETURN_IF_ERROR(PromoteConstants(model, imported, plain));
  model.program->graph = std::move(imported.graph);
  model.signature->inputs = std::move(imported.inputs);
  model.signature->recipe_outputs = std::move(imported.outputs);
  model.signature->vocabulary = std::move(imported.vocabulary);
  model.program->owner = std::make_shared<ModelOwner>(
      std::make_unique<ParameterStore>(
          std::move(imported.parameters),
          ParameterStore::Options{.device = context_.device,
                                  .cores = context_.cores,
                                  .max_bytes = model.options.max_parameter_bytes,
                                  .all_stores = context_.parameter_budget,
                                  .files = std::move(imported.files)}),
      model.options.max_exact, model.options.max_recipe_bytes);
  model.traffic.eager_share = std::make_shared<EagerCache::Share>(model.program->owner);
  RETURN_IF_ERROR(model.program->owner->parameters().CountLeaves());
  // Weights may lie in other files.
  budget.emplace(std::max(file_bytes, model.program->owner->parameters().leaf_bytes()));
  // Without a request that overrides them, initialisers are constants.
  if (absl::c_any_of(model.signature->inputs,
                     [](const ModelIo& input) { return input.has_variants(); })) {
    as_imported = *model.program->graph;
    for (const ModelIo& input : model.signature->inputs) {
      const ValueId value = model.program->graph->FindValue(input.name);
      if (value != kNone) model.program->graph->value(value).overridable = false;
    }
  }
  PipelineOptions passes;
  if (!model.options.fusion) passes.disabled = FusionPassNames();
  RETURN_IF_ERROR(WithinTime(
      *budget, [&] { return RunLoadPassesWithin(*model.program->graph, *budget, passes); }));
  if (!model.options.precision_ops.empty() || model.options.precision_goal.has_value()) {
    model.program->nodes = std::make_shared<const NodePrecisions>(
        *model.program->graph, model.options.precision_ops, model.options.precision);
  }
  model.signature->shape_inputs = FindShapeInputs(*model.program->graph, model.signature->inputs);
  RETURN_IF_ERROR(CutAtData(model));
  for (size_t i = 0; i < model.signature->inputs.size(); ++i) {
    const auto& shape_inputs = model.signature->shape_inputs;
    const bool is_shape_input =
        std::find(shape_inputs.begin(), shape_inputs.end(), i) != shape_inputs.end();
    if (!model.signature->inputs[i].optional && !is_shape_input)
      model.signature->recipe_inputs.push_back(i);
  }
  return absl::OkStatus();
}

absl::Status ModelLoader::PromoteConstants(ModelDraft& model, ImportedModel& imported,
                                           Graph& plain) const {
  ModelOptions& options = model.options;
  const auto note = [&](const std::string& text) {
    context_.log(absl::StrCat("model ", model.id().name, ": ", text));
  };
  if (options.promote_found) {
    const std::optional<Graph> before =
        context_.graph_before == nullptr ? std::nullopt : context_.graph_before(model.id().name);
    for (std::string& name :
         FindPromotable(imported, options, before.has_value() ? &*before : nullptr, note)) {
      if (!absl::c_linear_search(options.promote, name)) options.promote.push_back(std::move(name));
    }
  }
  if (options.promote.empty()) return absl::OkStatus();
  plain = imported.graph;
  RETURN_IF_ERROR(Promote(imported, options.promote));
  note(absl::StrCat(
      "requests may send ", absl::StrJoin(options.promote, ", "),
      ", which are not part of any key; without a value of its own a request gets the file's"));
  return absl::OkStatus();
}

absl::Status ModelLoader::CheckCertificates(ModelDraft& model, const Graph& plain) const {
  if (model.options.promote.empty()) return absl::OkStatus();
  const auto& axes = model.proof->axes;
  const bool refused = absl::c_any_of(axes, [&](const ModelAxis& axis) {
    return !axis.certificate.certified && !model.options.no_padding.contains(axis.label);
  });
  const bool unpacked = model.options.packing == PackingMode::kAuto &&
                        model.proof->packing == nullptr && axes.size() > 1;
  if (!refused && !unpacked) return absl::OkStatus();
  ModelDraft other = {.options = model.options};
  *other.signature = *model.signature;
  other.signature->live_inputs.clear();
  other.signature->live_places.clear();
  other.program->graph = plain;
  other.program->device_fingerprint = model.program->device_fingerprint;
  other.program->owner = model.program->owner;
  for (const ModelIo& input : other.signature->inputs) {
    const ValueId value = other.program->graph->FindValue(input.name);
    if (value == kNone) continue;
    other.program->graph->value(value).overridable = false;
    if (!input.optional) other.program->graph->value(value).dims = input.dims;
  }
  RETURN_IF_ERROR(RunLoadPasses(*other.program->graph));
  CutModel(*other.program->graph, other.signature->inputs, other.signature->shape_inputs,
           model.program->tail == nullptr ? other.signature->recipe_outputs
                                          : model.program->tail->outputs(),
           {.chosen = model.options.cut});
  for (const ModelAxis& axis : axes) {
    other.proof->axes.push_back({.label = axis.label,
                                 .symbol = axis.symbol,
                                 .is_batch = axis.is_batch,
                                 .counts_rows = axis.counts_rows});
  }
  other.program->fingerprint = FingerprintGraph(*other.program->graph);
  Certifier::StoreLookup lookup;
  RETURN_IF_ERROR(Certifier(context_).FindOut(other, lookup));
  LiveLoader(context_).Improve(other, lookup);
  PackRefused(other);
  const std::string lost = CertificateLost(*other.proof, *model.proof);
  if (lost.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "reprise.promote: constant '", absl::StrJoin(model.options.promote, "', '"), "': ", lost));
}

absl::Status ModelLoader::CutAtData(ModelDraft& model) const {
  RETURN_IF_ERROR(CheckNamedNodes(model));
  const std::shared_ptr<const Tail> tail = CutModel(
      *model.program->graph, model.signature->inputs, model.signature->shape_inputs,
      model.signature->recipe_outputs,
      {.everywhere = model.options.capture == CapturePolicy::kOff, .chosen = model.options.cut});
  if (tail == nullptr) {
    // Where a request's values decide shapes, nothing is specialised before there is one.
    const std::vector<DType> types = ResultTypes(*model.program->graph);
    for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
      DType& dtype = model.signature->recipe_outputs[i].dtype;
      if (dtype == DType::kUndefined) dtype = types[model.program->graph->outputs()[i]];
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckOutputTypes(*tail));
  model.signature->recipe_outputs = tail->front_outputs();
  model.program->tail = tail;
  if (model.options.capture == CapturePolicy::kOff) {
    context_.log(absl::StrCat("model ", model.id().name, ": runs op by op, ", tail->cuts().size(),
                              " nodes; nothing is captured, padded or batched"));
    return absl::OkStatus();
  }
  for (const Cut& cut : tail->cuts()) {
    context_.log(absl::StrCat("model ", model.id().name, ": cut at ", cut.op, " '", cut.node, "': ",
                              cut.why, "; the nodes after it run at each request's own sizes"));
  }
  return absl::OkStatus();
}

void ModelLoader::MakeSlices(ModelDraft& model) {
  if (model.proof->certified.empty()) return;
  std::vector<int64_t> alike_up_to;
  for (const ModelAxis& axis : model.proof->axes) {
    const bool decides = !axis.decision.words.empty();
    const bool padded = model.proof->certified.contains(axis.label);
    alike_up_to.push_back(!decides ? SizeSlices::kDecidesNothing
                          : padded ? axis.decision.alike_up_to
                                   : 0);
  }
  const auto decides = [](int64_t size) { return size != SizeSlices::kDecidesNothing; };
  if (absl::c_none_of(alike_up_to, decides)) return;
  model.proof->slices = std::make_unique<SizeSlices>(std::move(alike_up_to));
}

void ModelLoader::LogAxes(const ModelView& model) const {
  for (const ModelAxis& axis : model.proof.axes) {
    const AxisCertificate& found = axis.certificate;
    const absl::string_view verdict = !found.certified      ? " is never padded: "
                                      : found.only_packed() ? " is "
                                                            : " may be padded: ";
    context_.log(absl::StrCat("model ", model.options.id.name, ": axis ", axis.label, verdict,
                              found.reason));
  }
}

void ModelLoader::LogCertificates(const ModelView& model) const {
  if (!Wants(context_.debug, LogModule::kCertificate)) return;
  for (const ModelAxis& axis : model.proof.axes) {
    const AxisCertificate& found = axis.certificate;
    context_.debug->Say(LogModule::kCertificate,
                        absl::StrCat("axis ", axis.label, " of model ", model.options.id.name, ": ",
                                     found.certified ? "certified" : "refused",
                                     found.reason.empty() ? "" : ": ", found.reason));
  }
}

void ModelLoader::LogRounding(const ModelView& model) const {
  if (!MayRound(model.options)) return;
  absl::StatusOr<Graph> graph = Specialize(
      *model.program.graph, PolicyMaker::SmallSizes(*model.program.graph, model.proof.axes));
  const PipelineOptions passes = {.precision = model.options.precision,
                                  .nodes = model.program.nodes.get(),
                                  .weights = model.options.weights};
  if (!graph.ok() || !RunCapturePasses(*graph, passes).ok()) return;
  const RoundedProducts products = CountRoundedProducts(*graph);
  for (const Precision precision : kPrecisions) {
    const int64_t rounded = products.by_precision[static_cast<size_t>(precision)];
    const bool alone = precision == Precision::kBf16 && products.attentions > 0 &&
                       model.options.precision == Precision::kExact;
    const bool asked = precision == model.options.precision || rounded > 0 || alone;
    if (precision == Precision::kExact || !asked) continue;
    context_.log(
        FormatText("model %s: %s applies to %d of %d products with weights, and to %d attentions",
                   model.options.id.name, std::string(PrecisionName(precision)), rounded,
                   products.all, products.attentions));
  }
}

}  // namespace reprise

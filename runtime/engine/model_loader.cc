#include "runtime/engine/model_loader.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/axes.h"
#include "runtime/engine/model_packer.h"
#include "runtime/engine/padding_proof.h"
#include "runtime/engine/refusal.h"
#include "runtime/engine/signature.h"
#include "runtime/engine/size_check.h"
#include "runtime/engine/tail.h"
#include "runtime/graph/dim_expression.h"
#include "runtime/passes/pass.h"

namespace reprise {
namespace {

// Sizes at which output shapes are fitted: small, distinct, and not 1, which broadcasts.
constexpr int64_t kFitBatch = 2;
constexpr int64_t kFitLengths[] = {5, 16, 64, 96, 224, 256};  // the first that the model takes

// Requests before the first look at buckets: enough that what it finds stays.
constexpr int64_t kFirstLookAfter = 600;

// A Squeeze of whatever dims are 1.
bool SizesDecideRanks(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.removed && node.op == "Squeeze" &&
           (node.inputs.size() < 2 || node.inputs[1] == kNone);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> ModelLoader::Load(ModelOptions options) const {
  std::unique_ptr<Model> model(new Model());
  model->options_ = std::move(options);
  const int64_t start = context_.clock->NowNs();
  Graph as_imported;
  if (const absl::Status status = Import(*model, as_imported); !status.ok()) {
    return ExplainRefusal(model->options_.path, status);
  }
  const int64_t imported = context_.clock->NowNs();
  if (const absl::Status status = FindAxes(*model, std::move(as_imported)); !status.ok()) {
    return ExplainRefusal(model->options_.path, status);
  }
  model->fingerprint_ = FingerprintGraph(model->graph_);
  model->device_fingerprint_ = context_.device->fingerprint();
  model->padding_.Start(model->axes_.size());
  const int64_t analysed = context_.clock->NowNs();
  StoreLookup lookup;
  RETURN_IF_ERROR(FindOut(*model, lookup));
  const int64_t certified = context_.clock->NowNs();
  FindUsage(*model);
  RETURN_IF_ERROR(SetPolicy(*model));
  ModelObserverSpec spec = {.id = model->id(), .buckets = model->BucketLabels()};
  spec.buckets.push_back("exact");
  if (model->tail_ != nullptr) {
    for (const Cut& cut : model->tail_->cuts()) spec.eager_ops.push_back(cut.op);
  }
  int64_t runs = 0;
  for (const ModelAxis& axis : model->axes_) {
    spec.axes.push_back(axis.label);
    spec.padding.push_back(axis.certificate.certified ? AxisPadding::kCertified
                           : model->options_.no_padding.contains(axis.label)
                               ? AxisPadding::kOff
                               : AxisPadding::kRefused);
    runs += axis.certificate.runs;
  }
  std::unique_ptr<ModelObserver> observer = context_.observer->ForModel(spec);
  if (lookup.tried && lookup.found) observer->OnStoreHit();
  if (lookup.tried && !lookup.found) observer->OnStoreMiss(lookup.miss);
  if (runs > 0) observer->OnProbe(certified - analysed);
  model->owner_->SetObserver(std::move(observer));
  context_.log(absl::StrFormat(
      "model %s: loaded in %.1f ms: import %.1f, axes %.1f, certificate %.1f in %d runs",
      model->id().name, (context_.clock->NowNs() - start) / 1e6, (imported - start) / 1e6,
      (analysed - imported) / 1e6, (certified - analysed) / 1e6, runs));
  return model;
}

absl::Status ModelLoader::Import(Model& model, Graph& as_imported) const {
  ASSIGN_OR_RETURN(ImportedModel imported, ImportOnnxFile(model.options_.path));
  model.graph_ = std::move(imported.graph);
  model.inputs_ = std::move(imported.inputs);
  model.recipe_outputs_ = std::move(imported.outputs);
  model.owner_ = std::make_shared<ModelOwner>(
      std::make_unique<ParameterStore>(
          std::move(imported.parameters),
          ParameterStore::Options{.device = context_.device,
                                  .cores = context_.cores,
                                  .max_bytes = model.options_.max_parameter_bytes,
                                  .all_stores = context_.parameter_budget,
                                  .files = std::move(imported.files)}),
      model.options_.max_exact, model.options_.max_recipe_bytes);
  RETURN_IF_ERROR(model.owner_->parameters().CountLeaves());
  // Without a request that overrides them, initialisers are constants.
  if (absl::c_any_of(model.inputs_, [](const ModelIo& input) { return input.optional; })) {
    as_imported = model.graph_;
    for (const ModelIo& input : model.inputs_) {
      const ValueId value = model.graph_.FindValue(input.name);
      if (value != kNone) model.graph_.value(value).overridable = false;
    }
  }
  RETURN_IF_ERROR(RunLoadPasses(model.graph_));
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

absl::Status ModelLoader::FindAxes(Model& model, Graph as_imported) const {
  std::vector<std::vector<Dim>> dims;
  for (const ModelIo& input : model.inputs_) {
    if (!input.optional) dims.push_back(input.dims);
  }
  // Values of shape inputs are unknown yet, so that such a model cannot be tried at other sizes.
  const bool can_try = model.shape_inputs_.empty();
  absl::Status first_error;
  const MergedSymbols merged = MergeSymbols(dims, [&](const std::map<std::string, int64_t>& sizes) {
    if (!can_try) return true;
    const absl::Status status = Specialize(model.graph_, {.axes = sizes}).status();
    if (first_error.ok()) first_error = status;
    return status.ok();
  });
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
    RETURN_IF_ERROR(CheckSomeSizes(wanted, [&](const std::map<std::string, int64_t>& sizes) {
      return Specialize(model.graph_, {.axes = sizes}).status();
    }));
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
  for (ModelIo& output : model.recipe_outputs_) output.dims = merged.Apply(output.dims);
  for (const Axis& axis : merged.axes) {
    if (axis.is_batch) model.batch_axis_ = static_cast<int>(model.axes_.size());
    model.axes_.push_back({.label = axis.label, .symbol = axis.symbol, .is_batch = axis.is_batch});
  }
  return absl::OkStatus();
}

std::vector<int64_t> ModelLoader::BucketSizes(const Model& model, const ModelAxis& axis) const {
  const auto configured = model.options_.buckets.find(axis.label);
  if (configured != model.options_.buckets.end()) return configured->second;
  const BucketPolicy defaults = BucketPolicy::Default("batch", {"other"});
  for (const AxisBuckets& buckets : defaults.axes) {
    if (buckets.axis == (axis.is_batch ? "batch" : "other")) return buckets.sizes;
  }
  return {};
}

std::vector<std::vector<int64_t>> ModelLoader::BucketsByAxis(const Model& model) const {
  std::vector<std::vector<int64_t>> buckets;
  for (const ModelAxis& axis : model.axes_) buckets.push_back(BucketSizes(model, axis));
  return buckets;
}

absl::Status ModelLoader::FitShapes(Model& model) const {
  std::vector<std::string> symbols;
  std::vector<std::vector<int64_t>> samples;
  for (const ModelAxis& axis : model.axes_) {
    symbols.push_back(axis.symbol);
    // On both sides of every boundary.
    std::vector<int64_t>& sizes = samples.emplace_back(std::vector<int64_t>{1, 3});
    for (int64_t bucket : BucketSizes(model, axis)) {
      sizes.insert(sizes.end(), {bucket - 1, bucket, bucket + 1});
    }
  }
  absl::StatusOr<OutputFit> fit = absl::UnknownError("not tried");
  for (int64_t length : kFitLengths) {
    Binding base;
    for (const ModelAxis& axis : model.axes_) {
      base.axes[axis.symbol] = axis.is_batch ? kFitBatch : length;
    }
    fit = FitOutputShapes(model.graph_, symbols, base, samples);
    if (fit.ok()) break;
  }
  if (!fit.ok()) {
    for (ModelAxis& axis : model.axes_) Refuse(axis, std::string(fit.status().message()));
    return absl::OkStatus();
  }
  for (size_t i = 0; i < model.axes_.size(); ++i) {
    if (!fit->refusals[i].empty()) Refuse(model.axes_[i], fit->refusals[i]);
  }
  model.output_shapes_ = std::move(fit->outputs);
  for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
    model.recipe_outputs_[i].dtype = model.output_shapes_[i].dtype;
  }
  return absl::OkStatus();
}

absl::Status ModelLoader::DescribeOutputs(Model& model) const {
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(model.graph_, {}));
  for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
    const Value& value = specialized.value(specialized.outputs()[i]);
    model.recipe_outputs_[i].dtype = value.dtype;
    model.recipe_outputs_[i].dims.clear();
    for (int64_t size : *value.shape) model.recipe_outputs_[i].dims.push_back({.size = size});
  }
  return absl::OkStatus();
}

StoredModelKey ModelLoader::KeyOf(const Model& model) const {
  std::string settings = absl::StrCat("certify ", kCertifyVersion, "\n");
  for (const ModelAxis& axis : model.axes_) {
    absl::StrAppend(&settings, "axis ", axis.label, ": ",
                    absl::StrJoin(BucketSizes(model, axis), ","),
                    model.options_.no_padding.contains(axis.label) ? " off" : "", "\n");
  }
  if (model.options_.packing == PackingMode::kAuto) absl::StrAppend(&settings, "packing auto\n");
  for (const auto& [input, fill] : model.options_.fills) {
    absl::StrAppend(&settings, "fill ", input, ": ", fill, "\n");
  }
  // Names of inputs and outputs are in the findings, and not in the text of the graph.
  for (const ModelIo& input : model.inputs_) absl::StrAppend(&settings, "input ", input.name, "\n");
  for (const ModelIo& output : model.recipe_outputs_) {
    absl::StrAppend(&settings, "output ", output.name, "\n");
  }
  return {.graph = model.fingerprint_.digest,
          .parameters = model.owner_->parameters().Digest(),
          .settings = std::move(settings),
          .device = context_.device->fingerprint(),
          .compiler = CompilerId()};
}

ModelLoader::StoreLookup ModelLoader::Restore(const StoredModelKey& key, Model& model) const {
  const int64_t start = context_.clock->NowNs();
  const RecordName name = key.NameOf(model.id());
  RecipeStore::Found found = context_.store->Read(name);
  if (found.payload.has_value()) {
    std::vector<std::string> labels, inputs;
    for (const ModelAxis& axis : model.axes_) labels.push_back(axis.label);
    for (const ModelIo& input : model.inputs_) inputs.push_back(input.name);
    absl::StatusOr<ModelFindings> findings =
        DecodeFindings(*found.payload, key, labels, inputs, model.recipe_outputs_.size());
    if (findings.ok()) {
      for (size_t i = 0; i < model.axes_.size(); ++i) {
        model.axes_[i].certificate = std::move(findings->axes[i]);
      }
      model.output_shapes_ = std::move(findings->outputs);
      for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
        model.recipe_outputs_[i].dtype = findings->output_dtypes[i];
      }
      if (!findings->packing_refusal.empty()) {
        ModelPacker(context_).Refuse(model, findings->packing_refusal);
      } else {
        ModelPacker(context_).Pack(model, BucketsByAxis(model));
      }
      context_.log(absl::StrFormat("model %s: loaded certificate %s from %s in %.1f ms",
                                   model.id().name, HexKey(name.key), context_.store->folder(),
                                   (context_.clock->NowNs() - start) / 1e6));
      return {.tried = true, .found = true};
    }
    found.detail = std::string(findings.status().message());
    const bool corrupt = absl::IsDataLoss(findings.status());
    found.miss = corrupt ? StoreMiss::kCorrupt : StoreMiss::kForeign;
    if (corrupt) context_.store->NoteCorrupt(name, found.detail);
  }
  context_.log(absl::StrCat("model ", model.id().name, ": could not find certificate ",
                            HexKey(name.key), ": ", StoreMissWords(found.miss),
                            found.detail.empty() ? "" : ": ", found.detail));
  return {.tried = true, .miss = found.miss};
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

absl::Status ModelLoader::FindOut(Model& model, StoreLookup& lookup) const {
  const bool measured = !model.axes_.empty() && model.shape_inputs_.empty();
  if (!measured) {
    RETURN_IF_ERROR(Certify(model));
    ModelPacker(context_).Pack(model, BucketsByAxis(model));  // Says why not.
    return absl::OkStatus();
  }
  if (context_.store == nullptr) return Certify(model);
  lookup = Restore(KeyOf(model), model);
  if (lookup.found) return absl::OkStatus();
  const int64_t start = context_.clock->NowNs();
  RETURN_IF_ERROR(Certify(model));
  const int64_t took_ns = context_.clock->NowNs() - start;
  // Half a proof is not kept: a restart would take it for the whole.
  if (!model.padding_.pending()) Keep(model, {}, took_ns);
  return absl::OkStatus();
}

void ModelLoader::Keep(const Model& model, const std::map<size_t, AxisCertificate>& confirmed,
                       int64_t measure_ns) const {
  const StoredModelKey key = KeyOf(model);
  ModelFindings findings = {.outputs = model.output_shapes_,
                            .packing_refusal = model.packing_refusal_};
  for (const ModelAxis& axis : model.axes_) findings.axes.push_back(axis.certificate);
  for (const auto& [axis, certificate] : confirmed) findings.axes[axis] = certificate;
  for (const ModelIo& output : model.recipe_outputs_)
    findings.output_dtypes.push_back(output.dtype);
  context_.store->WriteLater(key.NameOf(model.id()), measure_ns,
                             EncodeFindings(key, model.id(), findings, measure_ns));
}

void ModelLoader::Confirm(const Model& model) const {
  if (!model.padding_.pending()) return;
  const int64_t start = context_.clock->NowNs();
  std::map<size_t, AxisCertificate> confirmed;
  absl::StatusOr<std::map<size_t, AxisCertificate>> measured =
      PaddingProof(context_).Confirm(model);
  if (measured.ok()) {
    confirmed = *std::move(measured);
    if (context_.store != nullptr) Keep(model, confirmed, context_.clock->NowNs() - start);
  } else {
    for (size_t i = 0; i < model.axes_.size(); ++i) {
      if (model.padding_.proved_to(i) == PaddingProgress::kAnySize) continue;
      confirmed[i] = model.axes_[i].certificate;
      confirmed[i].certified = false;
      confirmed[i].reason = std::string(measured.status().message());
    }
  }
  for (const auto& [axis, certificate] : confirmed) {
    if (!certificate.certified) model.owner_->observer().OnAxisRefused(axis);
  }
  model.padding_.Finish(std::move(confirmed));
}

absl::Status ModelLoader::Certify(Model& model) const {
  if (model.axes_.empty()) {
    // Everything is known already, whatever the file declares.
    return model.shape_inputs_.empty() ? DescribeOutputs(model) : absl::OkStatus();
  }
  if (!model.shape_inputs_.empty()) {
    const std::string reason =
        absl::StrCat("input '", model.inputs_[model.shape_inputs_[0]].name,
                     "' decides a shape: every request runs at its exact sizes");
    for (ModelAxis& axis : model.axes_) Refuse(axis, reason);
    return absl::OkStatus();
  }

  RETURN_IF_ERROR(FitShapes(model));
  return PaddingProof(context_).Measure(model, BucketsByAxis(model));
}

absl::Status ModelLoader::SetPolicy(Model& model) const {
  // Every input of a replay must be cut from requests by rows, or the same for all of them.
  if (model.batch_axis_ >= 0) {
    ModelAxis& batch = model.axes_[model.batch_axis_];
    for (int position : model.recipe_inputs_) {
      const std::vector<Dim>& dims = model.inputs_[position].dims;
      if (batch.certificate.certified && (dims.empty() || dims[0].symbol != batch.symbol)) {
        Refuse(batch, absl::StrCat("input '", model.inputs_[position].name,
                                   "' belongs to a whole request, not to its rows"));
      }
    }
  }
  std::string batch_label;
  std::vector<std::string> others;
  for (const ModelAxis& axis : model.axes_) {
    if (!axis.certificate.certified) continue;
    model.certified_.insert(axis.label);
    if (axis.is_batch) {
      batch_label = axis.label;
    } else {
      others.push_back(axis.label);
    }
  }
  BucketPolicy policy = BucketPolicy::Default(batch_label, others);
  policy.max_batch_tokens = model.options_.max_batch_tokens;
  policy.overflow = model.options_.overflow;
  const auto check = [&](const std::string& label) {
    const bool known = std::any_of(model.axes_.begin(), model.axes_.end(),
                                   [&](const ModelAxis& axis) { return axis.label == label; });
    if (known) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "buckets are configured for axis '", label, "', which the model does not have (it has: ",
        absl::StrJoin(
            model.axes_, ", ",
            [](std::string* out, const ModelAxis& axis) { absl::StrAppend(out, axis.label); }),
        ")"));
  };
  for (const auto& [label, rule] : model.options_.learnt_buckets) RETURN_IF_ERROR(check(label));
  for (const auto& [label, sizes] : model.options_.buckets) {
    RETURN_IF_ERROR(check(label));
    for (AxisBuckets& buckets : policy.axes) {
      if (buckets.axis == label) buckets.sizes = sizes;
    }
  }
  RETURN_IF_ERROR(policy.Validate());
  LimitBuckets(model, policy);
  // By now an axis may have lost its certificate.
  if (model.packing_ != nullptr && model.certified_.size() != model.axes_.size()) {
    ModelPacker(context_).Refuse(model, "an axis has no buckets");
  }
  MakeLearner(model, std::move(policy));
  for (const ModelAxis& axis : model.axes_) {
    if (model.certified_.contains(axis.label)) model.paddable_.insert(axis.symbol);
    if (axis.is_batch) model.batch_symbol_ = axis.symbol;
  }
  return absl::OkStatus();
}

void ModelLoader::MakeLearner(Model& model, BucketPolicy policy) const {
  const ModelOptions& options = model.options_;
  // Tokens of packed requests fit every bucket alike.
  const BucketMode mode = model.packing_ != nullptr ? BucketMode::kOff : options.bucket_mode;
  BucketLearner::Options learner = {.mode = mode};
  learner.advisor.payback_ns = options.bucket_payback_ns;
  learner.advisor.first_after = kFirstLookAfter;
  for (const AxisBuckets& buckets : policy.axes) {
    if (buckets.axis == policy.batch_axis) continue;
    AdvisorAxis axis = {.label = buckets.axis, .start = buckets.sizes};
    const auto rule = options.learnt_buckets.find(axis.label);
    if (rule != options.learnt_buckets.end()) {
      axis.rule = rule->second;
    } else if (options.buckets.contains(axis.label)) {
      axis.rule.kind = BoundaryRule::Kind::kExplicit;
    }
    learner.advisor.axes.push_back(std::move(axis));
  }
  learner.first = std::move(policy);
  std::vector<std::string> axes;
  for (const AdvisorAxis& axis : learner.advisor.axes) axes.push_back(axis.label);
  if (!axes.empty() && axes == model.usage_.axes) learner.learnt = &model.usage_.learnt;
  model.learner_ = std::make_unique<BucketLearner>(std::move(learner));
}

// A model with 256 positions takes no bucket of 512.
void ModelLoader::LimitBuckets(Model& model, BucketPolicy& policy) const {
  for (ModelAxis& axis : model.axes_) {
    if (!axis.certificate.certified) continue;
    absl::Status refusal;
    const std::vector<int64_t> dropped = policy.DropRefused(axis.label, [&](int64_t size) {
      Binding binding;
      for (const ModelAxis& other : model.axes_) {
        binding.axes[other.symbol] = other.is_batch ? kFitBatch : kFitLengths[0];
      }
      binding.axes[axis.symbol] = size;
      const absl::Status status = Specialize(model.graph_, binding).status();
      if (!status.ok()) refusal = status;
      return status.ok();
    });
    if (dropped.empty()) continue;
    const std::string text =
        absl::StrCat("the model does not take ", absl::StrJoin(dropped, ", "), " along axis ",
                     axis.label, ": ", std::string(refusal.message()));
    context_.log(absl::StrCat("model ", model.id().name, ": buckets dropped, ", text));
    if (policy.Largest(axis.label).has_value()) continue;
    Refuse(axis, text);
    model.certified_.erase(axis.label);
    if (axis.is_batch) policy.batch_axis.clear();
  }
}

}  // namespace reprise

#include "runtime/engine/load/certifier.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/hash64.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/load/policy_maker.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/verify/probe_sizes.h"

namespace reprise {
namespace {

// Returns whether the model is packed, and there are masks with which it may not be padded, as a
// measurement shows.
bool AsksOfMasks(const ModelProof& proof) {
  if (proof.packing == nullptr || !proof.packing->takes_any_mask()) return false;
  return absl::c_any_of(proof.axes, [](const ModelAxis& axis) {
    return !axis.certificate.proved && axis.certificate.asks_of_masks();
  });
}

// Takes the certificates away that hold for packed requests alone, where the model is not packed.
void RefusePadding(ModelProof& proof) {
  if (proof.packing != nullptr) return;
  for (ModelAxis& axis : proof.axes) RefuseOnlyPacked(axis);
  if (proof.pending == nullptr) return;
  PendingProof pending = *proof.pending;
  std::erase_if(pending.axes, [&](const PendingProof::Axis& left) {
    return !proof.axes[left.position].certificate.certified;
  });
  proof.pending =
      pending.axes.empty() ? nullptr : std::make_shared<const PendingProof>(std::move(pending));
}

// Gives outputs whose shape the file leaves open the shape that was found, if one was.
void DeclareOutputs(ModelDraft& model) {
  if (model.proof->output_shapes.empty()) return;
  const std::vector<ModelAxis>& axes = model.proof->axes;
  for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
    ModelIo& output = model.signature->recipe_outputs[i];
    if (!output.dims.empty()) continue;
    for (const AffineDim& dim : model.proof->output_shapes[i].dims) {
      Dim& declared = output.dims.emplace_back();
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (dim.IsAxis(axis)) declared.symbol = axes[axis].symbol;
      }
      if (!declared.symbol.empty()) continue;
      if (!dim.open && !dim.Moves()) {
        declared.size = dim.constant;
      } else {
        declared.symbol = absl::StrCat(output.name, ":", output.dims.size() - 1);
      }
    }
  }
}

}  // namespace

absl::StatusOr<OutputFit> Certifier::FitOutputs(const ModelDraft& model,
                                                const std::map<size_t, int64_t>& farther) const {
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    const ModelAxis& axis = model.proof->axes[i];
    symbols.push_back(axis.symbol);
    int64_t largest = 3;
    for (const int64_t bucket : PolicyMaker::BucketSizes(model.view(), axis)) {
      largest = std::max(largest, bucket + 1);
    }
    if (const auto far = farther.find(i); far != farther.end()) {
      largest = std::max(largest, far->second);
    }
    // A stride as long as the largest bucket first differs beyond that bucket.
    ranges.push_back({.largest = RoundUpTo(2 * largest + 3, axis.step),
                      .from = axis.whole_from,
                      .step = axis.step,
                      .extents = axis.extents});
  }
  absl::StatusOr<OutputFit> fit = absl::UnknownError("not tried");
  for (int64_t length : kFitLengths) {
    Binding base;
    for (const ModelAxis& axis : model.proof->axes) {
      base.axes[axis.symbol] =
          axis.is_batch ? kFitBatch : RoundUpTo(std::max(length, axis.whole_from), axis.step);
    }
    fit = FitOutputShapes(*model.program->graph, symbols, base, ranges,
                          /*multiplies=*/!model.signature->live_inputs.empty());
    if (fit.ok()) break;
  }
  return fit;
}

absl::Status Certifier::FitShapes(ModelDraft& model) const {
  absl::StatusOr<OutputFit> fit = FitOutputs(model, {});
  if (!fit.ok()) {
    for (ModelAxis& axis : model.proof->axes) Refuse(axis, std::string(fit.status().message()));
    return absl::OkStatus();
  }
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    model.proof->axes[i].smallest = std::max(fit->smallest[i], model.proof->axes[i].whole_from);
    if (!fit->refusals[i].empty()) Refuse(model.proof->axes[i], fit->refusals[i]);
  }
  model.proof->output_shapes = std::move(fit->outputs);
  for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
    model.signature->recipe_outputs[i].dtype = model.proof->output_shapes[i].dtype;
  }
  DeclareOutputs(model);
  return absl::OkStatus();
}

absl::Status Certifier::DescribeOutputs(ModelDraft& model) const {
  ASSIGN_OR_RETURN(const SizeReading reading, ReadSizes(*model.program->graph, Binding()));
  for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
    const SizeReading::Value& value = reading.values[static_cast<size_t>(reading.outputs[i])];
    model.signature->recipe_outputs[i].dtype = value.dtype;
    model.signature->recipe_outputs[i].dims.clear();
    for (const Size size : *value.shape)
      model.signature->recipe_outputs[i].dims.push_back({.size = size.hint()});
  }
  return absl::OkStatus();
}

StoredModelKey Certifier::KeyOf(const ModelView& model) const {
  std::string settings = absl::StrCat("certify ", kCertifyVersion, "\n");
  for (const ModelAxis& axis : model.proof.axes) {
    absl::StrAppend(&settings, "axis ", axis.label, ": ",
                    absl::StrJoin(PolicyMaker::BucketSizes(model, axis), ","),
                    model.options.no_padding.contains(axis.label) ? " off" : "", " ",
                    PolicyMaker::OpeningText(model.options, axis), "\n");
  }
  if (model.options.packing == PackingMode::kAuto) absl::StrAppend(&settings, "packing auto\n");
  if (model.options.precision != Precision::kExact) {
    absl::StrAppend(&settings, "precision ", PrecisionName(model.options.precision), "\n");
  }
  if (model.options.weights != WeightBits::kStored) {
    absl::StrAppend(&settings, "weights ", WeightBitsName(model.options.weights), "\n");
  }
  if (model.program.nodes != nullptr) {
    absl::StrAppend(&settings, "precision by node ", model.program.nodes->digest(), "\n");
  }
  for (const auto& [input, fill] : model.options.fills) {
    absl::StrAppend(&settings, "fill ", input, ": ", fill, "\n");
  }
  // Names of inputs and outputs are in the findings, and not in the text of the graph.
  for (const ModelIo& input : model.signature.inputs)
    absl::StrAppend(&settings, "input ", input.name, "\n");
  for (const ModelIo& input : model.signature.live_inputs)
    absl::StrAppend(&settings, "live input ", input.name, "\n");
  for (const ModelAxis& axis : model.proof.axes) {
    for (const Extent& extent : axis.extents)
      absl::StrAppend(&settings, "extent ", ExtentText(extent, axis.label), "\n");
    if (axis.step > 1) absl::StrAppend(&settings, "step ", axis.label, ": ", axis.step, "\n");
  }
  for (const ModelIo& output : model.signature.recipe_outputs) {
    absl::StrAppend(&settings, "output ", output.name, "\n");
  }
  return {.graph = model.program.fingerprint.digest,
          .parameters = model.program.owner->parameters().Digest(),
          .settings = std::move(settings),
          .device = context_.device->fingerprint(),
          .compiler = CompilerId()};
}

absl::StatusOr<ModelFindings> Certifier::FindingsOf(const ModelView& model,
                                                    absl::string_view payload,
                                                    const StoredModelKey& key) {
  std::vector<std::string> labels, inputs;
  for (const ModelAxis& axis : model.proof.axes) labels.push_back(axis.label);
  for (const ModelIo& input : model.signature.inputs) inputs.push_back(input.name);
  for (const ModelIo& input : model.signature.live_inputs) inputs.push_back(input.name);
  return DecodeFindings(payload, key, labels, inputs, model.signature.recipe_outputs.size());
}

Certifier::StoreLookup Certifier::Restore(const StoredModelKey& key, ModelDraft& model) const {
  const int64_t start = context_.clock->NowNs();
  const RecordName name = key.NameOf(model.id());
  RecipeStore::Found found = context_.store->Read(name);
  if (found.payload.has_value()) {
    absl::StatusOr<ModelFindings> findings = FindingsOf(model.view(), *found.payload, key);
    if (findings.ok()) {
      for (size_t i = 0; i < model.proof->axes.size(); ++i) {
        model.proof->axes[i].certificate = std::move(findings->axes[i]);
        model.proof->axes[i].smallest = findings->smallest[i];
        model.proof->axes[i].decision = std::move(findings->decisions[i]);
        model.proof->axes[i].opens_to = findings->opens_to[i];
      }
      model.proof->any_mask_measured = findings->any_mask_measured;
      model.proof->output_shapes = std::move(findings->outputs);
      for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
        model.signature->recipe_outputs[i].dtype = findings->output_dtypes[i];
      }
      DeclareOutputs(model);
      if (!findings->packing_refusal.empty()) {
        ModelPacker(context_).Refuse(model, findings->packing_refusal);
      } else if (!findings->packing_reason.empty()) {
        ModelPacker(context_).PackByRequest(
            model, ModelPacker::Make(model.view(), PolicyMaker::BucketsByAxis(model.view())),
            findings->packing_reason);
      } else {
        ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model.view()));
      }
      context_.log(FormatText("model %s: loaded certificate %s from %s in %.1f ms", model.id().name,
                              HexKey(name.key), context_.store->folder(),
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

absl::Status Certifier::FindOut(ModelDraft& model, StoreLookup& lookup) const {
  const bool measured = !model.proof->axes.empty() && model.signature->shape_inputs.empty();
  if (!measured) {
    RETURN_IF_ERROR(Certify(model));
    // Sets the reason why not.
    ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model.view()));
    return absl::OkStatus();
  }
  if (context_.store == nullptr) return Certify(model);
  lookup = Restore(KeyOf(model.view()), model);
  if (lookup.found) {
    RefusePadding(*model.proof);
    return absl::OkStatus();
  }
  const int64_t start = context_.clock->NowNs();
  RETURN_IF_ERROR(Certify(model));
  const int64_t took_ns = context_.clock->NowNs() - start;
  // An incomplete proof is not stored: a restart would take it for a complete one.
  if (model.proof->pending == nullptr) Keep(model.view(), {}, took_ns);
  return absl::OkStatus();
}

void Certifier::Keep(const ModelView& model, const std::map<size_t, AxisCertificate>& confirmed,
                     int64_t measure_ns) const {
  const StoredModelKey key = KeyOf(model);
  ModelFindings findings = {.outputs = model.proof.output_shapes,
                            .packing_refusal = model.proof.packing_refusal,
                            .packing_reason = model.proof.packing_reason,
                            .any_mask_measured = model.proof.any_mask_measured};
  for (const ModelAxis& axis : model.proof.axes) {
    findings.axes.push_back(axis.certificate);
    findings.smallest.push_back(axis.smallest);
    findings.decisions.push_back(axis.decision);
    findings.opens_to.push_back(axis.opens_to);
  }
  for (const auto& [axis, certificate] : confirmed) findings.axes[axis] = certificate;
  for (const ModelIo& output : model.signature.recipe_outputs)
    findings.output_dtypes.push_back(output.dtype);
  context_.store->WriteLater(key.NameOf(model.options.id), measure_ns,
                             EncodeFindings(key, model.options.id, findings, measure_ns));
}

void Certifier::Confirm(const Model& model) const {
  if (!model.padding().pending()) return;
  const int64_t start = context_.clock->NowNs();
  std::map<size_t, AxisCertificate> confirmed;
  absl::StatusOr<Confirmed> measured = WithinMemory(
      [] { return "measuring padded requests"; },
      [&]() -> absl::StatusOr<Confirmed> {
        ModelRunners runners(RunnersOf(model.view(), /*threads=*/1));
        if (model.proof().pending->whole) return MeasureDeferred(model, runners);
        const ProofSubject subject = SubjectOf(model.view(), LogOf(model.id()));
        ASSIGN_OR_RETURN(auto certificates,
                         PaddingProof(subject, runners).Confirm(*model.proof().pending));
        return Confirmed{.certificates = std::move(certificates)};
      });
  if (measured.ok()) {
    confirmed = std::move(measured->certificates);
    const bool intact = model.owner()->parameters().FilesIntact(start).ok();
    // A finding counts also where memory runs out while it is stored.
    if (context_.store != nullptr && measured->measured && intact) {
      WhereMemoryAllows([&] { Keep(model.view(), confirmed, context_.clock->NowNs() - start); });
    }
  } else {
    for (size_t i = 0; i < model.proof().axes.size(); ++i) {
      if (model.padding().proved_to(i) == PaddingProgress::kAnySize) continue;
      confirmed[i] = model.proof().axes[i].certificate;
      confirmed[i].certified = confirmed[i].proved = false;
      confirmed[i].reason = std::string(measured.status().message());
    }
  }
  for (const auto& one : confirmed) {
    if (one.second.certified) continue;
    WhereMemoryAllows([&] { model.owner()->observer().OnAxisRefused(one.first); });
  }
  model.padding().Finish(std::move(confirmed));
}

absl::Status Certifier::Extend(const ModelView& model, size_t axis, int64_t size) const {
  ModelRunners runners(RunnersOf(model, /*threads=*/1));
  const ProofSubject subject = SubjectOf(model, LogOf(model.options.id));
  return PaddingProof(subject, runners).Extend(axis, size);
}

std::function<void(const std::string&)> Certifier::LogOf(const ModelId& id) const {
  return [log = context_.log, before = absl::StrCat("model ", id.name, ": ")](
             const std::string& text) { log(absl::StrCat(before, text)); };
}

int Certifier::ThreadsOfLoad() const {
  return context_.cores == nullptr ? 1 : context_.cores->cores();
}

ModelRunners::Options Certifier::RunnersOf(const ModelView& model, int threads) const {
  ModelRunners::Options options = {.graph = &*model.program.graph,
                                   .fingerprint = &model.program.fingerprint,
                                   .parameters = &model.program.owner->parameters(),
                                   .device = context_.device,
                                   .clock = context_.clock,
                                   .threads = threads};
  for (const ModelIo& input : model.signature.inputs) {
    if (!input.optional) options.inputs.push_back(input);
  }
  for (const ModelIo& input : model.signature.live_inputs) options.inputs.push_back(input);
  return options;
}

absl::Status Certifier::Certify(ModelDraft& model) const {
  if (model.proof->axes.empty()) {
    // Everything is known already, without the file's declarations.
    return model.signature->shape_inputs.empty() ? DescribeOutputs(model) : absl::OkStatus();
  }
  if (!model.signature->shape_inputs.empty()) {
    const std::string reason =
        absl::StrCat("input '", model.signature->inputs[model.signature->shape_inputs[0]].name,
                     "' decides a shape: every request runs at its exact sizes");
    for (ModelAxis& axis : model.proof->axes) Refuse(axis, reason);
    return absl::OkStatus();
  }
  return Measure(model);
}

absl::Status Certifier::Measure(ModelDraft& model) const {
  PaddingProof::Options options = {.buckets = PolicyMaker::BucketsByAxis(model.view()),
                                   .try_packed = model.options.packing != PackingMode::kOff};
  options.farthest = [&](size_t axis) { return PolicyMaker::FarthestSize(model.view(), axis); };
  options.shapes_hold = [&](size_t axis, int64_t size) {
    const absl::StatusOr<OutputFit> fit = FitOutputs(model, {{axis, size}});
    return fit.ok() && fit->outputs == model.proof->output_shapes;
  };
  ModelRunners::Options equipment = RunnersOf(model.view(), ThreadsOfLoad());
  equipment.make_packing = [&] { return ModelPacker::Make(model.view(), options.buckets); };
  ModelRunners runners(std::move(equipment));
  const ProofSubject subject = SubjectOf(model.view(), LogOf(model.id()));
  PaddingProof proof(subject, runners);
  ASSIGN_OR_RETURN(PaddingProof::Findings findings,
                   proof.Measure(model.proof->axes, options, [&] { return FitShapes(model); }));
  if (!findings.pending.axes.empty()) {
    model.proof->pending = std::make_shared<const PendingProof>(std::move(findings.pending));
  }
  if (subject.outputs.empty()) return absl::OkStatus();  // Nothing runs before the cuts.
  RETURN_IF_ERROR(Pack(model, std::move(findings), proof, runners));
  RefusePadding(*model.proof);
  return absl::OkStatus();
}

absl::Status Certifier::Pack(ModelDraft& model, PaddingProof::Findings findings,
                             PaddingProof& proof, ModelRunners& runners) const {
  const ModelPacker packer(context_);
  if (findings.by_request.has_value()) {
    packer.PackByRequest(model, *std::move(findings.by_request), runners.packing());
    return absl::OkStatus();
  }
  if (findings.packed.ok()) {
    packer.Pack(model, runners.packing());
  } else {
    packer.Pack(model, absl::StatusOr<ModelPacker::PackingPtr>(findings.packed));
  }
  if (!AsksOfMasks(*model.proof)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const PaddingProof::AnyMask any, proof.MeasureAnyMask(findings.ranges));
  model.proof->any_mask_measured = any.holds.ok();
  LogOf(model.id())(absl::StrCat(
      "requests are packed ",
      any.holds.ok() ? "with any masks: answers are the same as alone in "
                     : "where their masks may be padded: ",
      any.holds.ok() ? absl::StrCat(any.answers, " answers") : std::string(any.holds.message())));
  return absl::OkStatus();
}

}  // namespace reprise

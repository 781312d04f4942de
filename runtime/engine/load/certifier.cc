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
#include "runtime/verify/proof_sizes.h"

namespace reprise {
namespace {

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
      model.proof->output_shapes = std::move(findings->outputs);
      for (size_t i = 0; i < model.signature->recipe_outputs.size(); ++i) {
        model.signature->recipe_outputs[i].dtype = findings->output_dtypes[i];
      }
      DeclareOutputs(model);
      if (!findings->packing_refusal.empty()) {
        ModelPacker(context_).Refuse(model, findings->packing_refusal);
      } else {
        ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model.view()), nullptr);
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
  const bool proves = !model.proof->axes.empty() && model.signature->shape_inputs.empty();
  if (proves && context_.store != nullptr) {
    lookup = Restore(KeyOf(model.view()), model);
    if (lookup.found) return absl::OkStatus();
  }
  const int64_t start = context_.clock->NowNs();
  const ProofSubject subject = SubjectOf(model.view());
  const PaddingProof proof(subject, ThreadsOfLoad());
  RETURN_IF_ERROR(Certify(model, proof));
  if (!model.signature->recipe_outputs.empty()) {
    ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model.view()), &proof);
  }
  if (proves && context_.store != nullptr) Keep(model.view(), context_.clock->NowNs() - start);
  return absl::OkStatus();
}

void Certifier::Keep(const ModelView& model, int64_t took_ns) const {
  const StoredModelKey key = KeyOf(model);
  ModelFindings findings = {.outputs = model.proof.output_shapes,
                            .packing_refusal = model.proof.packing_refusal};
  for (const ModelAxis& axis : model.proof.axes) {
    findings.axes.push_back(axis.certificate);
    findings.smallest.push_back(axis.smallest);
    findings.decisions.push_back(axis.decision);
    findings.opens_to.push_back(axis.opens_to);
  }
  for (const ModelIo& output : model.signature.recipe_outputs)
    findings.output_dtypes.push_back(output.dtype);
  context_.store->WriteLater(key.NameOf(model.options.id), took_ns,
                             EncodeFindings(key, model.options.id, findings, took_ns));
}

absl::Status Certifier::Extend(const ModelView& model, size_t axis, int64_t size) {
  return PaddingProof(SubjectOf(model)).Extend(axis, size);
}

int Certifier::ThreadsOfLoad() const {
  return context_.cores == nullptr ? 1 : context_.cores->cores();
}

absl::Status Certifier::Certify(ModelDraft& model, const PaddingProof& proof) const {
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
  RETURN_IF_ERROR(FitShapes(model));
  PaddingProof::Options options = {.buckets = PolicyMaker::BucketsByAxis(model.view())};
  options.farthest = [&](size_t axis) { return PolicyMaker::FarthestSize(model.view(), axis); };
  options.shapes_hold = [&](size_t axis, int64_t size) {
    const absl::StatusOr<OutputFit> fit = FitOutputs(model, {{axis, size}});
    return fit.ok() && fit->outputs == model.proof->output_shapes;
  };
  proof.Prove(model.proof->axes, options);
  return absl::OkStatus();
}

}  // namespace reprise

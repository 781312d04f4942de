#include "runtime/engine/load/certifier.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/hash64.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/load/padding_proof.h"
#include "runtime/engine/load/policy_maker.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

absl::Status Certifier::FitShapes(Model& model) const {
  std::vector<std::string> symbols;
  std::vector<std::vector<int64_t>> samples;
  for (const ModelAxis& axis : model.axes_) {
    symbols.push_back(axis.symbol);
    // On both sides of every boundary.
    std::vector<int64_t>& sizes = samples.emplace_back(std::vector<int64_t>{1, 3});
    for (int64_t bucket : PolicyMaker::BucketSizes(model, axis)) {
      sizes.insert(sizes.end(), {bucket - 1, bucket, bucket + 1});
    }
    // A stride as long as the largest bucket shows its first step beyond that.
    sizes.push_back(2 * sizes.back() + 3);
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
    model.axes_[i].smallest = fit->smallest[i];
    if (!fit->refusals[i].empty()) Refuse(model.axes_[i], fit->refusals[i]);
  }
  model.output_shapes_ = std::move(fit->outputs);
  for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
    model.recipe_outputs_[i].dtype = model.output_shapes_[i].dtype;
  }
  return absl::OkStatus();
}

absl::Status Certifier::DescribeOutputs(Model& model) const {
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(model.graph_, {}));
  for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
    const Value& value = specialized.value(specialized.outputs()[i]);
    model.recipe_outputs_[i].dtype = value.dtype;
    model.recipe_outputs_[i].dims.clear();
    for (int64_t size : *value.shape) model.recipe_outputs_[i].dims.push_back({.size = size});
  }
  return absl::OkStatus();
}

StoredModelKey Certifier::KeyOf(const Model& model) const {
  std::string settings = absl::StrCat("certify ", kCertifyVersion, "\n");
  for (const ModelAxis& axis : model.axes_) {
    absl::StrAppend(&settings, "axis ", axis.label, ": ",
                    absl::StrJoin(PolicyMaker::BucketSizes(model, axis), ","),
                    model.options_.no_padding.contains(axis.label) ? " off" : "", "\n");
  }
  if (model.options_.packing == PackingMode::kAuto) absl::StrAppend(&settings, "packing auto\n");
  if (model.options_.precision != Precision::kExact) {
    absl::StrAppend(&settings, "precision ", PrecisionName(model.options_.precision), "\n");
  }
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

Certifier::StoreLookup Certifier::Restore(const StoredModelKey& key, Model& model) const {
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
        model.axes_[i].smallest = findings->smallest[i];
        model.axes_[i].decision = std::move(findings->decisions[i]);
      }
      model.any_mask_measured_ = findings->any_mask_measured;
      model.output_shapes_ = std::move(findings->outputs);
      for (size_t i = 0; i < model.recipe_outputs_.size(); ++i) {
        model.recipe_outputs_[i].dtype = findings->output_dtypes[i];
      }
      if (!findings->packing_refusal.empty()) {
        ModelPacker(context_).Refuse(model, findings->packing_refusal);
      } else if (!findings->packing_reason.empty()) {
        ModelPacker(context_).PackByRequest(model, PolicyMaker::BucketsByAxis(model),
                                            findings->packing_reason);
      } else {
        ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model));
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

absl::Status Certifier::FindOut(Model& model, StoreLookup& lookup) const {
  const bool measured = !model.axes_.empty() && model.shape_inputs_.empty();
  if (!measured) {
    RETURN_IF_ERROR(Certify(model));
    ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model));  // Says why not.
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

void Certifier::Keep(const Model& model, const std::map<size_t, AxisCertificate>& confirmed,
                     int64_t measure_ns) const {
  const StoredModelKey key = KeyOf(model);
  ModelFindings findings = {.outputs = model.output_shapes_,
                            .packing_refusal = model.packing_refusal_,
                            .packing_reason = model.packing_reason_,
                            .any_mask_measured = model.any_mask_measured_};
  for (const ModelAxis& axis : model.axes_) {
    findings.axes.push_back(axis.certificate);
    findings.smallest.push_back(axis.smallest);
    findings.decisions.push_back(axis.decision);
  }
  for (const auto& [axis, certificate] : confirmed) findings.axes[axis] = certificate;
  for (const ModelIo& output : model.recipe_outputs_)
    findings.output_dtypes.push_back(output.dtype);
  context_.store->WriteLater(key.NameOf(model.id()), measure_ns,
                             EncodeFindings(key, model.id(), findings, measure_ns));
}

void Certifier::Confirm(const Model& model) const {
  if (!model.padding_.pending()) return;
  const int64_t start = context_.clock->NowNs();
  std::map<size_t, AxisCertificate> confirmed;
  absl::StatusOr<std::map<size_t, AxisCertificate>> measured =
      WithinMemory([] { return "measuring long requests"; },
                   [&] { return PaddingProof(context_).Confirm(model); });
  if (measured.ok()) {
    confirmed = *std::move(measured);
    const bool intact = model.owner_->parameters().FilesIntact(start).ok();
    // A finding counts whether or not there is memory to keep it.
    if (context_.store != nullptr && intact) {
      WhereMemoryAllows([&] { Keep(model, confirmed, context_.clock->NowNs() - start); });
    }
  } else {
    for (size_t i = 0; i < model.axes_.size(); ++i) {
      if (model.padding_.proved_to(i) == PaddingProgress::kAnySize) continue;
      confirmed[i] = model.axes_[i].certificate;
      confirmed[i].certified = confirmed[i].proved = false;
      confirmed[i].reason = std::string(measured.status().message());
    }
  }
  for (const auto& one : confirmed) {
    if (one.second.certified) continue;
    WhereMemoryAllows([&] { model.owner_->observer().OnAxisRefused(one.first); });
  }
  model.padding_.Finish(std::move(confirmed));
}

absl::Status Certifier::Certify(Model& model) const {
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

  return PaddingProof(context_).Measure(model, PolicyMaker::BucketsByAxis(model),
                                        [&] { return FitShapes(model); });
}

}  // namespace reprise

// The part of Certifier for models whose padding is measured when a request asks for it.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/engine/load/policy_maker.h"

namespace reprise {

absl::StatusOr<bool> Certifier::Defer(ModelDraft& model) const {
  const std::vector<ModelAxis> before = model.proof->axes;
  ModelRunners runners(RunnersOf(model.view(), ThreadsOfLoad()));
  const ProofSubject subject = SubjectOf(model.view(), LogOf(model.id()));
  ASSIGN_OR_RETURN(
      std::optional<PendingProof> pending,
      PaddingProof(subject, runners)
          .Defer(model.proof->axes, {.buckets = PolicyMaker::BucketsByAxis(model.view())},
                 [&] { return FitShapes(model); }));
  if (!pending.has_value()) {
    model.proof->axes = before;
    model.proof->output_shapes.clear();
    return false;
  }
  if (!pending->axes.empty()) {
    model.proof->pending = std::make_shared<const PendingProof>(*std::move(pending));
  }
  // Sets the reason why not.
  ModelPacker(context_).Pack(model, PolicyMaker::BucketsByAxis(model.view()));
  return true;
}

absl::StatusOr<Certifier::Confirmed> Certifier::MeasureDeferred(const Model& model,
                                                                ModelRunners& runners) const {
  Confirmed confirmed;
  const auto take = [&](const auto& certificate_of) {
    for (const PendingProof::Axis& left : model.proof().pending->axes) {
      // It may have been refused since; a measurement does not change that.
      if (!model.proof().axes[left.position].certificate.certified) continue;
      confirmed.certificates[left.position] = certificate_of(left.position);
    }
  };
  if (context_.store != nullptr) {
    const StoredModelKey key = KeyOf(model.view());
    const RecipeStore::Found found = context_.store->Read(key.NameOf(model.id()));
    absl::StatusOr<ModelFindings> known = absl::NotFoundError("it is not in the store");
    if (found.payload.has_value()) known = FindingsOf(model.view(), *found.payload, key);
    if (known.ok()) {
      take([&](size_t axis) { return known->axes[axis]; });
      confirmed.measured = false;
      return confirmed;
    }
  }
  ModelOptions options = model.options();
  options.confirm_padding_later = false;
  ModelProof proof = {.axes = model.proof().axes, .output_shapes = model.proof().output_shapes};
  for (const PendingProof::Axis& left : model.proof().pending->axes) {
    ModelAxis& axis = proof.axes[left.position];
    if (axis.certificate.certified) axis.certificate = {};
  }
  const ModelView view = model.view();
  const ModelView anew = {options, view.signature, view.program, proof};
  const ProofSubject subject = SubjectOf(anew, LogOf(model.id()));
  RETURN_IF_ERROR(PaddingProof(subject, runners)
                      .Measure(proof.axes, {.buckets = PolicyMaker::BucketsByAxis(anew)},
                               [] { return absl::OkStatus(); })
                      .status());
  for (ModelAxis& axis : proof.axes) RefuseOnlyPacked(axis);  // It is not packed: see MayDefer.
  take([&](size_t axis) { return proof.axes[axis].certificate; });
  return confirmed;
}

}  // namespace reprise

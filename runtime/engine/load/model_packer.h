// ModelPacker: makes a model packed while it is loaded, or says why it is padded.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/verify/request_proof.h"

namespace reprise {

class ModelPacker {
 public:
  using PackingPtr = std::shared_ptr<const Packing>;

  explicit ModelPacker(const LoaderContext& context) : context_(context) {}

  // Returns whether the axes of `model` are the ones that a packed form has.
  static bool MayPack(const ModelView& model);
  // Returns the packed form of `model`, without regard to its certificates. `buckets` by axis. The
  // error says why there is none. Safe from any thread while no other changes the graph or the
  // options.
  static absl::StatusOr<PackingPtr> Make(const ModelView& model,
                                         const std::vector<std::vector<int64_t>>& buckets);
  // Packs `model` where its options and its certificates allow it; a PackingCheck decides whether
  // the answers are right. Otherwise it is padded, and packing_refusal says why (nothing where
  // packing was not requested).
  void Pack(ModelDraft& model, const std::vector<std::vector<int64_t>>& buckets) const;
  // Packs with the result of Make, or with the reason why it is not used.
  void Pack(ModelDraft& model, absl::StatusOr<PackingPtr> packing) const;
  // Packs `model`, although no axis has a certificate, if the RequestProof of `packing` allows it,
  // or says why not.
  void PackByRequest(ModelDraft& model, absl::StatusOr<RequestProof::Found> found,
                     absl::StatusOr<PackingPtr> packing) const;
  // Does the same with a reason that is known from before.
  void PackByRequest(ModelDraft& model, absl::StatusOr<PackingPtr> packing,
                     absl::string_view reason) const;
  // Leaves the model padded, for `reason`.
  void Refuse(ModelDraft& model, absl::string_view reason) const;

 private:
  // Returns whether packing was not requested, or an axis is in the way.
  bool IsRefused(ModelDraft& model) const;

  LoaderContext context_;
};

}  // namespace reprise

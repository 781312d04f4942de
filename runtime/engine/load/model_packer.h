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

  // Whether the axes of `model` are those that a packed form has.
  static bool MayPack(const ModelView& model);
  // The packed form of `model`, whatever its certificates say. `buckets` by axis. The error says
  // why there is none. From any thread that no other changes the graph or the options meanwhile.
  static absl::StatusOr<PackingPtr> Make(const ModelView& model,
                                         const std::vector<std::vector<int64_t>>& buckets);
  // Packs `model` where its options and its certificates allow it; whether the answers are right is
  // for a PackingCheck to say. Otherwise it is padded, and packing_refusal says why (nothing where
  // nobody asked).
  void Pack(ModelDraft& model, const std::vector<std::vector<int64_t>>& buckets) const;
  // The same with what Make returned, or with why it is not used.
  void Pack(ModelDraft& model, absl::StatusOr<PackingPtr> packing) const;
  // Packs `model`, although no axis has a certificate, as a RequestProof found of `packing`, or
  // says why not.
  void PackByRequest(ModelDraft& model, absl::StatusOr<RequestProof::Found> found,
                     absl::StatusOr<PackingPtr> packing) const;
  // The same with a reason that is known from before.
  void PackByRequest(ModelDraft& model, absl::StatusOr<PackingPtr> packing,
                     absl::string_view reason) const;
  // The model is padded, for `reason`.
  void Refuse(ModelDraft& model, absl::string_view reason) const;

 private:
  // Nobody asked, or an axis is in the way.
  bool IsRefused(ModelDraft& model) const;

  LoaderContext context_;
};

}  // namespace reprise

// ModelPacker: makes a model packed while it is loaded, or says why it is padded.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/packing/packing.h"
#include "runtime/verify/padding_proof.h"

namespace reprise {

class ModelPacker {
 public:
  using PackingPtr = std::shared_ptr<const Packing>;

  explicit ModelPacker(const LoaderContext& context) : context_(context) {}

  // Returns whether the axes of `model` are the ones that a packed form has.
  static bool MayPack(const ModelView& model);
  // Returns the packed form of `model`, whether it is right or not. `buckets` by axis. The error
  // says why there is none.
  static absl::StatusOr<PackingPtr> Make(const ModelView& model,
                                         const std::vector<std::vector<int64_t>>& buckets);
  // Packs `model` where its options allow it, every node has a rule, and requests keep apart then.
  // Otherwise it is padded, and packing_refusal says why (nothing where packing was not requested).
  // `proof`: of the model's axes; null where it is known that they keep apart.
  void Pack(ModelDraft& model, const std::vector<std::vector<int64_t>>& buckets,
            const PaddingProof* proof) const;
  // Leaves the model padded, for `reason`.
  void Refuse(ModelDraft& model, absl::string_view reason) const;

 private:
  // Returns the packed form, or why there is none that is right.
  static absl::StatusOr<PackingPtr> MakeProved(const ModelView& model,
                                               const std::vector<std::vector<int64_t>>& buckets,
                                               const PaddingProof* proof);

  LoaderContext context_;
};

}  // namespace reprise

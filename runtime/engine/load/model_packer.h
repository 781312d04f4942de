// ModelPacker: makes a model packed while it is loaded, or says why it is padded.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/request_proof.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/packing/packing.h"

namespace reprise {

class ModelPacker {
 public:
  explicit ModelPacker(const LoaderContext& context) : context_(context) {}

  // The packed form of `model`, whatever its certificates say. `buckets` by axis. The error says
  // why there is none. From any thread that no other changes the graph or the options meanwhile.
  absl::StatusOr<std::unique_ptr<Packing>> Make(
      const Model& model, const std::vector<std::vector<int64_t>>& buckets) const;
  // Packs `model` where its options and its certificates allow it; whether the answers are right is
  // for a PackingCheck to say. Otherwise it is padded, and model.packing_refusal() says why
  // (nothing where nobody asked).
  void Pack(Model& model, const std::vector<std::vector<int64_t>>& buckets) const;
  // The same with what Make returned.
  void Pack(Model& model, absl::StatusOr<std::unique_ptr<Packing>> packing) const;
  // Packs `model`, although no axis has a certificate, as a RequestProof found, or says why not.
  void PackByRequest(Model& model, absl::StatusOr<RequestProof::Found> found) const;
  // The same with a reason that is known from before.
  void PackByRequest(Model& model, const std::vector<std::vector<int64_t>>& buckets,
                     absl::string_view reason) const;
  // The model is padded, for `reason`.
  void Refuse(Model& model, absl::string_view reason) const;

 private:
  void PackByRequest(Model& model, absl::StatusOr<std::unique_ptr<Packing>> packing,
                     absl::string_view reason) const;
  // Nobody asked, or an axis is in the way.
  bool IsRefused(Model& model) const;

  LoaderContext context_;
};

}  // namespace reprise

// ModelPacker: makes a model packed while it is loaded, or says why it is padded.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/engine/loader_context.h"
#include "runtime/engine/model.h"

namespace reprise {

class ModelPacker {
 public:
  explicit ModelPacker(const LoaderContext& context) : context_(context) {}

  // Packs `model` where its options and its certificates allow it; whether the answers are right is
  // for a PackingCheck to say. `buckets` by axis. False: it is padded, and model.packing_refusal()
  // says why (nothing where nobody asked).
  bool Pack(Model& model, const std::vector<std::vector<int64_t>>& buckets) const;
  // The model is padded, for `reason`.
  void Refuse(Model& model, absl::string_view reason) const;

 private:
  LoaderContext context_;
};

}  // namespace reprise

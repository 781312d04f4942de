// Certifier: how far the outputs of a model follow its axes, and along which of these padding
// changes nothing, read off the model. Taken from the recipe store where it is known there.
//
// Ownership: borrows the context. Threads: FindOut before the model is shared; Extend from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/load/stored_model.h"
#include "runtime/engine/model/model.h"
#include "runtime/verify/padding_proof.h"

namespace reprise {

class Certifier {
 public:
  explicit Certifier(const LoaderContext& context) : context_(context) {}

  // The result of the lookup in the store.
  struct StoreLookup {
    bool tried = false;
    bool found = false;
    StoreMiss miss = StoreMiss::kAbsent;  // where it was tried and not found
  };
  // Proves along which axes requests may be padded, and packs the model, or takes both from the
  // store. Nothing is run.
  absl::Status FindOut(ModelDraft& model, StoreLookup& lookup) const;
  // Looks at one more size of a certified axis: see PaddingProof::Extend.
  static absl::Status Extend(const ModelView& model, size_t axis, int64_t size);

 private:
  // Returns the fitted shapes of outputs up to the buckets of each axis, or beyond them to the
  // sizes of `farther`, by axis.
  absl::StatusOr<OutputFit> FitOutputs(const ModelDraft& model,
                                       const std::map<size_t, int64_t>& farther) const;
  // Fits the shapes of outputs; an axis that they do not follow is refused.
  absl::Status FitShapes(ModelDraft& model) const;
  // Describes a model without axes: dtypes and shapes as they are.
  absl::Status DescribeOutputs(ModelDraft& model) const;
  // Fills in the certificates.
  absl::Status Certify(ModelDraft& model, const PaddingProof& proof) const;
  // Returns the number of axes that are looked at side by side while a model is loaded. None takes
  // a core of the pool, which a request would have to wait for.
  int ThreadsOfLoad() const;
  // Returns the key of a model whose findings are worth keeping.
  StoredModelKey KeyOf(const ModelView& model) const;
  // Returns the findings that a file of the store has for the model; errors as DecodeFindings
  // returns them.
  static absl::StatusOr<ModelFindings> FindingsOf(const ModelView& model, absl::string_view payload,
                                                  const StoredModelKey& key);
  // Takes the findings from the store where it knows them.
  StoreLookup Restore(const StoredModelKey& key, ModelDraft& model) const;
  // Keeps the findings, which took `took_ns`.
  void Keep(const ModelView& model, int64_t took_ns) const;

  LoaderContext context_;
};

}  // namespace reprise

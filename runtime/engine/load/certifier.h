// Certifier: the facts about a model that only running it shows: how far its outputs follow its
// axes, and along which of these padding changes nothing. Taken from the recipe store where it is
// known there.
//
// Ownership: borrows the context. Threads: FindOut before the model is shared; Confirm once, and
// Extend, from any thread, while the model serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"
#include "runtime/engine/load/model_runners.h"
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
  // Measures the model. A failure leaves its axis uncertified. Errors: no memory for a stream.
  absl::Status FindOut(ModelDraft& model, StoreLookup& lookup) const;
  // Fits the shapes of outputs, and leaves all else for Confirm; returns false where it cannot be
  // left.
  absl::StatusOr<bool> Defer(ModelDraft& model) const;
  // See Engine::ConfirmPadding. May throw where there is no memory, and has not ended the proof
  // then.
  void Confirm(const Model& model) const;
  // Looks at one more size of a certified axis: see PaddingProof::Extend.
  absl::Status Extend(const ModelView& model, size_t axis, int64_t size) const;

 private:
  // Returns the fitted shapes of outputs up to the buckets of each axis, or beyond them to the
  // sizes of `farther`, by axis.
  absl::StatusOr<OutputFit> FitOutputs(const ModelDraft& model,
                                       const std::map<size_t, int64_t>& farther) const;
  // Fits the shapes of outputs; an axis that they do not follow is refused.
  absl::Status FitShapes(ModelDraft& model) const;
  // Describes a model without axes: dtypes and shapes as they are.
  absl::Status DescribeOutputs(ModelDraft& model) const;
  // Measures the certificates.
  absl::Status Certify(ModelDraft& model) const;
  // Measures a model that has axes and no shape inputs.
  absl::Status Measure(ModelDraft& model) const;
  // Packs the model as `findings` say, or says why it is padded.
  absl::Status Pack(ModelDraft& model, PaddingProof::Findings findings, PaddingProof& proof,
                    ModelRunners& runners) const;
  // Returns a log for lines of proofs, with the model's name.
  std::function<void(const std::string&)> LogOf(const ModelId& id) const;
  // Returns the number of the model's runs that go on side by side while it is loaded. None takes a
  // core of the pool, which a request would have to wait for.
  int ThreadsOfLoad() const;
  // Returns the options for running the model on `threads` threads.
  ModelRunners::Options RunnersOf(const ModelView& model, int threads) const;
  // Returns the key of a model whose findings are worth keeping.
  StoredModelKey KeyOf(const ModelView& model) const;
  // Returns the findings that a file of the store has for the model; errors as DecodeFindings
  // returns them.
  static absl::StatusOr<ModelFindings> FindingsOf(const ModelView& model, absl::string_view payload,
                                                  const StoredModelKey& key);
  // Takes the findings from the store where it knows them.
  StoreLookup Restore(const StoredModelKey& key, ModelDraft& model) const;
  // The certificates of the axes that `pending` left, by axis index: as the store knows them, or
  // measured; the latter are to be kept.
  struct Confirmed {
    std::map<size_t, AxisCertificate> certificates;
    bool measured = true;
  };
  absl::StatusOr<Confirmed> MeasureDeferred(const Model& model, ModelRunners& runners) const;
  // Keeps the findings of `measure_ns`; `confirmed` replaces certificates, by axis.
  void Keep(const ModelView& model, const std::map<size_t, AxisCertificate>& confirmed,
            int64_t measure_ns) const;

  LoaderContext context_;
};

}  // namespace reprise

// Certifier: what of a model only running it shows: how far its outputs follow its axes, and along
// which of these padding changes nothing. Taken from the recipe store where it is known there.
//
// Ownership: borrows the context. Threads: FindOut before the model is shared; Confirm once, from
// any thread, while the model serves.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/stored_model.h"
#include "runtime/engine/model/model.h"

namespace reprise {

class Certifier {
 public:
  explicit Certifier(const LoaderContext& context) : context_(context) {}

  // The outcome of the question to the store.
  struct StoreLookup {
    bool tried = false;
    bool found = false;
    StoreMiss miss = StoreMiss::kAbsent;  // where it was tried and not found
  };
  // A failure leaves its axis uncertified. Errors: no memory for a stream.
  absl::Status FindOut(Model& model, StoreLookup& lookup) const;
  // See Engine::ConfirmPadding. May throw where there is no memory, and has not ended the proof
  // then.
  void Confirm(const Model& model) const;

 private:
  // Fits the shapes of outputs; an axis that they do not follow simply is refused.
  absl::Status FitShapes(Model& model) const;
  // Describes a model without axes: dtypes and shapes as they are.
  absl::Status DescribeOutputs(Model& model) const;
  // Measures the certificates.
  absl::Status Certify(Model& model) const;
  // The key of a model whose findings are worth keeping.
  StoredModelKey KeyOf(const Model& model) const;
  // Takes the findings from the store where it knows them.
  StoreLookup Restore(const StoredModelKey& key, Model& model) const;
  // Keeps what was measured in `measure_ns`; `confirmed` replaces certificates, by axis.
  void Keep(const Model& model, const std::map<size_t, AxisCertificate>& confirmed,
            int64_t measure_ns) const;

  LoaderContext context_;
};

}  // namespace reprise

// LiveLoader: a model that may not be padded as it is, in a form that may be.
//
// Where positions along an axis meet (in attention, sums, convolutions, pools), the model is tried
// once more in its live form (passes/live), whose nodes know where each request ends: certified as
// any model is, and taken if that gives an axis a certificate and takes none away.
//
// Ownership: borrows the context. Threads: one loader.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/loader_context.h"
#include "runtime/engine/load/model_draft.h"

namespace reprise {

class LiveLoader {
 public:
  explicit LiveLoader(const LoaderContext& context) : context_(context) {}

  // Tries the live form. `model` is certified as it is, and `lookup` says how that was found; both
  // become the live form's where that is taken.
  void Improve(ModelDraft& model, Certifier::StoreLookup& lookup) const;

 private:
  // Returns the indices of the axes that are refused, and not because the user asked for that.
  static std::vector<size_t> Refused(const ModelDraft& model);
  // Rows of a batch end where their requests do, or all alike, where requests never share a replay.
  enum class Rows { kEndApart, kEndAlike };

  // Returns the model in its live form, not certified yet; NOT_FOUND or UNIMPLEMENTED where there
  // is none. `steps`: see FindSteps, of the refused axes at least.
  static absl::StatusOr<ModelDraft> MakeDraft(const ModelDraft& model,
                                              const std::vector<size_t>& refused, Rows rows,
                                              const std::map<std::string, int64_t>& steps);
  // Returns the same with certificates, and the lookup in the store.
  absl::StatusOr<ModelDraft> Certified(const ModelDraft& model, const std::vector<size_t>& wanted,
                                       Rows rows, const std::map<std::string, int64_t>& steps,
                                       Certifier::StoreLookup& lookup) const;
  // Returns whether its batch, if it has one, is certified.
  static bool MayShare(const ModelDraft& draft);

  // Returns whether the axes that `model` may be padded along are axes of `draft` that may be too.
  static bool KeepsOthers(const ModelDraft& draft, const ModelDraft& model);
  // Makes the certificates of `model` say why even `draft` is not padded.
  static void TellWhy(const ModelDraft& draft, const std::vector<size_t>& refused,
                      ModelDraft& model);

  LoaderContext context_;
};

}  // namespace reprise

// ModelDraft: a model while it is loaded: the values that the Model is made of.
//
// Threads: one loader; proofs that share the work read it meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/engine/model/model.h"
#include "runtime/engine/model/model_options.h"
#include "runtime/engine/model/model_program.h"
#include "runtime/engine/model/model_proof.h"
#include "runtime/engine/model/model_signature.h"
#include "runtime/engine/model/model_traffic.h"
#include "runtime/engine/model/model_view.h"
#include "runtime/verify/proof_subject.h"

namespace reprise {

struct ModelDraft {
  ModelOptions options;
  // Shared with code that looks at the model in the background, and so outlives the draft.
  std::shared_ptr<ModelSignature> signature = std::make_shared<ModelSignature>();
  std::shared_ptr<ModelProgram> program = std::make_shared<ModelProgram>();
  std::shared_ptr<ModelProof> proof = std::make_shared<ModelProof>();
  ModelTraffic traffic;

  const ModelId& id() const { return options.id; }
  ModelView view() const { return {options, *signature, *program, *proof}; }
  // Makes the model, of which the draft holds nothing any more that could change it.
  std::unique_ptr<Model> Finish(std::function<void(const std::string&)> log) && {
    return std::make_unique<Model>(std::move(options), std::move(signature), std::move(program),
                                   std::move(proof), std::move(traffic), std::move(log));
  }
};

// Returns the model as proofs of its padding see it.
ProofSubject SubjectOf(const ModelView& model);

}  // namespace reprise

// ModelView: the values of a model, finished or while it is loaded, to be read.
//
// Ownership: borrows them.
#pragma once

#include "runtime/engine/model/model_options.h"
#include "runtime/engine/model/model_program.h"
#include "runtime/engine/model/model_proof.h"
#include "runtime/engine/model/model_signature.h"

namespace reprise {

struct ModelView {
  const ModelOptions& options;
  const ModelSignature& signature;
  const ModelProgram& program;
  const ModelProof& proof;
};

}  // namespace reprise

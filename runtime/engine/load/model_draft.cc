#include "runtime/engine/load/model_draft.h"

namespace reprise {

ProofSubject SubjectOf(const ModelView& model) {
  ProofSubject subject = {.graph = *model.program.graph,
                          .axes = model.proof.axes,
                          .output_shapes = model.proof.output_shapes,
                          .batch_axis = model.signature.batch_axis,
                          .fills = model.options.fills,
                          .no_padding = model.options.no_padding};
  for (const ModelIo& input : model.signature.inputs) {
    if (input.optional) continue;
    subject.inputs.push_back({.name = input.name, .dtype = input.dtype, .dims = input.dims});
  }
  for (const ModelIo& input : model.signature.live_inputs) {
    subject.inputs.push_back(
        {.name = input.name, .dtype = input.dtype, .dims = input.dims, .live = true});
  }
  for (const ModelIo& output : model.signature.recipe_outputs) {
    subject.outputs.push_back(output.name);
  }
  return subject;
}

}  // namespace reprise

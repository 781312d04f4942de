// ModelSignature: the inputs and outputs of a model.
//
// Constant once the model is loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "runtime/bucket/size_measure.h"
#include "runtime/graph/vocabulary.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

struct ModelSignature {
  std::vector<ModelIo> inputs;          // as a client sees them, symbols merged
  std::vector<ModelIo> recipe_outputs;  // a cut model has the values before its cuts
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<int> shape_inputs;   // positions in `inputs`
  std::vector<int> recipe_inputs;  // the position in `inputs` of each input of a recipe
  // Inputs of recipes after those: which positions of each row are the request's own, as the
  // entries of the same index in `live_places` are (passes/live). No client sends them.
  struct LivePlaces {
    size_t axis = 0;  // position in ModelProof::axes, along which the request has this many
    // The index in `inputs` of one whose places count instead; -1: there is none.
    int like = -1;
  };
  std::vector<ModelIo> live_inputs;
  std::vector<LivePlaces> live_places;
  std::set<size_t> one_row_inputs;  // indices of the inputs that SpreadRows repeats
  std::set<size_t> mask_inputs;     // indices of integer masks: see IsMaskInput
  std::set<size_t> length_inputs;   // indices of the inputs with lengths of rows: see IsLengthInput
  int batch_axis = -1;              // index in ModelProof::axes
  SizeMeasure measure;              // the elements that requests are, over the axes
};

}  // namespace reprise

// ModelSignature: what a model takes and gives.
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
  std::vector<ModelIo> recipe_outputs;  // a cut model's are those before its cuts
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<int> shape_inputs;   // positions in `inputs`
  std::vector<int> recipe_inputs;  // the position in `inputs` of each input of a recipe
  // Inputs of recipes after those: which positions of each row are the request's own, as those of
  // the same place in `live_places` are (passes/live). No client sends them.
  struct LivePlaces {
    size_t axis = 0;  // position in ModelProof::axes, along which the request has this many
    // The position in `inputs` of one whose places count instead; -1: there is none.
    int like = -1;
  };
  std::vector<ModelIo> live_inputs;
  std::vector<LivePlaces> live_places;
  std::set<size_t> one_row_inputs;  // positions of those that SpreadRows repeats
  std::set<size_t> mask_inputs;     // positions of those of integers: see IsMaskInput
  std::set<size_t> length_inputs;   // positions of those with lengths of rows: see IsLengthInput
  int batch_axis = -1;              // position in ModelProof::axes
  SizeMeasure measure;              // the elements that requests are, over the axes
};

}  // namespace reprise

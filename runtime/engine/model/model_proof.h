// ModelProof: the proofs about padding and packing a model.
//
// Constant once the model is loaded, but for the slices of sizes that are looked at while it
// serves.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/engine/packing/packing.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/output_shapes.h"
#include "runtime/verify/size_slices.h"

namespace reprise {

struct ModelProof {
  std::vector<ModelAxis> axes;             // each with its certificate
  std::vector<OutputShape> output_shapes;  // empty where no axis was fitted
  std::set<std::string> certified;         // labels of the certified axes
  std::shared_ptr<const Packing> packing;  // null where the model is padded
  std::string packing_refusal;             // empty: packed, or packing was not requested
  std::string packing_reason;              // empty: not packed, or rows of a request keep apart
  std::unique_ptr<SizeSlices> slices;      // null where no size decides anything
};

}  // namespace reprise

// Lists that a Loop makes longer and that are joined after it, as detectors write what each turn
// finds: such a list is carried as the tensor that joining what is in it so far makes.
//
// There are no lists after the importer, and what a Loop carries has to be a tensor. A list is
// rewritten where the file says all of this:
//   - it begins as SequenceEmpty, or as a list that SequenceConstruct makes;
//   - a turn does nothing with it but SequenceInsert at its end, once or several times;
//   - after the Loop it goes to ConcatFromSequence alone, along one axis.
// Other sequences that a Loop carries stay as they are, and are refused by name later. A list that
// stays empty is joined to a vector without elements, where ONNX has an error. Pieces that have no
// elements beside a size along the joined axis do not count.
#pragma once

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Rewrites the lists of all graphs and functions of `model`.
void CarryGrownListsAsTensors(onnx::ModelProto& model);

}  // namespace reprise

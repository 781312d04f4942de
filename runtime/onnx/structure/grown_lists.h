// Lists that a Loop makes longer and that are joined after it, as detectors write the finds of
// each turn: such a list is carried as a tensor, its elements so far joined.
//
// There are no lists after the importer, and a value that a Loop carries has to be a tensor. A
// list is rewritten where the file says all of this:
//   - it begins as SequenceEmpty, or as a list that SequenceConstruct makes;
//   - a turn does nothing with it but SequenceInsert at its end, once or several times;
//   - after the Loop it goes to ConcatFromSequence alone, along one axis.
// Other sequences that a Loop carries stay as they are, and are refused by name later. A list that
// stays empty is joined to a vector without elements, where ONNX has an error. Pieces without
// elements that have a size along the joined axis do not count.
#pragma once

#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Rewrites the lists of all graphs and functions of `model`.
void CarryGrownListsAsTensors(onnx::ModelProto& model);

}  // namespace reprise

// KeepSmallWeights: weights of any size are parameters by their use.
//
// A large initialiser is a parameter whatever it is used for (kMinParameterElements). A small one
// of floats is one where every node that reads it takes it as a weight (OpFacts::weights) or adds
// it to products as a bias, or scales or shifts features by it: no pass reads its numbers, so that
// new ones compile nothing.
//
// Threads: one importer.
#pragma once

#include "runtime/onnx/file_values.h"

namespace reprise {

// To be called once all nodes are there. Initialisers that requests may override stay as they are.
void KeepSmallWeights(FileValues& values);

}  // namespace reprise

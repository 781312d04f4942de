// KeepSmallWeights: weights of any size are parameters by their use.
//
// A large initialiser is a parameter whatever it is used for (kMinParameterElements). A small one
// of floats is one where every node that reads it takes it as a weight: operands that a row says
// are (OpFacts::weights), biases of products, scales and shifts of features, tables of positions
// and of kinds, class and mask tokens, the mean and spread of a picture's channels, scales of
// quantised weights, and learnt numbers: scales of logits, of layers and of rows quantised as they
// come. No pass reads their numbers, so that new ones compile nothing.
//
// Constants stay: numbers that forms are recognised by (an epsilon, the halves of a GELU,
// the scale of an attention), masks and slopes that certificates read, frequencies of positions,
// and scales of quantised data, since tables of bytes are made of them.
//
// Threads: one importer.
#pragma once

#include "runtime/onnx/file_values.h"

namespace reprise {

// To be called once all nodes are there. Initialisers that requests may override stay as they are.
void KeepSmallWeights(FileValues& values);

}  // namespace reprise

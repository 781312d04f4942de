// The inputs of a drawn model, the sizes of its axes, and the contents of requests.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/chance.h"
#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::fuzz {

struct DrawnInput {
  std::string name;  // its first word names its contents: see ContentsOf
  DType dtype = DType::kFloat32;
  std::vector<Dim> dims;
};

struct Signature {
  std::vector<DrawnInput> inputs;
  std::vector<std::vector<std::string>> axes;  // symbols, by axis: unnamed dims have one each
  int64_t smallest = 1;                        // size that the model is drawn for
};

inline constexpr int64_t kIds = 12;  // are below

// Inputs of ones and zeros, whether they are named so or not.
bool IsMaskName(const std::string& name);

Signature DrawSignature(Chance& chance);

// Sizes of each axis at the trials of a draft.
std::vector<Sizes> DrawTrials(const Signature& signature, Chance& chance);

// Returns the contents of an input in a request of these sizes, by its name: `ids` is below kIds,
// `mask` and `keep` ones, mostly with zeros after them, `flag` and `count` bools and small
// integers, others floats and bytes.
Tensor ContentsOf(const std::string& name, DType dtype, const std::vector<Dim>& dims,
                  const Sizes& sizes, Chance& chance);

// Puts infinities, NaN and huge numbers here and there into floats.
Tensor MadeWild(const Tensor& tensor, Chance& chance);

// Returns the same of all inputs of a graph, by position.
std::vector<Tensor> DrawContents(const Graph& graph, const Sizes& sizes, Chance& chance);

}  // namespace reprise::fuzz

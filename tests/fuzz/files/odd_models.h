// Models with parts that no drawn model has: each form of a tensor, of an attribute, of an input,
// of a body, of a function; and those that are refused for one of them.
#pragma once

#include <string>
#include <vector>

namespace reprise::fuzz {

// Returns each as the bytes of an ONNX file.
std::vector<std::string> OddModels();

}  // namespace reprise::fuzz

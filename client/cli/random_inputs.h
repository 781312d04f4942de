// Inputs made up from a model's metadata, for trying it out.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace reprise::cli {

// How inputs are made up, in the words of --help.
inline constexpr char kRandomInputsHelp[] =
    "Inputs are made up from the model's metadata. Of the sizes that a request decides, the first "
    "of an input is the batch and all others are the length. Integer inputs whose name contains "
    "'mask' are ones, those with 'type' or 'segment' zeros, all others ids between 1 and --max-id; "
    "floats lie between -1 and 1; booleans are true.";

// Tensors that own their bytes.
struct OwnedTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  client::InputTensor View() const { return {name, datatype, shape, bytes}; }
};

// Texts as the input `text` of the inference protocol, [texts].
OwnedTensor TextTensor(const std::vector<std::string>& texts);

std::vector<client::InputTensor> Views(const std::vector<OwnedTensor>& tensors);

struct RandomInputOptions {
  int64_t batch = 1;
  int64_t length = 16;
  int64_t max_id = 1000;
  std::map<std::string, std::vector<int64_t>> shapes;  // keyed by input; overrides batch, length
};

// Returns whether requests of the model have a length: sizes that a request decides, besides the
// first of each input.
bool HasLength(const inference::ModelMetadataResponse& metadata);

// Returns one tensor for each input of the model. UNIMPLEMENTED for a datatype without random
// values (BYTES), NOT_FOUND for a shape whose input does not exist.
absl::StatusOr<std::vector<OwnedTensor>> RandomInputs(
    const inference::ModelMetadataResponse& metadata, const RandomInputOptions& options,
    std::mt19937_64& random);

}  // namespace reprise::cli

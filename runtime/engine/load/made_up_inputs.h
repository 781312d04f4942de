// MadeUpInputs: contents of a model's inputs, where no client has sent any.
//
// Every draw is a function of its arguments alone, so that a request can be made again.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"

namespace reprise {

struct MadeUpInput {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<Dim> dims;  // symbols are merged already
  bool is_mask = false;   // an integer input that holds ones and zeros alone
};

// The values that an integer input accepts. `limited` false: whatever was tried was taken, as by
// a mask (inputs that are not integers count as such); [low, high] is then [0, 1].
struct InputRange {
  int64_t low = 0;
  int64_t high = 1;
  bool limited = false;
};

// Attaches the range a kernel allows, where the runner knows it, to its error, which saves runs;
// what it says is tried, not believed.
void SetRangePayload(absl::Status& status, int64_t low, int64_t high);
std::optional<InputRange> RangePayload(const absl::Status& status);

// Sizes of the symbols of dims.
using SymbolSizes = std::map<std::string, int64_t>;

// Runs the model at exactly the shapes of `inputs` and returns its outputs in order.
// INVALID_ARGUMENT for a value out of range (see RangePayload) or shapes that do not fit.
using TryInputs =
    std::function<absl::StatusOr<std::vector<Tensor>>(const std::vector<Tensor>& inputs)>;

struct MadeUpOptions {
  std::string batch_axis;  // its symbol; may be empty
  SymbolSizes sizes;       // sizes by symbol; other axes take any small size
  // Elements of all inputs together. More of them: RESOURCE_EXHAUSTED.
  int64_t most_elements = int64_t{1} << 24;
};

// Returns the ranges of all inputs (those that are not integers: the default), found by trying at a
// small size of every axis. The error of `run` where it does not even take zeros or ones.
absl::StatusOr<std::vector<InputRange>> FindRanges(absl::Span<const MadeUpInput> inputs,
                                                   const TryInputs& run,
                                                   const MadeUpOptions& options,
                                                   int* runs = nullptr);

// Returns every symbol of the inputs' dims, terms of expressions included, at `size`.
SymbolSizes AllSymbols(absl::Span<const MadeUpInput> inputs, int64_t size);

// Returns the shapes of the inputs at `sizes`. RESOURCE_EXHAUSTED where they are too large together
// to be made up.
absl::StatusOr<std::vector<Shape>> ShapesAt(absl::Span<const MadeUpInput> inputs,
                                            const SymbolSizes& sizes, int64_t most_elements);

// Returns contents that a client might send: floats of a normal distribution, ids of the whole
// range, masks that hide nothing. `seed` differs between inputs and requests.
Tensor MakeUp(const MadeUpInput& input, const InputRange& range, const Shape& shape, uint64_t seed);

}  // namespace reprise

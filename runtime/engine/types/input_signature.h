// InputSignature: the sizes of a model's axes, read off the shapes of its inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/graph/shape.h"
#include "runtime/onnx/model_io.h"

namespace reprise {

// The rules in the dims of the inputs are derived once; a request computes the dims that follow
// from others, each expression once.
class InputSignature {
 public:
  InputSignature() = default;  // has no inputs
  // Borrows `inputs`: they stay where and as they are, also for copies.
  explicit InputSignature(const std::vector<ModelIo>& inputs);

  // Returns the size of every symbol that the dims of the inputs name, such that `shapes` (by
  // input; a nullptr is left out) agree with them. INVALID_ARGUMENT naming the input, its expected
  // and its actual shape: a wrong rank, a negative size, a constant dim that differs, a symbol with
  // two sizes, an expression that does not come out.
  absl::StatusOr<std::map<std::string, int64_t>> Match(absl::Span<const Shape* const> shapes) const;

  // Returns the dims of input `input` that are `symbol`, or follow from it, as the length of a mask
  // over cached and new positions does.
  absl::InlinedVector<size_t, 4> DimsAlong(size_t input, absl::string_view symbol) const;

 private:
  // The rule that a size of a shape is checked against.
  struct Rule {
    enum class Kind { kConstant, kSymbol, kDerived };
    Kind kind = Kind::kConstant;
    size_t index = 0;                // position in symbols_, or in derived_
    std::vector<std::string> parts;  // symbols of the expression that it is, if it is one
  };
  // Checks that every dim that is computed from others has the size that `sizes` give it.
  absl::Status MatchDerived(absl::Span<const Shape* const> shapes,
                            const std::map<std::string, int64_t>& sizes) const;

  const std::vector<ModelIo>* inputs_ = nullptr;
  std::vector<std::vector<Rule>> rules_;  // indexed by input and dim
  std::vector<std::string> symbols_;      // the symbols that are dims, ascending
  std::vector<Dim> derived_;              // each once
};

// Returns "[batch, sequence, 384]".
std::string DimsToString(const std::vector<Dim>& dims);

}  // namespace reprise

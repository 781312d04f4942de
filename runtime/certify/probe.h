// Probe: measures whether padding along an axis can change an answer.
//
// The model is run unpadded, and padded with hostile values, through a callback. An input is a
// guard when its padding must hold its fill value, else free. The guard set found is the smallest
// that a greedy search gives: all inputs guard must hold; then inputs are freed one by one, token
// ids first, masks last.
//
//   ASSIGN_OR_RETURN(auto ranges, FindRanges(inputs, options, runner));
//   ASSIGN_OR_RETURN(auto certificate, ProbeAxis(inputs, ranges, output_names, runner, options));
//
// Threads: none of its own; `runner` is called one call at a time. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/certify/certificate.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"

namespace reprise {

struct ProbeInput {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<Dim> dims;        // symbols are merged already
  bool is_mask = false;         // an integer input that holds ones and zeros alone
  std::vector<double> telling;  // numbers that the model compares with: drawn more often
  std::optional<Tensor> value;  // set: always this (a shape input)
  // Says which positions are the request's: ones wherever no padding is (passes/live).
  bool live = false;
};

// Runs the model at exactly the shapes of `inputs`, without any padding, and returns its outputs
// in order. INVALID_ARGUMENT for a value out of range (see RangePayload) or shapes that do not fit.
using ProbeRunner =
    std::function<absl::StatusOr<std::vector<Tensor>>(const std::vector<Tensor>& inputs)>;

// The size of an axis that is not probed, where ProbeOptions says no other.
inline constexpr int64_t kDefaultSize = 5;

struct ProbeOptions {
  std::string axis;  // the symbol
  bool is_batch = false;
  std::string batch_axis;               // may be empty; its rows are drawn with different masks
  std::map<std::string, double> fills;  // input -> its fill value; 0 where it has none
  std::set<std::string> guards;         // inputs that are guards whatever is measured
  // The ops prove the axis, and a second look follows: the first look takes fewer cases, to see
  // that they are right, and the second one what those of the batch left out (lengths: at
  // `padded_sizes`, like all others).
  bool brief = false;
  // A second look tries this many more cases, at the smallest size, for what few contents show.
  int sweeps = 0;
  std::map<std::string, int64_t> sizes;  // other axes; default: 2 for batch
  std::vector<int64_t> padded_sizes = {16, 32, 64};
  int64_t smallest = 1;  // size of the axis that the model takes
  int64_t step = 1;      // all lengths are multiples of it, as `padded_sizes` and `smallest` are
  // Elements of the inputs of one run. More of them end the probe: RESOURCE_EXHAUSTED.
  int64_t most_elements = int64_t{1} << 24;
  // Outputs that hold the same at a size whatever the inputs hold, and show nothing wrong.
  std::set<std::string> fixed_outputs;
  // Outputs that are no answers: numbers that answers show too coarsely (verify/watched_form.h).
  std::set<std::string> watched;
  // The size of a dim under sizes of the symbols: DimSize of passes/specialize/specialize.h.
  std::function<absl::StatusOr<int64_t>(const Dim&, const std::map<std::string, int64_t>&)>
      dim_size;
  double tolerance = 1e-5;  // relative to the largest |element| of the unpadded output
  uint64_t seed = 1;
};

// The values that an integer input accepts. `limited` false: whatever was tried was taken, as by
// a mask (inputs that are not integers count as such); [low, high] is then [0, 1].
struct InputRange {
  int64_t low = 0;
  int64_t high = 1;
  bool limited = false;
};

// A runner that knows the range a kernel allows hangs it on its error, which saves runs; what it
// says is tried, not believed.
void SetRangePayload(absl::Status& status, int64_t low, int64_t high);
std::optional<InputRange> RangePayload(const absl::Status& status);

// Returns the ranges of all inputs (those that are not integers: the default), found by trying at a
// small size of every axis. Once a model, for all its axes. The error of the runner when it
// does not even take zeros or ones.
absl::StatusOr<std::vector<InputRange>> FindRanges(absl::Span<const ProbeInput> inputs,
                                                   const ProbeRunner& runner,
                                                   const ProbeOptions& options,
                                                   int* runs = nullptr);

// Returns the certificate of `options.axis`. What the model does, an error included, is in the
// certificate; a status is INVALID_ARGUMENT for wrong arguments alone (no input has the axis).
absl::StatusOr<AxisCertificate> ProbeAxis(absl::Span<const ProbeInput> inputs,
                                          absl::Span<const InputRange> ranges,
                                          absl::Span<const std::string> output_names,
                                          const ProbeRunner& runner, const ProbeOptions& options);

// A second look at a certificate, at `options.padded_sizes` (longer ones): the same guards, two
// lengths for each size. Returns it with `certified` false and the reason where it does not hold.
absl::StatusOr<AxisCertificate> ConfirmAxis(const AxisCertificate& certificate,
                                            absl::Span<const ProbeInput> inputs,
                                            absl::Span<const InputRange> ranges,
                                            absl::Span<const std::string> output_names,
                                            const ProbeRunner& runner, const ProbeOptions& options);

}  // namespace reprise

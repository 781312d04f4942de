// LengthProbe: padding along a sequence-like axis, unpadded against padded.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/certify/draw.h"
#include "runtime/certify/length_cases.h"
#include "runtime/certify/told_outputs.h"

namespace reprise {

class LengthProbe {
 public:
  // Borrows all arguments.
  LengthProbe(const Drawer& drawer, absl::Span<const std::string> output_names,
              const ProbeRunner& runner, const ProbeOptions& options);

  // Finds the guards. INVALID_ARGUMENT when no input has the axis.
  absl::StatusOr<AxisCertificate> Run();
  // Tries the guards of `certificate` at two lengths for each padded size. With `options.sweeps`
  // every output of floats must have told contents apart, as BatchProbe says.
  absl::StatusOr<AxisCertificate> Confirm(const AxisCertificate& certificate);

 private:
  using Free = std::set<size_t>;  // inputs whose padding is free

  // A case that is tried, with its inputs and the unpadded answer.
  struct Case : LengthCase {
    bool dropped = false;  // the model does not take these sizes, padded or not
    bool drawn = false;
    std::vector<Numbers> inputs;
    std::vector<Tensor> expected;
  };

  absl::Status Prepare();
  // Which places of masks count in whatever is drawn from now on; new cases of that.
  void SetLevel(CountingPlaces level, bool confirming);
  // Draws and runs unpadded, once; drops the case if the model refuses.
  absl::Status Expect(Case& c);
  // The fault of padding when these inputs are free; nullopt: there is none.
  absl::StatusOr<std::optional<std::string>> Try(const Free& free);
  // Returns the same for one case, free inputs filled with `hostile`.
  absl::StatusOr<std::optional<std::string>> TryCase(Case& c, const Free& free, Hostile hostile);
  // How large output `o` usually is, unpadded; draws cases where too few were drawn.
  absl::StatusOr<double> UsualSizeOf(size_t o);
  absl::StatusOr<bool> Holds(const Free& free);
  // True when the model takes `padded` itself, unpadded.
  absl::StatusOr<bool> TakesSize(int64_t padded);
  // Returns whether the padding of input `i` holds its fill whatever is measured: so it was asked
  // for, or its rows may matter (of masks, and of ids that masks are made of), of whatever its
  // padding holds.
  bool IsBound(size_t i) const;
  // Floats that lie along the axis as masks do: features have another dim last.
  bool MayBeFloatMask(size_t i) const;
  // Returns the smallest guard set's complement, or nullopt when not even all guards hold.
  absl::StatusOr<std::optional<Free>> FindFree();
  // Returns which places of the guard `input` must count.
  absl::StatusOr<CountingPlaces> NeedOf(size_t input, const Free& free);
  // Padding shows in a request of this length where this input alone has these patterns, by row.
  absl::StatusOr<bool> ShowsWith(size_t input, const std::vector<MaskPattern>& patterns,
                                 const LengthCase& like, const Free& free);

  absl::StatusOr<std::vector<Tensor>> Execute(const std::vector<Numbers>& inputs);
  std::string Describe(const Case& c, const Free& free, Hostile hostile) const;
  void Succeed(const Free& free);

  const Drawer& drawer_;
  absl::Span<const std::string> output_names_;
  const ProbeRunner& runner_;
  const ProbeOptions& options_;
  std::vector<size_t> moving_;  // inputs that have the axis
  CountingPlaces level_ = CountingPlaces::kOne;
  std::vector<Case> cases_;
  std::vector<Free> failed_;  // sets that do not hold; no larger set does
  std::map<int64_t, bool> takes_size_;
  std::string failure_;  // why the last set failed
  std::string refusal_;  // the model's first error for an unpadded run
  bool saw_finite_ = false;
  ToldOutputs told_;
  AxisCertificate certificate_;
};

}  // namespace reprise

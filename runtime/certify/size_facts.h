// SizeFacts: what is known of the numbers and shapes of a symbolic model, for all sizes of its
// axes, from samples of it.
//
// Ownership: borrows the question. Threads: one caller at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/certify/size_flow.h"
#include "runtime/certify/size_numbers.h"

namespace reprise {

// How a number hangs on the size of the axis; the larger the worse.
enum class SizeUse {
  kData,    // it is not made of sizes
  kFixed,   // it does not; or only how many of it there are does, the first ones alike
  kEven,    // it follows the size so that it differs between any two sizes
  kSteps,   // it follows the size in steps, as quotients do
  kChosen,  // what the size decides
};

struct SizeFlow {
  SizeUse use = SizeUse::kData;
  NodeId chooser = kNone;                // the node that chooses, for kChosen
  std::vector<SizePolynomial> elements;  // polynomials for all sizes of all axes; empty: not known
};

class SizeFacts {
 public:
  using Elements = std::vector<SizePolynomial>;

  // Knows the model's constants. `question` has a sample for each corner of the axes' sizes.
  explicit SizeFacts(const SizeQuestion& question);

  const Graph& graph() const { return graph_; }
  const SizeQuestion& question() const { return question_; }
  size_t axes() const { return axes_; }

  void Set(ValueId id, SizeFlow flow) { flows_[id] = std::move(flow); }
  // `id` is what `of` is, at any size: the result of an If whose branch is known.
  void SetAlias(ValueId id, ValueId of) { alias_[id] = of; }

  ValueId Resolved(ValueId id) const;
  // The flow of `id`; kNone is fixed.
  const SizeFlow& FlowOf(ValueId id) const;
  const SizeFlow& In(const Node& node, size_t i) const { return FlowOf(node.input(i)); }
  // All elements of all operands are known.
  bool AllKnown(const Node& node) const;
  // The value in one of the samples; null where it is not known there.
  const Tensor* AnySample(ValueId id) const;
  std::pair<double, double> RangeOf(const SizePolynomial& number) const {
    return number.Range(question_.largest);
  }
  // A number that does not hang on sizes.
  double Constant(const SizePolynomial& number) const { return number.At(low_); }

  // A number at two sizes of the axis, the other axes alike: those of the shapes below.
  std::pair<double, double> AtBoth(const SizePolynomial& number) const {
    return {number.At(question_.samples[0].sizes),
            number.At(question_.samples[size_t{1} << question_.position].sizes)};
  }

  // At two sizes of the axis, the other axes alike.
  const std::optional<Shape>& LowShape(ValueId id) const;
  const std::optional<Shape>& HighShape(ValueId id) const;
  // The dims that follow the axis; nullopt where shapes are not known.
  std::optional<std::vector<size_t>> VaryingDims(ValueId id) const;
  bool Varies(ValueId id) const;
  bool AnyVaries(const Node& node) const;
  // The dims for all sizes, one number each; nullopt where they are not known or no straight lines.
  std::optional<Elements> DimsOf(ValueId id) const;
  // For each dim that follows the axis, its sizes and the elements inside it: the same before and
  // behind an op that only renames dims. Only where shapes are known.
  std::vector<std::vector<int64_t>> Places(ValueId id) const;

  // Reads a result of sums and products from the samples: its elements, where they are straight
  // lines; else `otherwise`.
  SizeFlow Fitted(ValueId output, SizeUse otherwise) const;

  // Tells how the dims of a shape that is no straight line of all axes together (strides make steps
  // of a picture's side) hang on this axis: each dim is either the size or stays as it is.
  SizeUse UseOfShape(ValueId id) const;

  // The axes that any of them depends on, as bits.
  static size_t AxesOf(const Elements& elements);

  // `f(a, b)` for the elements of two operands that meet in `output`; false where one is not known,
  // or at the first for which `f` is false.
  template <typename F>
  bool ForEachPair(ValueId a, ValueId b, ValueId output, F&& f) const;

  // Shapes are short; what is longer is known by how it is made alone.
  static constexpr int64_t kMaxElements = 64;

 private:
  const std::optional<Shape>& ShapeIn(const SizeSample& sample, ValueId id) const;
  Elements Fit(ValueId id) const;
  // `values[i]` is sample i; all have the same length. Empty where they are no straight lines.
  Elements FitValues(const std::vector<std::vector<double>>& values) const;
  SizeUse UseOf(const Elements& elements) const;

  const SizeQuestion& question_;
  const Graph& graph_;
  const size_t axes_;
  std::vector<int64_t> low_, high_;
  std::vector<SizeFlow> flows_;  // indexed by value
  std::vector<ValueId> alias_;   // indexed by value; kNone: itself
};

template <typename F>
bool SizeFacts::ForEachPair(ValueId a, ValueId b, ValueId output, F&& f) const {
  const Elements& left = FlowOf(a).elements;
  const Elements& right = FlowOf(b).elements;
  const auto &left_shape = LowShape(a), &right_shape = LowShape(b), &shape = LowShape(output);
  if (left.empty() || right.empty() || !left_shape || !right_shape || !shape) return false;
  if (NumElements(*shape) > kMaxElements || Varies(output)) return false;
  const Shape strides = Strides(*shape);
  const auto element = [&](const Elements& elements, const Shape& own, int64_t e) {
    const Shape own_strides = Strides(own);
    int64_t at = 0;
    for (size_t d = 0; d < own.size(); ++d) {
      const size_t out = d + shape->size() - own.size();
      if (own[d] != 1) at += e / strides[out] % (*shape)[out] * own_strides[d];
    }
    return elements[at];
  };
  for (int64_t e = 0; e < NumElements(*shape); ++e) {
    if (!f(element(left, *left_shape, e), element(right, *right_shape, e))) return false;
  }
  return true;
}

}  // namespace reprise

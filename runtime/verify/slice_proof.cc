#include "runtime/verify/slice_proof.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/probe_sizes.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;

// Sizes of an axis while two graphs are compared, and of the others: the first that it takes.
constexpr int64_t kComparedSizes[] = {19, 8, 64, 224};
constexpr int64_t kComparedOthers[] = {5, 16, 64, 224};
constexpr int64_t kRows = 3;

// An axis of another size in the second of two graphs of one model.
enum class OtherSize {
  kOfThePaddedAxis,      // numbers follow it, as they did when it was measured
  kOfAnAxisThatDecides,  // which numbers it decides was not measured
};

// The operands of these say how large a result is, and nothing of the numbers in it.
bool SaysHowLarge(const OpRow& row) {
  return row.name == "Reshape" || row.name == "Expand" || row.name == "ConstantOfShape";
}

// Constants that differ as sizes of the padded axis do, and decide the same: neither a condition
// nor what is multiplied by zero is another one. `makes_shapes`: the operand says how large a
// result is; others that count say where something lies.
bool DecideAlike(bool makes_shapes, const Tensor& a, const Tensor& b) {
  const bool is_place = IsInteger(a.dtype()) && !makes_shapes;
  const std::vector<double> ones = a.ToDoubles(), others = b.ToDoubles();
  return absl::c_equal(ones, others, [&](double one, double other) {
    if (is_place) return one == other;
    return (one == 0) == (other == 0) && std::isfinite(one) == std::isfinite(other) &&
           (one < 0) == (other < 0);
  });
}

// One graph is the other one with another size of one axis: the same ops on the same values, with
// the same attributes, that leave the same dims as they are. Constants may differ as sizes do.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b, OtherSize size) : a_(a), b_(b), size_(size) {}

  bool Same() {
    const std::vector<NodeId> nodes = a_.NodeIds(), others = b_.NodeIds();
    if (nodes.size() != others.size() || !Pair(a_.inputs(), b_.inputs())) return false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node &one = a_.node(nodes[i]), &other = b_.node(others[i]);
      const bool alike = one.op == other.op && one.attributes == other.attributes &&
                         Match(FindOp(one.op), one.inputs, other.inputs) &&
                         Pair(one.outputs, other.outputs) && Kept(a_, one) == Kept(b_, other);
      if (!alike) return false;
    }
    return Match(nullptr, a_.outputs(), b_.outputs());
  }

 private:
  // Returns the dims that keep their size in a node that cuts its operand, or fills it up.
  static std::vector<size_t> Kept(const Graph& graph, const Node& node) {
    std::vector<size_t> kept;
    if (node.op != SliceOp::kName && node.op != "Pad") return kept;
    const Shape& from = *graph.value(node.inputs[0]).shape;
    const Shape& to = *graph.value(node.outputs[0]).shape;
    for (size_t d = 0; d < from.size() && d < to.size(); ++d) {
      if (from[d] == to[d]) kept.push_back(d);
    }
    return kept;
  }

  // These are defined here, one for one.
  bool Pair(const std::vector<ValueId>& ids, const std::vector<ValueId>& others) {
    if (ids.size() != others.size()) return false;
    for (size_t i = 0; i < ids.size(); ++i) {
      if ((ids[i] == kNone) != (others[i] == kNone)) return false;
      if (ids[i] == kNone) continue;
      twin_[ids[i]] = others[i];
      const auto &shape = a_.value(ids[i]).shape, &other = b_.value(others[i]).shape;
      if (shape.has_value() && other.has_value() && shape->size() != other->size()) return false;
    }
    return true;
  }

  // `row`: of the op that takes them; null for the model's outputs.
  bool Match(const OpRow* row, const std::vector<ValueId>& ids,
             const std::vector<ValueId>& others) const {
    if (ids.size() != others.size()) return false;
    for (size_t i = 0; i < ids.size(); ++i) {
      if ((ids[i] == kNone) != (others[i] == kNone)) return false;
      if (ids[i] != kNone && !IsTwin(row, i, ids[i], others[i])) return false;
    }
    return true;
  }

  // Operand `i` of `row`.
  bool IsTwin(const OpRow* row, size_t i, ValueId id, ValueId other) const {
    const Value &one = a_.value(id), &two = b_.value(other);
    if (one.kind != two.kind) return false;
    if (one.kind == Value::Kind::kConstant) {
      return IsTwinConstant(row, i, one.constant, two.constant);
    }
    if (one.kind == Value::Kind::kParameter) return one.name == two.name;
    const auto it = twin_.find(id);
    return it != twin_.end() && it->second == other;
  }

  bool IsTwinConstant(const OpRow* row, size_t i, const Tensor& one, const Tensor& two) const {
    if (one.dtype() != two.dtype()) return false;
    if (one.shape() != two.shape()) return true;
    const bool makes_shapes = row != nullptr && row->IsValueInput(i);
    if (size_ == OtherSize::kOfThePaddedAxis) return DecideAlike(makes_shapes, one, two);
    // How many a TopK keeps, and how far a Pad goes, hides other numbers than it hid where the
    // padding was measured.
    return (makes_shapes && SaysHowLarge(*row)) || one == two;
  }

  const Graph& a_;
  const Graph& b_;
  const OtherSize size_;
  std::unordered_map<ValueId, ValueId> twin_;
};

absl::Status NotPadded(const ModelAxis& axis, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("axis ", axis.label, " is not padded there: ", why));
}

}  // namespace

SliceProof::SliceProof(const ProofSubject& subject, const SizeSlices::Slice& slice,
                       std::vector<int64_t> largest)
    : subject_(subject), largest_(std::move(largest)) {
  for (size_t i = 0; i < subject.axes.size(); ++i) {
    if (slice[i] == SizeSlices::kFree) {
      axes_.push_back(subject.axes[i]);
      positions_.push_back(i);
    } else {
      fixed_[subject.axes[i].symbol] = slice[i];
    }
  }
}

absl::Status SliceProof::Run() const {
  RETURN_IF_ERROR(CompareOutputs());
  const SizeReadings readings(subject_.graph, axes_, fixed_);
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (IsPadded(i)) RETURN_IF_ERROR(ProveAxis(readings, i));
  }
  return absl::OkStatus();
}

absl::Status SliceProof::ProveAxis(const SizeReadings& readings, size_t position) const {
  const ModelAxis& axis = axes_[position];
  const AxisCertificate& certificate = axis.certificate;
  PaddingLeakQuestion question = {
      .readings = readings, .position = position, .largest = LargestTaken(position)};
  for (const std::string& guard : certificate.guards) {
    const auto named = [&](const ProbeInput& input) { return input.name == guard; };
    const auto input = absl::c_find_if(subject_.inputs, named);
    if (input == subject_.inputs.end()) continue;
    const bool moves = absl::c_any_of(input->dims, [&](const Dim& dim) {
      return dim.symbol == axis.symbol ||
             absl::c_linear_search(ExpressionSymbols(dim.symbol), axis.symbol);
    });
    if (!moves) continue;
    const auto fill = subject_.fills.find(guard);
    question.guards[guard] = fill == subject_.fills.end() ? 0 : fill->second;
    if (absl::c_linear_search(certificate.masks, guard)) question.masks.insert(guard);
    if (!input->is_mask) question.guessed_masks.insert(guard);
  }
  const AxisFinding finding = FindPaddingLeak(question);
  if (finding.verdict == Verdict::kMixes) return NotPadded(axis, MixingWords(finding));
  if (!finding.shallow.empty() && certificate.shallow.empty()) {
    return NotPadded(axis, finding.shallow);
  }
  if (!finding.needs.Within(NeedsOf(certificate))) {
    return NotPadded(axis, "masks would have to leave more places than they do elsewhere");
  }
  if (finding.proved() || IsSameComputation(position, question.largest)) return absl::OkStatus();
  return NotPadded(axis, absl::StrCat("another computation was measured than runs there, where ",
                                      MixingWords(finding)));
}

int64_t SliceProof::LargestTaken(size_t position) const {
  for (int64_t size = largest_[positions_[position]]; size > 0; size /= 2) {
    if (size % axes_[position].step != 0) return 0;
    Binding binding = {.axes = fixed_};
    for (size_t i = 0; i < axes_.size(); ++i) {
      binding.axes[axes_[i].symbol] = i == position       ? size
                                      : axes_[i].is_batch ? 1
                                                          : axes_[i].Fitting(kComparedOthers[0]);
    }
    if (IsTaken(subject_.graph, binding)) return size;
  }
  return 0;
}

absl::StatusOr<Graph> SliceProof::At(size_t position, int64_t size, int64_t other,
                                     bool in_slice) const {
  Binding binding;
  for (const ModelAxis& axis : subject_.axes) {
    binding.axes[axis.symbol] = axis.is_batch ? kRows : axis.Fitting(other);
  }
  if (in_slice) {
    for (const auto& [symbol, fixed] : fixed_) binding.axes[symbol] = fixed;
  }
  binding.axes[axes_[position].symbol] = size;
  return Specialize(subject_.graph, binding);
}

bool SliceProof::IsSameComputation(size_t position, int64_t largest) const {
  for (const int64_t other : kComparedOthers) {
    for (const int64_t size : kComparedSizes) {
      if (size % axes_[position].step != 0) continue;
      const auto measured = At(position, size, other, /*in_slice=*/false);
      const auto here = At(position, size, other, /*in_slice=*/true);
      if (!measured.ok() || !here.ok()) continue;
      if (!Comparison(*measured, *here, OtherSize::kOfAnAxisThatDecides).Same()) return false;
      if (largest <= size) return true;
      const auto longest = At(position, largest, other, /*in_slice=*/true);
      return longest.ok() && Comparison(*here, *longest, OtherSize::kOfThePaddedAxis).Same();
    }
  }
  return false;
}

absl::Status SliceProof::CompareOutputs() const {
  std::vector<std::string> symbols;
  std::vector<FitRange> ranges;
  for (size_t i = 0; i < axes_.size(); ++i) {
    symbols.push_back(axes_[i].symbol);
    ranges.push_back({.largest = largest_[positions_[i]],
                      .from = axes_[i].smallest,
                      .step = axes_[i].step,
                      .extents = axes_[i].extents});
  }
  absl::StatusOr<OutputFit> fit = absl::UnknownError("not tried");
  std::vector<int64_t> at;  // sizes at which it was fitted, by axis of the model
  for (const int64_t length : kFitLengths) {
    Binding base = {.axes = fixed_};
    at.clear();
    for (const ModelAxis& axis : subject_.axes) {
      const bool fixed = fixed_.contains(axis.symbol);
      if (!fixed) {
        base.axes[axis.symbol] = axis.is_batch ? kFitBatch : axis.Fitting(length);
      }
      at.push_back(base.axes[axis.symbol]);
    }
    fit = FitOutputShapes(subject_.graph, symbols, base, ranges);
    if (fit.ok()) break;
  }
  if (!fit.ok()) return absl::FailedPreconditionError(fit.status().message());
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!IsPadded(i)) continue;
    if (!fit->refusals[i].empty()) return NotPadded(axes_[i], fit->refusals[i]);
    if (fit->smallest[i] > axes_[i].smallest) {
      return NotPadded(axes_[i], absl::StrCat("the model takes sizes from ", fit->smallest[i],
                                              " on, and from ", axes_[i].smallest, " elsewhere"));
    }
  }
  std::vector<int64_t> free;
  for (const size_t position : positions_) free.push_back(at[position]);
  for (size_t output = 0; output < fit->outputs.size(); ++output) {
    const std::vector<AffineDim>& dims = fit->outputs[output].dims;
    const std::vector<AffineDim>& known = subject_.output_shapes[output].dims;
    const std::string& name = subject_.outputs[output];
    if (dims.size() != known.size()) {
      return absl::FailedPreconditionError(absl::StrCat("output '", name, "' has rank ",
                                                        dims.size(), " there, and ", known.size(),
                                                        " elsewhere"));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      bool same = known[d].open || dims[d].At(free) == known[d].At(at);
      same = same && known[d].products.empty();
      for (size_t i = 0; i < axes_.size() && same; ++i) {
        if (!IsPadded(i)) continue;
        same = dims[d].factors[i] == known[d].factors[positions_[i]] &&
               dims[d].ExtentOf(i) == known[d].ExtentOf(positions_[i]);
        if (axes_[i].is_batch && dims[d].MovesWith(i)) same = same && dims[d].IsAxis(i);
      }
      if (same) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "dim ", d, " of output '", name, "' grows there in another way than elsewhere"));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise

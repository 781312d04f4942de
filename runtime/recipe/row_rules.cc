#include "runtime/recipe/row_rules.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/attention/relative_attention.h"
#include "runtime/ops/attention/relative_attention_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/quantized/integer_linear_op.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise {

RowRules::Rule RowRules::RuleOf(const Node& node) {
  const OpRow* row = FindOp(node.op);
  if (row == nullptr) return nullptr;
  // Blocks stay blocks under any shape whose dim 0 is cut at their borders.
  if (row->Has(kView)) return &RowRules::First;
  if (row->Has(kElementwise)) return &RowRules::AllFollow;
  switch (FactsOf(*row).rows) {
    case RowRule::kMixes:
      return nullptr;
    case RowRule::kFirst:
      return &RowRules::First;
    case RowRule::kFirstAlone:
      return &RowRules::FirstAlone;
    case RowRule::kThird:
      return &RowRules::Third;
    case RowRule::kAll:
      return &RowRules::All;
    case RowRule::kAllFollow:
      return &RowRules::AllFollow;
    case RowRule::kFirstAndAllFollow:
      return &RowRules::FirstAndAllFollow;
    case RowRule::kAlongAxis:
      return &RowRules::AlongAxis;
    case RowRule::kAddNorm:
      return &RowRules::AddNorm;
    case RowRule::kAttention:
      return &RowRules::Attention;
    case RowRule::kRelativeAttention:
      return &RowRules::RelativeAttention;
    case RowRule::kSegmentAttention:
      return &RowRules::SegmentAttention;
    case RowRule::kAppendRows:
      return &RowRules::AppendRows;
    case RowRule::kConcat:
      return &RowRules::Concat;
    case RowRule::kConv:
      return &RowRules::Conv;
    case RowRule::kIntegerConv:
      return &RowRules::IntegerConv;
    case RowRule::kLinear:
      return &RowRules::Linear;
    case RowRule::kMatMul:
      return &RowRules::MatMul;
    case RowRule::kMatMulInteger:
      return &RowRules::MatMulInteger;
    case RowRule::kIntegerLinear:
      return &RowRules::IntegerLinear;
    case RowRule::kQuantisation:
      return &RowRules::Quantisation;
    case RowRule::kReduction:
      return &RowRules::Reduction;
    case RowRule::kDimZeroStays:
      return &RowRules::DimZeroStays;
    case RowRule::kLastDims:
      return &RowRules::LastDims;
    case RowRule::kResize:
      return &RowRules::Resize;
    case RowRule::kSlice:
      return &RowRules::Slice;
    case RowRule::kEmbeddingSum:
      return &RowRules::EmbeddingSum;
    case RowRule::kGather:
      return &RowRules::Gather;
    case RowRule::kTranspose:
      return &RowRules::Transpose;
  }
  return nullptr;
}

bool RowRules::KeepsRowsApart(const Node& node) const {
  const Rule rule = RuleOf(node);
  if (rule == nullptr || node.output(0) == kNone) return false;
  return (this->*rule)(node, *graph_.value(node.output(0)).shape);
}

bool RowRules::ReadsLiveRowsAlone(const Node& node) {
  // Segments hold live tokens and no others.
  return FactsOf(node.op).Is(kOfSegments) || (node.op == RelativeAttentionOp::kName &&
                                              node.input(RelativeAttentionOp::kSegments) != kNone);
}

// A scalar has no dim 0.
bool RowRules::Follows(const Node& node, size_t i, const Shape& out) const {
  if (!Has(node, i)) return true;
  const Shape& shape = ShapeOf(node, i);
  if (out.empty() || shape.size() < out.size() || (shape.size() == out.size() && shape[0] == 1)) {
    return !IsMarked(node, i);
  }
  return shape.size() == out.size() && shape[0] == out[0] && IsMarked(node, i);
}

bool RowRules::AxisIsInside(const Node& node) const {
  const auto axis = NormalizeAxis(node.attributes.Int("axis", FactsOf(node.op).axis),
                                  static_cast<int64_t>(ShapeOf(node, 0).size()));
  return axis.ok() && *axis > 0;
}

bool RowRules::AxesAreInside(const Node& node, size_t i) const {
  if (!Has(node, i)) return false;
  const Tensor* constant = graph_.ConstantOf(node.input(i));
  const auto axes = constant == nullptr
                        ? absl::StatusOr<std::vector<int64_t>>(absl::UnknownError("not known"))
                        : constant->ToInt64s();
  if (!axes.ok() || axes->empty()) return false;
  const int64_t rank = static_cast<int64_t>(ShapeOf(node, 0).size());
  return absl::c_all_of(*axes, [&](int64_t value) {
    const auto axis = NormalizeAxis(value, rank);
    return axis.ok() && *axis > 0;
  });
}

bool RowRules::First(const Node& node, const Shape&) const { return IsMarked(node, 0); }

bool RowRules::FirstAlone(const Node& node, const Shape&) const {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (IsMarked(node, i)) return false;
  }
  return IsMarked(node, 0);
}

bool RowRules::Third(const Node& node, const Shape&) const { return IsMarked(node, 2); }

bool RowRules::All(const Node& node, const Shape&) const {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsMarked(node, i)) return false;
  }
  return true;
}

bool RowRules::AllFollow(const Node& node, const Shape& out) const {
  bool any = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!Follows(node, i, out)) return false;
    any = any || IsMarked(node, i);
  }
  return any;
}

bool RowRules::FirstAndAllFollow(const Node& node, const Shape& out) const {
  return IsMarked(node, 0) && AllFollow(node, out);
}

bool RowRules::AlongAxis(const Node& node, const Shape&) const {
  return IsMarked(node, 0) && AxisIsInside(node);
}

bool RowRules::AddNorm(const Node& node, const Shape& out) const {
  return AlongAxis(node, out) && Follows(node, 1, out);
}

bool RowRules::Attention(const Node& node, const Shape& out) const {
  constexpr size_t kMask = AttentionOp::kMask, kMaskDims = 4;
  const bool mask_has_rows =
      Has(node, kMask) && ShapeOf(node, kMask).size() == kMaskDims && ShapeOf(node, kMask)[0] != 1;
  return mask_has_rows == IsMarked(node, kMask) && SegmentAttention(node, out);
}

bool RowRules::RelativeAttention(const Node& node, const Shape& out) const {
  const bool packed = Has(node, RelativeAttentionOp::kSegments);
  return packed ? SegmentAttention(node, out) : Attention(node, out);
}

bool RowRules::SegmentAttention(const Node& node, const Shape&) const {
  using enum SegmentAttentionOp::Input;
  const auto marked = [&](size_t i) { return !Has(node, i) || IsMarked(node, i); };
  return marked(kQueries) && marked(kKeys) && marked(kValues);
}

bool RowRules::AppendRows(const Node& node, const Shape&) const {
  return IsMarked(node, 0) && IsMarked(node, 1) && IsMarked(node, 2) && !IsMarked(node, 3);
}

bool RowRules::Concat(const Node& node, const Shape& out) const {
  return AxisIsInside(node) && All(node, out);
}

bool RowRules::Conv(const Node& node, const Shape& out) const {
  return IsMarked(node, 0) && !IsMarked(node, 1) && !IsMarked(node, 2) && Follows(node, 3, out);
}

bool RowRules::IntegerConv(const Node& node, const Shape& out) const {
  constexpr size_t kResidual = IntegerConvOp::kResidual;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (i != kResidual && IsMarked(node, i)) return false;
  }
  return IsMarked(node, 0) && Follows(node, kResidual, out);
}

// Rows by weights, with a scale and a zero point for each row or for all.
bool RowRules::IntegerLinear(const Node& node, const Shape& out) const {
  if (ShapeOf(node, 0).size() < 2 || !IsMarked(node, 0)) return false;
  using In = IntegerLinearOp;
  for (const size_t weights : {In::kB, In::kBScale, In::kBZero}) {
    if (IsMarked(node, weights)) return false;
  }
  for (const size_t rows : {In::kAScale, In::kAZero, In::kBias, In::kResidual}) {
    if (!Follows(node, rows, out)) return false;
  }
  return true;
}

bool RowRules::Linear(const Node& node, const Shape& out) const {
  const bool plain = !GemmOp::From(node.attributes).trans_a && ShapeOf(node, 0).size() > 1;
  return plain && IsMarked(node, 0) && !IsMarked(node, 1) && Follows(node, 2, out) &&
         Follows(node, 3, out);
}

bool RowRules::MatMul(const Node& node, const Shape& out) const {
  if (!IsMarked(node, 0) || ShapeOf(node, 0).size() < 2) return false;
  if (GemmOp::From(node.attributes).trans_a && ShapeOf(node, 0).size() == 2) return false;
  if (ShapeOf(node, 1).size() == 2) return !IsMarked(node, 1);
  return ShapeOf(node, 0).size() >= 3 && ShapeOf(node, 0).size() == out.size() &&
         Follows(node, 1, out);
}

bool RowRules::MatMulInteger(const Node& node, const Shape& out) const {
  constexpr size_t kZeroPoint = MatMulIntegerOp::kAZero;  // one, or one a row
  return IsMarked(node, 0) && ShapeOf(node, 0).size() > 1 && ShapeOf(node, 1).size() == 2 &&
         !IsMarked(node, 1) && Follows(node, kZeroPoint, out) && !IsMarked(node, kZeroPoint + 1);
}

// One scale a position along an axis: not along dim 0.
bool RowRules::Quantisation(const Node& node, const Shape& out) const {
  return FirstAlone(node, out) && (NumElements(ShapeOf(node, 1)) == 1 ||
                                   (AxisIsInside(node) && ShapeOf(node, 1).size() == 1));
}

// Elements are reduced within a block.
bool RowRules::Reduction(const Node& node, const Shape&) const {
  return IsMarked(node, 0) && AxesAreInside(node, 1);
}

// Each element of dim 0 is made of the element at its index.
bool RowRules::DimZeroStays(const Node& node, const Shape& out) const {
  const Shape& in = ShapeOf(node, 0);
  return FirstAlone(node, out) && in.size() == out.size() && in[0] == out[0];
}

// Leading dims stay as they were; each of their elements is made of its own trailing elements.
bool RowRules::LastDims(const Node& node, const Shape& out) const {
  const Shape& in = ShapeOf(node, 0);
  return FirstAlone(node, out) && !out.empty() && in.size() > out.size() && in[0] == out[0];
}

// Dim 0 stays, and not by a scale that happens to give its size.
bool RowRules::Resize(const Node& node, const Shape& out) const {
  constexpr size_t kScales = ResizeOp::kScales;
  const auto& attributes = node.attributes;
  if (!DimZeroStays(node, out) ||
      attributes.String("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return false;
  }
  if (!attributes.Ints("axes").empty() || !Has(node, kScales)) return false;
  const Tensor* scales = graph_.ConstantOf(node.input(kScales));
  return scales != nullptr && scales->num_elements() > 0 && scales->ToDoubles()[0] == 1;
}

// A step may reverse the dims that are named.
bool RowRules::Slice(const Node& node, const Shape& out) const {
  constexpr size_t kAxes = SliceOp::kAxes;
  return DimZeroStays(node, out) && AxesAreInside(node, kAxes);
}

bool RowRules::EmbeddingSum(const Node& node, const Shape& out) const {
  const Shape ids(out.begin(), out.end() - 1);
  bool any = false;
  for (size_t i = 1; i < node.inputs.size(); i += 2) {
    if (!Follows(node, i, ids)) return false;
    any = any || IsMarked(node, i);
  }
  return any;
}

// Rows of a table by marked indices, or positions inside each row.
bool RowRules::Gather(const Node& node, const Shape&) const {
  return IsMarked(node, 1) ? !IsMarked(node, 0) && node.attributes.Int("axis", 0) == 0
                           : IsMarked(node, 0) && AxisIsInside(node);
}

bool RowRules::Transpose(const Node& node, const Shape&) const {
  const std::vector<int64_t> perm = node.attributes.Ints("perm");
  return IsMarked(node, 0) && !perm.empty() && perm[0] == 0;
}

}  // namespace reprise

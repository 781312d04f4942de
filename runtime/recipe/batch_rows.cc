#include "runtime/recipe/batch_rows.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "runtime/ops/op.h"
#include "runtime/ops/quantize.h"

namespace reprise {
namespace {

class Marker {
 public:
  Marker(Graph& graph, int64_t rows) : graph_(graph), rows_(rows) {}

  void Run() {
    MarkForward();
    UnmarkBackward();
  }

 private:
  void MarkForward() {
    for (ValueId input : graph_.inputs()) {
      if (Divides(*graph_.value(input).shape)) graph_.value(input).batch_rows = rows_;
    }
    for (NodeId id : graph_.NodeIds()) {
      const Node& node = graph_.node(id);
      if (!KeepsRowsApart(node)) continue;
      for (ValueId output : node.outputs) {
        if (output != kNone && Divides(*graph_.value(output).shape)) {
          graph_.value(output).batch_rows = rows_;
        }
      }
    }
  }

  // What a node mixes it reads whole, dead rows too: those must then have been computed, and from
  // what was computed.
  void UnmarkBackward() {
    const std::vector<NodeId> ids = graph_.NodeIds();
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (ReadsLiveRowsAlone(node)) continue;
      const bool apart = absl::c_all_of(node.outputs, [&](ValueId output) {
        return output == kNone || graph_.value(output).batch_rows == rows_;
      });
      if (apart) continue;
      for (ValueId input : node.inputs) {
        if (input != kNone) graph_.value(input).batch_rows = 0;
      }
    }
  }

  bool Divides(const Shape& shape) const { return !shape.empty() && shape[0] % rows_ == 0; }

  const Shape& ShapeOf(const Node& node, size_t i) const {
    return *graph_.value(node.input(i)).shape;
  }
  bool Has(const Node& node, size_t i) const { return node.input(i) != kNone; }
  bool IsMarked(const Node& node, size_t i) const {
    return Has(node, i) && graph_.value(node.input(i)).batch_rows == rows_;
  }

  // Operand i is left out, or marked along dim 0 of a result of shape `out`, or the same for every
  // element of that dim. A scalar has no dim 0.
  bool Follows(const Node& node, size_t i, const Shape& out) const {
    if (!Has(node, i)) return true;
    const Shape& shape = ShapeOf(node, i);
    if (out.empty() || shape.size() < out.size() || (shape.size() == out.size() && shape[0] == 1)) {
      return !IsMarked(node, i);
    }
    return shape.size() == out.size() && shape[0] == out[0] && IsMarked(node, i);
  }

  bool AllFollow(const Node& node, const Shape& out) const {
    bool any = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!Follows(node, i, out)) return false;
      any = any || IsMarked(node, i);
    }
    return any;
  }

  // The axis attribute names another dim than dim 0 of input 0.
  bool AxisIsInside(const Node& node, int64_t fallback) const {
    const auto axis = NormalizeAxis(node.attributes.Int("axis", fallback),
                                    static_cast<int64_t>(ShapeOf(node, 0).size()));
    return axis.ok() && *axis > 0;
  }

  bool KeepsRowsApart(const Node& node) const {
    const OpRow* row = FindOp(node.op);
    if (row == nullptr || node.output(0) == kNone) return false;
    const Shape& out = *graph_.value(node.output(0)).shape;
    // Blocks stay blocks under any shape whose dim 0 is cut at their borders.
    if (row->Has(kView)) return IsMarked(node, 0);
    if (row->Has(kElementwise)) return AllFollow(node, out);
    if (node.op == "reprise.Linear" || node.op == "Gemm") {
      const bool plain = node.attributes.Int("transA", 0) == 0 && ShapeOf(node, 0).size() > 1;
      return plain && IsMarked(node, 0) && !IsMarked(node, 1) && Follows(node, 2, out) &&
             Follows(node, 3, out);
    }
    if (node.op == "MatMulInteger") {
      constexpr size_t kZeroPoint = 2;  // one, or one a row
      return IsMarked(node, 0) && ShapeOf(node, 0).size() > 1 && ShapeOf(node, 1).size() == 2 &&
             !IsMarked(node, 1) && Follows(node, kZeroPoint, out) &&
             !IsMarked(node, kZeroPoint + 1);
    }
    if (node.op == "reprise.IntegerLinear") return IntegerLinearFollows(node, out);
    if (ops::IsQuantisation(node.op)) {
      // One scale a position along an axis: not along dim 0.
      return OnlyTheFirstIsMarked(node) &&
             (NumElements(ShapeOf(node, 1)) == 1 ||
              (AxisIsInside(node, 1) && ShapeOf(node, 1).size() == 1));
    }
    if (node.op == "reprise.Conv") {
      return IsMarked(node, 0) && !IsMarked(node, 1) && !IsMarked(node, 2) && Follows(node, 3, out);
    }
    if (node.op == "reprise.IntegerConv") {
      constexpr size_t kResidual = 7;
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (i != kResidual && IsMarked(node, i)) return false;
      }
      return IsMarked(node, 0) && Follows(node, kResidual, out);
    }
    if (node.op == "reprise.IntegerAdd") return AllFollow(node, out);
    if (node.op == "MatMul") {
      if (!IsMarked(node, 0) || ShapeOf(node, 0).size() < 2) return false;
      if (ShapeOf(node, 1).size() == 2) return !IsMarked(node, 1);
      return ShapeOf(node, 0).size() >= 3 && ShapeOf(node, 0).size() == out.size() &&
             Follows(node, 1, out);
    }
    if (node.op == "reprise.Attention") {
      constexpr size_t kMask = 3, kMaskDims = 4;
      const bool mask_has_rows = Has(node, kMask) && ShapeOf(node, kMask).size() == kMaskDims &&
                                 ShapeOf(node, kMask)[0] != 1;
      const bool mask_follows = mask_has_rows == IsMarked(node, kMask);
      return mask_follows && absl::c_all_of(kAttentionRows, [&](size_t i) {
               return !Has(node, i) || IsMarked(node, i);
             });
    }
    if (absl::c_linear_search(kByElement, node.op)) return OnlyTheFirstIsMarked(node);
    if (absl::c_linear_search(kAlongTheLastAxis, node.op)) {
      return IsMarked(node, 0) && AxisIsInside(node, -1);
    }
    if (node.op == "ArgMax" || node.op == "ArgMin") {
      return IsMarked(node, 0) && AxisIsInside(node, 0);
    }
    // Each element of dim 0 is made of the one at its place.
    if (node.op == "Expand" || node.op == "Tile") return KeepsDimZero(node, out);
    if (node.op == "Resize") return KeepsDimZero(node, out) && ResizesInside(node);
    if (node.op == "Slice") return KeepsDimZero(node, out) && SlicesInside(node);
    if (node.op == "reprise.AddLayerNorm") {
      return IsMarked(node, 0) && AxisIsInside(node, -1) && Follows(node, 1, out);
    }
    if (node.op == "reprise.Rotary") return IsMarked(node, 0) && AllFollow(node, out);
    if (node.op == "reprise.EmbeddingSum") {
      const Shape ids(out.begin(), out.end() - 1);
      bool any = false;
      for (size_t i = 1; i < node.inputs.size(); i += 2) {
        if (!Follows(node, i, ids)) return false;
        any = any || IsMarked(node, i);
      }
      return any;
    }
    if (node.op == "Gather") {
      // Rows of a table by marked indices, or positions inside each row.
      return IsMarked(node, 1) ? !IsMarked(node, 0) && node.attributes.Int("axis", 0) == 0
                               : IsMarked(node, 0) && AxisIsInside(node, 0);
    }
    if (node.op == "Transpose") {
      const std::vector<int64_t> perm = node.attributes.Ints("perm");
      return IsMarked(node, 0) && !perm.empty() && perm[0] == 0;
    }
    if (absl::StartsWith(node.op, "Reduce")) return ReducesInside(node);
    if (node.op == "reprise.SegmentAttention") {
      return absl::c_all_of(kAttentionRows,
                            [&](size_t i) { return !Has(node, i) || IsMarked(node, i); });
    }
    if (node.op == "reprise.SegmentCumSum") return IsMarked(node, 0);
    if (node.op == "reprise.SegmentDynamicQuantizeLinear") return IsMarked(node, 0);
    if (node.op == "reprise.SegmentSpread") return IsMarked(node, 2);
    if (node.op == "GridSample") return AllMarked(node);
    if (node.op == "Concat" || node.op == "Split") {
      return AxisIsInside(node, 0) && (node.op == "Split" ? IsMarked(node, 0) : AllMarked(node));
    }
    return false;
  }

  // Rows by weights, with a scale and a zero point for each row or for all.
  bool IntegerLinearFollows(const Node& node, const Shape& out) const {
    if (ShapeOf(node, 0).size() < 2 || !IsMarked(node, 0)) return false;
    for (const size_t weights : {1, 3, 5, 8, 9}) {
      if (IsMarked(node, weights)) return false;
    }
    for (const size_t rows : {2, 4, 6, 7}) {
      if (!Follows(node, rows, out)) return false;
    }
    return true;
  }

  bool OnlyTheFirstIsMarked(const Node& node) const {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (IsMarked(node, i)) return false;
    }
    return IsMarked(node, 0);
  }

  bool KeepsDimZero(const Node& node, const Shape& out) const {
    const Shape& in = ShapeOf(node, 0);
    return OnlyTheFirstIsMarked(node) && in.size() == out.size() && in[0] == out[0];
  }

  bool AllMarked(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsMarked(node, i)) return false;
    }
    return true;
  }

  // Elements are reduced within a block.
  bool ReducesInside(const Node& node) const { return IsMarked(node, 0) && AxesAreInside(node, 1); }

  // A step may turn the dims that are named around.
  bool SlicesInside(const Node& node) const {
    constexpr size_t kAxes = 3;
    return AxesAreInside(node, kAxes);
  }

  // Dim 0 is as it was, and not by a scale that just happens to give its size.
  bool ResizesInside(const Node& node) const {
    constexpr size_t kScales = 2;
    const auto& attributes = node.attributes;
    if (attributes.String("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
      return false;
    }
    if (!attributes.Ints("axes").empty() || !Has(node, kScales)) return false;
    const Tensor* scales = graph_.ConstantOf(node.input(kScales));
    return scales != nullptr && scales->num_elements() > 0 && scales->ToDoubles()[0] == 1;
  }

  // Input i names axes, none of them dim 0.
  bool AxesAreInside(const Node& node, size_t i) const {
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

  // Segments hold live tokens and no others, so nothing else is read, whatever comes out.
  static bool ReadsLiveRowsAlone(const Node& node) {
    return absl::StartsWith(node.op, "reprise.Segment");
  }

  static constexpr size_t kAttentionRows[] = {0, 1, 2};  // q, k, v
  // What they make of an element of dim 0 no other one has a part in. Where MaxPool says which
  // element was the largest it counts them from the batch's first on, which is no mixing.
  static constexpr absl::string_view kByElement[] = {"Conv",
                                                     "ConvTranspose",
                                                     "reprise.ConvTranspose",
                                                     "MaxPool",
                                                     "AveragePool",
                                                     "LpPool",
                                                     "GlobalLpPool",
                                                     "GlobalMaxPool",
                                                     "GlobalAveragePool",
                                                     "InstanceNormalization",
                                                     "LRN",
                                                     "GroupNormalization",
                                                     "reprise.TreeEnsemble",
                                                     "reprise.ClassScores",
                                                     "reprise.SvmScores",
                                                     "reprise.SquaredDistances",
                                                     "reprise.CategoryIndex"};
  static constexpr absl::string_view kAlongTheLastAxis[] = {
      "LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "Hardmax"};

  Graph& graph_;
  const int64_t rows_;
};

}  // namespace

void MarkBatchRows(Graph& graph, int64_t rows) {
  if (rows > 1) Marker(graph, rows).Run();
}

}  // namespace reprise

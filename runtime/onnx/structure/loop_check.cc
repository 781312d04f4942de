#include "runtime/onnx/structure/loop_check.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/kit/known_numbers.h"
#include "runtime/ops/control/control_op.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/result_types.h"

namespace reprise {
namespace {

// Entry `i` of a list of ONNX's numbers.
DType DeclaredType(const Node& node, absl::string_view list, size_t i) {
  const std::vector<int64_t> numbers = node.attributes.Ints(list);
  const absl::StatusOr<DType> dtype = ops::DTypeFromOnnx(i < numbers.size() ? numbers[i] : 0);
  return dtype.ok() ? *dtype : DType::kUndefined;
}

absl::Status CheckAxis(const Node& node, int64_t axis, int64_t rank, absl::string_view of) {
  if (axis >= -rank && axis < rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(SourceLabel(node), ": axis ", axis, " of ", of, ", which has ", rank, " dims"));
}

class LoopCheck {
 public:
  LoopCheck(const Graph& graph, const std::vector<DType>& types, const Node& loop)
      : graph_(graph), types_(types), loop_(loop), parts_(loop) {
    const NodeId step = StepOf(graph, loop);
    step_ = step == kNone ? nullptr : &graph.node(step);
  }

  absl::Status Run() const {
    RETURN_IF_ERROR(Expect(LoopParts::kTripCount, DType::kInt64, "the trip count"));
    RETURN_IF_ERROR(Expect(LoopParts::kCondition, DType::kBool, "the condition"));
    RETURN_IF_ERROR(Expect(parts_.first_result, DType::kBool, "the condition of the body"));
    for (size_t i = 0; i < parts_.carried; ++i) RETURN_IF_ERROR(CheckCarried(i));
    for (size_t i = 0; i < parts_.scanned; ++i) RETURN_IF_ERROR(CheckScanned(i));
    return absl::OkStatus();
  }

 private:
  DType TypeOf(size_t operand) const {
    const ValueId id = loop_.input(operand);
    return id == kNone ? DType::kUndefined : types_[id];
  }
  // Checks that both are the same, as far as they are known.
  absl::Status Same(absl::string_view what, DType one, absl::string_view says, DType other) const {
    if (one == DType::kUndefined || other == DType::kUndefined || one == other) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        SourceLabel(loop_), ": ", what, " is ", DTypeName(one), ", ", says, " ", DTypeName(other)));
  }
  absl::Status Expect(size_t operand, DType wanted, absl::string_view what) const {
    return Same(what, TypeOf(operand), "it must be", wanted);
  }
  absl::Status CheckCarried(size_t i) const {
    const std::string what = absl::StrCat("carried value ", i);
    const DType begins = TypeOf(LoopParts::kFirstCarried + i);
    const DType declared = step_ == nullptr
                               ? DType::kUndefined
                               : DeclaredType(*step_, "dtypes", LoopParts::kStepFirstCarried + i);
    const DType ends = TypeOf(parts_.first_result + 1 + i);
    RETURN_IF_ERROR(Same(what, begins, "the body declares", declared));
    return Same(what, begins == DType::kUndefined ? declared : begins, "the body makes it", ends);
  }
  absl::Status CheckScanned(size_t i) const {
    const std::string what = absl::StrCat("scanned result ", i);
    RETURN_IF_ERROR(Same(what, TypeOf(parts_.first_result + 1 + parts_.carried + i),
                         "the body declares", DeclaredType(loop_, "dtypes", i)));
    const std::string dims = absl::StrCat("dims", i);
    if (!loop_.attributes.Has(dims)) return absl::OkStatus();
    const std::vector<int64_t> axes = loop_.attributes.Ints("axes");
    const auto rank = static_cast<int64_t>(loop_.attributes.Ints(dims).size()) + 1;
    return CheckAxis(loop_, i < axes.size() ? axes[i] : 0, rank, what);
  }

  const Graph& graph_;
  const std::vector<DType>& types_;
  const Node& loop_;
  const LoopParts parts_;
  const Node* step_;
};

}  // namespace

absl::Status CheckLoops(const Graph& graph) {
  std::vector<DType> types;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op == LoopOp::kName) {
      if (types.empty()) types = ResultTypes(graph);
      RETURN_IF_ERROR(LoopCheck(graph, types, node).Run());
    }
    // The slices that the iterations of a Scan look up.
    if (node.op == GatherOp::kName && node.source_op == "Scan") {
      const Value& from = graph.value(node.inputs[0]);
      const std::optional<int64_t> rank = KnownRank(from);
      if (!rank.has_value()) continue;
      RETURN_IF_ERROR(CheckAxis(node, node.attributes.Int("axis", 0), *rank,
                                absl::StrCat("'", from.name, "'")));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise

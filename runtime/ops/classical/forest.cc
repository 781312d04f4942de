#include "runtime/ops/classical/forest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/work_watch.h"
#include "runtime/graph/graph.h"

namespace reprise::ops {
namespace {

constexpr int64_t kPartAlignment = 64;

// Walking down a tree costs as much as this many steps of a plain loop.
constexpr int64_t kStepsOfTree = 16;

int64_t Align(int64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

template <typename T>
void Run(const ForestShape& shape, const KernelContext& context) {
  const ForestView<T> forest(shape, context.inputs[1].data);
  const int64_t rows = context.inputs[0].shape[0], columns = context.inputs[0].shape[1];
  const T* x = context.inputs[0].as<T>();
  double* sums = context.outputs[0].as<double>();
  const auto column = [&](uint32_t c) {
    if (c < shape.features) return x[c];
    if (c < shape.nothing()) return -x[c - shape.features];
    return std::numeric_limits<T>::quiet_NaN();
  };
  const auto leaf_of = [&](int64_t at) {
    while (true) {
      const WideNode<T> node = forest.node(at);
      const int64_t step = node.delta + (column(node.column) <= node.threshold ? 0 : 1);
      if (step == 0) return node.threshold;
      at += step;
    }
  };
  for (int64_t row = 0; row < rows; ++row, x += columns) {
    for (int64_t chunk = 0; chunk < shape.chunks; ++chunk, sums += shape.targets) {
      std::fill_n(sums, shape.targets, shape.complete ? 0.0 : NoSum());
      WatchWork(kStepsOfTree * (forest.chunks[chunk + 1] - forest.chunks[chunk]));
      for (int32_t tree = forest.chunks[chunk]; tree < forest.chunks[chunk + 1]; ++tree) {
        const T leaf = leaf_of(forest.places[tree].root);
        if (shape.kind == LeafKind::kScalar) {
          sums[forest.places[tree].target] += static_cast<double>(leaf);
          continue;
        }
        const auto number = static_cast<int64_t>(LeafNumber(leaf));
        if (shape.kind == LeafKind::kDense) {
          const T* weights = forest.weights + number * shape.targets;
          for (int64_t i = 0; i < shape.targets; ++i) sums[i] += static_cast<double>(weights[i]);
          continue;
        }
        for (int32_t i = forest.first[number]; i < forest.first[number + 1]; ++i) {
          double& sum = sums[forest.targets[i]];
          sum = AddLeaf(shape.sum, sum, static_cast<double>(forest.weights[i]));
        }
      }
    }
  }
}

}  // namespace

Attributes ForestShape::ToAttributes() const {
  return {{"targets", targets},
          {"features", features},
          {"mirrored", int64_t{mirrored}},
          {"trees", trees},
          {"chunks", chunks},
          {"nodes", nodes},
          {"leaves", leaves},
          {"entries", entries},
          {"kind", static_cast<int64_t>(kind)},
          {"sum", static_cast<int64_t>(sum)},
          {"complete", int64_t{complete}},
          {"feature_bits", feature_bits},
          {"deepest", deepest}};
}

ForestShape ForestShape::From(const Attributes& attributes) {
  const auto number = [&](const char* name) { return attributes.Int(name, 0); };
  return {.targets = number("targets"),
          .features = number("features"),
          .mirrored = number("mirrored") != 0,
          .trees = number("trees"),
          .chunks = number("chunks"),
          .nodes = number("nodes"),
          .leaves = number("leaves"),
          .entries = number("entries"),
          .kind = static_cast<LeafKind>(number("kind")),
          .sum = static_cast<LeafSum>(number("sum")),
          .complete = number("complete") != 0,
          .feature_bits = number("feature_bits"),
          .deepest = number("deepest")};
}

ForestLayout::ForestLayout(const ForestShape& shape, bool is_double) {
  const int64_t word = is_double ? sizeof(double) : sizeof(float);
  const int64_t node = shape.feature_bits < 32 ? sizeof(PackedNode)
                       : is_double             ? sizeof(WideNode<double>)
                                               : sizeof(WideNode<float>);
  const bool sparse = shape.kind == LeafKind::kSparse;
  const bool dense = shape.kind == LeafKind::kDense;
  int64_t at = 0;
  const auto place = [&](int64_t bytes) {
    const int64_t here = at;
    at = Align(at + bytes);
    return here;
  };
  places = place(shape.trees * static_cast<int64_t>(sizeof(TreePlace)));
  chunks = place((shape.chunks + 1) * static_cast<int64_t>(sizeof(int32_t)));
  nodes = place(shape.nodes * node);
  first = place(sparse ? (shape.leaves + 1) * static_cast<int64_t>(sizeof(int32_t)) : 0);
  targets = place(sparse ? shape.entries * static_cast<int64_t>(sizeof(int32_t)) : 0);
  weights = place((dense ? shape.leaves * shape.targets : sparse ? shape.entries : 0) * word);
  // A parameter, however small it is: its bytes are never part of a key.
  bytes = std::max(at, kMinParameterElements);
}

absl::Status TreeEnsembleRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kFloat32) | TypeBit(DType::kFloat64)));
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kUInt8)));
  RETURN_IF_ERROR(CheckRank(context, 0, 2));
  const ForestShape shape = ForestShape::From(context.attributes());
  if (context.pinned_shape(0)[1] < shape.features) {
    return absl::InvalidArgumentError(absl::StrCat("the trees ask for column ", shape.features - 1,
                                                   " of input 0, which has ",
                                                   context.pinned_shape(0)[1], " columns"));
  }
  const ForestLayout layout(shape, context.dtype(0) == DType::kFloat64);
  if (NumElements(context.pinned_shape(1)) != layout.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the forest has ",
                                                   NumElements(context.pinned_shape(1)),
                                                   " bytes, expected ", layout.bytes));
  }
  context.SetOutput(0, DType::kFloat64, {context.pinned_shape(0)[0], shape.chunks, shape.targets});
  return absl::OkStatus();
}

absl::Status TreeEnsembleKernel(const KernelContext& context) {
  const ForestShape shape = ForestShape::From(context.node.attributes);
  if (context.inputs[0].dtype == DType::kFloat64) {
    Run<double>(shape, context);
  } else {
    Run<float>(shape, context);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

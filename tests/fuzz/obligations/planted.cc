#include "tests/fuzz/obligations/planted.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/custom/registered_op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/maps/map_rules.h"
#include "tests/fuzz/obligations/map_check.h"
#include "tests/fuzz/obligations/obligation.h"
#include "tests/fuzz/obligations/row_draft.h"

namespace reprise::obligations {
namespace {

constexpr int64_t kPlantedDraws = 200;

// Rules that let no position see another one, whatever the operands are: the liars below stand for
// faults in them. The map is the rule where an op has one.
constexpr AxisRule kApart[] = {ops::ElementwiseAxis, ops::TransposeAxis, ops::ExpandAxis,
                               ops::TriluAxis,       ops::OneHotAxis,    ops::RotaryAxis};
constexpr MapRule kMapsApart[] = {ops::FirstMap, ops::BatchNormMap, ops::LastDimProductMap};

using Rules = std::pair<AxisRule, MapRule>;

Rules RulesOf(const OpRow& row) {
  return {row.axis, row.axis == ops::MapAxis ? FactsOf(row).map : nullptr};
}

bool KeepsApart(const Rules& rules) {
  return absl::c_linear_search(kApart, rules.first) ||
         absl::c_linear_search(kMapsApart, rules.second);
}

// Ops that say that they are elementwise, and are not.
struct Liar {
  absl::string_view name;
  absl::string_view what;
  absl::Status (*kernel)(const KernelContext& context);
};

// Calls `element(x, count, i)` for each element of the result.
template <typename F>
absl::Status EachElement(const KernelContext& context, F element) {
  const TensorView& x = context.inputs[0];
  const int64_t count = x.num_elements();
  auto* const y = context.outputs[0].as<float>();
  for (int64_t i = 0; i < count; ++i) y[i] = element(x.as<float>(), count, i);
  return absl::OkStatus();
}

constexpr Liar kLiars[] = {
    {"AddsUp", "adds up all elements",
     [](const KernelContext& context) {
       return EachElement(context, [](const float* x, int64_t count, int64_t) {
         return std::accumulate(x, x + count, 0.0f);
       });
     }},
    {"LooksAhead", "reads the next element",
     [](const KernelContext& context) {
       return EachElement(context, [](const float* x, int64_t count, int64_t i) {
         return x[i] + x[std::min(i + 1, count - 1)];
       });
     }},
    {"ScansBack", "adds up from the end",
     [](const KernelContext& context) {
       return EachElement(context, [](const float* x, int64_t count, int64_t i) {
         return std::accumulate(x + i, x + count, 0.0f);
       });
     }},
    {"Reverses", "turns the elements round",
     [](const KernelContext& context) {
       return EachElement(
           context, [](const float* x, int64_t count, int64_t i) { return x[count - 1 - i]; });
     }},
    {"Counts", "adds the number of elements",
     [](const KernelContext& context) {
       return EachElement(context, [](const float* x, int64_t count, int64_t i) {
         return x[i] + static_cast<float>(count);
       });
     }},
};

// Ops whose maps say more than is so.
struct MapLiar {
  absl::string_view name;
  absl::string_view map;
  absl::string_view what;
  absl::Status (*shape)(InferContext& context);
  absl::Status (*kernel)(const KernelContext& context);
};

// Calls `element(x, rows, columns, row, column)` for each element of a matrix.
template <typename F>
absl::Status EachOfMatrix(const KernelContext& context, F element) {
  const TensorView& x = context.inputs[0];
  const int64_t rows = x.shape[0], columns = x.shape[1];
  auto* const y = context.outputs[0].as<float>();
  for (int64_t i = 0; i < rows * columns; ++i) {
    y[i] = element(x.as<float>(), rows, columns, i / columns, i % columns);
  }
  return absl::OkStatus();
}

absl::Status RowsAlone(InferContext& context) {
  context.SetOutput(0, context.dtype(0), {context.shape(0)[0]});
  return absl::OkStatus();
}

constexpr MapLiar kMapLiars[] = {
    {"MixesColumns", "ab->ab", "turns its columns round, which it calls parallel", SameShapeAsFirst,
     [](const KernelContext& context) {
       return EachOfMatrix(
           context, [](const float* x, int64_t, int64_t columns, int64_t row, int64_t column) {
             return x[row * columns + columns - 1 - column];
           });
     }},
    {"CountsRows", "ab->ab|b", "adds the number of rows, which it calls parallel", SameShapeAsFirst,
     [](const KernelContext& context) {
       return EachOfMatrix(
           context, [](const float* x, int64_t rows, int64_t columns, int64_t row, int64_t column) {
             return x[row * columns + column] + static_cast<float>(rows);
           });
     }},
    {"AddsRowBefore", "ab->a", "sums its columns and those of the row before", RowsAlone,
     [](const KernelContext& context) {
       const int64_t columns = context.inputs[0].shape[1];
       const auto* const x = context.inputs[0].as<float>();
       for (int64_t row = 0; row < context.inputs[0].shape[0]; ++row) {
         const int64_t from = std::max<int64_t>(row - 1, 0) * columns;
         context.outputs[0].as<float>()[row] =
             std::accumulate(x + from, x + (row + 1) * columns, 0.0f);
       }
       return absl::OkStatus();
     }},
};

ValueId DrawMapLiar(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(DType::kFloat32, d.AnyDims(2, 2))});
}

// Returns whether the check of maps sees it, and padded requests do.
bool SeesMapLiar(Obligations& obligations, const MapLiar& liar) {
  const absl::Status registered = RegisterOp({.domain = "obligations",
                                              .name = std::string(liar.name),
                                              .map = std::string(liar.map),
                                              .shape = liar.shape,
                                              .kernel = liar.kernel});
  REPRISE_CHECK(registered.ok());
  const std::string op = absl::StrCat("obligations.", liar.name);
  bool by_map = false, by_answers = false;
  for (int64_t i = 0; i < kPlantedDraws && !(by_map && by_answers); ++i) {
    const fuzz::TestCase test = DrawBareRow({{op, DrawMapLiar}}, op, static_cast<uint64_t>(i));
    if (test.graph.outputs().empty()) continue;
    by_map = by_map || !CheckMap(test, op, static_cast<uint64_t>(i)).wrong.empty();
    by_answers = by_answers || !obligations.Check(test, op).wrong.empty();
  }
  return by_map && by_answers;
}

ValueId DrawLiar(RowDraft& d, absl::string_view op) {
  return d.Add(op, {d.Data(DType::kFloat32, d.AnyDims(1, 4))});
}

bool SeesLiar(Obligations& obligations, const Liar& liar) {
  const absl::Status registered = RegisterOp({.domain = "obligations",
                                              .name = std::string(liar.name),
                                              .elementwise = true,
                                              .shape = SameShapeAsFirst,
                                              .kernel = liar.kernel});
  REPRISE_CHECK(registered.ok());
  const std::string op = absl::StrCat("obligations.", liar.name);
  for (int64_t i = 0; i < kPlantedDraws; ++i) {
    const fuzz::TestCase test = DrawBareRow({{op, DrawLiar}}, op, static_cast<uint64_t>(i));
    if (!test.graph.outputs().empty() && !obligations.Check(test, op).wrong.empty()) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> UnseenPlantedFaults() {
  std::vector<std::string> unseen;
  std::map<Rules, std::vector<std::string>> rules;
  for (const OpRow& row : AllOps()) {
    if (row.axis == ops::UnknownAxis || row.axis == ops::KnownAxis) continue;
    rules[RulesOf(row)].emplace_back(row.name);
  }
  Obligations obligations(DetectIsa());
  for (const auto& [rule, ops] : rules) {
    bool seen = KeepsApart(rule);
    for (int64_t i = 0; i < kPlantedDraws && !seen; ++i) {
      const std::string& op = ops[static_cast<size_t>(i) % ops.size()];
      const fuzz::TestCase test = DrawBareRow(CasesOf(op), op, static_cast<uint64_t>(i));
      seen = !test.graph.outputs().empty() && obligations.SeesBlindPadding(test);
    }
    if (!seen)
      unseen.push_back(
          absl::StrCat("the rule of ", absl::StrJoin(ops, ", "), " lets everything pass"));
  }
  for (const Liar& liar : kLiars) {
    if (!SeesLiar(obligations, liar)) {
      unseen.push_back(absl::StrCat("an op that says it is elementwise ", liar.what));
    }
  }
  for (const MapLiar& liar : kMapLiars) {
    if (!SeesMapLiar(obligations, liar)) {
      unseen.push_back(absl::StrCat("an op with the map ", liar.map, " that ", liar.what));
    }
  }
  return unseen;
}

}  // namespace reprise::obligations

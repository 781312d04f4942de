// The op table: every op that a graph may hold, one row each.
#include <cstddef>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/host_op.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/op_rows.h"

namespace reprise {
namespace {

// The two halves of the rows, in one order.
struct Table {
  std::vector<OpRow> rows;
  std::vector<OpFacts> facts;
};

const Table& TheTable() {
  static const auto* const table = [] {
    auto* joined = new Table;
    for (const auto part :
         {ops::ElementwiseRows(), ops::MovementRows(), ops::LayerRows(), ops::ModelRows()}) {
      for (const OpEntry& entry : part) {
        joined->rows.push_back(entry.row);
        joined->facts.push_back(entry.facts);
      }
    }
    return joined;
  }();
  return *table;
}

}  // namespace

absl::Span<const OpRow> AllOps() { return TheTable().rows; }

const OpFacts& FactsOf(const OpRow& row) {
  const Table& table = TheTable();
  const std::ptrdiff_t index = &row - table.rows.data();
  if (index < 0 || static_cast<size_t>(index) >= table.facts.size()) {
    const OpFacts* facts = FactsOfRegistered(row);
    REPRISE_CHECK(facts != nullptr);
    return *facts;
  }
  return table.facts[static_cast<size_t>(index)];
}

const OpFacts& FactsOf(absl::string_view op) {
  static constexpr OpFacts kNothing;
  const OpRow* row = FindOp(op);
  return row == nullptr ? kNothing : FactsOf(*row);
}

}  // namespace reprise

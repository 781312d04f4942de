// The matrix of ops by facts that `reprise check --ops` prints.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace reprise::cli {

// The facts of one op, by the columns of OpColumns(); "-" where a fact is missing that would
// make models with the op faster, "" where there is nothing to know.
struct OpMatrixRow {
  absl::string_view op;
  std::vector<std::string> facts;
};

// A column: its heading, and the substitute for an op that lacks the fact.
struct OpColumn {
  absl::string_view name;
  absl::string_view without;
};
const std::vector<OpColumn>& OpColumns();

// Returns one row for each op of the table, in its order.
std::vector<OpMatrixRow> OpMatrix();

// Returns the matrix as text, and below it the ops that miss each fact.
std::string OpMatrixText();

}  // namespace reprise::cli

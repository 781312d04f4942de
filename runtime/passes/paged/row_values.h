// RowValues: values that depend on the length of the past alone, computed for each token from its
// position.
//
// While tokens are rows of a batch with one past, such a value is one for all of them. Each token
// has a past of its own in the end, as long as its position: the nodes that compute the value run
// over positions instead, for all tokens side by side.
//
// Ownership: borrows the graph. Threads: pure.
#pragma once

#include <optional>
#include <vector>

#include "runtime/base/hash_map.h"
#include "runtime/passes/paged/past_values.h"
#include "runtime/passes/paged/whole_tables.h"

namespace reprise {

class RowValues {
 public:
  // `positions`: i64[tokens].
  RowValues(Graph& graph, ValueId positions, PastValues& values, WholeTables& tables)
      : graph_(graph), positions_(positions), values_(values), tables_(tables) {}

  // `value`, which depends on the past, with tokens as the first of `rank` dims. kNone where that
  // cannot be computed.
  ValueId At(ValueId value, size_t rank);
  // Returns the positions that the smallest table has of which elements were looked up each by
  // itself; 0: there was none.
  int64_t positions_of_tables() const { return positions_of_tables_; }

 private:
  // Dims of one token, after the tokens' dim. `has_batch`: the value that it stands for has the
  // tokens' dim as well, as rows that are alike.
  struct Rows {
    ValueId value = kNone;
    Shape shape;
    bool has_batch = false;
  };

  std::optional<Rows> Of(ValueId value);
  ValueId Compute(const Node& node, const Rows& result);
  ValueId FromPositions(const Tensor& like, double offset, const Shape& shape);
  ValueId Elementwise(const Node& node, const Rows& result);
  ValueId Expanded(const Node& node, const Rows& result);
  ValueId Transposed(const Node& node, const Rows& result);
  ValueId Joined(const Node& node, const Rows& result);
  ValueId Cut(const Node& node, const Rows& result);
  ValueId Piece(const Node& split, ValueId piece, const Rows& result);
  ValueId LookedUp(const Node& node, const Rows& result);
  ValueId LookedUpEach(const Node& node, const Rows& result);
  ValueId Summed(const Node& node, const Rows& result);
  ValueId Counted(const Node& node, const Rows& result);

  // `rows` with as many dims of a token as `rank`; kNone where it has more.
  ValueId Fit(const Rows& rows, size_t rank);
  // Returns an operand of an elementwise op whose results have the dims of `result`.
  ValueId Operand(ValueId value, const Rows& result);
  // Returns the same, and it has a row for each token.
  ValueId OwnRows(ValueId value, const Rows& result);
  // Returns the rows of `table` along `dim` at `places` [tokens, ...], as a value of `rank` dims
  // after the tokens' dim.
  ValueId Gathered(ValueId table, int64_t dim, ValueId places, size_t rank);

  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId Ints(const std::vector<int64_t>& values);
  ValueId Reshaped(ValueId value, const Shape& shape);

  Graph& graph_;
  const ValueId positions_;
  PastValues& values_;
  WholeTables& tables_;
  HashMap<ValueId, std::optional<Rows>> rows_;
  int64_t positions_of_tables_ = 0;
};

}  // namespace reprise

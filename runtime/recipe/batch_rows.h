// MarkBatchRows: which values of a specialised graph are one block a row of the batch axis.
//
// A recipe is compiled for a whole batch, a replay often carries fewer rows. Where every block of a
// value belongs to one row, in order, a kernel may compute the first blocks alone and leave the
// others unwritten: nothing reads them. The ops tell which values these are: the inputs are such
// blocks, and most ops keep them apart. A value whose rows some op may have mixed, or will mix, is
// not marked, and is computed whole.
#pragma once

#include <cstdint>

#include "runtime/graph/node.h"

namespace reprise {

// Sets Value::batch_rows to `rows` where that holds. `rows` is the size of the batch axis, which is
// dim 0 of every non-scalar input.
void MarkBatchRows(Graph& graph, int64_t rows);
// Does the same with `segments` for values with a row for each segment of packed requests, in a
// graph whose tokens are marked: inputs with a dim 0 of that size, and results of ops that turn
// tokens into segments. `segments` differs from every other number of rows.
void MarkSegments(Graph& graph, int64_t segments);

}  // namespace reprise

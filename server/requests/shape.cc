#include "server/requests/shape.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/requests/shape_columns.h"

namespace reprise {

absl::Status MeasureShape(const InferRequest& asked, RequestState& state) {
  const Model& model = *state.model.servable->model;
  model.SpreadRows(state.request);
  ASSIGN_OR_RETURN(RequestShape shape, model.Measure(state.request));
  state.rows = shape.rows;
  const int64_t tokens = shape.tokens;
  state.columns = ShapeOf(model, shape);
  if (const int64_t most = model.MaxRows(shape); shape.rows > most) {
    for (Request& piece : SplitRows(model, state.request, shape.rows, most)) {
      ASSIGN_OR_RETURN(RequestShape piece_shape, model.Measure(piece));
      piece_shape.buckets = shape.buckets;  // that it was split for
      state.parts.push_back({std::move(piece), std::move(piece_shape)});
    }
  } else {
    state.parts.push_back({std::move(state.request), std::move(shape)});
  }
  for (RequestPart& part : state.parts) {
    part.shape.on_miss = asked.on_miss;
    part.shape.id = std::string(asked.id);
    if (!BatchPlan(model).TryAdd(part.shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has ", state.rows, " rows of ", tokens / state.rows,
                       " tokens: no bucket holds it, and reprise.overflow is reject"));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise

#include "server/requests/shape.h"

#include <string>
#include <utility>

#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/requests/shape_columns.h"

namespace reprise {

absl::Status MeasureShape(const InferRequest& asked, RequestState& state) {
  const Model& model = *state.model.servable->model;
  model.SpreadRows(state.request);
  ASSIGN_OR_RETURN(RequestShape shape, model.Measure(state.request));
  shape.on_miss = asked.on_miss;
  shape.id = ShownText(asked.id, kShownIdBytes);
  state.rows = shape.rows;
  state.bytes_in = shape.bytes;
  state.columns = ShapeOf(model, shape);
  if (const int64_t most = model.MaxRows(shape); shape.rows > most) {
    state.parts = SplitRows(model, state.request, shape, most);
  } else {
    state.parts.push_back({std::move(state.request), std::move(shape)});
  }
  for (const RequestPart& part : state.parts) RETURN_IF_ERROR(model.Admits(part.shape));
  return absl::OkStatus();
}

}  // namespace reprise

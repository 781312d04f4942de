// PredictJson: the JSON of the V1 protocol, as TensorFlow Serving and KServe have it <-> the core's
// views.
//
//   {"instances": [[1, 2], [3, 4]]}                  rows of the only input
//   {"instances": [{"a": 1, "b": 2}, ...]}           rows of inputs by their names
//   {"inputs": {"a": [[1, 2], [3, 4]], "b": ...}}    whole inputs by their names
//   {"inputs": [[1, 2], [3, 4]]}                     the only input, whole
//
// The lists have the shape, the model the data type; a text may be {"b64": "..."}. A model that
// makes tokens of texts has them as its input `text`. Rows are answered as {"predictions": [...]},
// named inputs as {"outputs": ...}; the only input, whole, as both, since KServe's clients read the
// one and TensorFlow Serving's the other. Each of several outputs is a member of an object.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/json/json_writer.h"
#include "server/http/http_message.h"
#include "server/repository/repository.h"
#include "server/requests/inference.h"
#include "server/requests/request.h"

namespace simdjson::dom {
class array;
class element;
class object;
}  // namespace simdjson::dom

namespace reprise {

// One request, from its body to its answer.
class PredictJson {
 public:
  // `repository` outlives the object.
  explicit PredictJson(const Repository& repository) : repository_(repository) {}

  // Decodes as InferJson::Decode; INVALID_ARGUMENT also for instances of different shapes.
  absl::Status Decode(const HttpRequest& request, absl::string_view model,
                      absl::string_view version, MemoryBudget& parsing);

  // Points into the request and into this.
  InferRequest& view() { return view_; }

  // Returns the reply to a call whose result is OK; an error for rows where an output has none.
  HttpReply Encode(const InferResult& result) const;

 private:
  absl::Status DecodeRows(const simdjson::dom::array& rows, const Signature& signature);
  absl::Status DecodeInputs(const simdjson::dom::element& inputs, const Signature& signature);
  // Adds an input of these values: its rows, or the whole of it. `name` empty: the only one.
  absl::Status AddInput(absl::string_view name, absl::Span<const simdjson::dom::element> values,
                        bool is_rows, const Signature& signature);
  // Returns how many rows each output has: as many as were sent. Errors: an output has others.
  absl::StatusOr<int64_t> RowsOf(const InferResult& result) const;
  // Writes the member `predictions`.
  static void WriteRows(const InferResult& result, int64_t rows, JsonWriter& json);
  // Writes the member `outputs`.
  static void WriteOutputs(const InferResult& result, JsonWriter& json);

  const Repository& repository_;
  InferRequest view_;
  std::optional<int64_t> rows_;                 // the number of `instances`
  bool predictions_ = false, outputs_ = false;  // the members of the answer
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<std::string> names_, tensors_;
};

}  // namespace reprise

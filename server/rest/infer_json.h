// InferJson: the JSON of an inference <-> the core's views.
//
// A body is JSON alone, or JSON of as many bytes as the header Inference-Header-Content-Length says
// and after it the bytes of tensors whose parameter `binary_data_size` says how many (Triton's
// extension "binary tensor data"). An output is answered as bytes where its parameter `binary_data`
// says so, or the request's `binary_data_output` and not its own.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/json/json_writer.h"
#include "server/http/http_message.h"
#include "server/requests/inference.h"
#include "server/requests/request.h"

namespace simdjson::dom {
class array;
class object;
}  // namespace simdjson::dom

namespace reprise {

// One request, from its body to its answer.
class InferJson {
 public:
  // `model` and `version` come from the path; `parsing` is the budget that all requests share for
  // parsed JSON, none of which is held afterwards. Arguments must outlive the object. Errors:
  // INVALID_ARGUMENT and UNIMPLEMENTED, naming the field, and errors of JsonDocument.
  absl::Status Decode(const HttpRequest& request, absl::string_view model,
                      absl::string_view version, MemoryBudget& parsing);

  // Points into the request and into this.
  InferRequest& view() { return view_; }

  // Returns the reply to a call whose result is OK.
  HttpReply Encode(const InferResult& result) const;

 private:
  absl::Status DecodeTensors(const simdjson::dom::object& root, absl::string_view binary);
  absl::Status DecodeInputs(const simdjson::dom::array& inputs, absl::string_view& binary);
  absl::Status DecodeTensor(const simdjson::dom::object& json, absl::string_view& binary,
                            InputView& tensor);
  absl::Status DecodeOutputs(const simdjson::dom::object& root);
  // Writes an output's object; its elements are appended to `binary` where these were asked for.
  void WriteOutput(const InferResult& result, size_t index, JsonWriter& json,
                   std::string& binary) const;
  // Returns the same text, owned by this.
  absl::string_view Keep(std::string_view text);

  InferRequest view_;
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<std::string> texts_, tensors_;
  bool binary_ = false;               // default of outputs that do not say
  std::vector<bool> binary_outputs_;  // indices are as in view_.outputs
};

}  // namespace reprise

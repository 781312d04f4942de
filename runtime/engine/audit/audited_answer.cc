#include "runtime/engine/audit/audited_answer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"

namespace reprise {
namespace {

// `bytes` stays where it is while the tensor is used.
Tensor TensorOf(DType dtype, const Shape& shape, const std::string& bytes) {
  return Tensor(dtype, shape, std::shared_ptr<const void>(bytes.data(), [](const void*) {}))
      .Aligned();
}

// Writes the elements from `next` on, which advances, as nested lists of `shape` from dim `d` on.
void WriteNested(const std::vector<std::string>& elements, const Shape& shape, size_t d,
                 size_t& next, JsonWriter& json) {
  if (d == shape.size()) return json.Value(RawJson{elements[next++]});
  json.Array([&] {
    for (int64_t i = 0; i < shape[d]; ++i) WriteNested(elements, shape, d + 1, next, json);
  });
}

absl::StatusOr<std::vector<std::string>> ElementTexts(const Tensor& tensor) {
  std::vector<std::string> texts;
  if (!IsFloating(tensor.dtype())) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, tensor.ToInt64s());
    for (const int64_t number : numbers) {
      texts.push_back(tensor.dtype() == DType::kBool ? (number != 0 ? "true" : "false")
                                                     : absl::StrCat(number));
    }
    return texts;
  }
  for (const double number : tensor.ToDoubles()) {
    if (!std::isfinite(number))
      return absl::UnimplementedError("JSON has no infinities and no NaN");
    texts.push_back(FormatText("%.17g", number));
  }
  return texts;
}

}  // namespace

AuditedAnswer::AuditedAnswer(const Model& model, const RequestShape& shape, const Request& request,
                             const Response& response, std::string served)
    : shape_(shape), served_(std::move(served)), outputs_(response.outputs) {
  bytes_.reserve(request.inputs.size());
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InputTensor& input = request.inputs[i];
    const size_t size = NumElements(input.shape) * DTypeSize(model.inputs()[i].dtype);
    bytes_.emplace_back(static_cast<const char*>(input.data), input.data == nullptr ? 0 : size);
    request_.inputs.push_back(
        {.shape = input.shape, .data = input.data == nullptr ? nullptr : bytes_.back().data()});
  }
  request_.wanted_outputs = request.wanted_outputs;
  request_.texts = request.texts;
}

int64_t AuditedAnswer::BytesOf(const Model& model, const Request& request,
                               const Response& response) {
  int64_t bytes = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    bytes += NumElements(request.inputs[i].shape) *
             static_cast<int64_t>(DTypeSize(model.inputs()[i].dtype));
  }
  for (const OutputTensor& output : response.outputs) {
    bytes += static_cast<int64_t>(output.bytes.size());
  }
  return bytes;
}

std::string AuditedAnswer::SizesText(const Model& model) const {
  return model.BindingText(model.KeyAt({.sizes = shape_.sizes}, shape_, nullptr).binding);
}

Difference AuditedAnswer::DifferenceTo(const Model& model, const Response& exact) const {
  std::vector<Tensor> answer, right;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const DType dtype = model.outputs()[i].dtype;
    answer.push_back(TensorOf(dtype, outputs_[i].shape, outputs_[i].bytes));
    right.push_back(TensorOf(dtype, exact.outputs[i].shape, exact.outputs[i].bytes));
  }
  return DifferenceOf(answer, right);
}

absl::StatusOr<std::string> AuditedAnswer::RequestJson(const Model& model) const {
  if (request_.texts != nullptr) return absl::UnimplementedError("an input holds texts");
  JsonWriter json;
  RETURN_IF_ERROR(json.Object([&]() -> absl::Status {
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const ModelIo& input = model.inputs()[i];
      if (request_.inputs[i].data == nullptr) continue;
      const Tensor tensor = TensorOf(input.dtype, request_.inputs[i].shape, bytes_[i]);
      ASSIGN_OR_RETURN(const std::vector<std::string> elements, ElementTexts(tensor));
      json.Key(input.name);
      size_t next = 0;
      WriteNested(elements, tensor.shape(), 0, next, json);
    }
    return absl::OkStatus();
  }));
  return json.Take();
}

}  // namespace reprise

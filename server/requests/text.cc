#include "server/requests/text.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/tensor.h"
#include "server/pictures/picture_model.h"
#include "server/wire/text_tensor.h"

namespace reprise {
namespace {

bool AnyText(absl::Span<const ModelIo> ios) {
  return std::any_of(ios.begin(), ios.end(), [](const ModelIo& io) { return io.text; });
}

// Returns the texts of `view`, whose shape was checked, as places that live as long as `texts`.
absl::StatusOr<const void*> PlacesOf(const InputView& view, RequestTexts& texts) {
  std::vector<int64_t>& places = texts.AddPlaces();
  const absl::Status decoded = DecodeTexts(view.bytes, NumElements(view.shape), texts, places);
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("input \"", view.name, "\" of shape ",
                                                   ShapeToString(view.shape), " and datatype ",
                                                   view.datatype, ": ", decoded.message()));
  }
  static constexpr int64_t kNothing = 0;
  return places.empty() ? &kNothing : places.data();
}

absl::Status WriteTexts(const RequestTexts& texts, InferResult& result) {
  // No message holds more, and a short text may be answered many times.
  int64_t left = std::numeric_limits<int32_t>::max();
  for (const int position : result.outputs) {
    const ModelIo& io = result.model.servable->signature.outputs[position];
    if (!io.text) continue;
    std::string& bytes = result.response.outputs[position].bytes;
    const absl::Status written = EncodeTexts(texts, left, bytes);
    if (!written.ok()) {
      return absl::Status(written.code(),
                          absl::StrCat("output \"", io.name, "\": ", written.message()));
    }
    left -= static_cast<int64_t>(bytes.size());
  }
  return absl::OkStatus();
}

std::string LabelOf(const Servable& servable, int position, size_t index) {
  const auto named = servable.output_labels.find(position);
  if (named != servable.output_labels.end()) {
    return index < named->second.size() ? named->second[index] : "";
  }
  if (servable.pictures == nullptr) return "";
  const std::vector<std::string>& labels = servable.pictures->labels();
  return index < labels.size() ? labels[index] : "";
}

void AppendClass(const std::string& text, std::string& bytes) {
  const auto size = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += text;
}

// Turns one output into its classes; `position` is its place among the model's.
void Classify(const Servable& servable, int position, int64_t most, OutputTensor& output) {
  const DType dtype = servable.signature.outputs[position].dtype;
  const std::vector<double> values = Tensor::Make(dtype, output.shape, [&](void* data) {
                                       std::memcpy(data, output.bytes.data(), output.bytes.size());
                                     }).ToDoubles();
  const bool batches = servable.signature.config.max_batch_size() > 0 && !output.shape.empty();
  const auto rows = static_cast<size_t>(batches ? output.shape[0] : 1);
  const size_t classes = rows == 0 ? 0 : values.size() / rows;
  const size_t kept = std::min(classes, static_cast<size_t>(most));
  std::string bytes;
  std::vector<size_t> order(classes);
  for (size_t row = 0; row < rows; ++row) {
    const double* const own = values.data() + row * classes;
    std::iota(order.begin(), order.end(), size_t{0});
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
        [&](size_t a, size_t b) { return own[a] != own[b] ? own[a] > own[b] : a < b; });
    for (size_t i = 0; i < kept; ++i) {
      const std::string label = LabelOf(servable, position, order[i]);
      AppendClass(absl::StrCat(FormatText("%f", own[order[i]]), ":", order[i],
                               label.empty() ? "" : ":", label),
                  bytes);
    }
  }
  const auto count = static_cast<int64_t>(kept);
  output.shape = batches ? Shape{output.shape[0], count} : Shape{count};
  output.bytes = std::move(bytes);
}

}  // namespace

absl::Status PlaceTexts(absl::Span<const ModelIo> inputs, const InferRequest& asked,
                        RequestTexts& texts, Request& request) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].text || request.inputs[i].data == nullptr) continue;
    const auto view = std::find_if(
        asked.inputs.begin(), asked.inputs.end(),
        [&](const InputView& sent) { return sent.name == absl::string_view(inputs[i].name); });
    ASSIGN_OR_RETURN(request.inputs[i].data, PlacesOf(*view, texts));
  }
  return absl::OkStatus();
}

absl::Status ReadTexts(const InferRequest& asked, RequestState& state) {
  const Signature& signature = state.model.servable->signature;
  const bool answers_text = AnyText(signature.outputs);
  if (!answers_text && !AnyText(signature.inputs)) return absl::OkStatus();
  const auto texts = std::make_shared<RequestTexts>(state.model.servable->model->vocabulary());
  state.request.texts = texts;
  RETURN_IF_ERROR(PlaceTexts(signature.inputs, asked, *texts, state.request));
  if (answers_text) {
    state.on_answer.push_back([texts](InferResult& result) { return WriteTexts(*texts, result); });
  }
  return absl::OkStatus();
}

absl::Status ClassifyOutputs(const InferRequest& asked, RequestState& state) {
  if (asked.classes.empty()) return absl::OkStatus();
  const std::vector<ModelIo>& outputs = state.model.servable->signature.outputs;
  for (size_t i = 0; i < asked.classes.size(); ++i) {
    const ModelIo& io = outputs[state.outputs[i]];
    if (!asked.classes[i].has_value()) continue;
    if (*asked.classes[i] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("output \"", io.name,
                                                     "\": parameter classification is ",
                                                     *asked.classes[i], ", expected at least 1"));
    }
    if (!io.text) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output \"", io.name, "\": parameter classification, of an output of texts"));
  }
  state.on_answer.push_back([classes = asked.classes](InferResult& result) {
    result.classified.resize(result.outputs.size());
    for (size_t i = 0; i < classes.size(); ++i) {
      if (!classes[i].has_value()) continue;
      const int position = result.outputs[i];
      Classify(*result.model.servable, position, *classes[i], result.response.outputs[position]);
      result.classified[i] = true;
    }
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

}  // namespace reprise

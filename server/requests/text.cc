#include "server/requests/text.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/wire/text_tensor.h"

namespace reprise {
namespace {

bool AnyText(absl::Span<const ModelIo> ios) {
  return std::any_of(ios.begin(), ios.end(), [](const ModelIo& io) { return io.text; });
}

// The texts of `view`, whose shape was checked, as places that live as long as `texts`.
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

}  // namespace reprise

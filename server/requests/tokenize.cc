#include "server/requests/tokenize.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "server/requests/admit.h"
#include "server/wire/text_tensor.h"

namespace reprise {
namespace {

// The memory that the request of ids points into, until it is answered.
struct TokenizedRequest {
  std::vector<TextTokens> rows;
  std::vector<std::string> bytes;
  std::vector<int64_t> shape;
  int64_t tokenizer_ns = 0;
};

absl::Status CheckView(const InputView& view) {
  const bool fits = view.datatype == "BYTES" &&
                    (view.shape.size() == 1 || (view.shape.size() == 2 && view.shape[1] == 1)) &&
                    view.shape[0] > 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input \"", view.name, "\" has shape ", ShapeToString(view.shape),
                   " and datatype ", view.datatype, ", the model wants BYTES of shape [rows]"));
}

// The texts of a BYTES tensor.
absl::StatusOr<std::vector<absl::string_view>> TextsOf(const InputView& view) {
  RETURN_IF_ERROR(CheckView(view));
  RequestTexts texts(std::make_shared<const Vocabulary>());
  std::vector<int64_t> places;
  const absl::Status decoded = DecodeTexts(view.bytes, view.shape[0], texts, places);
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", view.name, "\": ", decoded.message()));
  }
  std::vector<absl::string_view> views;
  for (const int64_t place : places) views.push_back(texts.Text(place).value_or(""));
  return views;
}

absl::Status Tokenize(const TextModel& model, const InferRequest& asked, const InputView& view,
                      ModelEvents* events, TokenizedRequest& made) {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> texts, TextsOf(view));
  int64_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t start_ns = SteadyClock().NowNs();
    const TextQuestion question = {.go_on = [deadline_ns = asked.deadline_ns] {
      return deadline_ns == kNoDeadline || SteadyClock().NowNs() < deadline_ns
                 ? absl::OkStatus()
                 : absl::DeadlineExceededError("the deadline has passed");
    }};
    auto tokens = model.Encode(absl::StrCat(model.package().default_prompt, texts[i]), std::nullopt,
                               question);
    if (!tokens.ok()) {
      return absl::Status(tokens.status().code(), absl::StrCat("input \"", view.name, "\", row ", i,
                                                               ": ", tokens.status().message()));
    }
    const int64_t took_ns = SteadyClock().NowNs() - start_ns;
    made.tokenizer_ns += took_ns;
    if (events != nullptr) {
      events->OnText({.tokens = std::ssize(tokens->ids),
                      .truncated = tokens->truncated(),
                      .tokenizer_ns = took_ns});
    }
    longest = std::max<int64_t>(longest, std::ssize(tokens->ids));
    made.rows.push_back(*std::move(tokens));
  }
  made.shape = {static_cast<int64_t>(texts.size()), longest};
  std::vector<const TextTokens*> rows;
  for (const TextTokens& row : made.rows) rows.push_back(&row);
  for (const TokenInput& input : model.inputs()) {
    made.bytes.push_back(TextModel::Values(input, rows, longest));
  }
  return absl::OkStatus();
}

}  // namespace

bool SendsTexts(const InferRequest& asked) {
  return asked.inputs.size() == 1 && asked.inputs[0].name == kTextInput;
}

absl::Status AdmitTexts(const Repository& repository, const TextModels& texts,
                        const InferRequest& asked, RequestState& state) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(asked.model, asked.version));
  const std::vector<ModelIo>& inputs = found.servable->signature.inputs;
  const auto own = [](const ModelIo& input) { return input.name == kTextInput; };
  if (std::any_of(inputs.begin(), inputs.end(), own)) return Admit(repository, asked, state);
  ASSIGN_OR_RETURN(const auto model, texts.Find(*found.servable->model));
  RETURN_IF_ERROR(model->Offers(TextTask::kNone));
  const auto made = std::make_shared<TokenizedRequest>();
  RETURN_IF_ERROR(Tokenize(*model, asked, asked.inputs[0], found.version->events.get(), *made));
  state.tokenizer_ns = made->tokenizer_ns;
  InferRequest ids = asked;
  ids.inputs.clear();
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    const TokenInput& input = model->inputs()[i];
    ids.inputs.push_back({.name = input.name,
                          .datatype = input.dtype == DType::kInt32 ? "INT32" : "INT64",
                          .shape = made->shape,
                          .bytes = made->bytes[i]});
  }
  RETURN_IF_ERROR(Admit(repository, ids, state));
  // Held until the answer: the request points into it.
  state.on_answer.push_back([made](InferResult& result) {
    for (const TextTokens& row : made->rows) result.text_tokens += std::ssize(row.ids);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

}  // namespace reprise

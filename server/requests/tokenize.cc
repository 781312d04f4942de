#include "server/requests/tokenize.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/admit.h"
#include "server/requests/token_inputs.h"
#include "server/wire/text_tensor.h"

namespace reprise {
namespace {

// Owns the values that the request of ids points into, until it is answered.
struct TokenizedRequest {
  std::vector<TextTokens> rows;
  TokenInputs inputs;
};

absl::Status CheckView(const InputView& view) {
  const bool fits = view.datatype == "BYTES" &&
                    (view.shape.size() == 1 || (view.shape.size() == 2 && view.shape[1] == 1)) &&
                    view.shape[0] > 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input \"", view.name, "\" has shape ", ShapeToString(view.shape),
                   " and datatype ", view.datatype, ", the model expects BYTES of shape [rows]"));
}

// Returns the texts of a BYTES tensor.
absl::StatusOr<std::vector<absl::string_view>> TextsOf(const InputView& view) {
  RETURN_IF_ERROR(CheckView(view));
  RETURN_IF_ERROR(CheckTextCount(view.shape[0]));
  return TextsOfInput(view.name, view.bytes, view.shape[0]);
}

absl::Status Tokenize(const TextEncoding& encoding, const InputView& view, TokenizedRequest& made,
                      int64_t& took_ns) {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> texts, TextsOf(view));
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<EncodedText> encoded = EncodeText(encoding, {.text = texts[i]});
    if (!encoded.ok()) {
      return absl::Status(
          encoded.status().code(),
          absl::StrCat("input \"", view.name, "\", row ", i, ": ", encoded.status().message()));
    }
    took_ns += encoded->took_ns;
    made.rows.push_back(std::move(encoded->tokens));
  }
  return absl::OkStatus();
}

// Lets the request begin again on a thread of texts.
absl::Status WaitForThread(TextThreads& threads, RequestState& state) {
  state.to_text_threads = true;
  if (threads.Run(state.resumer->Resume(state))) {
    state.waits = true;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(threads.GoOn());
  return NoMemoryStatus("a request of texts", 0);
}

}  // namespace

bool SendsTexts(const InferRequest& asked) {
  return asked.inputs.size() == 1 && asked.inputs[0].name == kTextInput;
}

absl::Status AdmitTexts(const Repository& repository, const TextModels& texts, TextThreads* threads,
                        const InferRequest& asked, RequestState& state) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(asked.model, asked.version));
  const std::vector<ModelIo>& inputs = found.servable->signature.inputs;
  const auto own = [](const ModelIo& input) { return input.name == kTextInput; };
  if (std::any_of(inputs.begin(), inputs.end(), own)) return Admit(repository, asked, state);
  ASSIGN_OR_RETURN(const auto model, texts.Find(*found.servable->model));
  RETURN_IF_ERROR(model->Offers(TextTask::kNone));
  RETURN_IF_ERROR(CheckView(asked.inputs[0]));
  if (threads != nullptr && state.resumer != nullptr && !asked.on_text_threads) {
    return WaitForThread(*threads, state);
  }
  const auto go_on = [threads, &asked]() -> absl::Status {
    if (threads != nullptr) RETURN_IF_ERROR(threads->GoOn());
    RETURN_IF_ERROR(CheckStays(asked));
    if (asked.deadline_ns == kNoDeadline || SteadyClock().NowNs() < asked.deadline_ns) {
      return absl::OkStatus();
    }
    return absl::DeadlineExceededError("the deadline has passed");
  };
  const TextEncoding encoding = {.model = *model,
                                 .threads = threads,
                                 .events = found.version->events.get(),
                                 .trace = asked.trace.get(),
                                 .prompt = model->package().default_prompt,
                                 .question = {.go_on = go_on}};
  const auto made = std::make_shared<TokenizedRequest>();
  RETURN_IF_ERROR(Tokenize(encoding, asked.inputs[0], *made, state.tokenizer_ns));
  std::vector<const TextTokens*> rows;
  for (const TextTokens& row : made->rows) rows.push_back(&row);
  InferRequest ids = asked;
  made->inputs.Fill(*model, rows, ids);
  RETURN_IF_ERROR(Admit(repository, ids, state));
  // Held until the answer: the request points into it.
  state.on_answer.push_back([made](InferResult& result) {
    for (const TextTokens& row : made->rows) result.text_tokens += std::ssize(row.ids);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

}  // namespace reprise

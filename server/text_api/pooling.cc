#include "server/text_api/pooling.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/json_text.h"
#include "server/text_api/predict.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// Returns the members in front of "data" that both answers have.
std::string BeginPooledList(const char* kind, const TextResult& result) {
  return absl::StrCat("{\"id\":\"", kind, "-", std::time(nullptr),
                      "\",\"object\":\"list\",\"created\":", std::time(nullptr),
                      ",\"model\":", Quoted(result.model.version->name), ",\"data\":[");
}

std::string EndPooledList(const TextResult& result) {
  return absl::StrCat("],\"usage\":{\"prompt_tokens\":", result.tokens,
                      ",\"total_tokens\":", result.tokens,
                      ",\"completion_tokens\":0,\"prompt_tokens_details\":null}}");
}

absl::StatusOr<TextRequest> ReadPoolingInput(const Fields& fields, std::string model,
                                             TextTask task) {
  TextRequest request{.model = std::move(model), .task = task};
  ASSIGN_OR_RETURN(request.items, fields.WantItems("input"));
  if (request.items.empty()) return absl::InvalidArgumentError("\"input\" is an empty list");
  ASSIGN_OR_RETURN(request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(request.prompt_name, fields.Text("prompt_name", ""));
  return request;
}

// The kind of pooling that a request of vLLM names must be the model's own. It may be left out.
absl::Status CheckPoolingTask(const Fields& fields, const TextModel& text) {
  ASSIGN_OR_RETURN(const std::string task, fields.Text("task", ""));
  if (task.empty()) return absl::OkStatus();
  constexpr std::pair<const char*, TextTask> kTasks[] = {{"embed", TextTask::kEmbed},
                                                         {"classify", TextTask::kClassify},
                                                         {"score", TextTask::kRank},
                                                         {"token_embed", TextTask::kTokens},
                                                         {"token_classify", TextTask::kTag}};
  for (const auto& [name, known] : kTasks) {
    if (task == name) return text.Offers(known);
  }
  return absl::OutOfRangeError(
      absl::StrCat("\"task\" is \"", task,
                   "\", it must be embed, classify, score, token_embed or token_classify"));
}

absl::StatusOr<std::string> WriteClasses(const TextResult& result) {
  std::string json = BeginPooledList("classify", result);
  const std::vector<std::string>& labels = result.text->package().labels;
  for (size_t i = 0; i < result.answers.size(); ++i) {
    const std::vector<float> shares = LabelShares(*result.text, result.answers[i].values);
    RETURN_IF_ERROR(CheckFinite(shares, i, result.text->offer().output));
    const auto best =
        static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    absl::StrAppend(&json, i > 0 ? "," : "", "{\"index\":", i, ",\"label\":",
                    Quoted(best < labels.size() ? labels[best] : absl::StrCat("LABEL_", best)),
                    ",\"probs\":");
    AppendNumbers(shares, json);
    absl::StrAppend(&json, ",\"num_classes\":", shares.size(), "}");
  }
  return json + EndPooledList(result);
}

absl::StatusOr<AskedTexts> ReadClassify(const Fields& fields, const TextApiContext& context,
                                        const std::string& named) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(const std::string model, ChooseModel(context, named, TextTask::kClassify));
  ASSIGN_OR_RETURN(asked.request, ReadPoolingInput(fields, model, TextTask::kClassify));
  asked.write = WriteClasses;
  return asked;
}

// The numbers of text number `index`: a vector, scores of labels, or a row of these a token.
void AppendPooled(const TextResult& result, size_t index, bool base64, std::string& json) {
  const TextAnswer& answer = result.answers[index];
  const TextTask task = result.text->offer().task;
  if (base64) return AppendBase64(answer.values, json);
  if (task != TextTask::kTag && task != TextTask::kTokens) {
    return AppendNumbers(answer.values, json);
  }
  AppendRows(answer.values, answer.rows, json);
}

absl::StatusOr<AskedTexts> ReadPooling(const Fields& fields, const TextApiContext& context,
                                       const std::string& named) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(const std::string model, ChooseModel(context, named, TextTask::kNone));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, model));
  RETURN_IF_ERROR(CheckPoolingTask(fields, *text));
  ASSIGN_OR_RETURN(asked.request, ReadPoolingInput(fields, model, text->offer().task));
  ASSIGN_OR_RETURN(const std::string format, fields.Text("encoding_format", "float"));
  if (format != "float" && format != "base64") {
    return absl::OutOfRangeError(
        absl::StrCat("\"encoding_format\" is \"", format, "\", it must be float or base64"));
  }
  asked.is_dense = true;
  asked.write = [base64 =
                     format == "base64"](const TextResult& result) -> absl::StatusOr<std::string> {
    std::string json = BeginPooledList("pool", result);
    for (size_t i = 0; i < result.answers.size(); ++i) {
      RETURN_IF_ERROR(CheckFinite(result.answers[i].values, i, result.text->offer().output));
      absl::StrAppend(&json, i > 0 ? "," : "", "{\"index\":", i,
                      ",\"object\":\"pooling\",\"data\":");
      AppendPooled(result, i, base64, json);
      json += '}';
    }
    return json + EndPooledList(result);
  };
  return asked;
}

}  // namespace

TextFace Classifications() { return {.errors = ErrorForm::kOpenAi, .read = ReadClassify}; }
TextFace Poolings() { return {.errors = ErrorForm::kOpenAi, .read = ReadPooling}; }

}  // namespace reprise

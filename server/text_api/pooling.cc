#include "server/text_api/pooling.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/predict.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// Returns the answer, whose "data" has an element for each text: `write` writes the members of text
// number `index` into it.
template <typename Write>
absl::StatusOr<std::string> WritePooledList(const char* kind, const TextResult& result,
                                            const Write& write) {
  JsonWriter json;
  RETURN_IF_ERROR(json.Object([&]() -> absl::Status {
    json.Member("id", absl::StrCat(kind, "-", std::time(nullptr)));
    json.Member("object", "list");
    json.Member("created", std::time(nullptr));
    json.Member("model", result.model.version->name);
    json.Key("data");
    const auto write_element = [&](size_t i) {
      return json.Object([&] {
        json.Member("index", i);
        return write(i, json);
      });
    };
    RETURN_IF_ERROR(WriteAnswers(result, write_element, json));
    json.Object("usage", [&] {
      json.Member("prompt_tokens", result.tokens);
      json.Member("total_tokens", result.tokens);
      json.Member("completion_tokens", 0);
      json.Member("prompt_tokens_details", nullptr);
    });
    return absl::OkStatus();
  }));
  return json.Take();
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

// Checks that the kind of pooling that a request of vLLM may name is the model's own.
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
  const std::vector<std::string>& labels = result.text->package().labels;
  return WritePooledList("classify", result, [&](size_t i, JsonWriter& json) -> absl::Status {
    const std::vector<float> shares = LabelShares(*result.text, result.answers[i].values);
    RETURN_IF_ERROR(CheckFinite(shares, i, result.text->offer().output));
    const auto best =
        static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    json.Member("label", best < labels.size() ? labels[best] : absl::StrCat("LABEL_", best));
    json.List("probs", shares);
    json.Member("num_classes", shares.size());
    return absl::OkStatus();
  });
}

absl::StatusOr<AskedTexts> ReadClassify(const Fields& fields, const TextApiContext& context,
                                        const std::string& named) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(const std::string model, ChooseModel(context, named, TextTask::kClassify));
  ASSIGN_OR_RETURN(asked.request, ReadPoolingInput(fields, model, TextTask::kClassify));
  asked.write = WriteClasses;
  return asked;
}

// Writes the numbers of an answer: a vector, scores of labels, or a row of these a token.
void WritePooled(const TextAnswer& answer, TextTask task, bool base64, JsonWriter& json) {
  if (base64) return WriteBase64(answer.values, json);
  if (task != TextTask::kTag && task != TextTask::kTokens) return json.List(answer.values);
  WriteRows(answer.values, answer.rows, json);
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
    return WritePooledList("pool", result, [&](size_t i, JsonWriter& json) -> absl::Status {
      RETURN_IF_ERROR(CheckFinite(result.answers[i].values, i, result.text->offer().output));
      json.Member("object", "pooling");
      json.Key("data");
      WritePooled(result.answers[i], result.text->offer().task, base64, json);
      return absl::OkStatus();
    });
  };
  return asked;
}

}  // namespace

TextFace Classifications() { return {.errors = ErrorForm::kOpenAi, .read = ReadClassify}; }
TextFace Poolings() { return {.errors = ErrorForm::kOpenAi, .read = ReadPooling}; }

}  // namespace reprise

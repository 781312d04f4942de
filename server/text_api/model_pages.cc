#include "server/text_api/model_pages.h"

#include <ctime>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/requests/queue.h"
#include "server/text_api/json_text.h"

namespace reprise {
namespace {

HttpReply Json(std::string body) {
  return {.content_type = "application/json", .body = std::move(body)};
}

std::string ModelObject(const TextApiContext& context, const Repository::Found& found) {
  std::string json = absl::StrCat("{\"id\":", Quoted(found.version->name),
                                  ",\"object\":\"model\",\"created\":0,\"owned_by\":\"reprise\"");
  const auto text = context.texts.models->Find(*found.servable->model);
  if (found.servable->generation != nullptr) {
    absl::StrAppend(&json, ",\"task\":\"generation\",\"max_model_len\":",
                    found.servable->generation->generator().context(),
                    ",\"chats\":", text.ok() && (*text)->Chat(false).ok() ? "true" : "false");
  } else if (text.ok()) {
    absl::StrAppend(&json, ",\"task\":\"", TextTaskName((*text)->offer().task), "\"");
    if ((*text)->max_tokens() > 0) {
      absl::StrAppend(&json, ",\"max_model_len\":", (*text)->max_tokens());
    }
  }
  return json + "}";
}

// {"0": "NEGATIVE", ...} and the other way.
std::string LabelMaps(const TextModel& text) {
  std::string by_id, by_label;
  const std::vector<std::string>& labels = text.package().labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&by_id, i > 0 ? "," : "", "\"", i, "\":", Quoted(labels[i]));
    absl::StrAppend(&by_label, i > 0 ? "," : "", Quoted(labels[i]), ":", i);
  }
  return absl::StrCat("{\"id2label\":{", by_id, "},\"label2id\":{", by_label, "}}");
}

std::string TypeObject(const TextModel& text) {
  const TextOffer& offer = text.offer();
  switch (offer.task) {
    case TextTask::kEmbed: {
      const std::string pooling = PoolingNames(offer.head.steps, "+");
      return absl::StrCat("{\"embedding\":{\"pooling\":\"", pooling.empty() ? "model" : pooling,
                          "\"}}");
    }
    case TextTask::kSparse:
      return R"({"embedding":{"pooling":"splade"}})";
    case TextTask::kTokens:
      return R"({"embedding":{"pooling":"none"}})";
    case TextTask::kRank:
      return absl::StrCat("{\"reranker\":", LabelMaps(text), "}");
    case TextTask::kClassify:
    case TextTask::kTag:
      return absl::StrCat("{\"classifier\":", LabelMaps(text), "}");
    case TextTask::kNone:
      break;
  }
  return "null";
}

// Returns the members that clients of text-embeddings-inference read, each with the bound that
// holds here. `max_client_batch_size` is left out: the bytes of a request bound its texts, not
// their number.
absl::StatusOr<std::string> Info(const TextApiContext& context, const std::string& named) {
  ASSIGN_OR_RETURN(const std::string model, ChooseModel(context, named, TextTask::kNone));
  ASSIGN_OR_RETURN(const Repository::Found found, context.texts.repository->Find(model, ""));
  ASSIGN_OR_RETURN(const auto text, context.texts.models->Find(*found.servable->model));
  return absl::StrCat(
      "{\"model_id\":", Quoted(model), ",\"model_sha\":null,\"model_dtype\":\"",
      found.servable->settings.precision == Precision::kExact  ? "float32"
      : found.servable->settings.precision == Precision::kBf16 ? "bfloat16"
                                                               : "int8",
      "\",\"model_type\":", TypeObject(*text),
      ",\"max_concurrent_requests\":", MostWaiting(found.servable->settings),
      ",\"max_input_length\":", text->max_tokens(),
      ",\"max_batch_tokens\":", found.servable->settings.max_batch_tokens,
      ",\"max_batch_requests\":null,\"auto_truncate\":false,\"tokenization_workers\":",
      context.texts.threads->count(), ",\"version\":", Quoted(context.version),
      ",\"sha\":null,\"docker_label\":null}");
}

}  // namespace

HttpReply ModelsPage(const TextApiContext& context) {
  std::string models;
  for (const Repository::Listed& listed : context.texts.repository->List()) {
    if (listed.state != ModelState::kReady || listed.servable == nullptr) continue;
    // The newest version stands for the name.
    const auto found = context.texts.repository->Find(listed.version->name, "");
    if (!found.ok() || found->version != listed.version) continue;
    absl::StrAppend(&models, models.empty() ? "" : ",", ModelObject(context, *found));
  }
  return Json(absl::StrCat("{\"object\":\"list\",\"data\":[", models, "]}"));
}

HttpReply ModelPage(const TextApiContext& context, const std::string& model) {
  const auto found = context.texts.repository->Find(model, "");
  if (!found.ok()) return TextErrorReply(ErrorForm::kOpenAi, found.status());
  return Json(ModelObject(context, *found));
}

HttpReply InfoPage(const TextApiContext& context, const std::string& model) {
  absl::StatusOr<std::string> info = Info(context, model);
  if (!info.ok()) return TextErrorReply(ErrorForm::kInference, info.status());
  return Json(*std::move(info));
}

}  // namespace reprise

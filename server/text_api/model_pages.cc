#include "server/text_api/model_pages.h"

#include <ctime>

#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"
#include "server/requests/queue.h"
#include "server/tasks/offers.h"

namespace reprise {
namespace {

HttpReply Json(std::string body) {
  return {.content_type = "application/json", .body = std::move(body)};
}

void WriteModel(const TextApiContext& context, const Repository::Found& found, JsonWriter& json) {
  const Offers offers = OffersOf(*found.servable, *context.texts.models);
  json.Object([&] {
    json.Member("id", found.version->name);
    json.Member("object", "model");
    json.Member("name", found.version->name);  // these two as KServe's V1 protocol has them
    json.Member("ready", true);
    json.Member("created", 0);
    json.Member("owned_by", "reprise");
    json.Member("task", offers.task);
    if (offers.context > 0) json.Member("max_model_len", offers.context);
    if (found.servable->generation != nullptr) {
      json.Member("texts", offers.texts);
      json.Member("chats", offers.chats);
    }
    if (offers.pictures) json.Member("pictures", true);
  });
}

// Writes {"0": "NEGATIVE", ...} and the other way.
void WriteLabelMaps(const TextModel& text, JsonWriter& json) {
  const std::vector<std::string>& labels = text.package().labels;
  json.Object("id2label", [&] {
    for (size_t i = 0; i < labels.size(); ++i) json.Member(std::to_string(i), labels[i]);
  });
  json.Object("label2id", [&] {
    for (size_t i = 0; i < labels.size(); ++i) json.Member(labels[i], i);
  });
}

void WriteType(const TextModel& text, JsonWriter& json) {
  const TextOffer& offer = text.offer();
  const auto pooled = [&](const std::string& pooling) {
    json.Object([&] { json.Object("embedding", [&] { json.Member("pooling", pooling); }); });
  };
  const auto labelled = [&](const char* kind) {
    json.Object([&] { json.Object(kind, [&] { WriteLabelMaps(text, json); }); });
  };
  switch (offer.task) {
    case TextTask::kEmbed: {
      const std::string pooling = PoolingNames(offer.head.steps, "+");
      return pooled(pooling.empty() ? "model" : pooling);
    }
    case TextTask::kSparse:
      return pooled("splade");
    case TextTask::kTokens:
      return pooled("none");
    case TextTask::kRank:
      return labelled("reranker");
    case TextTask::kClassify:
    case TextTask::kTag:
      return labelled("classifier");
    case TextTask::kNone:
      return json.Value(nullptr);
  }
}

// Returns the members that clients of text-embeddings-inference read, each with the bound that
// holds here. `max_client_batch_size` is left out: the bytes of a request bound its texts, not
// their number.
absl::StatusOr<std::string> Info(const TextApiContext& context, const std::string& named) {
  ASSIGN_OR_RETURN(const std::string model, ChooseModel(context, named, TextTask::kNone));
  ASSIGN_OR_RETURN(const Repository::Found found, context.texts.repository->Find(model, ""));
  ASSIGN_OR_RETURN(const auto text, context.texts.models->Find(*found.servable->model));
  const ModelSettings& settings = found.servable->settings;
  JsonWriter json;
  json.Object([&] {
    json.Member("model_id", model);
    json.Member("model_sha", nullptr);
    json.Member("model_dtype", settings.precision == Precision::kExact  ? "float32"
                               : settings.precision == Precision::kBf16 ? "bfloat16"
                                                                        : "int8");
    json.Key("model_type");
    WriteType(*text, json);
    json.Member("max_concurrent_requests", MostWaiting(settings));
    json.Member("max_input_length", text->max_tokens());
    json.Member("max_batch_tokens", settings.max_batch_tokens);
    json.Member("max_batch_requests", nullptr);
    json.Member("auto_truncate", false);
    json.Member("tokenization_workers", context.texts.threads->count());
    json.Member("version", context.version);
    json.Member("sha", nullptr);
    json.Member("docker_label", nullptr);
    const auto& generation = found.servable->generation;
    if (generation != nullptr && generation->generator().shard().ranks > 1) {
      const Shard shard = generation->generator().shard();
      json.Member("rank", int64_t{shard.rank});
      json.Member("ranks", int64_t{shard.ranks});
      json.Member("parallelism", ParallelismName(shard.parallelism));
    }
  });
  return json.Take();
}

}  // namespace

HttpReply ModelsPage(const TextApiContext& context) {
  std::vector<Repository::Found> models;
  for (const Repository::Listed& listed : context.texts.repository->List()) {
    if (listed.state != ModelState::kReady || listed.servable == nullptr) continue;
    // The newest version stands for the name.
    const auto found = context.texts.repository->Find(listed.version->name, "");
    if (found.ok() && found->version == listed.version) models.push_back(*found);
  }
  JsonWriter json;
  json.Object([&] {
    json.Member("object", "list");
    json.Array("data", [&] {
      for (const Repository::Found& found : models) WriteModel(context, found, json);
    });
    // As KServe's V1 protocol lists them.
    json.Array("models", [&] {
      for (const Repository::Found& found : models) json.Value(found.version->name);
    });
  });
  return Json(json.Take());
}

HttpReply ModelPage(const TextApiContext& context, const std::string& model) {
  const auto found = context.texts.repository->Find(model, "");
  if (!found.ok()) return TextErrorReply(ErrorForm::kOpenAi, found.status());
  JsonWriter json;
  WriteModel(context, *found, json);
  return Json(json.Take());
}

HttpReply InfoPage(const TextApiContext& context, const std::string& model) {
  absl::StatusOr<std::string> info = Info(context, model);
  if (!info.ok()) return TextErrorReply(ErrorForm::kInference, info.status());
  return Json(*std::move(info));
}

}  // namespace reprise

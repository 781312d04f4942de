#include "server/rest/rest_api.h"

#include <simdjson.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/message_json.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/metrics/compilations.h"
#include "server/config/model_config.h"
#include "server/metrics/compilations.h"
#include "server/protocol/answers.h"
#include "server/protocol/load_parameters.h"
#include "server/rest/generate_call.h"
#include "server/rest/infer_call.h"
#include "server/rest/json_document.h"
#include "server/rest/region_routes.h"
#include "server/rest/reply.h"
#include "server/rest/settings_routes.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using simdjson::dom::element;
using simdjson::dom::object;

std::string PathPart(const PathParts& parts, const char* name) {
  const auto it = parts.find(name);
  return it == parts.end() ? "" : it->second;
}

HttpReply MessageReply(const google::protobuf::Message& message) {
  return {.content_type = "application/json", .body = MessageToJson(message)};
}

// `message` is a StatusOr of one.
template <typename Message>
HttpReply MessageOrError(const Message& message) {
  return message.ok() ? MessageReply(*message) : StatusReply(message.status());
}

// Adds `answer(model, version)`, which returns a reply, below the paths of models and versions.
template <typename Answer>
void AddOfModel(const std::string& suffix, Right right, Answer answer, Router& router) {
  for (const char* path : {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"}) {
    router.Add("GET", path + suffix, right,
               [answer](const Exchange& exchange, const PathParts& parts) {
                 exchange->Answer(
                     [answer, model = PathPart(parts, "model"),
                      version = PathPart(parts, "version")] { return answer(model, version); });
               });
  }
}

// Answers with how something ended.
Repository::Done AnswerWith(const Exchange& exchange) {
  return [exchange](const absl::Status& status) {
    exchange->Answer([status] { return status.ok() ? HttpReply{} : StatusReply(status); });
  };
}

// Returns the config that a request to load has in its parameters; nullopt: the file's counts.
absl::StatusOr<std::optional<std::string>> LoadConfig(absl::string_view body,
                                                      MemoryBudget& parsing) {
  std::optional<std::string> config;
  if (body.empty()) return config;
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root, document.ParseObject(body));
  object parameters;
  element member;
  if (root.at_key("parameters").get(member) != simdjson::SUCCESS || member.is_null()) return config;
  if (member.get(parameters) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"parameters\" must be an object");
  }
  for (const auto& [name, value] : parameters) {
    RETURN_IF_ERROR(CheckLoadParameter(std::string(name)));
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", std::string(name), " must be a string"));
    }
    ASSIGN_OR_RETURN(config, ConfigTextFromJson(std::string(text)));
  }
  return config;
}

// {"name": M, "ready": true}, as KServe's client reads it; where not, with the reason and its
// status.
HttpReply ModelReadyReply(const absl::Status& answers, const std::string& model) {
  nlohmann::ordered_json body = {{"name", model}, {"ready", answers.ok()}};
  if (!answers.ok()) body["error"] = ErrorMessage(answers);
  return {.status = ErrorRowOf(answers.code()).http,
          .content_type = "application/json",
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

HttpReply CompilationsReply(const Repository& repository, const Engine& engine,
                            Catalogue& catalogue, const std::string& model,
                            const std::string& version) {
  const auto found = repository.Find(model, version);
  if (!found.ok()) return StatusReply(found.status());
  const std::string& number = found->version->version;
  const ModelCounts counts = CountsOf(model, number, catalogue.Model(model, number));
  return {.content_type = "application/json",
          .body = CompilationsText(counts, engine.misses().Since(0, model))};
}

// Returns whether the body of a request for the index is {"ready": true}, which leaves out models
// that are not ready. Other bodies ask for nothing, whatever they are.
bool WantsReadyOnly(absl::string_view body, MemoryBudget& parsing) {
  JsonDocument document(parsing);
  const auto json = document.Parse(body);
  bool ready = false;
  return json.ok() && json->is_object() && json->at_key("ready").get(ready) == simdjson::SUCCESS &&
         ready;
}

// Answers with a list, not an object that has one.
HttpReply IndexReply(const Repository& repository, bool only_ready) {
  std::string list;
  const auto index = AnswerRepositoryIndex(repository, only_ready);
  for (const auto& model : index.models()) {
    absl::StrAppend(&list, list.empty() ? "" : ",", MessageToJson(model));
  }
  return {.content_type = "application/json", .body = absl::StrCat("[", list, "]")};
}

}  // namespace

void AddRestApi(const RestContext& context, Router& router) {
  Repository* const repository = context.repository;
  const ServerState* const state = context.state;
  MemoryBudget* const parsing = context.parsing;
  router.Add("GET", "/v2", Right::kInfer,
             [version = context.version](const Exchange& exchange, const PathParts&) {
               exchange->Answer([version] { return MessageReply(AnswerServerMetadata(version)); });
             });
  const auto metadata = [=](const std::string& model, const std::string& version) {
    return MessageOrError(AnswerModelMetadata(*repository, model, version));
  };
  const auto ready = [=](const std::string& model, const std::string& version) {
    return ModelReadyReply(state->leaves() ? absl::UnavailableError("the server is stopping")
                                           : repository->Answers(model, version),
                           model);
  };
  const auto config = [=](const std::string& model, const std::string& version) {
    const auto answer = AnswerModelConfig(*repository, model, version);
    return answer.ok() ? MessageReply(answer->config()) : StatusReply(answer.status());
  };
  const auto stats = [=](const std::string& model, const std::string& version) {
    return MessageOrError(AnswerModelStatistics(*repository, model, version));
  };
  router.Add("GET", "/v2/models/stats", Right::kObserve,
             [=](const Exchange& exchange, const PathParts&) {
               exchange->Answer([=] { return stats("", ""); });
             });
  AddOfModel("", Right::kInfer, metadata, router);
  AddOfModel("/ready", Right::kNone, ready, router);
  AddOfModel("/config", Right::kInfer, config, router);
  AddOfModel("/stats", Right::kObserve, stats, router);
  router.Add(
      "POST", "/v2/repository/index", Right::kObserve,
      [=](const Exchange& exchange, const PathParts&) {
        exchange->Answer([=, only_ready = WantsReadyOnly(exchange->request().body, *parsing)] {
          return IndexReply(*repository, only_ready);
        });
      });
  AddOfModel(
      "/compilations", Right::kObserve,
      [=, engine = context.engine, catalogue = context.catalogue](const std::string& model,
                                                                  const std::string& version) {
        return CompilationsReply(*repository, *engine, *catalogue, model, version);
      },
      router);
  AddSettingsRoutes(context.log, repository, context.tracer, parsing, router);
  AddRegionRoutes(context.regions, *parsing, router);
  router.Add("POST", "/v2/repository/models/{model}/load", Right::kAdmin,
             [=](Exchange exchange, const PathParts& parts) {
               auto config = LoadConfig(exchange->request().body, *parsing);
               if (!config.ok()) return AnswerWith(exchange)(config.status());
               repository->Load(PathPart(parts, "model"), *std::move(config), AnswerWith(exchange));
             });
  router.Add("POST", "/v2/repository/models/{model}/unload", Right::kAdmin,
             [=](Exchange exchange, const PathParts& parts) {
               repository->Unload(PathPart(parts, "model"), AnswerWith(exchange));
             });
  for (const char* path : {"/v2/repository/models/{model}/weights",
                           "/v2/repository/models/{model}/versions/{version}/weights"}) {
    router.Add("POST", path, Right::kAdmin, [=](const Exchange& exchange, const PathParts& parts) {
      repository->LoadWeights(PathPart(parts, "model"), PathPart(parts, "version"),
                              std::make_shared<const std::string>(exchange->request().body),
                              AnswerWith(exchange));
    });
  }
  for (const auto& [name, change] :
       {std::pair("freeze", ModelChange::kFreeze), std::pair("thaw", ModelChange::kThaw),
        std::pair("sleep", ModelChange::kSleep), std::pair("wake", ModelChange::kWake)}) {
    // Without a model: all that are ready.
    for (const char* path : {"/v2/repository/models/{model}/", "/v2/repository/"}) {
      router.Add("POST", absl::StrCat(path, name), Right::kAdmin,
                 [=, change = change](const Exchange& exchange, const PathParts& parts) {
                   exchange->Answer([=, model = PathPart(parts, "model")] {
                     return MessageOrError(AnswerModelChange(*repository, model, "", change));
                   });
                 });
    }
  }
  for (const auto& [suffix, start] : {std::pair("/generate", &StartGenerateOverHttp),
                                      std::pair("/generate_stream", &StreamGenerateOverHttp)}) {
    for (const char* path : {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"}) {
      router.Add("POST", absl::StrCat(path, suffix), Right::kInfer,
                 [calls = context.tokens, inference = context.inference, parsing, start = start](
                     const Exchange& exchange, const PathParts& parts) {
                   start(*calls, *inference, *parsing, exchange, PathPart(parts, "model"),
                         PathPart(parts, "version"));
                 });
    }
  }
  for (const char* path :
       {"/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer"}) {
    router.Add(
        "POST", path, Right::kInfer,
        [inference = context.inference, parsing](const Exchange& exchange, const PathParts& parts) {
          StartInferOverHttp(*inference, *parsing, exchange, PathPart(parts, "model"),
                             PathPart(parts, "version"));
        });
  }
  for (const char* path :
       {"/v1/models/{model}:predict", "/v1/models/{model}/versions/{version}:predict"}) {
    router.Add(
        "POST", path, Right::kInfer,
        [=, inference = context.inference](const Exchange& exchange, const PathParts& parts) {
          StartPredictOverHttp(*inference, *repository, *parsing, exchange,
                               PathPart(parts, "model"), PathPart(parts, "version"));
        });
  }
}

}  // namespace reprise

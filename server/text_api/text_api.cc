#include "server/text_api/text_api.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/pictures/picture_model.h"
#include "server/tasks/offers.h"
#include "server/text_api/completions.h"
#include "server/text_api/embeddings.h"
#include "server/text_api/model_pages.h"
#include "server/text_api/openapi.h"
#include "server/text_api/pooling.h"
#include "server/text_api/predict.h"
#include "server/text_api/rerank.h"
#include "server/text_api/sparse.h"
#include "server/text_api/tokens.h"
#include "server/text_api/transcriptions.h"
#include "server/vision/vision_api.h"

namespace reprise {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;

// Answers one request for `model`, which is empty where the path names none.
using Answer = void (*)(const TextApiContext& context, Exchange exchange, const std::string& model);

template <TextFace (*face)()>
void Texts(const TextApiContext& context, Exchange exchange, const std::string& model) {
  static const TextFace kFace = face();
  ServeTexts(context, kFace, std::move(exchange), model);
}

void Models(const TextApiContext& context, Exchange exchange, const std::string&) {
  exchange->Answer([&context] { return ModelsPage(context); });
}

void OneModel(const TextApiContext& context, Exchange exchange, const std::string& model) {
  exchange->Answer([&context, model] { return ModelPage(context, model); });
}

void OneInfo(const TextApiContext& context, Exchange exchange, const std::string& model) {
  exchange->Answer([&context, model] { return InfoPage(context, model); });
}

// Returns whether the model is one of pictures or of sound, and answers such a request.
bool ServeHubFile(const TextApiContext& context, const Exchange& exchange,
                  const std::string& model) {
  if (model.empty()) return false;
  const auto found = context.texts.repository->Find(model, "");
  if (!found.ok()) return false;
  const Servable& servable = *found->servable;
  if (OffersOf(servable, *context.texts.models).task == absl::string_view("transcription")) {
    ServeHubSound(context, exchange, model);
    return true;
  }
  const PictureTask task =
      servable.pictures == nullptr ? PictureTask::kNone : servable.pictures->task();
  if (task != PictureTask::kClassify && task != PictureTask::kDetect) return false;
  const VisionContext vision = {.repository = context.texts.repository,
                                .inference = context.texts.inference,
                                .clock = context.texts.clock};
  ServeHubPicture(vision, *context.parsing, task, exchange, model);
  return true;
}

// Clients of the hub send texts, pictures and sound to the address of a model itself; the model's
// kind decides the task.
void Whatever(const TextApiContext& context, Exchange exchange, const std::string& model) {
  if (ServeHubFile(context, exchange, model)) return;
  const auto chosen = ChooseModel(context, model, TextTask::kNone);
  const auto text = chosen.ok() ? FindTextModel(context, *chosen)
                                : absl::StatusOr<std::shared_ptr<const TextModel>>(chosen.status());
  if (!text.ok()) {
    return exchange->Answer(
        [why = text.status()] { return TextErrorReply(ErrorForm::kInference, why); });
  }
  const bool pairs = absl::StrContains(exchange->request().body, "\"source_sentence\"");
  const TextTask task = (*text)->offer().task;
  if (task == TextTask::kSparse) {
    return Texts<SparseEmbeddings>(context, std::move(exchange), *chosen);
  }
  if (task == TextTask::kTokens) {
    return Texts<TokenEmbeddings>(context, std::move(exchange), *chosen);
  }
  if (task != TextTask::kEmbed) {
    return Texts<HubPredictions>(context, std::move(exchange), *chosen);
  }
  pairs ? Texts<Similarities>(context, std::move(exchange), *chosen)
        : Texts<PlainEmbeddings>(context, std::move(exchange), *chosen);
}

struct Route {
  RouteInfo info;
  Answer answer;
  bool of_model;  // is there a second time below /models/{model}
};

// THE table of paths that take texts.
constexpr Route kRoutes[] = {
    {{"GET", "/v1/models", "The models that are ready", "", "ModelList"}, Models, false},
    {{"GET", "/v1/models/{model}", "One of them", "", "Model"}, OneModel, false},
    {{"POST", "/v1/embeddings", "Vectors of texts, as OpenAI has it", "EmbeddingsRequest",
      "EmbeddingsResponse"},
     Texts<OpenAiEmbeddings>,
     true},
    {{"POST", "/v1/completions", "Texts that go on, as OpenAI has it", "CompletionRequest",
      "CompletionResponse"},
     ServeCompletions,
     true},
    {{"POST", "/v1/chat/completions", "The answer in a conversation, as OpenAI has it",
      "ChatRequest", "ChatResponse"},
     ServeChat,
     true},
    {{"POST", "/v1/completions/render", "The tokens of the prompts of completions, as vLLM has it",
      "CompletionRequest", "RenderResponses"},
     ServeRender,
     true},
    {{"POST", "/v1/chat/completions/render", "The tokens of a conversation, as vLLM has it",
      "ChatRequest", "RenderResponse"},
     ServeChatRender,
     true},
    {{"POST", "/v1/audio/transcriptions", "The words of a sound, as OpenAI has it",
      "TranscriptionRequest", "TranscriptionResponse", "multipart/form-data"},
     ServeTranscriptions,
     true},
    {{"POST", "/v1/audio/translations", "The same in English", "TranscriptionRequest",
      "TranscriptionResponse", "multipart/form-data"},
     ServeTranslations,
     true},
    {{"POST", "/embed", "Vectors of texts, as text-embeddings-inference has it", "EmbedRequest",
      "EmbedResponse"},
     Texts<PlainEmbeddings>,
     true},
    {{"POST", "/embed_sparse", "Weights of the words of texts, as text-embeddings-inference has it",
      "EmbedSparseRequest", "EmbedSparseResponse"},
     Texts<SparseEmbeddings>,
     true},
    {{"POST", "/embed_all", "A vector for each token of texts, as text-embeddings-inference has it",
      "EmbedSparseRequest", "EmbedAllResponse"},
     Texts<TokenEmbeddings>,
     true},
    {{"POST", "/similarity", "Cosines of a text and others", "SimilarityRequest", "Numbers"},
     Texts<Similarities>,
     true},
    {{"POST", "/v1/embed", "Vectors of texts, as Cohere's first protocol has it",
      "CohereEmbedRequest", "FirstCohereEmbedResponse"},
     Texts<FirstCohereEmbeddings>,
     true},
    {{"POST", "/v2/embed", "Vectors of texts, as Cohere has it", "CohereEmbedRequest",
      "CohereEmbedResponse"},
     Texts<CohereEmbeddings>,
     true},
    {{"POST", "/rerank", "Documents by their relevance to a query", "RerankRequest",
      "RerankResponse"},
     Texts<Rerank>,
     true},
    {{"POST", "/v1/rerank", "Documents by their relevance to a query", "RerankRequest",
      "RerankResponse"},
     Texts<Rerank>,
     true},
    {{"POST", "/v2/rerank", "Documents by their relevance to a query", "RerankRequest",
      "RerankResponse"},
     Texts<Rerank>,
     true},
    {{"POST", "/score", "Scores of pairs of texts", "ScoreRequest", "ScoreResponse"},
     Texts<Scores>,
     true},
    {{"POST", "/v1/score", "Scores of pairs of texts", "ScoreRequest", "ScoreResponse"},
     Texts<Scores>,
     true},
    {{"POST", "/predict", "Labels of texts, or of their tokens", "PredictRequest",
      "PredictResponse"},
     Texts<Predictions>,
     true},
    {{"POST", "/classify", "Labels of texts, as vLLM has it", "ClassifyRequest",
      "ClassifyResponse"},
     Texts<Classifications>,
     true},
    {{"POST", "/v1/classify", "Labels of texts, as vLLM has it", "ClassifyRequest",
      "ClassifyResponse"},
     Texts<Classifications>,
     true},
    {{"POST", "/pooling",
      "The model's results for texts: vectors, scores, a row a token, as vLLM has it",
      "PoolingRequest", "PoolingResponse"},
     Texts<Poolings>,
     true},
    {{"POST", "/tokenize", "The tokens of a text", "TokenizeRequest", "TokenizeResponse"},
     ServeTokenize,
     true},
    {{"POST", "/detokenize", "The text of tokens", "DetokenizeRequest", "DetokenizeResponse"},
     ServeDetokenize,
     true},
    {{"POST", "/decode", "The text of tokens", "DetokenizeRequest", "DetokenizeResponse"},
     ServeDetokenize,
     true},
    {{"GET", "/info", "The model's tasks with texts", "", "Info"}, OneInfo, true},
    {{"POST", "/", "The model's own task: vectors, similarities, labels, boxes or transcripts",
      "HubRequest", "HubResponse"},
     Whatever,
     true},
};

// "/models/{model}/embed"; of "/" "/models/{model}".
std::string PathOfModel(const RouteInfo& info) {
  return absl::StrCat("/models/{model}", std::string(info.path) == "/" ? "" : info.path);
}

}  // namespace

void AddTextApi(const TextApiContext& given, Router& router) {
  const auto context = std::make_shared<const TextApiContext>(given);
  for (const Route& route : kRoutes) {
    const auto handler = [context, answer = route.answer](Exchange exchange,
                                                          const PathParts& parts) {
      const auto model = parts.find("model");
      answer(*context, std::move(exchange), model == parts.end() ? "" : model->second);
    };
    router.Add(route.info.method, route.info.path, Right::kInfer, handler);
    if (!route.of_model) continue;
    router.Add(route.info.method, PathOfModel(route.info), Right::kInfer, handler);
  }
}

std::vector<RouteInfo> TextRoutes() {
  std::vector<RouteInfo> infos;
  for (const Route& route : kRoutes) infos.push_back(route.info);
  return infos;
}

}  // namespace reprise

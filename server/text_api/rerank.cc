#include "server/text_api/rerank.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

// Returns whether the model compares texts by the vectors that it has of each.
bool ComparesVectors(TextTask task) {
  return task == TextTask::kEmbed || task == TextTask::kTokens || task == TextTask::kSparse;
}

// Returns a model of pairs where there is one, else one of late interaction, of vectors, of weights
// of words.
absl::StatusOr<std::string> ChooseRanker(const TextApiContext& context, const std::string& named) {
  auto ranker = ChooseModel(context, named, TextTask::kRank);
  if (ranker.ok() || !absl::IsFailedPrecondition(ranker.status())) return ranker;
  for (const TextTask task : {TextTask::kTokens, TextTask::kEmbed, TextTask::kSparse}) {
    auto other = ChooseModel(context, named, task);
    if (other.ok()) return other;
  }
  return ranker;
}

using SharedTexts = std::vector<SharedText>;

SharedTexts ShareAll(std::vector<std::string> texts) {
  SharedTexts shared;
  shared.reserve(texts.size());
  for (std::string& text : texts) shared.push_back(ShareText(std::move(text)));
  return shared;
}

// Returns the texts of the pairs, for the kind of the model: pairs as they are, or each text
// alone. A single first text is shared by all pairs.
absl::StatusOr<TextRequest> PairsRequest(const TextApiContext& context, const std::string& model,
                                         const SharedTexts& first, const SharedTexts& second) {
  TextRequest request;
  ASSIGN_OR_RETURN(request.model, ChooseRanker(context, model));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, request.model));
  const TextTask offered = text->offer().task;
  request.task = ComparesVectors(offered) ? offered : TextTask::kRank;
  request.items.reserve(first.size() + second.size());
  if (request.task != TextTask::kRank) {
    for (const SharedText& each : first) {
      request.items.push_back({.text = each, .is_query = true});
    }
    for (const SharedText& each : second) request.items.push_back({.text = each});
    return request;
  }
  for (size_t i = 0; i < second.size(); ++i) {
    request.items.push_back({.text = first.size() == 1 ? first[0] : first[i], .pair = second[i]});
  }
  return request;
}

// The query of a request, and the documents that it is asked of.
struct Ranking {
  SharedText query;
  SharedTexts documents;
};

absl::StatusOr<Ranking> ReadRanking(const Fields& fields, const char* documents) {
  ASSIGN_OR_RETURN(std::string query, fields.WantText("query"));
  ASSIGN_OR_RETURN(std::vector<std::string> texts, fields.WantTexts(documents));
  if (texts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", documents, "\" is an empty list"));
  }
  return Ranking{.query = ShareText(std::move(query)), .documents = ShareAll(std::move(texts))};
}

float Score(const TextResult& result, const TextAnswer& first, const TextAnswer& second) {
  const TextPackage& package = result.text->package();
  if (result.text->offer().task != TextTask::kTokens) {
    return Compare(package.similarity, first.values, second.values);
  }
  const int64_t width =
      first.rows == 0 ? 0 : static_cast<int64_t>(first.values.size()) / first.rows;
  return MaxSim(first.values, second.values, width, package.late && package.late->mean);
}

// Returns a score for each of the second texts; `raw`: as the model's output has it.
std::vector<float> PairScores(const TextResult& result, size_t first, bool raw) {
  std::vector<float> scores;
  const TextPackage& package = result.text->package();
  if (ComparesVectors(result.text->offer().task)) {
    for (size_t i = first; i < result.answers.size(); ++i) {
      const size_t other = first == 1 ? 0 : i - first;
      scores.push_back(Score(result, result.answers[other], result.answers[i]));
    }
    return scores;
  }
  const Activation activation =
      raw ? Activation::kIdentity : package.score_activation.value_or(Activation::kSigmoid);
  for (const TextAnswer& answer : result.answers) {
    scores.push_back(Activate(activation, answer.values.empty() ? 0 : answer.values[0]));
  }
  return scores;
}

absl::StatusOr<AskedTexts> ReadTexts(const Fields& fields, const TextApiContext& context,
                                     const std::string& model) {
  ASSIGN_OR_RETURN(Ranking ranking, ReadRanking(fields, "texts"));
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, PairsRequest(context, model, {ranking.query}, ranking.documents));
  ASSIGN_OR_RETURN(asked.request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(const bool raw, fields.Bool("raw_scores", false));
  ASSIGN_OR_RETURN(const bool return_text, fields.Bool("return_text", false));
  if (!return_text) ranking.documents.clear();
  asked.write = [raw, texts = std::move(ranking.documents)](const TextResult& result) {
    const std::vector<float> scores = PairScores(result, 1, raw);
    JsonWriter json;
    json.Array([&] {
      for (const size_t i : ByScore(scores)) {
        json.Object([&] {
          json.Member("index", i);
          json.Member("score", scores[i]);
          if (i < texts.size()) json.Member("text", *texts[i]);
        });
      }
    });
    return absl::StatusOr<std::string>(json.Take());
  };
  return asked;
}

std::string WriteCohere(const TextResult& result, const SharedTexts& texts, size_t most) {
  const std::vector<float> scores = PairScores(result, 1, /*raw=*/false);
  std::vector<size_t> best = ByScore(scores);
  best.resize(std::min(best.size(), most));
  JsonWriter json;
  json.Object([&] {
    json.Member("id", absl::StrCat("rerank-", std::time(nullptr)));
    json.Member("object", "list");
    json.Member("model", result.model.version->name);
    json.Array("results", [&] {
      for (const size_t i : best) {
        json.Object([&] {
          json.Member("index", i);
          json.Member("relevance_score", scores[i]);
          if (i < texts.size()) json.Object("document", [&] { json.Member("text", *texts[i]); });
        });
      }
    });
    WriteUsage(result.tokens, json);
    json.Object("meta", [&] {
      json.Object("api_version", [&] { json.Member("version", "1"); });
      json.Object("billed_units", [&] { json.Member("search_units", 1); });
    });
  });
  return json.Take();
}

absl::StatusOr<AskedTexts> ReadCohere(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  ASSIGN_OR_RETURN(Ranking ranking, ReadRanking(fields, "documents"));
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, PairsRequest(context, model, {ranking.query}, ranking.documents));
  ASSIGN_OR_RETURN(asked.request.truncation, fields.TruncationAsked());
  ASSIGN_OR_RETURN(const int64_t most, fields.Int("top_n", std::ssize(ranking.documents)));
  if (most < 1) return absl::InvalidArgumentError(absl::StrCat("\"top_n\" is ", most));
  ASSIGN_OR_RETURN(const bool return_documents, fields.Bool("return_documents", false));
  if (!return_documents) ranking.documents.clear();
  asked.write = [most, texts = std::move(ranking.documents)](const TextResult& result) {
    return absl::StatusOr<std::string>(WriteCohere(result, texts, static_cast<size_t>(most)));
  };
  return asked;
}

absl::StatusOr<AskedTexts> ReadScores(const Fields& fields, const TextApiContext& context,
                                      const std::string& model) {
  ASSIGN_OR_RETURN(std::vector<std::string> firsts, fields.WantTexts("text_1"));
  ASSIGN_OR_RETURN(std::vector<std::string> seconds, fields.WantTexts("text_2"));
  const SharedTexts first = ShareAll(std::move(firsts)), second = ShareAll(std::move(seconds));
  if (second.empty() || (first.size() != 1 && first.size() != second.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"text_1\" has ", first.size(), " texts, \"text_2\" has ", second.size(),
                     "; the first must have one, or the same number"));
  }
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request, PairsRequest(context, model, first, second));
  ASSIGN_OR_RETURN(asked.request.truncation, fields.TruncationAsked());
  asked.write = [count = first.size()](const TextResult& result) -> absl::StatusOr<std::string> {
    const std::vector<float> scores = PairScores(result, count, /*raw=*/false);
    for (size_t i = 0; i < scores.size(); ++i) {
      RETURN_IF_ERROR(CheckFinite({&scores[i], 1}, i, result.text->offer().output));
    }
    JsonWriter json;
    json.Object([&] {
      json.Member("id", absl::StrCat("score-", std::time(nullptr)));
      json.Member("object", "list");
      json.Member("created", std::time(nullptr));
      json.Member("model", result.model.version->name);
      json.Array("data", [&] {
        for (size_t i = 0; i < scores.size(); ++i) {
          json.Object([&] {
            json.Member("index", i);
            json.Member("object", "score");
            json.Member("score", scores[i]);
          });
        }
      });
      WriteUsage(result.tokens, json);
    });
    return json.Take();
  };
  return asked;
}

absl::StatusOr<AskedTexts> ReadAny(const Fields& fields, const TextApiContext& context,
                                   const std::string& model) {
  return fields.Has("texts") ? ReadTexts(fields, context, model)
                             : ReadCohere(fields, context, model);
}

}  // namespace

TextFace Rerank() { return {.errors = ErrorForm::kInferenceAndMessage, .read = ReadAny}; }
TextFace Scores() { return {.errors = ErrorForm::kOpenAi, .read = ReadScores}; }

}  // namespace reprise

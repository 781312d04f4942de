#include "server/text_api/predict.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/entities.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;

// Reads a text, or a list of one or two that are a pair.
absl::StatusOr<TextItem> ItemOf(const element& json) {
  std::string_view text;
  if (json.get(text) == SUCCESS) return TextItem{.text = ShareText(std::string(text))};
  array list;
  std::string_view pair;
  if (json.get(list) != SUCCESS || list.size() < 1 || list.size() > 2 ||
      list.at(0).get(text) != SUCCESS || (list.size() == 2 && list.at(1).get(pair) != SUCCESS)) {
    return absl::InvalidArgumentError("\"inputs\" must hold texts or pairs of texts");
  }
  TextItem item{.text = ShareText(std::string(text))};
  if (list.size() == 2) item.pair = ShareText(std::string(pair));
  return item;
}

// Reads a text; a list of texts, a pair where the model's client means one; a list of lists.
// `alone`: one answer.
absl::StatusOr<std::vector<TextItem>> ItemsOf(const element& inputs, bool tags, bool& alone) {
  std::vector<TextItem> items;
  array list;
  alone = inputs.is<std::string_view>();
  const bool is_list = inputs.get(list) == SUCCESS;
  const bool texts = is_list && list.size() > 0 && list.at(0).is<std::string_view>();
  // Two texts in a list are a pair, as text-embeddings-inference reads them; tags are of texts
  // alone.
  if (alone || (texts && !tags && list.size() <= 2)) {
    alone = true;
    ASSIGN_OR_RETURN(TextItem item, ItemOf(inputs));
    items.push_back(std::move(item));
    return items;
  }
  if (!is_list || list.size() == 0) {
    return absl::InvalidArgumentError("\"inputs\" must be a text or a list of texts");
  }
  RETURN_IF_ERROR(CheckTextCount(static_cast<int64_t>(list.size())));
  for (const element& each : list) {
    ASSIGN_OR_RETURN(TextItem item, ItemOf(each));
    items.push_back(std::move(item));
  }
  return items;
}

// Writes the labels of text number `index`.
absl::Status WriteScores(const TextModel& model, const TextAnswer& answer, size_t index, bool raw,
                         JsonWriter& json) {
  const std::vector<float> scores = raw ? answer.values : LabelShares(model, answer.values);
  // One label without a score leaves the order of the others.
  if (absl::c_none_of(scores, [](float score) { return std::isfinite(score); })) {
    RETURN_IF_ERROR(CheckFinite(scores, index, model.offer().output));
  }
  const std::vector<std::string>& labels = model.package().labels;
  json.Array([&] {
    for (const size_t i : ByScore(scores)) {
      json.Object([&] {
        json.Member("label", i < labels.size() ? labels[i] : absl::StrCat("LABEL_", i));
        json.Member("score", scores[i]);
      });
    }
  });
  return absl::OkStatus();
}

// Writes the entities of `text`, which has number `index`.
absl::Status WriteEntities(const TextModel& model, const TextAnswer& answer, size_t index,
                           absl::string_view text, Grouping grouping, JsonWriter& json) {
  ASSIGN_OR_RETURN(const std::vector<Entity> entities,
                   EntitiesOf(model, answer, index, text, grouping));
  const bool join = grouping != Grouping::kNone;
  json.Array([&] {
    for (const Entity& entity : entities) {
      json.Object([&] {
        json.Member(join ? "entity_group" : "entity", entity.label);
        json.Member("score", entity.score);
        if (!join) json.Member("index", entity.index);
        json.Member("word", entity.word);
        json.Member("start", entity.start);
        json.Member("end", entity.end);
      });
    }
  });
  return absl::OkStatus();
}

// Returns a model that labels texts or tokens, whichever of the two there is.
absl::StatusOr<std::string> ChooseLabeller(const TextApiContext& context,
                                           const std::string& named) {
  absl::StatusOr<std::string> model;
  for (const TextTask task : {TextTask::kClassify, TextTask::kTag, TextTask::kRank}) {
    model = ChooseModel(context, named, task);
    if (model.ok() || !absl::IsFailedPrecondition(model.status())) return model;
  }
  return absl::FailedPreconditionError("no model that is ready offers classification");
}

constexpr std::pair<const char*, Grouping> kGroupings[] = {{"none", Grouping::kNone},
                                                           {"simple", Grouping::kSimple},
                                                           {"first", Grouping::kFirst},
                                                           {"average", Grouping::kAverage},
                                                           {"max", Grouping::kMax}};

absl::StatusOr<Grouping> GroupingOf(const Fields& fields) {
  const absl::StatusOr<std::string> strategy = fields.Text("aggregation_strategy", "simple");
  // Whatever is wrong with it has one code.
  if (!strategy.ok()) return absl::OutOfRangeError(strategy.status().message());
  for (const auto& [name, grouping] : kGroupings) {
    if (*strategy == name) return grouping;
  }
  return absl::OutOfRangeError(absl::StrCat("\"aggregation_strategy\" is \"", *strategy,
                                            "\", it must be none, simple, first, average or max"));
}

absl::StatusOr<AskedTexts> ReadLabels(const Fields& fields, const TextApiContext& context,
                                      const std::string& named, bool of_hub) {
  AskedTexts asked;
  ASSIGN_OR_RETURN(asked.request.model, ChooseLabeller(context, named));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, asked.request.model));
  asked.request.task = text->offer().task;
  if (asked.request.task == TextTask::kEmbed || asked.request.task == TextTask::kNone) {
    return text->Offers(TextTask::kClassify);
  }
  const bool tags = asked.request.task == TextTask::kTag;
  const auto inputs = fields.Find("inputs");
  if (!inputs) return absl::InvalidArgumentError("\"inputs\" is missing");
  bool alone = false;
  ASSIGN_OR_RETURN(asked.request.items, ItemsOf(*inputs, tags, alone));
  // Clients of the hub send other options as "parameters".
  Fields options = fields;
  if (const auto nested = fields.Find("parameters")) {
    ASSIGN_OR_RETURN(options, Fields::Of(*nested));
  }
  ASSIGN_OR_RETURN(asked.request.truncation, options.TruncationAsked());
  ASSIGN_OR_RETURN(const bool raw, options.Bool("raw_scores", false));
  ASSIGN_OR_RETURN(const Grouping grouping, GroupingOf(options));
  asked.request.offsets = tags;
  if (of_hub && !tags) alone = false;
  std::vector<SharedText> texts;
  for (const TextItem& item : asked.request.items) {
    if (tags) texts.push_back(item.text);
  }
  asked.write = [tags, alone, raw, grouping, texts = std::move(texts)](
                    const TextResult& result) -> absl::StatusOr<std::string> {
    JsonWriter json;
    const auto write = [&](size_t i) {
      return tags ? WriteEntities(*result.text, result.answers[i], i,
                                  i < texts.size() ? *texts[i] : std::string(), grouping, json)
                  : WriteScores(*result.text, result.answers[i], i, raw, json);
    };
    // A text alone has its list alone.
    RETURN_IF_ERROR(alone ? write(0) : WriteAnswers(result, write, json));
    return json.Take();
  };
  return asked;
}

absl::StatusOr<AskedTexts> ReadPredict(const Fields& fields, const TextApiContext& context,
                                       const std::string& named) {
  return ReadLabels(fields, context, named, /*of_hub=*/false);
}

absl::StatusOr<AskedTexts> ReadHubPredict(const Fields& fields, const TextApiContext& context,
                                          const std::string& named) {
  return ReadLabels(fields, context, named, /*of_hub=*/true);
}

}  // namespace

std::vector<float> LabelShares(const TextModel& model, const std::vector<float>& scores) {
  if (model.package().regression) return scores;
  const std::optional<Activation>& said = model.package().score_activation;
  if (scores.size() != 1 && !model.package().multi_label && said != Activation::kSigmoid) {
    return Softmax(scores);
  }
  const Activation activation =
      scores.size() == 1 ? said.value_or(Activation::kSigmoid) : Activation::kSigmoid;
  std::vector<float> shares;
  shares.reserve(scores.size());
  for (const float score : scores) shares.push_back(Activate(activation, score));
  return shares;
}

TextFace Predictions() { return {.errors = ErrorForm::kInference, .read = ReadPredict}; }
TextFace HubPredictions() { return {.errors = ErrorForm::kInference, .read = ReadHubPredict}; }

}  // namespace reprise

#include "server/text_api/entities.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

constexpr char kOutside[] = "O";

struct Labelled {
  size_t token = 0;
  std::string label;
  float score = 0;
};

std::string LabelOf(const TextModel& model, size_t id) {
  const std::vector<std::string>& labels = model.package().labels;
  return id < labels.size() ? labels[id] : absl::StrCat("LABEL_", id);
}

std::vector<Labelled> LabelTokens(const TextModel& model, const TextAnswer& answer) {
  std::vector<Labelled> labelled;
  const size_t tokens = answer.tokens.ids.size();
  if (tokens == 0) return labelled;
  const size_t labels = answer.values.size() / tokens;
  for (size_t i = 0; i < tokens; ++i) {
    if (answer.tokens.special[i] || labels == 0) continue;
    const std::vector<float> shares =
        Softmax(absl::MakeConstSpan(answer.values).subspan(i * labels, labels));
    const size_t best = std::max_element(shares.begin(), shares.end()) - shares.begin();
    labelled.push_back({.token = i, .label = LabelOf(model, best), .score = shares[best]});
  }
  return labelled;
}

// "B-PER" begins one, "I-PER" goes on, "PER" goes on as well.
std::pair<bool, std::string> TagOf(const std::string& label) {
  if (absl::StartsWith(label, "B-")) return {true, label.substr(2)};
  if (absl::StartsWith(label, "I-")) return {false, label.substr(2)};
  return {false, label};
}

Entity Join(const TextModel& model, const TextAnswer& answer, const std::vector<Labelled>& run) {
  Entity entity{.label = run[0].label, .index = -1};
  if (const size_t dash = entity.label.find('-'); dash != std::string::npos) {
    entity.label = entity.label.substr(dash + 1);
  }
  std::vector<uint32_t> ids;
  double sum = 0;
  for (const Labelled& each : run) {
    sum += each.score;
    ids.push_back(answer.tokens.ids[each.token]);
  }
  entity.score = static_cast<float>(sum / static_cast<double>(run.size()));
  entity.word = model.tokenizer().Decode(ids, false).value_or("");
  entity.start = answer.tokens.offsets[run.front().token].first;
  entity.end = answer.tokens.offsets[run.back().token].second;
  return entity;
}

}  // namespace

std::vector<Entity> EntitiesOf(const TextModel& model, const TextAnswer& answer, bool join) {
  std::vector<Entity> entities;
  const std::vector<Labelled> labelled = LabelTokens(model, answer);
  if (!join) {
    for (const Labelled& each : labelled) {
      if (each.label == kOutside) continue;
      const auto [start, end] = answer.tokens.offsets[each.token];
      entities.push_back({.label = each.label,
                          .score = each.score,
                          .index = static_cast<int64_t>(each.token),
                          .word = model.tokenizer().Token(answer.tokens.ids[each.token]),
                          .start = start,
                          .end = end});
    }
    return entities;
  }
  std::vector<Labelled> run;
  const auto flush = [&] {
    if (!run.empty() && run[0].label != kOutside) entities.push_back(Join(model, answer, run));
    run.clear();
  };
  for (const Labelled& each : labelled) {
    const auto [begins, tag] = TagOf(each.label);
    if (!run.empty() && (begins || TagOf(run.back().label).second != tag)) flush();
    run.push_back(each);
  }
  flush();
  return entities;
}

}  // namespace reprise

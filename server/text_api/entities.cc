#include "server/text_api/entities.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/text_api/vectors.h"

namespace reprise {
namespace {

constexpr char kOutside[] = "O";

// A token, or a word of several, with its scores.
struct Labelled {
  size_t first = 0, last = 0;  // tokens, both included
  std::vector<float> shares;
  std::string label;
  float score = 0;
};

std::string LabelOf(const TextModel& model, size_t id) {
  const std::vector<std::string>& labels = model.package().labels;
  return id < labels.size() ? labels[id] : absl::StrCat("LABEL_", id);
}

void TakeBest(const TextModel& model, Labelled& labelled) {
  const auto best = std::max_element(labelled.shares.begin(), labelled.shares.end());
  labelled.label = LabelOf(model, best - labelled.shares.begin());
  labelled.score = *best;
}

std::vector<Labelled> LabelTokens(const TextModel& model, const TextAnswer& answer) {
  std::vector<Labelled> labelled;
  const size_t tokens = answer.tokens.ids.size();
  if (tokens == 0) return labelled;
  const size_t labels = answer.values.size() / tokens;
  for (size_t i = 0; i < tokens; ++i) {
    if (answer.tokens.special[i] || labels == 0) continue;
    labelled.push_back(
        {.first = i,
         .last = i,
         .shares = Softmax(absl::MakeConstSpan(answer.values).subspan(i * labels, labels))});
    TakeBest(model, labelled.back());
  }
  return labelled;
}

size_t CharsOf(absl::string_view text) {
  size_t chars = 0;
  for (const char c : text) chars += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
  return chars;
}

// Returns the characters [start, end) of `text`.
absl::string_view Slice(absl::string_view text, int64_t start, int64_t end) {
  size_t begin = text.size(), stop = text.size();
  int64_t chars = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) continue;
    if (chars == start) begin = at;
    if (chars++ == end) stop = at;
  }
  return text.substr(begin, stop - begin);
}

// `word` with the characters of the text in the place of each unknown token.
void NameUnknown(const TextModel& model, const TextAnswer& answer, absl::string_view text,
                 const std::vector<size_t>& tokens, std::string& word) {
  const std::string unknown = model.tokenizer().UnknownToken();
  const std::optional<uint32_t> id = model.tokenizer().Id(unknown);
  size_t from = 0;
  for (const size_t token : tokens) {
    if (!id || answer.tokens.ids[token] != *id) continue;
    const size_t at = word.find(unknown, from);
    if (at == std::string::npos) return;
    const auto [start, end] = answer.tokens.offsets[token];
    const absl::string_view own = Slice(text, start, end);
    word.replace(at, unknown.size(), own.data(), own.size());
    from = at + own.size();
  }
}

// Tells which tokens go on with the word before them, as transformers does: by their mark where the
// tokenizer has one, else by the blanks of the text.
class Words {
 public:
  Words(const TextModel& model, const TextAnswer& answer, absl::string_view text)
      : model_(model),
        answer_(answer),
        has_mark_(!model.tokenizer().ContinuingPrefix().empty()),
        unknown_(model.tokenizer().Id(model.tokenizer().UnknownToken())) {
    if (has_mark_) return;
    for (const char c : text) {
      if ((static_cast<uint8_t>(c) & 0xC0) != 0x80) blanks_.push_back(c == ' ');
    }
  }

  bool GoesOn(size_t token) const {
    const uint32_t id = answer_.tokens.ids[token];
    if (id == unknown_) return false;
    const auto [start, end] = answer_.tokens.offsets[token];
    if (has_mark_) return CharsOf(model_.tokenizer().Token(id)) != static_cast<size_t>(end - start);
    return start > 0 && !IsBlank(start - 1) && !IsBlank(start);
  }

 private:
  bool IsBlank(int64_t at) const { return at < std::ssize(blanks_) && blanks_[at]; }

  const TextModel& model_;
  const TextAnswer& answer_;
  const bool has_mark_;
  const std::optional<uint32_t> unknown_;
  std::vector<bool> blanks_;  // a flag for each character of the text
};

// Returns the tokens `parts` of one word as one.
Labelled JoinWord(const TextModel& model, absl::Span<const Labelled> parts, Grouping grouping) {
  Labelled word = parts.front();
  if (grouping == Grouping::kMax) {
    // The first of the surest.
    word = *std::max_element(parts.begin(), parts.end(), [](const Labelled& a, const Labelled& b) {
      return a.score < b.score;
    });
  }
  if (grouping == Grouping::kAverage) {
    for (size_t label = 0; label < word.shares.size(); ++label) {
      double sum = 0;
      for (const Labelled& part : parts) sum += part.shares[label];
      word.shares[label] = static_cast<float>(sum / static_cast<double>(parts.size()));
    }
    TakeBest(model, word);
  }
  word.first = parts.front().first;
  word.last = parts.back().last;
  return word;
}

std::vector<Labelled> JoinWords(const TextModel& model, const TextAnswer& answer,
                                absl::string_view text, const std::vector<Labelled>& tokens,
                                Grouping grouping) {
  const Words words(model, answer, text);
  std::vector<Labelled> joined;
  for (size_t begin = 0; begin < tokens.size();) {
    size_t end = begin + 1;
    while (end < tokens.size() && words.GoesOn(tokens[end].first)) ++end;
    joined.push_back(
        JoinWord(model, absl::MakeConstSpan(tokens).subspan(begin, end - begin), grouping));
    begin = end;
  }
  return joined;
}

// "B-PER" begins one, "I-PER" goes on, "PER" goes on as well.
std::pair<bool, std::string> TagOf(const std::string& label) {
  if (absl::StartsWith(label, "B-")) return {true, label.substr(2)};
  if (absl::StartsWith(label, "I-")) return {false, label.substr(2)};
  return {false, label};
}

Entity Join(const TextModel& model, const TextAnswer& answer, absl::string_view text,
            const std::vector<Labelled>& run) {
  Entity entity{.label = run[0].label, .index = -1};
  if (const size_t dash = entity.label.find('-'); dash != std::string::npos) {
    entity.label = entity.label.substr(dash + 1);
  }
  std::vector<size_t> tokens;
  std::vector<uint32_t> ids;
  double sum = 0;
  for (const Labelled& each : run) {
    sum += each.score;
    // Special tokens in between are not part of the word.
    for (size_t token = each.first; token <= each.last; ++token) {
      if (answer.tokens.special[token]) continue;
      tokens.push_back(token);
      ids.push_back(answer.tokens.ids[token]);
    }
  }
  entity.score = static_cast<float>(sum / static_cast<double>(run.size()));
  entity.word = model.tokenizer().Decode(ids, false).value_or("");
  NameUnknown(model, answer, text, tokens, entity.word);
  entity.start = answer.tokens.offsets[run.front().first].first;
  entity.end = answer.tokens.offsets[run.back().last].second;
  return entity;
}

}  // namespace

absl::StatusOr<std::vector<Entity>> EntitiesOf(const TextModel& model, const TextAnswer& answer,
                                               size_t index, absl::string_view text,
                                               Grouping grouping) {
  std::vector<Entity> entities;
  std::vector<Labelled> labelled = LabelTokens(model, answer);
  for (const Labelled& token : labelled) {
    RETURN_IF_ERROR(CheckFinite(token.shares, index, model.offer().output));
  }
  if (grouping == Grouping::kNone) {
    for (const Labelled& each : labelled) {
      if (each.label == kOutside) continue;
      const auto [start, end] = answer.tokens.offsets[each.first];
      entities.push_back({.label = each.label,
                          .score = each.score,
                          .index = static_cast<int64_t>(each.first),
                          .word = model.tokenizer().Token(answer.tokens.ids[each.first]),
                          .start = start,
                          .end = end});
      NameUnknown(model, answer, text, {each.first}, entities.back().word);
    }
    return entities;
  }
  if (grouping != Grouping::kSimple) {
    labelled = JoinWords(model, answer, text, labelled, grouping);
  }
  std::vector<Labelled> run;
  const auto flush = [&] {
    if (!run.empty() && run[0].label != kOutside)
      entities.push_back(Join(model, answer, text, run));
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

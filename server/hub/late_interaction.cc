#include "server/hub/late_interaction.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "server/hub/folder_members.h"
#include "server/hub/json_file.h"
#include "server/hub/text_package.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr char kSentenceConfig[] = "config_sentence_transformers.json";
constexpr int64_t kMostFilled = 8192;
constexpr int64_t kUsualQuery = 32, kUsualDocument = 180;  // PyLate's
// Tokens of punctuation, which PyLate leaves out of documents unless a folder says others.
constexpr char kPunctuation[] = R"(!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~)";

absl::StatusOr<int64_t> LengthOf(const nlohmann::json& json, const std::string& file,
                                 const char* name, int64_t fallback) {
  const int64_t length = IntMember(json, name, fallback);
  if (length >= 0 && length <= kMostFilled && length != 1) return length;
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", name, " is ", length, ", it must be 2 to ", kMostFilled));
}

std::vector<std::string> WordsOf(const nlohmann::json& list) {
  std::vector<std::string> words;
  for (const nlohmann::json& word : list) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

std::vector<std::string> Punctuation() {
  std::vector<std::string> words;
  for (const char* c = kPunctuation; *c != '\0'; ++c) words.emplace_back(1, *c);
  return words;
}

bool IsOfPylate(const nlohmann::json& json) {
  if (TextMember(json, "model_type", "") == "ColBERT") return true;
  return std::any_of(json.items().begin(), json.items().end(), [](const auto& member) {
    for (const char* name : {"query_prefix", "document_prefix", "do_query_expansion",
                             "attend_to_expansion_tokens", "skiplist_words"}) {
      if (member.key() == name) return true;
    }
    return false;
  });
}

// Returns the id of a marker: PyLate keeps "[Q] " with its blank as one token, others have "[Q]".
absl::StatusOr<uint32_t> MarkerId(const std::string& marker, const Tokenizer& tokenizer) {
  for (const absl::string_view each :
       {absl::string_view(marker), absl::StripTrailingAsciiWhitespace(marker)}) {
    if (const std::optional<uint32_t> id = tokenizer.Id(each)) return *id;
  }
  return absl::InvalidArgumentError(absl::StrCat(kSentenceConfig, ": the prefix \"", marker,
                                                 "\" is not a token of the vocabulary"));
}

// Returns the token `name` of a file's JSON: a text, or an object with one.
std::string TokenMember(const std::string& text, const char* name) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(name)) return "";
  const nlohmann::json& token = json[name];
  return token.is_object() ? TextMember(token, "content", "") : TextMember(json, name, "");
}

}  // namespace

absl::Status ReadLateConfig(const nlohmann::json& json, TextPackage& package) {
  const bool of_pylate = IsOfPylate(json);
  if (!of_pylate && TextMember(json, "model_type", "") != "MultiVectorEncoder") {
    return absl::OkStatus();
  }
  LateFacts facts = {.mean = TextMember(json, "similarity_fn_name", "") == "meanmaxsim",
                     .of_pylate = of_pylate};
  if (of_pylate) {
    facts.query.marker = TextMember(json, "query_prefix", "[Q] ");
    facts.document.marker = TextMember(json, "document_prefix", "[D] ");
    ASSIGN_OR_RETURN(facts.query.length,
                     LengthOf(json, kSentenceConfig, "query_length", kUsualQuery));
    ASSIGN_OR_RETURN(facts.document.length,
                     LengthOf(json, kSentenceConfig, "document_length", kUsualDocument));
    if (BoolMember(json, "do_query_expansion", true)) facts.query.filled_to = facts.query.length;
    facts.query.attends = BoolMember(json, "attend_to_expansion_tokens", false);
    const auto words = json.find("skiplist_words");
    const bool listed = words != json.end() && words->is_array();
    facts.document.skipped = listed ? WordsOf(*words) : Punctuation();
  }
  package.late = std::move(facts);
  return absl::OkStatus();
}

absl::Status ReadLateTransformer(const nlohmann::json& json, const std::string& file,
                                 TextPackage& package) {
  bool named = false;
  for (const char* name : {"query_length", "document_length", "query_expansion"}) {
    named = named || (json.contains(name) && !json[name].is_null());
  }
  if (!named) return absl::OkStatus();
  if (!package.late) {
    return absl::UnimplementedError(
        absl::StrCat(file,
                     ": query_length, document_length and query_expansion belong to late "
                     "interaction, and ",
                     kSentenceConfig, " names no MultiVectorEncoder"));
  }
  SideFacts& query = package.late->query;
  ASSIGN_OR_RETURN(query.length, LengthOf(json, file, "query_length", query.length));
  ASSIGN_OR_RETURN(package.late->document.length,
                   LengthOf(json, file, "document_length", package.late->document.length));
  const auto expansion = json.find("query_expansion");
  if (expansion == json.end() || expansion->is_null()) return absl::OkStatus();
  const std::string strategy = TextMember(*expansion, "strategy", "");
  if (strategy != "fixed" && strategy != "min") {
    return absl::UnimplementedError(absl::StrCat(file, ": query_expansion: strategy is \"",
                                                 strategy,
                                                 "\", which is not supported (known: fixed, min)"));
  }
  ASSIGN_OR_RETURN(query.filled_to, LengthOf(*expansion, file, "length", 0));
  if (strategy == "fixed") query.length = query.filled_to;
  query.attends = BoolMember(*expansion, "attend", false);
  package.late->filler = TextMember(*expansion, "token", "");
  return absl::OkStatus();
}

absl::Status ReadVectorMask(const fs::path& folder, TextPackage& package) {
  const std::string file = (folder / "config.json").string();
  ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonIfThere(file));
  RETURN_IF_ERROR(CheckMembers("MultiVectorMask/config.json", file, json));
  if (!package.late) {
    return absl::UnimplementedError(absl::StrCat("modules.json has MultiVectorMask, and ",
                                                 kSentenceConfig, " names no MultiVectorEncoder"));
  }
  const auto words = json.find("skiplist_words");
  if (words == json.end() || !words->is_array()) return absl::OkStatus();
  std::vector<std::string> tasks = {"document"};
  if (const auto named = json.find("skiplist_tasks"); named != json.end() && !named->is_null()) {
    tasks = WordsOf(named->is_array() ? *named : nlohmann::json::array({*named}));
  }
  const auto skips = [&](const char* task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  if (skips("document")) package.late->document.skipped = WordsOf(*words);
  if (skips("query")) package.late->query.skipped = WordsOf(*words);
  return absl::OkStatus();
}

absl::StatusOr<SideTokens> SideTokens::Make(const SideFacts& facts, const std::string& filler,
                                            const Tokenizer& tokenizer) {
  SideTokens side;
  side.length_ = facts.length;
  side.filled_to_ = facts.filled_to;
  side.attends_ = facts.attends;
  if (!facts.marker.empty()) {
    ASSIGN_OR_RETURN(side.marker_, MarkerId(facts.marker, tokenizer));
  }
  if (side.filled_to_ > 0) {
    const std::optional<uint32_t> id = tokenizer.Id(filler);
    if (!id) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the token \"", filler, "\", which fills queries up, is none of the vocabulary"));
    }
    side.filler_ = *id;
  }
  // Words that are no token of their own do not appear as one in texts.
  for (const std::string& word : facts.skipped) {
    if (const std::optional<uint32_t> id = tokenizer.Id(word)) side.skipped_.insert(*id);
  }
  return side;
}

int64_t SideTokens::MostTokens(int64_t most) const {
  int64_t tokens = most == 0 ? length_ : most;
  if (length_ > 0) tokens = std::min(tokens, length_);
  return tokens == 0 || !marker_ ? tokens : std::max<int64_t>(1, tokens - 1);
}

void SideTokens::Complete(TextTokens& tokens) const {
  const auto put = [&](size_t place, uint32_t id) {
    const auto at = static_cast<std::ptrdiff_t>(place);
    tokens.ids.insert(tokens.ids.begin() + at, id);
    if (!tokens.type_ids.empty()) tokens.type_ids.insert(tokens.type_ids.begin() + at, 0);
    tokens.special.insert(tokens.special.begin() + at, true);
    if (!tokens.offsets.empty()) tokens.offsets.insert(tokens.offsets.begin() + at, {0, 0});
    ++tokens.full_count;
  };
  if (marker_) put(std::min<size_t>(1, tokens.ids.size()), *marker_);
  const auto filled_to = static_cast<size_t>(filled_to_);
  const size_t count = tokens.ids.size();
  if (filled_to <= count) return;
  if (!attends_) tokens.unattended = static_cast<int64_t>(filled_to - count);
  while (tokens.ids.size() < filled_to) put(tokens.ids.size(), filler_);
}

int64_t SideTokens::KeepRows(absl::Span<const uint32_t> ids, std::vector<float>& values) const {
  const auto rows = static_cast<int64_t>(ids.size());
  if (rows == 0 || skipped_.empty()) return rows;
  const size_t width = values.size() / ids.size();
  size_t kept = 0;
  for (size_t row = 0; row < ids.size(); ++row) {
    if (skipped_.contains(ids[row])) continue;
    if (kept != row)
      std::copy_n(values.begin() + row * width, width, values.begin() + kept * width);
    ++kept;
  }
  values.resize(kept * width);
  return static_cast<int64_t>(kept);
}

absl::StatusOr<std::string> FillerOf(const LateFacts& facts, const TokenizerFiles& files,
                                     const Tokenizer& tokenizer) {
  if (facts.query.filled_to == 0 || !facts.filler.empty()) return facts.filler;
  for (const char* name : {"mask_token", "eos_token", "pad_token"}) {
    for (const std::string& file : {files.config, files.special_tokens_map}) {
      const std::string token = TokenMember(file, name);
      if (!token.empty() && tokenizer.Id(token)) return token;
    }
  }
  for (const char* token : {"[MASK]", "<mask>"}) {
    if (tokenizer.Id(token)) return std::string(token);
  }
  return absl::InvalidArgumentError(
      "queries are filled up with tokens of masks, and no file of the tokenizer names one");
}

float MaxSim(absl::Span<const float> query, absl::Span<const float> document, int64_t width,
             bool mean) {
  const auto size = static_cast<size_t>(width);
  if (size == 0 || query.empty() || document.empty()) return 0;
  double sum = 0;
  for (size_t q = 0; q + size <= query.size(); q += size) {
    double best = -std::numeric_limits<double>::infinity();
    for (size_t d = 0; d + size <= document.size(); d += size) {
      double product = 0;
      for (size_t i = 0; i < size; ++i) product += double{query[q + i]} * double{document[d + i]};
      best = std::max(best, product);
    }
    sum += best;
  }
  const size_t tokens = query.size() / size;
  return static_cast<float>(mean ? sum / static_cast<double>(tokens) : sum);
}

}  // namespace reprise

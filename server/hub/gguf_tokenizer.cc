#include "server/hub/gguf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/hash_map.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using nlohmann::json;

constexpr char kTokens[] = "tokenizer.ggml.tokens", kTypes[] = "tokenizer.ggml.token_type",
               kTokenScores[] = "tokenizer.ggml.scores", kMerges[] = "tokenizer.ggml.merges";
constexpr absl::string_view kMark = "\u2581";  // stands for a space

// Words of cl100k and of the models that cut texts nearly as it does.
#define REPRISE_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define REPRISE_ENDS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr char kThreeDigits[] =
    REPRISE_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" REPRISE_ENDS;
constexpr char kOneDigit[] = REPRISE_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" REPRISE_ENDS;
// Words of o200k: an upper-case letter begins another one.
#define REPRISE_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define REPRISE_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define REPRISE_CASED(end)                                        \
  R"([^\r\n\p{L}\p{N}]?)" REPRISE_UPPER "*" REPRISE_LOWER "+" end \
  R"(|[^\r\n\p{L}\p{N}]?)" REPRISE_UPPER "+" REPRISE_LOWER "*" end
#define REPRISE_CASED_ENDS R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr char kO200k[] =
    REPRISE_CASED(REPRISE_CONTRACTIONS "?") R"(|\p{N}{1,3})" REPRISE_CASED_ENDS;
constexpr char kTekken[] = REPRISE_CASED("") R"(|\p{N})" REPRISE_CASED_ENDS;

// How texts are cut before BPE, by the name of a pre-tokenizer.
struct Words {
  const char* name;
  const char* pattern;  // nullptr: the words of GPT-2
  bool digits;          // each digit is a word, before the words of GPT-2
  bool whole_words;     // a word that is a token is taken without its merges
  bool adds_bos;        // where no member says
  bool composes;        // texts become NFC first
};
constexpr Words kWords[] = {
    {"gpt-2", nullptr, false, false, false, false},
    {"default", nullptr, false, false, false, false},
    {"phi-2", nullptr, false, false, false, false},
    {"mpt", nullptr, false, false, false, true},
    {"olmo", nullptr, false, false, false, true},
    {"jina-en", nullptr, false, false, false, false},
    {"roberta-bpe", nullptr, false, false, false, false},
    {"smollm", nullptr, true, false, false, false},
    {"starcoder", nullptr, true, false, false, false},
    {"refact", nullptr, true, false, false, false},
    {"command-r", nullptr, true, false, false, true},
    {"llama-bpe", kThreeDigits, false, true, true, false},
    {"llama3", kThreeDigits, false, true, true, false},
    {"llama-v3", kThreeDigits, false, true, true, false},
    {"falcon3", kThreeDigits, false, true, true, false},
    {"dbrx", kThreeDigits, false, false, false, false},
    {"smaug-bpe", kThreeDigits, false, false, false, false},
    {"qwen2", kOneDigit, false, false, false, true},
    {"deepseek-r1-qwen", kOneDigit, false, false, false, true},
    {"stablelm2", kOneDigit, false, false, false, true},
    {"gpt-4o", kO200k, false, false, false, false},
    {"tekken", kTekken, false, true, true, false},
};

absl::StatusOr<const Words*> WordsOf(const std::string& name) {
  std::string known;
  for (const Words& words : kWords) {
    if (name == words.name) return &words;
    absl::StrAppend(&known, known.empty() ? "" : ", ", words.name);
  }
  return absl::UnimplementedError(absl::StrCat("member 'tokenizer.ggml.pre': pre-tokenizer '", name,
                                               "' is not supported; these are: ", known));
}

// The members of a vocabulary, checked against each other.
struct GgufVocabulary {
  std::vector<absl::string_view> tokens;
  std::vector<int64_t> types;
  std::vector<double> scores;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
};

absl::StatusOr<GgufVocabulary> ReadVocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  ASSIGN_OR_RETURN(vocabulary.tokens, file.Texts(kTokens));
  ASSIGN_OR_RETURN(vocabulary.types, file.Ints(kTypes));
  const size_t size = vocabulary.tokens.size();
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat("member '", kTokens, "' is empty"));
  if (vocabulary.types.empty()) vocabulary.types.assign(size, kNormalToken);
  if (const GgufValue* scores = file.Find(kTokenScores); scores != nullptr) {
    const auto* const list = std::get_if<std::vector<double>>(scores);
    if (list == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("member '", kTokenScores, "' is not a list of floats"));
    }
    vocabulary.scores = *list;
  }
  for (const auto& [name, count] :
       {std::pair(kTypes, vocabulary.types.size()),
        std::pair(kTokenScores, vocabulary.scores.empty() ? size : vocabulary.scores.size())}) {
    if (count == size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("member '", name, "' has ", count, " entries for ", size, " tokens"));
  }
  return vocabulary;
}

json SpecialToken(int64_t id, absl::string_view text, bool special) {
  return {
      {"id", id},        {"content", std::string(text)}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false}, {"normalized", false},          {"special", special}};
}

// Tokens that are found in a text before anything else.
json AddedTokens(const GgufVocabulary& vocabulary) {
  json added = json::array();
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const int64_t type = vocabulary.types[static_cast<size_t>(id)];
    const absl::string_view text = vocabulary.tokens[static_cast<size_t>(id)];
    if (text.empty()) continue;
    if (type == kUnknownToken || type == kControlToken || type == kUserDefinedToken) {
      added.push_back(SpecialToken(id, text, type != kUserDefinedToken));
    }
  }
  return added;
}

// Returns the id that `name` has, in the vocabulary; nothing where no member says.
absl::StatusOr<std::optional<int64_t>> IdOf(const GgufFile& file, const GgufVocabulary& vocabulary,
                                            const char* name, std::optional<int64_t> fallback) {
  const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
  ASSIGN_OR_RETURN(std::optional<int64_t> id, file.Int(key));
  if (!id.has_value()) {
    if (fallback.has_value() && *fallback < vocabulary.size()) id = fallback;
    return id;
  }
  if (*id >= 0 && *id < vocabulary.size()) return id;
  // Files write the largest number where there is none.
  if (*id == 0xFFFFFFFF) return std::optional<int64_t>();
  return absl::InvalidArgumentError(
      absl::StrCat("member '", key, "' is ", *id, " of ", vocabulary.size(), " tokens"));
}

struct Ends {
  bool bos = false, eos = false;  // where no member says
  std::optional<int64_t> bos_id, eos_id;
};

// Returns the special tokens around a text, and around two.
absl::StatusOr<json> PostProcessor(const GgufFile& file, const GgufVocabulary& vocabulary,
                                   const Ends& usual, json otherwise) {
  json single = json::array(), pair = json::array(), tokens = json::object();
  const auto add = [&](int64_t id, int type) {
    const std::string text(vocabulary.tokens[static_cast<size_t>(id)]);
    tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    return json{{"SpecialToken", {{"id", text}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* name, int type) {
    return json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const auto wanted = [&](const char* name, bool fallback,
                          std::optional<int64_t> id) -> absl::StatusOr<std::optional<int64_t>> {
    ASSIGN_OR_RETURN(const std::optional<bool> said,
                     file.Bool(absl::StrCat("tokenizer.ggml.add_", name, "_token")));
    if (!said.value_or(fallback)) return std::optional<int64_t>();
    ASSIGN_OR_RETURN(id, IdOf(file, vocabulary, name, id));
    if (id.has_value() || !said.has_value()) return id;
    return absl::InvalidArgumentError(absl::StrCat(
        "member 'tokenizer.ggml.add_", name, "_token' is true, and no member says which it is"));
  };
  ASSIGN_OR_RETURN(const std::optional<int64_t> bos, wanted("bos", usual.bos, usual.bos_id));
  ASSIGN_OR_RETURN(const std::optional<int64_t> eos, wanted("eos", usual.eos, usual.eos_id));
  if (!bos.has_value() && !eos.has_value()) return otherwise;
  for (const auto& [name, type] : {std::pair("A", 0), std::pair("B", 1)}) {
    json part = json::array();
    if (bos.has_value()) part.push_back(add(*bos, type));
    part.push_back(sequence(name, type));
    if (eos.has_value()) part.push_back(add(*eos, type));
    if (type == 0) single = part;
    pair.insert(pair.end(), part.begin(), part.end());
  }
  json templates = {{"type", "TemplateProcessing"},
                    {"single", std::move(single)},
                    {"pair", std::move(pair)},
                    {"special_tokens", std::move(tokens)}};
  if (otherwise.is_null()) return templates;
  return json{{"type", "Sequence"}, {"processors", {std::move(otherwise), std::move(templates)}}};
}

json Replace(const char* kind, absl::string_view pattern, absl::string_view content) {
  return {{"type", "Replace"},
          {"pattern", {{kind, std::string(pattern)}}},
          {"content", std::string(content)}};
}

json ByteLevel(bool prefix, bool words) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix},
          {"trim_offsets", false},
          {"use_regex", words}};
}

json IdsOf(const GgufVocabulary& vocabulary) {
  json ids = json::object();
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    ids.emplace(std::string(vocabulary.tokens[static_cast<size_t>(id)]), id);
  }
  return ids;
}

absl::StatusOr<TokenizerFiles> Made(const json& tokenizer) {
  return TokenizerFiles{.kind = TokenizerKind::kJson,
                        .data = tokenizer.dump(-1, ' ', false, json::error_handler_t::replace)};
}

absl::StatusOr<TokenizerFiles> ReadBytePairs(const GgufFile& file,
                                             const GgufVocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const std::optional<std::string> pre, file.Text("tokenizer.ggml.pre"));
  ASSIGN_OR_RETURN(const Words* words, WordsOf(pre.value_or("default")));
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> lines, file.Texts(kMerges));
  json merges = json::array();
  for (const absl::string_view line : lines) {
    // A token may begin with a space, and none ends with one.
    const size_t space = line.find(' ', 1);
    if (space == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("member '", kMerges, "': '", absl::CHexEscape(line), "' is not a pair"));
    }
    merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
  }
  ASSIGN_OR_RETURN(const std::optional<bool> prefix, file.Bool("tokenizer.ggml.add_space_prefix"));
  const bool spaced = prefix.value_or(false);
  json cuts = json::array();
  if (words->digits) cuts.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (words->pattern != nullptr) {
    cuts.push_back({{"type", "Split"},
                    {"pattern", {{"Regex", words->pattern}}},
                    {"behavior", "Isolated"},
                    {"invert", false}});
  }
  cuts.push_back(ByteLevel(spaced, words->pattern == nullptr));
  ASSIGN_OR_RETURN(json processor, PostProcessor(file, vocabulary, {.bos = words->adds_bos},
                                                 ByteLevel(spaced, true)));
  return Made({{"version", "1.0"},
               {"added_tokens", AddedTokens(vocabulary)},
               {"normalizer", words->composes ? json{{"type", "NFC"}} : json()},
               {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(cuts)}}},
               {"post_processor", std::move(processor)},
               {"decoder", ByteLevel(spaced, true)},
               {"model",
                {{"type", "BPE"},
                 {"dropout", nullptr},
                 {"unk_token", nullptr},
                 {"fuse_unk", false},
                 {"byte_fallback", false},
                 {"ignore_merges", words->whole_words},
                 {"vocab", IdsOf(vocabulary)},
                 {"merges", std::move(merges)}}}});
}

int64_t Letters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

// Returns the merges that scores mean: every way to write a token as two others, best first.
json MergesOf(const GgufVocabulary& vocabulary) {
  HashMap<absl::string_view, int64_t> ids;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    ids.try_emplace(vocabulary.tokens[static_cast<size_t>(id)], id);
  }
  struct Merge {
    double score;
    int64_t left_letters, right_letters;
    int64_t left, right;
  };
  std::vector<Merge> found, of_token;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const int64_t type = vocabulary.types[static_cast<size_t>(id)];
    if (type != kNormalToken && type != kUserDefinedToken) continue;
    const absl::string_view token = vocabulary.tokens[static_cast<size_t>(id)];
    of_token.clear();
    for (size_t at = 1; at < token.size(); ++at) {
      if ((token[at] & 0xC0) == 0x80) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      of_token.push_back({.score = vocabulary.scores[static_cast<size_t>(id)],
                          .left_letters = Letters(left->first),
                          .right_letters = Letters(right->first),
                          .left = left->second,
                          .right = right->second});
    }
    std::sort(of_token.begin(), of_token.end(), [](const Merge& a, const Merge& b) {
      return std::tie(a.left, a.right) < std::tie(b.left, b.right);
    });
    found.insert(found.end(), of_token.begin(), of_token.end());
  }
  std::stable_sort(found.begin(), found.end(), [](const Merge& a, const Merge& b) {
    return std::tie(a.score, a.left_letters, a.right_letters) >
           std::tie(b.score, b.left_letters, b.right_letters);
  });
  json merges = json::array();
  for (const Merge& merge : found) {
    merges.push_back({std::string(vocabulary.tokens[static_cast<size_t>(merge.left)]),
                      std::string(vocabulary.tokens[static_cast<size_t>(merge.right)])});
  }
  return merges;
}

bool HasBytes(const GgufVocabulary& vocabulary) {
  return std::find(vocabulary.types.begin(), vocabulary.types.end(), kByteToken) !=
         vocabulary.types.end();
}

absl::Status CheckScores(const GgufVocabulary& vocabulary) {
  if (vocabulary.scores.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no member '", kTokenScores, "'"));
  }
  return absl::OkStatus();
}

// sentencepiece's BPE: spaces are marks, and bytes stand for letters that no token has.
absl::StatusOr<TokenizerFiles> ReadPieces(const GgufFile& file, const GgufVocabulary& vocabulary) {
  RETURN_IF_ERROR(CheckScores(vocabulary));
  ASSIGN_OR_RETURN(const std::optional<bool> prefix, file.Bool("tokenizer.ggml.add_space_prefix"));
  const bool spaced = prefix.value_or(true);
  ASSIGN_OR_RETURN(const std::optional<int64_t> unknown, IdOf(file, vocabulary, "unknown", 0));
  json normalizers = json::array();
  if (spaced) normalizers.push_back({{"type", "Prepend"}, {"prepend", std::string(kMark)}});
  normalizers.push_back(Replace("String", " ", kMark));
  json decoders = {Replace("String", kMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (spaced) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  ASSIGN_OR_RETURN(json processor, PostProcessor(file, vocabulary,
                                                 {.bos = true, .bos_id = 1, .eos_id = 2}, json()));
  return Made(
      {{"version", "1.0"},
       {"added_tokens", AddedTokens(vocabulary)},
       {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
       {"pre_tokenizer", nullptr},
       {"post_processor", std::move(processor)},
       {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}},
       {"model",
        {{"type", "BPE"},
         {"dropout", nullptr},
         {"unk_token", unknown.has_value()
                           ? json(std::string(vocabulary.tokens[static_cast<size_t>(*unknown)]))
                           : json()},
         {"fuse_unk", true},
         {"byte_fallback", HasBytes(vocabulary)},
         {"vocab", IdsOf(vocabulary)},
         {"merges", MergesOf(vocabulary)}}}});
}

absl::StatusOr<TokenizerFiles> ReadUnigram(const GgufFile& file, const GgufVocabulary& vocabulary) {
  RETURN_IF_ERROR(CheckScores(vocabulary));
  ASSIGN_OR_RETURN(const std::optional<bool> prefix, file.Bool("tokenizer.ggml.add_space_prefix"));
  ASSIGN_OR_RETURN(const std::optional<bool> joins,
                   file.Bool("tokenizer.ggml.remove_extra_whitespaces"));
  ASSIGN_OR_RETURN(const std::optional<int64_t> unknown, IdOf(file, vocabulary, "unknown", 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> map,
                   file.Ints("tokenizer.ggml.precompiled_charsmap"));
  json normalizers = json::array();
  if (!map.empty()) {
    std::string bytes;
    for (const int64_t byte : map) bytes.push_back(static_cast<char>(byte));
    normalizers.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", absl::Base64Escape(bytes)}});
  }
  if (joins.value_or(true)) {
    normalizers.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    normalizers.push_back(Replace("Regex", " {2,}", " "));
  }
  const json spaces = {{"type", "Metaspace"},
                       {"replacement", std::string(kMark)},
                       {"prepend_scheme", prefix.value_or(true) ? "always" : "never"},
                       {"split", true}};
  json pieces = json::array();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    pieces.push_back({std::string(vocabulary.tokens[i]), vocabulary.scores[i]});
  }
  ASSIGN_OR_RETURN(json processor,
                   PostProcessor(file, vocabulary, {.eos = true, .eos_id = 1}, json()));
  return Made({{"version", "1.0"},
               {"added_tokens", AddedTokens(vocabulary)},
               {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
               {"pre_tokenizer", spaces},
               {"post_processor", std::move(processor)},
               {"decoder", spaces},
               {"model",
                {{"type", "Unigram"},
                 {"unk_id", unknown.has_value() ? json(*unknown) : json()},
                 {"vocab", std::move(pieces)},
                 {"byte_fallback", HasBytes(vocabulary)}}}});
}

// Tokens that begin a word have a mark in front there; others go on with one, and have two signs in
// front in a vocab.txt.
absl::StatusOr<TokenizerFiles> ReadWordPieces(const GgufFile&, const GgufVocabulary& vocabulary) {
  TokenizerFiles files{.kind = TokenizerKind::kVocabTxt};
  bool cased = false;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const absl::string_view token = vocabulary.tokens[id];
    if (token.find('\n') != absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("token ", id, " has more than one line"));
    }
    const bool special = (absl::StartsWith(token, "[") && absl::EndsWith(token, "]")) ||
                         vocabulary.types[id] == kControlToken ||
                         vocabulary.types[id] == kUnknownToken;
    if (special || token.empty()) {
      absl::StrAppend(&files.data, token, "\n");
      continue;
    }
    // A vocabulary of lower-case texts has no other letter.
    cased |= std::any_of(token.begin(), token.end(), absl::ascii_isupper);
    const bool begins = absl::StartsWith(token, kMark) && token.size() > kMark.size();
    absl::StrAppend(&files.data, begins ? "" : "##", begins ? token.substr(kMark.size()) : token,
                    "\n");
  }
  files.config = json{{"do_lower_case", !cased}}.dump();
  return files;
}

}  // namespace

absl::StatusOr<std::optional<TokenizerFiles>> ReadGgufTokenizer(const GgufFile& file) {
  ASSIGN_OR_RETURN(const std::optional<std::string> kind, file.Text("tokenizer.ggml.model"));
  if (!kind.has_value() || *kind == "none" || *kind == "no_vocab") {
    return std::optional<TokenizerFiles>();
  }
  static constexpr std::pair<const char*, decltype(&ReadPieces)> kKinds[] = {
      {"gpt2", ReadBytePairs},
      {"llama", ReadPieces},
      {"t5", ReadUnigram},
      {"bert", ReadWordPieces}};
  for (const auto& [name, read] : kKinds) {
    if (*kind != name) continue;
    ASSIGN_OR_RETURN(const GgufVocabulary vocabulary, ReadVocabulary(file));
    ASSIGN_OR_RETURN(TokenizerFiles files, read(file, vocabulary));
    return std::optional<TokenizerFiles>(std::move(files));
  }
  return absl::UnimplementedError(absl::StrCat("member 'tokenizer.ggml.model': a tokenizer '",
                                               *kind,
                                               "' is not supported; gpt2, llama, t5 and "
                                               "bert are"));
}

std::string GgufToken(const GgufFile& file, int64_t id) {
  const auto tokens = file.Texts(kTokens);
  if (!tokens.ok() || id < 0 || id >= static_cast<int64_t>(tokens->size())) return "";
  return std::string((*tokens)[static_cast<size_t>(id)]);
}

}  // namespace reprise

#include "server/hub/generation_files.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "runtime/onnx/gguf/gguf_file.h"
#include "server/hub/gguf_package.h"

namespace reprise {
namespace {

using simdjson::dom::element;

std::vector<int64_t> IdsOf(const element& value) {
  int64_t id = 0;
  if (value.get(id) == simdjson::SUCCESS) return {id};
  std::vector<int64_t> ids;
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return {};
  for (const element one : list) {
    if (one.get(id) == simdjson::SUCCESS) ids.push_back(id);
  }
  return ids;
}

// Takes the ids of list `name`; pairs of a place and an id are left out.
void TakeList(const element& root, const char* name, std::vector<int64_t>& ids) {
  element value;
  if (ids.empty() && root[name].get(value) == simdjson::SUCCESS) ids = IdsOf(value);
}

// Rows of `name`, a list of lists of whole numbers; null is -1.
std::vector<std::vector<int64_t>> RowsOf(const element& root, const char* name) {
  std::vector<std::vector<int64_t>> rows;
  simdjson::dom::array list, row;
  if (root[name].get(list) != simdjson::SUCCESS) return rows;
  for (const element one : list) {
    if (one.get(row) != simdjson::SUCCESS) continue;
    std::vector<int64_t>& numbers = rows.emplace_back();
    for (const element number : row) {
      int64_t id = -1;
      numbers.push_back(number.get(id) == simdjson::SUCCESS ? id : -1);
    }
  }
  return rows;
}

// Reads the rules of answers of a decoder with an encoder, as transformers' files have them. The
// first file that states one counts.
void ReadRules(const element& root, DecoderRules& rules) {
  TakeList(root, "decoder_start_token_id", rules.start);
  TakeList(root, "suppress_tokens", rules.suppressed);
  TakeList(root, "begin_suppress_tokens", rules.suppressed_first);
  for (const std::vector<int64_t>& word : RowsOf(root, "bad_words_ids")) {
    if (word.size() == 1) rules.suppressed.push_back(word[0]);
  }
  int64_t id = 0;
  // It follows the one id that answers begin with.
  if (root["forced_bos_token_id"].get(id) == simdjson::SUCCESS) rules.forced.try_emplace(1, id);
  if (!rules.forced_last.has_value() && root["forced_eos_token_id"].get(id) == simdjson::SUCCESS) {
    rules.forced_last = id;
  }
  for (const std::vector<int64_t>& pair : RowsOf(root, "forced_decoder_ids")) {
    if (pair.size() == 2 && pair[0] > 0 && pair[1] >= 0) {
      rules.forced.try_emplace(pair[0], pair[1]);
    }
  }
}

// Parses a file; false: it is not there, larger than `most_bytes`, or no JSON.
bool Parse(const std::filesystem::path& path, uintmax_t most_bytes, simdjson::dom::parser& parser,
           element& root) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  return !error && bytes <= most_bytes && parser.load(path.string()).get(root) == simdjson::SUCCESS;
}

// Returns the id of the token that the tokenizer's files in `folder` name as the end of a text.
std::optional<int64_t> TokenizerEnd(const std::filesystem::path& folder) {
  constexpr uintmax_t kMostBytes = 64 << 20;
  simdjson::dom::parser parser, of_tokens;
  element root, tokens;
  std::string_view end, text;
  if (!Parse(folder / "tokenizer_config.json", kMostBytes, parser, root)) return std::nullopt;
  if (root["eos_token"].get(end) != simdjson::SUCCESS &&
      root["eos_token"]["content"].get(end) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  if (!Parse(folder / "tokenizer.json", kMostBytes, of_tokens, tokens)) return std::nullopt;
  simdjson::dom::array added;
  if (tokens["added_tokens"].get(added) != simdjson::SUCCESS) return std::nullopt;
  for (const element token : added) {
    int64_t id = 0;
    if (token["content"].get(text) == simdjson::SUCCESS && text == end &&
        token["id"].get(id) == simdjson::SUCCESS) {
      return id;
    }
  }
  return std::nullopt;
}

// `eos` and `contexts`: pointers into the file (RFC 6901).
void Read(const std::filesystem::path& path, const char* eos,
          std::initializer_list<const char*> contexts, GenerationFacts& facts) {
  constexpr uintmax_t kMostBytes = 1 << 20;
  simdjson::dom::parser parser;
  element root, value;
  if (!Parse(path, kMostBytes, parser, root)) return;
  if (facts.eos_ids.empty() && root.at_pointer(eos).get(value) == simdjson::SUCCESS) {
    facts.eos_ids = IdsOf(value);
  }
  ReadRules(root, facts.rules);
  for (const char* const context : contexts) {
    int64_t positions = 0;
    if (facts.context == 0 && root.at_pointer(context).get(positions) == simdjson::SUCCESS) {
      facts.context = std::max<int64_t>(positions, 0);
    }
  }
}

}  // namespace

GenerationFacts ReadGenerationFiles(const std::filesystem::path& model_file) {
  if (GgufFile::IsOne(model_file.string())) return ReadGgufGeneration(model_file);
  GenerationFacts facts;
  const std::filesystem::path own = model_file.parent_path();
  bool is_stated = false;  // a file about answers names ids
  for (const std::filesystem::path& place : {own, own.parent_path()}) {
    const bool is_first = facts.eos_ids.empty();
    Read(place / "genai_config.json", "/model/eos_token_id", {"/model/context_length"}, facts);
    Read(place / "generation_config.json", "/eos_token_id", {"/max_context_length"}, facts);
    is_stated = is_stated || (is_first && !facts.eos_ids.empty());
    Read(place / "config.json", "/eos_token_id",
         {"/max_position_embeddings", "/n_positions", "/max_seq_len", "/seq_length",
          "/text_config/max_position_embeddings"},
         facts);
  }
  for (const std::filesystem::path& place : {own, own.parent_path()}) {
    if (is_stated) break;
    // A chat's answer may end by another token than a text of the model without chats.
    const std::optional<int64_t> end = TokenizerEnd(place);
    if (!end.has_value()) continue;
    if (!absl::c_linear_search(facts.eos_ids, *end)) facts.eos_ids.push_back(*end);
    break;
  }
  return facts;
}

}  // namespace reprise

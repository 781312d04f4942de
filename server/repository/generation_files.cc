#include "server/repository/generation_files.h"

#include <simdjson.h>

#include <filesystem>

#include "absl/strings/string_view.h"

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

// `eos` and `context`: pointers into the file (RFC 6901).
void Read(const std::filesystem::path& path, const char* eos, const char* context,
          GenerationFacts& facts) {
  std::error_code error;
  constexpr uintmax_t kMostBytes = 1 << 20;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostBytes) return;
  simdjson::dom::parser parser;
  element root, value;
  if (parser.load(path.string()).get(root) != simdjson::SUCCESS) return;
  if (facts.eos_ids.empty() && root.at_pointer(eos).get(value) == simdjson::SUCCESS) {
    facts.eos_ids = IdsOf(value);
  }
  int64_t positions = 0;
  if (facts.context == 0 && root.at_pointer(context).get(positions) == simdjson::SUCCESS &&
      positions > 0) {
    facts.context = positions;
  }
}

}  // namespace

GenerationFacts ReadGenerationFiles(const std::string& folder) {
  GenerationFacts facts;
  const std::filesystem::path own(folder);
  for (const std::filesystem::path& place : {own, own.parent_path()}) {
    Read(place / "genai_config.json", "/model/eos_token_id", "/model/context_length", facts);
    Read(place / "generation_config.json", "/eos_token_id", "/max_context_length", facts);
    Read(place / "config.json", "/eos_token_id", "/max_position_embeddings", facts);
  }
  return facts;
}

}  // namespace reprise

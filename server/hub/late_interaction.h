// Late interaction (ColBERT): a text is a vector for each of its tokens, and which tokens it has
// depends on whether it is a query or a document. Read from folders of PyLate and of
// sentence-transformers 6.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/hash_map.h"
#include "server/text/tokenizer.h"

namespace reprise {

struct TextPackage;

enum class TextSide { kDocument, kQuery };

// The texts of one side, as a folder describes them.
struct SideFacts {
  std::string marker;                // a token that follows the first one; empty: none
  int64_t length = 0;                // the most tokens; 0: no file says
  int64_t filled_to = 0;             // texts are filled up to this many tokens; 0: they are not
  bool attends = false;              // the text's own tokens attend to those that fill it up
  std::vector<std::string> skipped;  // tokens whose vectors are not answered
};

struct LateFacts {
  SideFacts document, query;
  std::string filler;      // the token that fills queries up; empty: the mask token
  bool mean = false;       // a score is the mean over the query's tokens in the place of the sum
  bool of_pylate = false;  // modules.json leaves out the steps after the last module
};

// Reads the members of config_sentence_transformers.json. Errors: INVALID_ARGUMENT for lengths
// that cannot be.
absl::Status ReadLateConfig(const nlohmann::json& json, TextPackage& package);
// Reads the members of sentence_bert_config.json.
absl::Status ReadLateTransformer(const nlohmann::json& json, const std::string& file,
                                 TextPackage& package);
// Reads the module MultiVectorMask in `folder`.
absl::Status ReadVectorMask(const std::filesystem::path& folder, TextPackage& package);

// One side in ids.
class SideTokens {
 public:
  // Errors: INVALID_ARGUMENT naming a token that the vocabulary lacks.
  static absl::StatusOr<SideTokens> Make(const SideFacts& facts, const std::string& filler,
                                         const Tokenizer& tokenizer);

  // Returns the most tokens that a text may have before Complete, of a model that takes `most`; 0:
  // no limit.
  int64_t MostTokens(int64_t most) const;
  // Puts the marker in its place, and fills the text up.
  void Complete(TextTokens& tokens) const;
  // Drops the rows of tokens whose vectors are not answered; `values` has a row for each of `ids`.
  // Returns the number of rows that are left.
  int64_t KeepRows(absl::Span<const uint32_t> ids, std::vector<float>& values) const;

 private:
  SideTokens() = default;

  // Constant after construction.
  std::optional<uint32_t> marker_;
  int64_t length_ = 0, filled_to_ = 0;
  bool attends_ = false;
  uint32_t filler_ = 0;
  HashSet<uint32_t> skipped_;
};

// Returns the token that fills queries up: `wanted`, else the token of masks, of an end or of
// padding that the tokenizer's files name. Errors: INVALID_ARGUMENT where there is none.
absl::StatusOr<std::string> FillerOf(const LateFacts& facts, const TokenizerFiles& files,
                                     const Tokenizer& tokenizer);

// Returns the score of a query and a document, which have `width` numbers a token: for each token
// of the query the largest product with one of the document, added up.
float MaxSim(absl::Span<const float> query, absl::Span<const float> document, int64_t width,
             bool mean);

}  // namespace reprise

// TextPackage: what a model's folder says about texts: its tokenizer, how token vectors become one
// vector, its labels, how long a text may be.
//
// Folders of the model hub, of sentence-transformers (modules.json, 1_Pooling, 2_Dense,
// 2_Normalize) and of cross encoders are read. Files are looked for beside the model file and in up
// to two folders above it.
//
// Errors name the file and what in it is damaged or not supported; contradictions name both sides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"
#include "server/text/tokenizer.h"

namespace reprise {

// How the vectors of a text's tokens become one.
enum class Pooling { kCls, kMax, kMean, kMeanSqrtLength, kWeightedMean, kLastToken };

const char* PoolingName(Pooling pooling);  // "mean"
std::optional<Pooling> ParsePooling(const std::string& name);

enum class Activation { kIdentity, kTanh, kRelu, kGelu, kSigmoid };

struct DenseLayer {
  std::string folder;  // "2_Dense", for messages
  Tensor weight;       // float32 [out, in]
  Tensor bias;         // float32 [out]; empty: none
  Activation activation = Activation::kTanh;
};

struct TextPackage {
  std::optional<TokenizerFiles> tokenizer;
  std::string tokenizer_file;   // "tokenizer.json", for people
  bool lower_case = false;      // sentence_bert_config.json: texts are lowered first
  int64_t max_tokens = 0;       // a text's, special ones included; 0: no file says
  std::string max_tokens_from;  // the file that says

  bool sentence_transformer = false;  // modules.json is there
  std::vector<Pooling> poolings;      // joined one behind another; empty: no file says
  int64_t pooled_width = 0;           // a token's, as 1_Pooling says; 0: it does not say
  std::vector<DenseLayer> dense;
  bool normalize = false;
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // its text

  std::string architecture;         // config.json: "BertForSequenceClassification"
  std::vector<std::string> labels;  // the id is the place; empty: no file says
  bool multi_label = false;         // labels do not exclude each other
  bool raw_scores = false;          // a cross encoder whose scores are logits

  std::vector<std::string> findings;  // sentences for `reprise check`
};

// `model_file`: the path of model.onnx. A folder without any of these files is a package without a
// tokenizer.
absl::StatusOr<TextPackage> ReadTextPackage(const std::filesystem::path& model_file);

}  // namespace reprise

// TextOffer: a model's tasks with texts, decided from its folder and from its inputs and outputs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/onnx/model_io.h"
#include "server/hub/embedding_head.h"
#include "server/hub/text_package.h"

namespace reprise {

enum class TextTask {
  kNone,
  kEmbed,     // a vector for each text
  kRank,      // a score for each pair of texts
  kClassify,  // a score for each label
  kTag,       // a score for each label and token
  kSparse,    // a weight for each word of the vocabulary, most of them 0
  kTokens,    // a vector for each token
};

const char* TextTaskName(TextTask task);  // "embeddings"

struct TextOffer {
  TextTask task = TextTask::kNone;
  std::string output;  // that answers
  // The evidence for it ("config.json names BertForTokenClassification"); where it is kNone, why
  // texts are refused.
  std::string why;
  absl::Status refusal;  // kNone: the error that a text gets
  bool append_head = false;
  EmbeddingHead head;
};

// Contradictions between the folder and the model are a refusal that names both.
TextOffer DecideTextOffer(const TextPackage& package, const std::vector<ModelIo>& inputs,
                          const std::vector<ModelIo>& outputs);

// Returns whether the model has an output of a vector a token, by the names that exporters give it.
bool HasVectors(const std::vector<ModelIo>& outputs);

// Returns whether the input is made from a text's tokens.
bool IsTokenInput(const ModelIo& input);

}  // namespace reprise

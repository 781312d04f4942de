// TextPackage: the facts about texts in a model's folder: its tokenizer, how token vectors become
// one vector, its labels, how long a text may be.
//
// Folders of the model hub, of sentence-transformers (modules.json and the files that it names) and
// of cross encoders are read. Files are looked for next to the model file and in up to two folders
// above it. Each member of a file is read, refused or left out as the table of folder_members.h
// says.
//
// Errors name the file and its damaged or unsupported part; contradictions name both sides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hub/head_steps.h"
#include "server/hub/late_interaction.h"
#include "server/hub/speech_files.h"
#include "server/text/tokenizer.h"

namespace reprise {

// How two vectors are compared; distances are negated, so that more is closer.
enum class Similarity { kCosine, kDot, kEuclidean, kManhattan };

struct TextPackage {
  std::optional<TokenizerFiles> tokenizer;
  std::string tokenizer_file;   // "tokenizer.json", for people
  int64_t max_tokens = 0;       // a text's, special ones included; 0: no file says
  std::string max_tokens_from;  // the file that says
  int64_t padding_id = 0;       // the id that follows the last token of a row
  bool token_types = true;      // false: all are 0
  // The position of the first token; positions of RoBERTa's kind begin after the padding id.
  int64_t first_position = 0;

  bool sentence_transformer = false;  // modules.json is there
  bool cross_encoder = false;         // scores are answered, not vectors
  bool sparse = false;                // weights of words are answered
  bool token_vectors = false;         // config.pbtxt asks for a vector a token
  int64_t most_words = 0;             // the largest weights that are answered; 0: all
  std::optional<LateFacts> late;      // a vector a token is answered, of queries and documents
  std::string vectors_output;         // the model's output that modules read; empty: no file says
  std::string vectors_name = kTokenVectors;  // that modules read it by
  std::vector<HeadStep> steps;               // the modules after it
  int64_t truncate_dim = 0;                  // the elements that are kept of a vector; 0: all
  Similarity similarity = Similarity::kCosine;
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // its text

  bool is_decoder = false;  // the model's file has inputs of cached keys and values

  std::string architecture;         // config.json: "BertForSequenceClassification"
  std::vector<std::string> labels;  // the id is the place; empty: no file says
  bool multi_label = false;         // labels do not exclude each other
  bool regression = false;          // labels are numbers, which nothing turns into shares
  // The function of a cross encoder's score; nullopt: no file says.
  std::optional<Activation> score_activation;

  // How a conversation is written as one text: a template in Jinja, and further ones by name
  // ("tool_use", "rag"). Empty: the model does not chat.
  std::string chat_template;
  std::map<std::string, std::string> chat_templates;
  std::string bos_token, eos_token, pad_token, unk_token;  // that templates ask for; may be empty

  // How sound becomes texts; nullopt: the folder is none of Whisper's. An error: its files cannot
  // be used, and texts are taken all the same.
  absl::StatusOr<std::optional<SpeechFacts>> speech = std::optional<SpeechFacts>();

  std::vector<std::string> findings;  // sentences for `reprise check`
};

// Makes `pooling` the package's only one, in place of the folder's.
void OverridePooling(Pooling pooling, TextPackage& package);
// Makes weights of words of the scores that a masked language model has.
void OverrideBySplade(TextPackage& package);
// Answers a vector a token: steps of modules on a whole text are left out.
void OverrideByTokens(TextPackage& package);

// `model_file`: the path of model.onnx, or of a GGUF file, which says all of it itself. A folder
// without any of these files is a package without a tokenizer.
absl::StatusOr<TextPackage> ReadTextPackage(const std::filesystem::path& model_file);

}  // namespace reprise

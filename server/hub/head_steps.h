// The steps that make vectors, or scores, of a text from the vectors of its tokens: the modules of
// a sentence transformer. Each reads vectors by a name and writes others by a name; they run in
// order.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/tensor.h"

namespace reprise {

// The names that modules have by default.
inline constexpr char kTokenVectors[] = "token_embeddings";   // [batch, tokens, width]
inline constexpr char kTextVectors[] = "sentence_embedding";  // [batch, width]
inline constexpr char kScores[] = "scores";                   // [batch, labels]

// How the vectors of a text's tokens become one.
enum class Pooling { kCls, kMax, kMean, kMeanSqrtLength, kWeightedMean, kLastToken };

const char* PoolingName(Pooling pooling);  // "mean"
std::optional<Pooling> ParsePooling(const std::string& name);

enum class Activation { kIdentity, kTanh, kRelu, kGelu, kSigmoid };

// kTokenVectors become kTextVectors: the poolings, joined one after another.
struct PoolingStep {
  std::vector<Pooling> poolings;
  int64_t width = 0;   // the size of a token's vector; 0: unknown
  std::string folder;  // "1_Pooling", for messages
};

struct DenseLayer {
  std::string folder;
  Tensor weight;  // float32 [out, in]
  Tensor bias;    // float32 [out]; empty: none
  Activation activation = Activation::kTanh;
  bool adds_input = false;
  Tensor
      residual;  // float32 [out, in], which the input goes through before it is added; empty: none
  std::string input = kTextVectors;
  std::string output = kTextVectors;
};

struct NormalizeStep {
  std::string folder;
  std::string input = kTextVectors;
  std::string output = kTextVectors;
};

struct LayerNormStep {
  std::string folder;
  Tensor weight, bias;  // float32 [width]
};

// kTokenVectors, which are scores of the vocabulary's words for each token, become kTextVectors: a
// weight a word, of which most are 0.
struct SpladeStep {
  std::string folder;
  bool sums = false;       // weights of tokens are added; false: the largest counts
  bool log_twice = false;  // log(1 + log(1 + x)) in the place of log(1 + x)
  int64_t width = 0;       // the number of words; 0: unknown
};

using HeadStep = std::variant<PoolingStep, DenseLayer, NormalizeStep, LayerNormStep, SpladeStep>;

// Returns the width of the vectors `result` after `steps`; 0: unknown. `first`: the name of the
// vectors that the transformer writes, of `width` elements. Errors: INVALID_ARGUMENT for widths
// that contradict each other, or a name that no step writes.
absl::StatusOr<int64_t> WidthAfter(const std::vector<HeadStep>& steps, const std::string& first,
                                   int64_t width, const std::string& result);

// Returns whether some step writes `name`.
bool Writes(const std::vector<HeadStep>& steps, const std::string& name);

// Returns whether the last step that writes `name` makes vectors of length 1.
bool EndsNormalized(const std::vector<HeadStep>& steps, const std::string& name);

// "mean and max"; empty where nothing is pooled.
std::string PoolingNames(const std::vector<HeadStep>& steps, const char* between);

}  // namespace reprise

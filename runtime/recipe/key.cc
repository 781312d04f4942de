#include "runtime/recipe/key.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/hash64.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/compiler_digest.h"

namespace reprise {

std::string CompilerId() { return absl::StrCat(kCompilerVersion, "-", kCompilerDigest); }

GraphFingerprint FingerprintGraph(const Graph& graph) {
  auto text = std::make_shared<const std::string>(Print(graph, {.names = false}));
  const uint64_t hash = Hash64(*text);
  return {text, hash, HexDigest128(*text)};
}

std::string RecipeKey::hex() const { return HexKey(hash); }

bool operator==(const RecipeKey& a, const RecipeKey& b) {
  return a.hash == b.hash && a.compiler_version == b.compiler_version && a.binding == b.binding &&
         a.packing == b.packing && a.precision == b.precision && a.device == b.device &&
         (a.graph.text == b.graph.text || *a.graph.text == *b.graph.text);
}

std::string PrecisionText(const KeyPolicy& policy) {
  const bool stored = policy.weights == WeightBits::kStored;
  return absl::StrCat(PrecisionName(policy.precision), stored ? "" : ", weights ",
                      stored ? "" : WeightBitsName(policy.weights),
                      policy.by_node.empty() ? "" : ", by node ", policy.by_node,
                      policy.fusion ? "" : ", unfused",
                      policy.shard.ranks <= 1
                          ? std::string()
                          : absl::StrCat(", rank ", policy.shard.rank, " of ", policy.shard.ranks,
                                         ", ", ParallelismName(policy.shard.parallelism)));
}

Precision PrecisionOfText(const std::string& text) {
  return ParsePrecision(absl::string_view(text).substr(0, text.find(','))).value();
}

RecipeKey MakeKey(const GraphFingerprint& graph, Binding binding, const std::string& device,
                  const KeyPolicy& policy) {
  RecipeKey key;
  key.graph = graph;
  key.packing = policy.packing;
  key.precision = PrecisionText(policy);
  key.binding = std::move(binding);
  key.device = device;
  // The separators keep adjacent fields apart.
  const std::string fields =
      absl::StrCat(key.binding.ToString(), "\n", key.packing, "\n", key.precision, "\n", key.device,
                   "\n", key.compiler_version);
  key.hash = Hash64(fields, graph.hash);
  return key;
}

}  // namespace reprise

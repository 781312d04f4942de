// RecipeKey: the fields that must be equal for two recipes to be interchangeable.
//
// The 64-bit hash indexes; the full fields decide. Strings that many keys share (the graph's text
// is long) are shared by pointer, so that comparing two keys of one model compares no text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/graph/node.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {

// Raised whenever the same fields would compile to different launches.
inline constexpr int kCompilerVersion = 1;

// Returns the compiler's identity, which must be equal on disk: the version, and a digest of the
// compiler's own source, so that an old plan is not taken for a new one when the version was not
// raised.
std::string CompilerId();

// The canonical text of a symbolic graph and its hash, computed once a model.
struct GraphFingerprint {
  std::shared_ptr<const std::string> text;
  uint64_t hash = 0;
  std::string digest;  // 128 bits of the text in hex: stands for it on disk
};
GraphFingerprint FingerprintGraph(const Graph& graph);

struct RecipeKey {
  GraphFingerprint graph;
  Binding binding;
  std::string packing = "padded";
  std::string precision = "exact";  // see PrecisionText
  std::string device;               // Device::fingerprint()
  int compiler_version = kCompilerVersion;
  uint64_t hash = 0;  // covers all the fields above

  std::string hex() const;
  friend bool operator==(const RecipeKey& a, const RecipeKey& b);
};

// How a graph is run, besides its sizes.
struct KeyPolicy {
  std::string packing = "padded";
  Precision precision = Precision::kExact;
  WeightBits weights = WeightBits::kStored;
  std::string by_node;  // NodePrecisions::digest; empty: `precision` holds for all nodes
  bool fusion = true;   // see FusionPassNames
  Shard shard;          // see passes/kit/pass.h
};

// Returns "bf16", "exact, weights int8", "exact, by node 0b5c...", "exact, unfused", "exact, rank 0
// of 2, pipeline"; PrecisionOfText reads the first word of it.
std::string PrecisionText(const KeyPolicy& policy);
Precision PrecisionOfText(const std::string& text);

RecipeKey MakeKey(const GraphFingerprint& graph, Binding binding, const std::string& device,
                  const KeyPolicy& policy = {});

}  // namespace reprise

// ModelProgram: the input of a model's captures.
//
// Constant once the model is loaded, but for its prepared parameters and its variants, which appear
// as recipes and requests ask for them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/engine/model/model_owner.h"
#include "runtime/engine/model/model_variants.h"
#include "runtime/engine/model/precision_choice.h"
#include "runtime/engine/model/split_axes.h"
#include "runtime/engine/model/tail.h"
#include "runtime/graph/held_graph.h"
#include "runtime/graph/node.h"
#include "runtime/passes/kit/precision_rules.h"
#include "runtime/recipe/key.h"

namespace reprise {

struct ModelProgram {
  HeldGraph graph;  // as after the load passes; a cut model's ends at its cuts
  // The graph as the file has it, where `graph` is its live form (passes/live). Forms that know by
  // themselves where requests end, as pages do, are made of it.
  std::optional<HeldGraph> plain;
  GraphFingerprint fingerprint;
  std::string device_fingerprint;
  std::shared_ptr<const Tail> tail;         // null: the graph is all of the model
  std::unique_ptr<ModelVariants> variants;  // null where no initialiser can be overridden
  // Null where no request has sizes that the model takes and its axes do not.
  std::unique_ptr<SplitAxes> split_axes;
  std::shared_ptr<ModelOwner> owner;  // has the parameters
  // The nodes that round; null: all as the model's precision says.
  std::shared_ptr<const NodePrecisions> nodes;
  // The choice among them; null where ModelOptions::precision_goal asks for none.
  std::shared_ptr<const PrecisionChoice> choice;
};

}  // namespace reprise

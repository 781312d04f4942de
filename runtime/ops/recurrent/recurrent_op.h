// Recurrent layers.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct LstmOp {
  static constexpr char kName[] = "LSTM";
  enum Input : size_t { kX, kWeights, kRecurrence, kBias };

  int64_t layout = 0;
  std::string direction = "forward";

  static LstmOp From(const Attributes& attributes) {
    LstmOp op;
    ReadAttribute(attributes, "layout", op.layout);
    ReadAttribute(attributes, "direction", op.direction);
    return op;
  }
  static LstmOp From(const Node& node) { return From(node.attributes); }
};

struct GruOp {
  static constexpr char kName[] = "GRU";
  enum Input : size_t { kX, kWeights, kRecurrence, kBias };

  int64_t layout = 0;
  std::string direction = "forward";

  static GruOp From(const Attributes& attributes) {
    GruOp op;
    ReadAttribute(attributes, "layout", op.layout);
    ReadAttribute(attributes, "direction", op.direction);
    return op;
  }
  static GruOp From(const Node& node) { return From(node.attributes); }
};

struct RnnOp {
  static constexpr char kName[] = "RNN";
  enum Input : size_t { kX, kWeights, kRecurrence, kBias };

  int64_t layout = 0;
  std::string direction = "forward";

  static RnnOp From(const Attributes& attributes) {
    RnnOp op;
    ReadAttribute(attributes, "layout", op.layout);
    ReadAttribute(attributes, "direction", op.direction);
    return op;
  }
  static RnnOp From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise

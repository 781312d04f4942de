// Conversions of float8. `form`: the number that ONNX gives to it.
// See typed_op.h.
#pragma once

#include "runtime/ops/kit/typed_op.h"

namespace reprise {

struct FromFloat8Op {
  static constexpr char kName[] = "reprise.FromFloat8";
  enum Input : size_t { kX };

  int64_t form = 0;

  static FromFloat8Op From(const Attributes& attributes) {
    FromFloat8Op op;
    ReadAttribute(attributes, "form", op.form);
    return op;
  }
  static FromFloat8Op From(const Node& node) { return From(node.attributes); }
};

struct ToFloat8Op {
  static constexpr char kName[] = "reprise.ToFloat8";
  enum Input : size_t { kX };

  int64_t form = 0;

  static ToFloat8Op From(const Attributes& attributes) {
    ToFloat8Op op;
    ReadAttribute(attributes, "form", op.form);
    return op;
  }
  static ToFloat8Op From(const Node& node) { return From(node.attributes); }
};

struct DequantizeFloat8Op {
  static constexpr char kName[] = "reprise.DequantizeFloat8";
  enum Input : size_t { kX, kScale };

  int64_t form = 0;

  static DequantizeFloat8Op From(const Attributes& attributes) {
    DequantizeFloat8Op op;
    ReadAttribute(attributes, "form", op.form);
    return op;
  }
  static DequantizeFloat8Op From(const Node& node) { return From(node.attributes); }
};

struct QuantizeFloat8Op {
  static constexpr char kName[] = "reprise.QuantizeFloat8";
  enum Input : size_t { kX, kScale };

  int64_t form = 0;

  static QuantizeFloat8Op From(const Attributes& attributes) {
    QuantizeFloat8Op op;
    ReadAttribute(attributes, "form", op.form);
    return op;
  }
  static QuantizeFloat8Op From(const Node& node) { return From(node.attributes); }
};

}  // namespace reprise

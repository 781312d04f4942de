// The decomposed forms of Gelu: 0.5 x (1 + erf(x / sqrt 2)),
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and x sigmoid(1.702 x).
//
// Exporters order and group the factors in every way, so nothing is compared with a picture of the
// pattern: the expressions around erf, tanh or sigmoid are read as polynomials. With t the result
// of one of these, its operand must be the polynomial in x above, and the whole must be 0.5 x + 0.5
// x t, or x t.
//
// A file that halves last makes twice of x on the way, which is infinite above half of the largest
// number. So is the fused node then: the expression is computed at such numbers to see it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/activation_op.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// c[i][j] is the factor of x^i t^j.
struct Polynomial {
  std::array<std::array<double, 2>, 4> c{};

  static Polynomial Constant(double value) {
    Polynomial p;
    p.c[0][0] = value;
    return p;
  }
};

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial p;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 4; ++k) {
        for (int l = 0; l < 2; ++l) {
          const double product = a.c[i][j] * b.c[k][l];
          if (product == 0) continue;
          if (i + k > 3 || j + l > 1) return std::nullopt;
          p.c[i + k][j + l] += product;
        }
      }
    }
  }
  return p;
}

// Reads expressions of Add, Sub, Mul, Div and Pow over x, t and one-element constants.
class Reader {
 public:
  Reader(const Graph& graph, ValueId x, ValueId t) : graph_(graph), x_(x), t_(t) {}

  // Reads a polynomial; nullopt for anything else, and beyond `depth` nodes.
  std::optional<Polynomial> Read(ValueId value, int depth) const {
    Polynomial p;
    if (value == x_) return p.c[1][0] = 1, p;
    if (value == t_) return p.c[0][1] = 1, p;
    if (const auto scalar = KnownScalar(graph_, value); scalar.has_value()) {
      return Polynomial::Constant(*scalar);
    }
    const NodeId producer = ProducerOf(graph_, value);
    if (producer == kNone || depth == 0) return std::nullopt;
    const Node& node = graph_.node(producer);
    if (node.op == PowOp::kName) return ReadPower(node, depth);
    if (node.op != AddOp::kName && node.op != SubOp::kName && node.op != MulOp::kName &&
        node.op != DivOp::kName) {
      return std::nullopt;
    }
    const auto a = Read(node.inputs[0], depth - 1);
    if (!a.has_value()) return std::nullopt;
    auto b = Read(node.inputs[1], depth - 1);
    if (!b.has_value()) return std::nullopt;
    if (node.op == MulOp::kName) return Product(*a, *b);
    if (node.op == DivOp::kName) {
      const auto divisor = KnownScalar(graph_, node.inputs[1]);
      if (!divisor.has_value() || *divisor == 0) return std::nullopt;
      return Product(*a, Polynomial::Constant(1 / *divisor));
    }
    const double sign = node.op == SubOp::kName ? -1 : 1;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 2; ++j) p.c[i][j] = a->c[i][j] + sign * b->c[i][j];
    }
    return p;
  }

 private:
  std::optional<Polynomial> ReadPower(const Node& node, int depth) const {
    const auto exponent = KnownScalar(graph_, node.inputs[1]);
    if (!exponent.has_value() || (*exponent != 2 && *exponent != 3)) return std::nullopt;
    const auto base = Read(node.inputs[0], depth - 1);
    if (!base.has_value()) return std::nullopt;
    auto product = Product(*base, *base);
    if (product.has_value() && *exponent == 3) product = Product(*product, *base);
    return product;
  }

  const Graph& graph_;
  const ValueId x_;
  const ValueId t_;
};

// Returns the value of the expression at a number where t is 1, each step rounded as the file has
// it.
float AsSpelled(const Graph& graph, ValueId value, ValueId x, ValueId t, float number) {
  if (value == x) return number;
  if (value == t) return 1;
  if (const auto scalar = KnownScalar(graph, value); scalar.has_value()) {
    return static_cast<float>(*scalar);
  }
  // A Reader has read it before.
  const Node& node = graph.node(ProducerOf(graph, value));
  const float a = AsSpelled(graph, node.inputs[0], x, t, number);
  const float b = AsSpelled(graph, node.inputs[1], x, t, number);
  if (node.op == AddOp::kName) return a + b;
  if (node.op == SubOp::kName) return a - b;
  if (node.op == MulOp::kName) return a * b;
  return node.op == DivOp::kName ? a / b : std::pow(a, b);
}

// Returns whether the expression is infinite above half of the largest number, and nowhere else;
// nullopt where it ends elsewhere.
std::optional<bool> Doubles(const Graph& graph, ValueId whole, ValueId x, ValueId t) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const auto ends = [&](float number) {
    return !std::isfinite(AsSpelled(graph, whole, x, t, number));
  };
  if (!ends(kLargest)) return false;
  if (ends(kLargest / 2) || !ends(std::nextafter(kLargest / 2, kLargest))) return std::nullopt;
  return true;
}

// Published constants have four digits or more.
bool Matches(const Polynomial& p, const Polynomial& expected) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (std::abs(p.c[i][j] - expected.c[i][j]) > 2e-5 * std::abs(expected.c[i][j])) return false;
    }
  }
  return true;
}

constexpr int kMaxDepth = 6;

// Collects the values a few nodes above of which the operand of erf or tanh may be a polynomial.
void CollectCandidates(const Graph& graph, ValueId value, int depth,
                       std::vector<ValueId>& candidates) {
  if (value == kNone || graph.value(value).kind == Value::Kind::kConstant) return;
  if (std::find(candidates.begin(), candidates.end(), value) != candidates.end()) return;
  candidates.push_back(value);
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone || depth == 0) return;
  const Node& node = graph.node(producer);
  if (node.op != AddOp::kName && node.op != MulOp::kName && node.op != DivOp::kName &&
      node.op != PowOp::kName && node.op != SubOp::kName) {
    return;
  }
  for (ValueId input : node.inputs) CollectCandidates(graph, input, depth - 1, candidates);
}

// A function t of a polynomial in x, and the value as a polynomial in x and t.
struct Form {
  absl::string_view function;
  Polynomial operand, whole;
  absl::string_view op;
  Attributes attributes;
};

const std::vector<Form>& Forms() {
  static const auto* const forms = [] {
    const double root = std::sqrt(2 / M_PI);
    Polynomial erf, tanh, sigmoid, half, product;
    erf.c[1][0] = std::sqrt(0.5);
    tanh.c[1][0] = root;
    tanh.c[3][0] = root * 0.044715;
    sigmoid.c[1][0] = ops::kQuickGeluAlpha;
    half.c[1][0] = half.c[1][1] = 0.5;
    product.c[1][1] = 1;
    return new std::vector<Form>{
        {ErfOp::kName, erf, half, GeluOp::kName, {{"approximate", std::string("none")}}},
        {TanhOp::kName, tanh, half, GeluOp::kName, {{"approximate", std::string("tanh")}}},
        {SigmoidOp::kName,
         sigmoid,
         product,
         QuickGeluOp::kName,
         {{"alpha", ops::kQuickGeluAlpha}}}};
  }();
  return *forms;
}

ValueId FindX(const Graph& graph, ValueId operand, const Polynomial& expected) {
  std::vector<ValueId> candidates;
  CollectCandidates(graph, operand, kMaxDepth, candidates);
  for (ValueId x : candidates) {
    if (!SameShape(graph, x, operand)) continue;
    const auto polynomial = Reader(graph, x, kNone).Read(operand, kMaxDepth);
    if (polynomial.has_value() && Matches(*polynomial, expected)) return x;
  }
  return kNone;
}

absl::StatusOr<bool> RewriteGelu(Graph& graph, NodeId id, const Form& form) {
  const ValueId x = FindX(graph, graph.node(id).inputs[0], form.operand);
  if (x == kNone) return false;
  const ValueId t = graph.node(id).outputs[0];
  ValueId whole = t;
  for (int step = 0; step < 4; ++step) {
    const NodeId user = OnlyUser(graph, whole);
    if (user == kNone) return false;
    whole = graph.node(user).outputs[0];
    const auto polynomial = Reader(graph, x, t).Read(whole, kMaxDepth);
    if (!polynomial.has_value()) return false;
    if (!Matches(*polynomial, form.whole) || !SameShape(graph, whole, x)) continue;
    const std::optional<bool> doubles = Doubles(graph, whole, x, t);
    if (!doubles.has_value()) return false;
    Attributes attributes = form.attributes;
    if (*doubles) attributes.Set("doubled", int64_t{1});
    const std::string name = graph.node(id).name;
    ASSIGN_OR_RETURN(const ValueId gelu, AddInferred(graph, form.op, {x}, attributes, name));
    Replace(graph, whole, gelu);
    return true;
  }
  return false;
}

absl::StatusOr<bool> FuseGeluAt(Graph& graph, NodeId id) {
  if (!IsFloat32(graph, graph.node(id).outputs[0])) return false;
  for (const Form& form : Forms()) {
    if (graph.node(id).op == form.function) return RewriteGelu(graph, id, form);
  }
  return false;
}

}  // namespace

std::unique_ptr<Pass> FuseGelu() { return PassOfNodes("fuse_gelu", FuseGeluAt); }

}  // namespace reprise

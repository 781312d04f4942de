// ModelDraft: a model while it is drawn.
//
// Every value is known at a few trial sizes of the axes, so that a caller that adds a node sees the
// possible operands, and a node that the op table does not take at all of them is not added.
//
// Within a branch that sizes decide only the trials count that take it: see Assume.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/chance.h"

namespace reprise::fuzz {

using Sizes = std::map<std::string, int64_t>;  // keyed by symbol

// How often a model takes from which family of ops.
struct ModelStyle {
  int64_t elementwise = 8, movement = 6, gather = 3, reduce = 5, products = 4, windows = 4,
          quantized = 1, attention = 2, patterns = 2, rare = 1, data = 0, sizes = 4;
};

class ModelDraft {
 public:
  using Filter = std::function<bool(ValueId)>;

  ModelDraft(Chance& chance, std::vector<Sizes> trials, const ModelStyle& style);

  Chance& chance() { return chance_; }
  const std::vector<Sizes>& trials() const { return trials_; }
  const ModelStyle& style() const { return style_; }

  // --- Adding. ---
  // `contents`: one tensor a trial.
  ValueId Input(const std::string& name, DType dtype, std::vector<Dim> dims,
                std::vector<Tensor> contents);
  ValueId Constant(Tensor tensor);
  ValueId Ints(const std::vector<int64_t>& values) { return Constant(Tensor::Int64s(values)); }
  ValueId Int(int64_t value) { return Constant(Tensor::Int64Scalar(value)); }
  ValueId Float(double value) { return Constant(Tensor::FloatScalar(static_cast<float>(value))); }
  // Random floats that keep the magnitude of their other factor, `inner` of them in a sum.
  ValueId Weight(Shape shape, int64_t inner = 1);
  // Returns numbers in [low, high] of any dtype.
  ValueId Numbers(DType dtype, Shape shape, double low, double high);
  // Returns the results of a new node, or nothing where some trial does not take it, or gives
  // results that are of no use: too many elements, too large numbers. `hidden`: not to be picked.
  std::vector<ValueId> AddNode(absl::string_view op, std::vector<ValueId> inputs,
                               Attributes attributes = {}, size_t outputs = 1);
  // Returns its first result, or kNone; also where an operand is kRefused.
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {},
              size_t outputs = 1);
  // If over values of equal dtype; the trials decide which of them must be known where.
  ValueId AddIf(ValueId condition, ValueId first, ValueId second);
  // A loop of `trips` turns that carries one value. `body`: from it and the number of the turn to
  // the next, of the same shape.
  ValueId AddLoop(ValueId trips, ValueId start,
                  const std::function<ValueId(ValueId carried, ValueId turn)>& body);

  // --- Branches. ---
  // Until the end of `draw` only those trials count where `condition` is `taken`; all that count
  // now, where it is so in none. Values that `draw` adds are not picked after it. Returns its
  // result.
  ValueId Within(ValueId condition, bool taken, const std::function<ValueId()>& draw);

  // Returns the result of `draw`, which may add numbers as low as masks' are. Only that is picked
  // after it.
  ValueId WithLowNumbers(const std::function<ValueId()>& draw);

  // --- Picking. ---
  // A value that passes, rather a new one than an old one; kNone where there is none.
  ValueId Pick(const Filter& filter);
  // Returns a float32 value of `low` to `high` dims.
  ValueId PickFloat(int64_t low = 0, int64_t high = 5);
  ValueId PickInteger();
  ValueId PickBool();  // made, where there is none
  // Returns the results that nothing uses yet, and that answers may hold.
  std::vector<ValueId> Loose() const;

  // --- Looking. ---
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  DType TypeOf(ValueId id) const { return id == kNone ? DType::kUndefined : known_[id].dtype; }
  // Returns the number of dims; -1 where it differs.
  int64_t RankOf(ValueId id) const;
  // By trial that counts.
  std::vector<int64_t> SizesOf(ValueId id, int64_t dim) const;
  // Returns the size of `dim` where it is the same at all trials, else -1.
  int64_t FixedSize(ValueId id, int64_t dim) const;
  int64_t SmallestSize(ValueId id, int64_t dim) const;
  // Returns the dims of fixed size, or the others.
  std::vector<int64_t> DimsWhere(ValueId id, bool fixed) const;
  // Returns the least and the largest element.
  std::pair<double, double> RangeOf(ValueId id) const;
  bool DependsOnData(ValueId id) const { return known_[id].data; }
  std::vector<const Tensor*> TensorsOf(ValueId id) const;  // one a trial that counts

 private:
  struct Known {
    DType dtype = DType::kUndefined;
    std::vector<std::optional<Tensor>> at;  // one a trial
    bool data = false;                      // elements depend on elements of an input
    bool pickable = false;
  };
  ValueId Keep(ValueId id, std::vector<std::optional<Tensor>> at, bool data, bool pickable);
  bool Leads(const Tensor& tensor) const;

  Chance& chance_;
  const std::vector<Sizes> trials_;
  const ModelStyle style_;
  Graph graph_;
  std::vector<Known> known_;   // one a value
  std::vector<bool> counts_;   // one a trial
  std::vector<ValueId> pool_;  // operands for the next op, oldest first
  int64_t loops_ = 0;
  bool round_;  // numbers are short binary fractions
  bool wild_;   // infinities and NaN may come up
};

}  // namespace reprise::fuzz

// RowDraft: a model of one op while it is drawn: its operands with axes along any of their dims, a
// step before it and one after it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/fuzz/obligations/contents.h"
#include "tests/fuzz/random_models/draw_model.h"
#include "tests/fuzz/random_models/model_draft.h"

namespace reprise::obligations {

using Dims = std::vector<Dim>;

inline constexpr char kBatch[] = "batch";
inline constexpr char kAxis[] = "s";
inline constexpr char kOther[] = "t";
inline constexpr int64_t kAny = -1;  // a dim of any size, which may be an axis

class RowDraft : public fuzz::ModelDraft {
 public:
  explicit RowDraft(Chance& chance);

  // --- Dims. ---
  // Lets axes lie along some of the `kAny` dims; the others get small sizes.
  Dims DrawDims(std::vector<int64_t> wanted);
  // The same for any number of dims from `low` to `high`.
  Dims AnyDims(int64_t low, int64_t high);
  // Dims that numpy broadcasts with these.
  Dims Beside(const Dims& dims);

  // --- Types. ---
  DType FloatType();    // mostly f32
  DType NumberType();   // also integers
  DType IntegerType();  // i32, i64 and others
  DType AnyType();      // also bool

  // --- Operands. ---
  // `kind`: see contents.h; `bound`: with its bound.
  ValueId Input(absl::string_view kind, DType dtype, Dims dims);
  ValueId Bounded(absl::string_view kind, const Dim& bound, DType dtype, Dims dims);
  // An input, and for floats now and then a step that makes something else of zeros.
  ValueId Data(DType dtype, Dims dims, absl::string_view kind = "x");
  // Numbers that every request has.
  ValueId Fixed(DType dtype, Shape shape, double low = -2, double high = 2);
  // One of both: numbers of dims without an axis are a constant now and then.
  ValueId DataOrFixed(DType dtype, Dims dims, absl::string_view kind = "x");

  // Makes `result` the output of the model, or, unless it is to stay `bare`, the result of one more
  // node; other results of its node as well.
  void Finish(ValueId result, bool bare);

 private:
  ValueId Step(ValueId x);
  // One more node: it reduces, moves or mixes elements along `dim`.
  ValueId After(ValueId x);
  ValueId ReducedAfter(ValueId x, int64_t dim);
  ValueId MovedAfter(ValueId x, int64_t dim);
  ValueId MixedAfter(ValueId x, int64_t dim);

  int64_t inputs_ = 0;
};

// Returns the dim of this size.
inline Dim SizeDim(int64_t size) { return {.size = size}; }

// How draws of a row are made. Returns the result of the op, kNone where the draw came to nothing.
struct RowCase {
  absl::string_view op;
  ValueId (*draw)(RowDraft& draft, absl::string_view op);
};

absl::Span<const RowCase> ElementwiseCases();
absl::Span<const RowCase> ReduceCases();
absl::Span<const RowCase> MovementCases();
absl::Span<const RowCase> ProductCases();
absl::Span<const RowCase> LayerCases();
absl::Span<const RowCase> ModelCases();
// Cases of ops of which the index map alone is looked at.
absl::Span<const RowCase> MapCases();

// Returns the cases of an op: none where it has none.
std::vector<RowCase> CasesOf(absl::string_view op);
// Returns the ops that have cases.
std::set<std::string> OpsOfCases();

// Draws a model of `op`, and requests for it. A graph without outputs: nothing came of it.
fuzz::TestCase DrawRow(absl::string_view op, uint64_t seed);
// The same by these cases, with no node after the op.
fuzz::TestCase DrawBareRow(const std::vector<RowCase>& cases, absl::string_view op, uint64_t seed);

}  // namespace reprise::obligations

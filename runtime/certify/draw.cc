#include "runtime/certify/draw.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

constexpr int64_t kDefaultBatch = 2;

// Large against what models compute with, small enough that products of two stay finite in float16
// wherever the model itself keeps finite numbers apart from masked ones.
constexpr double kLargeFloat = 1e4;
constexpr double kLargeMask = 1 << 20;

// The largest integer drawn for an input that may be a mask and may be numbers to compute with:
// what a model does with larger ones than 1 shows only where they are drawn.
constexpr int64_t kLargest = 100;

// A prime far from small tables' sizes: steps of it meet every id of a table before they repeat
// one.
constexpr int64_t kSweepStride = 10007;
constexpr int64_t kSweepStep = 61;  // one sweep begins this far from the one before

// An input that is added up along an axis and looked up then (the position of the last token,
// positions counted by a mask) holds no more than this, as masks go, however long the table is.
constexpr int64_t kLargestOfMasks = 3;

bool Counts(MaskPattern pattern, int64_t i, int64_t length) {
  switch (pattern) {
    case MaskPattern::kOnes:
      return true;
    case MaskPattern::kRagged:
      return i < (length + 1) / 2;
    case MaskPattern::kHoles:
      return i % 3 != 1;
    case MaskPattern::kLeftPadded:
      return i >= length / 2;
    case MaskPattern::kAlternating:
      return i % 2 == 0;
    case MaskPattern::kFirst:
      return i == 0;
    case MaskPattern::kNone:
      return false;
  }
  return false;
}

// Returns the first place of a pattern that counts.
int64_t FirstThatCounts(MaskPattern pattern, int64_t length) {
  return pattern == MaskPattern::kLeftPadded ? length / 2 : 0;
}

// In half of the contents a quarter of the elements are numbers that the model compares with:
// `put(element, number)`.
template <typename Put>
void SprinkleTelling(const std::vector<double>& telling, const Drawer::Content& content,
                     size_t elements, std::mt19937_64& random, Put&& put) {
  if (content.seed % 2 != 1 || telling.empty()) return;
  for (size_t e = 0; e < elements; ++e) {
    if (random() % 4 == 0) put(e, telling[random() % telling.size()]);
  }
}

// A byte that is a number: near others as often as not, so that no exponential hides all but one.
double DrawByte(std::mt19937_64& random) {
  constexpr int64_t kNear = 5, kAnyOfSevenBits = 128;
  const bool near = random() % 2 == 0;
  return static_cast<double>(random() % (near ? kNear : kAnyOfSevenBits));
}

}  // namespace

absl::string_view HostileName(Hostile hostile) {
  switch (hostile) {
    case Hostile::kRandom:
      return "random values";
    case Hostile::kHigh:
      return "the largest values";
    case Hostile::kLow:
      return "the smallest values";
    case Hostile::kOne:
      return "ones";
    case Hostile::kSmall:
      return "small values";
    case Hostile::kSweep:
      return "many values";
    case Hostile::kQuiet:
      return "values near 0";
  }
  return "";
}

SymbolSizes AllSymbols(absl::Span<const ProbeInput> inputs, int64_t size) {
  SymbolSizes sizes;
  std::vector<std::string> expressions;
  for (const ProbeInput& input : inputs) {
    for (const Dim& dim : input.dims) {
      if (dim.is_constant()) continue;
      if (ExpressionSymbols(dim.symbol).empty()) {
        sizes[dim.symbol] = size;
      } else {
        expressions.push_back(dim.symbol);
      }
    }
  }
  // An expression with a symbol that no dim is by itself is an axis like any other.
  SymbolSizes all = sizes;
  for (const std::string& expression : expressions) {
    const bool derived =
        absl::c_all_of(ExpressionSymbols(expression),
                       [&](const std::string& symbol) { return sizes.count(symbol) != 0; });
    if (!derived) all[expression] = size;
  }
  return all;
}

Drawer::Drawer(absl::Span<const ProbeInput> inputs, absl::Span<const InputRange> ranges,
               const ProbeOptions& options)
    : inputs_(inputs), ranges_(ranges), options_(options) {
  REPRISE_CHECK(inputs.size() == ranges.size());
  base_sizes_ = AllSymbols(inputs, kDefaultSize);
  if (base_sizes_.count(options.batch_axis)) base_sizes_[options.batch_axis] = kDefaultBatch;
  for (const auto& [symbol, size] : options.sizes) base_sizes_[symbol] = size;
}

absl::StatusOr<Shape> Drawer::ShapeAt(size_t i, const SymbolSizes& sizes) const {
  if (inputs_[i].value.has_value()) return inputs_[i].value->shape();
  Shape shape;
  for (const Dim& dim : inputs_[i].dims) {
    ASSIGN_OR_RETURN(const int64_t size, options_.dim_size(dim, sizes));
    shape.push_back(size);
  }
  if (ElementsAt(sizes) <= static_cast<double>(options_.most_elements)) return shape;
  return absl::ResourceExhaustedError(absl::StrCat(
      "measuring would draw input '", inputs_[i].name, "' of shape ", ShapeToString(shape),
      "; inputs of up to ", options_.most_elements, " elements together are drawn"));
}

double Drawer::ElementsAt(const SymbolSizes& sizes) const {
  double all = 0;
  for (const ProbeInput& input : inputs_) {
    if (input.value.has_value()) continue;
    double elements = 1;
    for (const Dim& dim : input.dims) {
      elements *= static_cast<double>(options_.dim_size(dim, sizes).value_or(0));
    }
    all += elements;
  }
  return all;
}

std::vector<size_t> Drawer::MovingDims(size_t i, const std::string& axis) const {
  std::vector<size_t> moving;
  if (inputs_[i].value.has_value() || base_sizes_.count(axis) == 0) return moving;
  SymbolSizes longer = base_sizes_;
  ++longer[axis];
  for (size_t d = 0; d < inputs_[i].dims.size(); ++d) {
    const auto size = options_.dim_size(inputs_[i].dims[d], base_sizes_);
    const auto longer_size = options_.dim_size(inputs_[i].dims[d], longer);
    if (size.ok() && longer_size.ok() && *size != *longer_size) moving.push_back(d);
  }
  return moving;
}

bool Drawer::MaskLike(size_t i) const { return !ranges_[i].limited; }

std::optional<size_t> Drawer::MaskDim(size_t i, size_t rank,
                                      const std::vector<size_t>& rows) const {
  std::vector<size_t> along = MovingDims(i, options_.axis);
  if (along.empty() || options_.is_batch) {
    along.clear();
    for (size_t d = 0; d < rank; ++d) {
      if (!absl::c_linear_search(rows, d)) along.push_back(d);
    }
  }
  if (along.empty()) return std::nullopt;
  return along.back();
}

double Drawer::Fill(size_t i) const {
  const auto it = options_.fills.find(inputs_[i].name);
  return it == options_.fills.end() ? 0 : it->second;
}

uint64_t Drawer::Seed(size_t i, uint64_t seed) const {
  return (options_.seed * 1000003 + seed) * 1000003 + i;
}

Numbers Drawer::Constant(size_t i, const Shape& shape, double value) const {
  return {inputs_[i].dtype, shape, std::vector<double>(NumElements(shape), value)};
}

Numbers Drawer::Draw(size_t i, const Shape& shape, const Content& content) const {
  if (inputs_[i].value.has_value()) return FromTensor(*inputs_[i].value);
  if (inputs_[i].live) return Constant(i, shape, 1);
  std::mt19937_64 random(Seed(i, content.seed));
  Numbers numbers = Constant(i, shape, 0);
  const bool is_float = IsFloating(inputs_[i].dtype);
  if (is_float && !content.float_masks) {
    std::normal_distribution<double> normal;
    const double scale = content.quiet ? std::exp2(-static_cast<double>(random() % 9)) : 1;
    absl::c_generate(numbers.values, [&] { return scale * normal(random) + content.float_shift; });
    SprinkleTelling(inputs_[i].telling, content, numbers.values.size(), random,
                    [&](size_t e, double number) { numbers.values[e] = number + normal(random); });
    return numbers;
  }
  const double fill = Fill(i);
  const bool draws_ids = ranges_[i].limited && ranges_[i].high > kLargestOfMasks;
  if (draws_ids) {
    const auto highest = static_cast<double>(ranges_[i].high);
    std::uniform_int_distribution<int64_t> uniform(
        std::min(std::max<int64_t>(ranges_[i].low, 0), ranges_[i].high), ranges_[i].high);
    absl::c_generate(numbers.values, [&] { return static_cast<double>(uniform(random)); });
    SprinkleTelling(inputs_[i].telling, content, numbers.values.size(), random,
                    [&](size_t e, double number) {
                      const double id = std::floor(number);
                      if (id >= static_cast<double>(ranges_[i].low) &&
                          id <= static_cast<double>(ranges_[i].high)) {
                        numbers.values[e] = id;
                      }
                    });
    const size_t row = shape.empty() ? 1 : numbers.values.size() / std::max<size_t>(shape[0], 1);
    for (size_t e = 0; content.one_id && e < numbers.values.size(); ++e) {
      if (e % row != 0) numbers.values[e] = numbers.values[e - 1];
    }
    for (double& id : numbers.values) {
      if (content.counted_ids && id == fill) id = id > 0 ? id - 1 : std::min(id + 1, highest);
    }
    if (!content.fill_ids || fill < ranges_[i].low || fill > ranges_[i].high) return numbers;
  }
  // Anything but the fill value counts in a mask.
  const double counts = fill == 0 ? 1 : 0;
  const std::vector<size_t> rows = MovingDims(i, options_.batch_axis);
  const std::optional<size_t> along = MaskDim(i, shape.size(), rows);
  const Shape strides = Strides(shape);
  // Which takes nothing but ones to count, if it is a mask after all: no row is left without one.
  const bool sprinkles = MaskLike(i) && !inputs_[i].is_mask && IsInteger(inputs_[i].dtype) &&
                         counts == 1 && content.seed % 2 == 1;
  // Bytes that the model compares with nothing are pictures rather than masks.
  const bool is_byte = inputs_[i].dtype == DType::kUInt8 || inputs_[i].dtype == DType::kInt8;
  const bool draws_bytes = is_byte && MaskLike(i) && !inputs_[i].is_mask &&
                           inputs_[i].telling.empty() && content.seed % 4 == 1;
  for (size_t e = 0; e < numbers.values.size(); ++e) {
    const auto coordinate = [&](size_t d) {
      return static_cast<int64_t>(e) / strides[d] % std::max<int64_t>(shape[d], 1);
    };
    const int64_t row = !rows.empty() ? coordinate(rows.front())
                        : along.has_value()
                            ? static_cast<int64_t>(e) / (strides[*along] * shape[*along])
                            : 0;
    const MaskPattern pattern = content.patterns[row % content.patterns.size()];
    const bool on =
        along.has_value() ? Counts(pattern, coordinate(*along), shape[*along]) : random() % 2 == 0;
    if (!on) {
      numbers.values[e] = fill;
    } else if (draws_bytes) {
      numbers.values[e] = DrawByte(random);
    } else if (!draws_ids) {
      const InputRange& range = ranges_[i];
      numbers.values[e] =
          range.limited ? std::clamp<int64_t>(counts, range.low, range.high) : counts;
      const bool first =
          along.has_value() && coordinate(*along) == FirstThatCounts(pattern, shape[*along]);
      if (sprinkles && !first && random() % 4 == 0) numbers.values[e] = DrawInteger(i, random);
    }
  }
  return numbers;
}

// Any number above zero, or one beside those that the model compares with.
double Drawer::DrawInteger(size_t i, std::mt19937_64& random) const {
  const std::vector<double>& telling = inputs_[i].telling;
  if (telling.empty() || random() % 2 == 0) return 1 + static_cast<double>(random() % kLargest);
  const double beside = static_cast<double>(random() % 3) - 1;
  return std::max(std::floor(telling[random() % telling.size()]) + beside, 1.0);
}

Numbers Drawer::DrawFill(size_t i, const Shape& shape) const { return Constant(i, shape, Fill(i)); }

Numbers Drawer::DrawHostile(size_t i, const Shape& shape, Hostile hostile, uint64_t seed) const {
  // A mask is as hostile as it can be with ones and zeros.
  const InputRange range = inputs_[i].is_mask ? InputRange{.limited = true} : ranges_[i];
  const bool is_float = IsFloating(inputs_[i].dtype);
  if (inputs_[i].live) return Constant(i, shape, 1);  // The server's own, whatever clients send.
  switch (hostile) {
    case Hostile::kRandom:
      if (MaskLike(i) && !is_float) {
        std::mt19937_64 random(Seed(i, seed));
        Numbers numbers = Constant(i, shape, 0);
        absl::c_generate(numbers.values, [&] { return static_cast<double>(random() % 2); });
        return numbers;
      }
      return Draw(i, shape, {.seed = 2 * seed + 1});
    case Hostile::kHigh:
      return Constant(i, shape, is_float ? kLargeFloat : range.limited ? range.high : kLargeMask);
    case Hostile::kLow:
      return Constant(i, shape, is_float ? -kLargeFloat : range.limited ? range.low : 0);
    case Hostile::kOne:
      return Constant(i, shape, range.limited ? std::clamp<int64_t>(1, range.low, range.high) : 1);
    case Hostile::kQuiet:
      if (is_float) return Draw(i, shape, {.quiet = true, .seed = 2 * seed});
      return DrawHostile(i, shape, Hostile::kSweep, seed);
    case Hostile::kSweep: {
      if (MaskLike(i)) return DrawHostile(i, shape, Hostile::kRandom, seed);
      // As many different ids as there is room for, which do not repeat in a small table.
      Numbers numbers = Constant(i, shape, 0);
      const int64_t low = std::min(std::max<int64_t>(range.low, 0), range.high);
      const int64_t span = range.high - low + 1;
      for (size_t e = 0; e < numbers.values.size(); ++e) {
        const auto number =
            static_cast<int64_t>(seed % 1000) * kSweepStep + static_cast<int64_t>(e);
        numbers.values[e] = static_cast<double>(low + number * kSweepStride % span);
      }
      return numbers;
    }
    case Hostile::kSmall: {
      // Among the first few ids are those that mean something: padding, start, end.
      Numbers numbers = Constant(i, shape, 0);
      for (size_t e = 0; e < numbers.values.size(); ++e) {
        const int64_t small = static_cast<int64_t>(e) % 4;
        numbers.values[e] = range.limited ? std::clamp(small, range.low, range.high) : small;
      }
      return numbers;
    }
  }
  return Constant(i, shape, 0);
}

}  // namespace reprise

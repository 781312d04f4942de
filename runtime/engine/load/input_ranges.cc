// FindRanges: which values an integer input accepts, found by trying.
#include <algorithm>
#include <limits>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/numbers.h"
#include "runtime/engine/load/made_up_inputs.h"

namespace reprise {
namespace {

constexpr char kRangePayload[] = "reprise/range";

// An input that takes this takes anything, as far as we care.
constexpr int64_t kCap = int64_t{1} << 20;

// Sizes of all axes to try at, until the model takes one. Small, but no convolution's kernel need
// fit into it first.
constexpr int64_t kTrySizes[] = {5, 1, 16, 64, 224};

InputRange DTypeRange(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {-128, 127};
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt16:
      return {-32768, 32767};
    case DType::kUInt16:
      return {0, 65535};
    case DType::kUInt32:
    case DType::kUInt64:
      return {0, kCap};
    default:
      return {-kCap, kCap};
  }
}

class RangeFinder {
 public:
  RangeFinder(absl::Span<const MadeUpInput> inputs, const TryInputs& runner,
              const MadeUpOptions& options)
      : inputs_(inputs), runner_(runner), options_(options), ranges_(inputs.size()) {}

  absl::StatusOr<std::vector<InputRange>> Run() {
    RETURN_IF_ERROR(FindStart());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool any = IsInteger(inputs_[i].dtype) && !inputs_[i].is_mask;
      if (any) RETURN_IF_ERROR(FindRange(i));
    }
    return ranges_;
  }

  int runs() const { return runs_; }

 private:
  // Returns whether the model takes `values`, in turn, as the elements of input `i`. An error other
  // than INVALID_ARGUMENT ends the search.
  absl::StatusOr<bool> Takes(size_t i, const std::vector<int64_t>& values) {
    std::vector<Tensor> tensors = start_;
    Numbers numbers = {inputs_[i].dtype, start_[i].shape()};
    for (int64_t e = 0; e < start_[i].num_elements(); ++e) {
      numbers.values.push_back(static_cast<double>(values[e % values.size()]));
    }
    tensors[i] = ToTensor(numbers);
    ++runs_;
    const auto result = runner_(tensors);
    if (result.ok()) return true;
    if (!absl::IsInvalidArgument(result.status())) return result.status();
    if (auto said = RangePayload(result.status())) said_ = said;
    return false;
  }

  // Finds a size and values that the model takes: zeros, or ones.
  absl::Status FindStart() {
    absl::Status error;
    for (int64_t size : kTrySizes) {
      SymbolSizes sizes = AllSymbols(inputs_, size);
      if (sizes.count(options_.batch_axis)) sizes[options_.batch_axis] = 1;
      for (const auto& [symbol, given] : options_.sizes) sizes[symbol] = given;
      ASSIGN_OR_RETURN(const std::vector<Shape> shapes,
                       ShapesAt(inputs_, sizes, options_.most_elements));
      for (int64_t value : {0, 1}) {
        start_.clear();
        for (size_t i = 0; i < inputs_.size(); ++i) {
          start_.push_back(ToTensor(
              {inputs_[i].dtype, shapes[i], std::vector<double>(NumElements(shapes[i]), value)}));
        }
        ++runs_;
        const absl::Status status = runner_(start_).status();
        if (status.ok()) {
          start_value_ = value;
          return status;
        }
        if (error.ok()) error = status;
      }
    }
    return error;
  }

  absl::Status FindRange(size_t i) {
    const InputRange all = DTypeRange(inputs_[i].dtype);
    said_.reset();
    ASSIGN_OR_RETURN(const int64_t high, FindEnd(i, all.high, {}));
    if (ranges_[i].limited) return absl::OkStatus();
    std::vector<int64_t> guesses = {0};
    if (high != all.high) guesses.insert(guesses.begin(), -(high + 1));  // counted from the end
    ASSIGN_OR_RETURN(const int64_t low, FindEnd(i, all.low, guesses));
    if (low == all.low && high == all.high) return absl::OkStatus();
    ranges_[i] = {.low = low, .high = high, .limited = true};
    return absl::OkStatus();
  }

  // Returns the last value on the way from the start value to `limit` that is taken.
  absl::StatusOr<int64_t> FindEnd(size_t i, int64_t limit, std::vector<int64_t> guesses) {
    int64_t good = start_value_;
    if (limit == good) return good;
    const int64_t step = limit > good ? 1 : -1;
    ASSIGN_OR_RETURN(const bool takes_all, Takes(i, {limit}));
    if (takes_all) return limit;
    const bool can_try_both =
        said_.has_value() && said_->low <= said_->high && start_[i].num_elements() > 1;
    if (can_try_both) {
      ASSIGN_OR_RETURN(const bool takes_both, Takes(i, {said_->low, said_->high}));
      if (takes_both) {
        ranges_[i] = *said_;
        return step > 0 ? said_->high : said_->low;
      }
    }
    int64_t bad = limit;
    const auto between = [&](int64_t value) {
      return (value - good) * step > 0 && (bad - value) * step > 0;
    };
    const auto try_value = [&](int64_t value) -> absl::Status {
      ASSIGN_OR_RETURN(const bool takes, Takes(i, {value}));
      (takes ? good : bad) = value;
      return absl::OkStatus();
    };
    for (int64_t guess : guesses) {
      if (between(guess)) RETURN_IF_ERROR(try_value(guess));
      if ((good == guess) && between(guess + step)) RETURN_IF_ERROR(try_value(guess + step));
    }
    for (int64_t distance = 1; bad == limit && between(start_value_ + step * distance);) {
      RETURN_IF_ERROR(try_value(start_value_ + step * distance));
      distance *= 4;
    }
    while ((bad - good) * step > 1) RETURN_IF_ERROR(try_value(good + (bad - good) / 2));
    return good;
  }

  absl::Span<const MadeUpInput> inputs_;
  const TryInputs& runner_;
  const MadeUpOptions& options_;
  std::vector<InputRange> ranges_;
  std::vector<Tensor> start_;
  int64_t start_value_ = 0;
  std::optional<InputRange> said_;  // the range in the last refusal
  int runs_ = 0;
};

}  // namespace

void SetRangePayload(absl::Status& status, int64_t low, int64_t high) {
  status.SetPayload(kRangePayload, absl::Cord(absl::StrCat(low, " ", high)));
}

std::optional<InputRange> RangePayload(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRangePayload);
  if (!payload.has_value()) return std::nullopt;
  InputRange range = {.limited = true};
  const std::vector<std::string> ends = absl::StrSplit(std::string(*payload), ' ');
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &range.low) ||
      !absl::SimpleAtoi(ends[1], &range.high)) {
    return std::nullopt;
  }
  return range;
}

absl::StatusOr<std::vector<InputRange>> FindRanges(absl::Span<const MadeUpInput> inputs,
                                                   const TryInputs& runner,
                                                   const MadeUpOptions& options, int* runs) {
  RangeFinder finder(inputs, runner, options);
  auto ranges = finder.Run();
  if (runs != nullptr) *runs = finder.runs();
  return ranges;
}

}  // namespace reprise

#include "runtime/engine/types/miss_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"

namespace reprise {
namespace {

// A difference in any other field is farther than any difference of sizes.
constexpr double kOtherField = 100;

// Returns how far apart two keys are; once that is `least` or more, something that is.
double Distance(const RecipeKey& want, const RecipeKey& have, double least) {
  double distance = 0;
  auto it = have.binding.axes.begin();
  const auto end = have.binding.axes.end();
  for (const auto& [symbol, size] : want.binding.axes) {
    while (it != end && it->first < symbol) ++it;
    if (it == end || it->first != symbol) {
      distance += kOtherField;
    } else if (it->second != size) {
      distance += std::fabs(std::log2(std::max<double>(size, 1) / std::max<double>(it->second, 1)));
    }
    if (distance >= least) return distance;
  }
  for (const bool differs :
       {want.binding.shape_inputs != have.binding.shape_inputs, want.packing != have.packing,
        want.precision != have.precision, want.device != have.device,
        want.compiler_version != have.compiler_version}) {
    if (differs) distance += kOtherField;
  }
  return distance;
}

double Ms(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

}  // namespace

void MissRecord::AddWaiter(std::string request_id, int64_t waited_ns) {
  ++num_waiters;
  longest_wait_ns = std::max(longest_wait_ns, waited_ns);
  if (waiters.size() < kMaxWaiters) waiters.push_back({std::move(request_id), waited_ns});
}

void DescribeRecipe(const Recipe& recipe, MissRecord& record) {
  const auto text = [](const TensorSlot& slot) {
    return absl::StrCat(slot.name, ": ", DTypeName(slot.dtype), ShapeToString(slot.shape));
  };
  for (const TensorSlot& slot : recipe.inputs) record.inputs.push_back(text(slot));
  for (const TensorSlot& slot : recipe.outputs) record.outputs.push_back(text(slot));
  record.recipe_bytes = recipe.memory_bytes();
  record.frame_bytes = static_cast<int64_t>(recipe.frame_bytes());
}

std::string MissText(const MissRecord& record) {
  std::string text = FormatText(
      "model %s: captured %s (%s) as recipe %s because of %s%s in %.1f ms", record.model.name,
      record.bucket, record.binding, record.recipe, std::string(CompileReasonName(record.reason)),
      record.cause.empty() ? "" : absl::StrCat(" (", record.cause, ")"),
      Ms(record.phases.total_ns()));
  AppendText(
      &text, " (specialise %.1f, passes %.1f, plan %.1f, bind %.1f, prepare %.1f, prime %.1f)",
      Ms(record.phases.specialize_ns), Ms(record.phases.passes_ns), Ms(record.phases.plan_ns),
      Ms(record.phases.bind_ns), Ms(record.phases.prepare_ns), Ms(record.phases.prime_ns));
  if (record.nearest.empty()) {
    absl::StrAppend(&text, "; no recipe of the model was ready");
  } else {
    absl::StrAppend(&text, "; nearest was ", record.nearest, " (",
                    absl::StrJoin(record.differences, ", ",
                                  [](std::string* out, const KeyDifference& one) {
                                    absl::StrAppend(out, one.field, " ", one.had, ", not ",
                                                    one.wanted);
                                  }),
                    ")");
  }
  if (record.num_waiters > 0) {
    AppendText(&text, "; %d request%s waited, at most %.1f ms", record.num_waiters,
               record.num_waiters == 1 ? "" : "s", Ms(record.longest_wait_ns));
    if (!record.waiters[0].request_id.empty()) {
      absl::StrAppend(&text, ", the first was ", record.waiters[0].request_id);
    }
  } else {
    absl::StrAppend(&text, "; no request waited");
  }
  if (!record.suggestion.empty()) absl::StrAppend(&text, "; to avoid it: ", record.suggestion);
  return text;
}

std::shared_ptr<const Recipe> NearestRecipe(const RecipeList& ready, const RecipeKey& want) {
  std::shared_ptr<const Recipe> nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::shared_ptr<const Recipe>& recipe : ready) {
    const double distance = Distance(want, recipe->key, least);
    if (distance >= least) continue;
    nearest = recipe;
    least = distance;
  }
  return nearest;
}

std::vector<KeyDifference> DifferencesOf(
    const RecipeKey& want, const RecipeKey& have,
    const std::function<std::string(const std::string& symbol)>& label_of) {
  std::vector<KeyDifference> differences;
  for (const auto& [symbol, size] : want.binding.axes) {
    const auto it = have.binding.axes.find(symbol);
    if (it != have.binding.axes.end() && it->second == size) continue;
    differences.push_back({label_of(symbol), absl::StrCat(size),
                           it == have.binding.axes.end() ? "none" : absl::StrCat(it->second)});
  }
  for (const auto& [name, value] : want.binding.shape_inputs) {
    const auto it = have.binding.shape_inputs.find(name);
    if (it != have.binding.shape_inputs.end() && it->second == value) continue;
    differences.push_back(
        {name, ElementsText(value),
         it == have.binding.shape_inputs.end() ? "none" : ElementsText(it->second)});
  }
  const auto text = [&](const char* field, const std::string& wanted, const std::string& had) {
    if (wanted != had) differences.push_back({field, wanted, had});
  };
  text("packing", want.packing, have.packing);
  text("precision", want.precision, have.precision);
  text("device", want.device, have.device);
  text("compiler", absl::StrCat(want.compiler_version), absl::StrCat(have.compiler_version));
  return differences;
}

int64_t MissReport::Add(MissRecord record) {
  MutexLock lock(mutex_);
  record.sequence = ++last_;
  records_.push_back(std::move(record));
  if (records_.size() > capacity_) records_.pop_front();
  return last_;
}

std::vector<MissRecord> MissReport::Since(int64_t after, const std::string& model) const {
  MutexLock lock(mutex_);
  std::vector<MissRecord> result;
  for (const MissRecord& record : records_) {
    if (record.sequence <= after || (!model.empty() && record.model.name != model)) continue;
    result.push_back(record);
  }
  return result;
}

int64_t MissReport::last_sequence() const {
  MutexLock lock(mutex_);
  return last_;
}

}  // namespace reprise

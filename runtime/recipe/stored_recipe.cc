#include "runtime/recipe/stored_recipe.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

// Returns the fields of a key that are compared: all of them, in an order that does not change.
recipe::v1::Key KeyMessage(const RecipeKey& key) {
  recipe::v1::Key message;
  message.set_hash(key.hash);
  message.set_graph(key.graph.digest);
  for (const auto& [axis, size] : key.binding.axes) {
    auto* to = message.add_binding();
    to->set_axis(axis);
    to->set_size(size);
  }
  for (const auto& [input, value] : key.binding.shape_inputs) {
    auto* to = message.add_shape_values();
    to->set_input(input);
    if (const auto integers = value.ToInt64s(); integers.ok()) {
      to->mutable_values()->Add(integers->begin(), integers->end());
    } else {
      const std::vector<double> numbers = value.ToDoubles();
      to->mutable_numbers()->Add(numbers.begin(), numbers.end());
    }
  }
  message.set_packing(key.packing);
  message.set_precision(key.precision);
  message.set_device(key.device);
  message.set_compiler(CompilerId());
  return message;
}

absl::StatusOr<recipe::v1::StoredRecipe> ParseRecipe(absl::string_view bytes) {
  recipe::v1::StoredRecipe stored;
  if (stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return stored;
  return absl::DataLossError("it is not a valid message");
}

CompiledPlan TakePlan(recipe::v1::StoredRecipe& stored) {
  CompiledPlan plan = {.graph = std::move(*stored.mutable_graph()),
                       .symbolic = std::move(*stored.mutable_symbolic())};
  for (std::string& kernel : *stored.mutable_kernels()) plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace

RecordName RecordNameOf(const RecipeKey& key, absl::string_view origin) {
  const std::string subject =
      absl::StrCat(key.binding.ToString(), "\n", key.packing, "\n", key.precision);
  return {.kind = RecordKind::kRecipe,
          .key = key.hash,
          .graph = Hash64(key.graph.digest),
          .subject = Hash64(subject),
          .device = Hash64(key.device),
          .origin = Hash64(origin),
          .compiler = Hash64(CompilerId())};
}

std::string EncodeRecipe(const Recipe& recipe, const CompiledPlan& plan) {
  recipe::v1::StoredRecipe stored;
  *stored.mutable_key() = KeyMessage(recipe.key);
  stored.set_model(recipe.note.model);
  stored.set_version(recipe.note.version);
  stored.set_bucket(recipe.note.bucket);
  stored.set_binding(recipe.SizesText());
  stored.set_capture_ns(recipe.note.total_ns);
  stored.set_created_unix_s(time(nullptr));
  stored.set_graph(plan.graph);
  stored.set_symbolic(plan.symbolic);
  for (const std::string& kernel : plan.kernels) stored.add_kernels(kernel);
  return stored.SerializeAsString();
}

absl::StatusOr<CompiledPlan> DecodeRecipe(absl::string_view bytes, const RecipeKey& key) {
  ASSIGN_OR_RETURN(recipe::v1::StoredRecipe stored, ParseRecipe(bytes));
  if (stored.key().SerializeAsString() != KeyMessage(key).SerializeAsString()) {
    return absl::FailedPreconditionError("its key is another one");
  }
  return TakePlan(stored);
}

absl::StatusOr<DetachedRecipe> DetachRecipe(absl::string_view bytes) {
  ASSIGN_OR_RETURN(recipe::v1::StoredRecipe stored, ParseRecipe(bytes));
  const recipe::v1::Key& key = stored.key();
  DetachedRecipe detached = {.model = stored.model(),
                             .version = stored.version(),
                             .bucket = stored.bucket(),
                             .binding = stored.binding()};
  detached.key.graph = {.text = std::make_shared<const std::string>(), .digest = key.graph()};
  for (const auto& axis : key.binding()) detached.key.binding.axes[axis.axis()] = axis.size();
  for (const auto& input : key.shape_values()) {
    const std::vector<int64_t> integers(input.values().begin(), input.values().end());
    const std::vector<double> numbers(input.numbers().begin(), input.numbers().end());
    detached.key.binding.shape_inputs[input.input()] =
        numbers.empty()
            ? Tensor::Int64s(integers)
            : Tensor::FromVector(DType::kFloat64, {static_cast<int64_t>(numbers.size())}, numbers);
  }
  detached.key.packing = key.packing();
  detached.key.precision = key.precision();
  detached.key.device = key.device();
  detached.key.hash = key.hash();
  if (detached.binding.empty()) detached.binding = detached.key.binding.ToString();
  detached.plan = TakePlan(stored);
  return detached;
}

}  // namespace reprise

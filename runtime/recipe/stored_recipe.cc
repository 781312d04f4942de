#include "runtime/recipe/stored_recipe.h"

#include <ctime>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"

namespace reprise {
namespace {

// The fields of a key that are compared: all of them, in an order that does not change.
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

}  // namespace

RecordName RecordNameOf(const RecipeKey& key, absl::string_view origin) {
  const std::string subject =
      absl::StrCat(key.binding.ToString(), "\n", key.packing, "\n", key.precision);
  return {.kind = RecordKind::kRecipe,
          .key = Hash64(KeyMessage(key).SerializeAsString()),
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
  stored.set_capture_ns(recipe.note.total_ns);
  stored.set_created_unix_s(time(nullptr));
  stored.set_graph(plan.graph);
  for (const std::string& kernel : plan.kernels) stored.add_kernels(kernel);
  return stored.SerializeAsString();
}

absl::StatusOr<CompiledPlan> DecodeRecipe(absl::string_view bytes, const RecipeKey& key) {
  recipe::v1::StoredRecipe stored;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is no message");
  }
  if (stored.key().SerializeAsString() != KeyMessage(key).SerializeAsString()) {
    return absl::FailedPreconditionError("its key is another one");
  }
  CompiledPlan plan = {.graph = std::move(*stored.mutable_graph())};
  for (std::string& kernel : *stored.mutable_kernels()) plan.kernels.push_back(std::move(kernel));
  return plan;
}

}  // namespace reprise

#include "tools/reports/check_json.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/engine/model/tail.h"
#include "runtime/json/json_writer.h"
#include "runtime/onnx/importer.h"
#include "tools/reports/checked_recipes.h"
#include "tools/reports/key_constants.h"
#include "tools/reports/op_matrix.h"

namespace reprise::cli {
namespace {

void WriteTensors(const char* name, const std::vector<ModelIo>& tensors, JsonWriter& json) {
  json.Array(name, [&] {
    for (const ModelIo& tensor : tensors) {
      json.Object([&] {
        json.Member("name", tensor.name);
        json.Member("dtype", TypeText(tensor));
        json.Array("dims", [&] {
          for (const Dim& dim : tensor.dims) {
            if (dim.is_constant()) {
              json.Value(dim.size);
            } else {
              json.Value(dim.symbol);
            }
          }
        });
        json.Member("optional", tensor.optional);
      });
    }
  });
}

void WriteAxes(const Model& model, JsonWriter& json) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  json.Array("axes", [&] {
    for (const ModelAxis& axis : model.axes()) {
      const AxisBuckets* buckets = BucketsOf(*policy, axis);
      json.Object([&] {
        json.Member("axis", axis.label);
        json.Member("symbol", axis.symbol);
        json.Member("certified", axis.certificate.certified);
        json.Member("padded", axis.certificate.certified && !axis.certificate.only_packed());
        json.Member("reason", axis.certificate.reason);
        json.List("must_be_filled", axis.certificate.guards);
        json.List("buckets", buckets == nullptr ? std::vector<int64_t>() : buckets->sizes);
      });
    }
  });
}

void WriteRequests(const Model& model, JsonWriter& json) {
  json.Object("packing", [&] {
    const Packing* const packing = model.packing();
    json.Member("packed", packing != nullptr);
    json.Member("reason", packing == nullptr ? model.packing_refusal() : model.packing_reason());
    json.List("tokens", packing == nullptr ? std::vector<int64_t>() : packing->buckets());
  });
  json.Array("cuts", [&] {
    if (model.tail() == nullptr) return;
    for (const Cut& cut : model.tail()->cuts()) {
      json.Object([&] {
        json.Member("op", cut.op);
        json.Member("node", cut.node);
        json.Member("why", cut.why);
      });
    }
  });
}

void WriteKey(const Model& model, JsonWriter& json) {
  json.Array("key", [&] {
    for (const KeyConstant& one : KeyConstants(model)) {
      json.Object([&] {
        json.Member("constant", one.name);
        json.Member("dtype", DTypeName(one.value.dtype()));
        json.List("shape", one.value.shape());
        json.Member("value", one.ValueText());
        json.Member("read_by", one.reader);
      });
    }
  });
}

void WriteKernels(const Model& model, const CheckedRecipe& shown, JsonWriter& json) {
  std::map<std::string, std::vector<const Launch*>> by_kernel;
  for (const Launch& launch : shown.recipe->launches) by_kernel[launch.kernel].push_back(&launch);
  json.Object("kernels", [&] {
    json.Member("binding", shown.BindingText(model));
    json.Array("kernels", [&] {
      for (const auto& [kernel, launches] : by_kernel) {
        double flops = 0;
        std::vector<std::string> nodes;
        for (const Launch* launch : launches) {
          flops += static_cast<double>(launch->work.flops);
          nodes.push_back(launch->node);
        }
        json.Object([&, &name = kernel, &first = *launches.front(), count = launches.size()] {
          json.Member("kernel", name);
          json.Member("kind", first.reference ? "reference" : first.foreign ? "foreign" : "fast");
          json.Member("launches", count);
          json.Member("flops", flops);
          json.List("nodes", nodes);
        });
      }
    });
  });
}

void WriteRecipes(const Model& model, const std::vector<CheckedRecipe>& all, int streams,
                  JsonWriter& json) {
  std::set<std::string> seen;
  uint64_t prepared = 0, largest = 0, recipes = 0;
  json.Array("recipes", [&] {
    for (const CheckedRecipe& one : all) {
      json.Object([&] {
        json.Member("bucket", one.bucket);
        json.Member("binding", one.BindingText(model));
        if (one.recipe == nullptr) return json.Member("refused", one.refused.message());
        const Recipe& recipe = *one.recipe;
        json.Member("key", recipe.key.hex());
        json.Member("launches", recipe.launches.size());
        json.Member("replay_bytes", recipe.frame_bytes());
        json.Member("recipe_bytes", recipe.memory_bytes());
        for (const ParameterExprPtr& expression : recipe.parameters) {
          if (expression->is_leaf() || !seen.insert(expression->text()).second) continue;
          prepared += NumElements(expression->shape()) * DTypeSize(expression->dtype());
        }
        largest = std::max<uint64_t>(largest, recipe.frame_bytes());
        recipes += recipe.memory_bytes();
      });
    }
  });
  const auto weights = static_cast<uint64_t>(model.parameter_bytes());
  json.Object("memory", [&] {
    json.Member("weight_bytes", weights);
    json.Member("prepared_bytes", prepared);
    json.Member("streams", streams);
    json.Member("most_bytes",
                weights + prepared + recipes + static_cast<uint64_t>(streams) * largest);
  });
}

}  // namespace

absl::StatusOr<std::string> CheckJson(const Engine& engine, const Model& model,
                                      const std::string& path, const std::string& texts,
                                      int streams) {
  // The value of an input decides shapes there, and only a request has it.
  std::vector<CheckedRecipe> all;
  if (!model.has_shape_inputs()) all = CompileBuckets(engine, model);
  const CheckedRecipe* shown = ShownOf(model, all);
  if (!all.empty() && shown == nullptr && !absl::IsInvalidArgument(all.front().refused)) {
    return all.front().refused;
  }
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("model", path);
    json.Member("servable", true);
    WriteTensors("inputs", model.inputs(), json);
    WriteTensors("outputs", model.outputs(), json);
    WriteAxes(model, json);
    json.Member("shape_inputs", model.has_shape_inputs());
    WriteRequests(model, json);
    WriteKey(model, json);
    if (shown != nullptr) WriteKernels(model, *shown, json);
    WriteRecipes(model, all, streams, json);
    json.Member("texts", texts);
  });
  return json.Take();
}

std::string RefusedJson(const std::string& path, const std::vector<std::string>& reasons) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("model", path);
    json.Member("servable", false);
    json.List("reasons", reasons);
  });
  return json.Take();
}

std::string OpMatrixJson() {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Array("ops", [&] {
      for (const OpMatrixRow& row : OpMatrix()) {
        json.Object([&] {
          json.Member("op", row.op);
          for (size_t i = 0; i < row.facts.size(); ++i) {
            json.Member(OpColumns()[i].name, row.facts[i]);
          }
        });
      }
    });
  });
  return json.Take();
}

}  // namespace reprise::cli

#include "tools/reports/check_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "command_line/similar_names.h"
#include "runtime/engine/model/tail.h"
#include "runtime/generate/carried_steps.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/onnx/importer.h"
#include "tools/reports/checked_recipes.h"
#include "tools/reports/key_constants.h"

namespace reprise::cli {
namespace {

std::string DimsText(const std::vector<Dim>& dims) {
  return absl::StrCat(
      "[",
      absl::StrJoin(dims, ", ",
                    [](std::string* out, const Dim& dim) {
                      absl::StrAppend(out, dim.is_constant() ? absl::StrCat(dim.size) : dim.symbol);
                    }),
      "]");
}

// Returns "16,32,64, then 80, 96, 112 and so on up to 4096".
std::string BucketsText(const AxisBuckets& buckets) {
  const std::string opening = buckets.OpeningText();
  return absl::StrCat(absl::StrJoin(buckets.sizes, ","), opening.empty() ? "" : ", then ", opening);
}

// Adds a row for each tensor; those that differ in the numbers of their names alone, as the caches
// of a decoder's layers do, share one.
void AddTensors(const char* kind, const std::vector<ModelIo>& tensors, Table& table) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const ModelIo& tensor : tensors) {
    keys.push_back(absl::StrCat(command_line::PatternOf(tensor.name), " ", TypeText(tensor), " ",
                                DimsText(tensor.dims), " ", tensor.optional));
  }
  for (const command_line::SimilarGroup& group : command_line::GroupEqual(keys)) {
    const ModelIo& first = tensors[group.first];
    std::vector<std::string> notes;
    if (first.optional) notes.push_back("may be left out");
    if (group.count > 1)
      notes.push_back(absl::StrCat("and ", group.count - 1, " more of this kind"));
    table.AddRow({absl::StrCat(kind, " ", first.name), std::string(TypeText(first)),
                  DimsText(first.dims), absl::StrJoin(notes, "; ")});
  }
}

std::string SignatureText(const Model& model) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {""}});
  AddTensors("input", model.inputs(), table);
  AddTensors("output", model.outputs(), table);
  return table.Text();
}

std::string AxesText(const Model& model) {
  if (model.axes().empty()) return "no axis: every request has the same shape\n";
  Table table({{"axis"}, {"symbol"}, {"buckets"}, {"padding"}});
  std::string reasons;
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  for (const ModelAxis& axis : model.axes()) {
    const AxisBuckets* buckets = BucketsOf(*policy, axis);
    const AxisCertificate& certificate = axis.certificate;
    std::string words = certificate.reason;
    if (certificate.certified && !certificate.guards.empty()) {
      absl::StrAppend(&words, words.empty() ? "" : "; ",
                      "must be filled: ", absl::StrJoin(certificate.guards, ", "));
    }
    table.AddRow({axis.label, axis.symbol,
                  model.packing() != nullptr ? "packed"
                  : buckets == nullptr       ? "exact sizes"
                                             : BucketsText(*buckets),
                  certificate.certified ? "certified" : "never"});
    if (!words.empty()) absl::StrAppend(&reasons, "  ", axis.label, ": ", words, "\n");
  }
  return absl::StrCat(table.Text(), reasons);
}

// Lists the constants whose change compiles again, as a changed node does.
std::string KeyText(const Model& model) {
  const std::vector<KeyConstant> constants = KeyConstants(model);
  if (constants.empty()) return "no constant is part of the key: new values compile nothing\n\n";
  Table table({{"part of the key"}, {"dtype"}, {"shape"}, {"value"}, {"read by"}});
  for (const KeyConstant& one : constants) {
    table.AddRow({one.name, std::string(DTypeName(one.value.dtype())),
                  ShapeToString(one.value.shape()), one.ValueText(), Shorten(one.reader, 60)});
  }
  return absl::StrCat(
      "constants: another value compiles again, unless it is promoted "
      "(reprise.promote); weights and biases are not part of the key\n",
      table.Text(), "\n");
}

// Returns how requests of different sizes share a replay; nothing where packing makes no sense.
std::string PackingText(const Model& model) {
  const Packing* const packing = model.packing();
  if (packing == nullptr) {
    return model.packing_refusal().empty()
               ? ""
               : absl::StrCat("requests are padded, not packed: ", model.packing_refusal(), "\n\n");
  }
  std::string longer = " run at their exact sizes";
  for (const AxisBuckets& buckets : model.buckets()->axes) {
    if (const std::string opening = buckets.OpeningText(); !opening.empty()) {
      longer = absl::StrCat(" are padded, to buckets that open by themselves: ", opening);
    }
  }
  return absl::StrCat(
      "requests are packed: they lie one after another in a replay, and no padding is computed\n",
      model.packs_whole_requests() ? absl::StrCat("  ", model.packing_reason(), "\n") : "",
      "  numbers of tokens that recipes are compiled for: ", absl::StrJoin(packing->buckets(), ","),
      "\n  requests longer than ", packing->longest(), longer, "\n\n");
}

// Returns whether the server can keep the cache of a decoder; nothing for a model without one.
std::string PagingText(const Model& model, const absl::StatusOr<PagedForm>& form) {
  if (absl::IsNotFound(form.status())) return "";
  if (!form.ok()) {
    return absl::StrCat(
        "clients carry the cache of this decoder, and it makes no tokens by itself: ",
        form.status().message(), "\n\n");
  }
  const absl::Status carried =
      CarriedSteps::CheckModel(model, Engine::SymbolicGraph(model, /*packed=*/false), form->decoder)
          .status();
  return absl::StrCat(
      "makes tokens: the server keeps ", form->caches.size(), " caches in pages of ",
      form->page_bytes, " bytes, for up to ", form->context, " positions of a sequence\n",
      carried.ok()
          ? "requests with a client-managed KV cache are served by the same recipes, where their "
            "masks have no holes and their positions follow the past"
          : absl::StrCat("requests with a client-managed KV cache are served as for any model: ",
                         carried.message()),
      "\n\n");
}

std::string KernelsText(const Model& model, const CheckedRecipe& shown) {
  struct Row {
    int launches = 0;
    double flops = 0;
    const Launch* first = nullptr;
    std::vector<std::string> nodes;
  };
  std::map<std::string, Row> rows;
  int reference = 0;
  for (const Launch& launch : shown.recipe->launches) {
    Row& row = rows[launch.kernel];
    ++row.launches;
    row.flops += launch.work.flops;
    row.first = &launch;
    row.nodes.push_back(launch.node);
    reference += launch.reference;
  }
  Table table({{"kernel"}, {"kind"}, {"launches", kRight}, {"MFLOP", kRight}, {"nodes"}});
  for (const auto& [kernel, row] : rows) {
    const char* kind = row.first->reference ? "reference"
                       : row.first->foreign ? "fast, foreign library"
                                            : "fast";
    table.AddRow({kernel, kind, absl::StrCat(row.launches), Fixed(row.flops / 1e6, 1),
                  Shorten(absl::StrJoin(row.nodes, ", "), 60)});
  }
  const int launches = static_cast<int>(shown.recipe->launches.size());
  return absl::StrCat("kernels at ", shown.BindingText(model), ": ", launches, " launches, ",
                      launches - reference, " fast, ", reference, " reference\n", table.Text());
}

std::string MemoryText(const Model& model, const std::vector<CheckedRecipe>& all, int streams) {
  Table table({{"bucket"},
               {"binding"},
               {"launches", kRight},
               {"replay", kRight},
               {"recipe", kRight},
               {""}});
  std::set<std::string> seen;
  size_t apart = 0;
  uint64_t prepared = 0, largest = 0, recipes = 0;
  for (const CheckedRecipe& compiled : all) {
    const std::string binding = compiled.BindingText(model);
    // Sizes that go together are not always those that are tried.
    if (absl::IsInvalidArgument(compiled.refused)) {
      ++apart;
      continue;
    }
    if (compiled.recipe == nullptr) {
      table.AddRow({compiled.bucket, binding, "-", "-", "-",
                    absl::StrCat("refused: ", std::string(compiled.refused.message()))});
      continue;
    }
    const Recipe& recipe = *compiled.recipe;
    for (const ParameterExprPtr& expression : recipe.parameters) {
      if (expression->is_leaf() || !seen.insert(expression->text()).second) continue;
      prepared += NumElements(expression->shape()) * DTypeSize(expression->dtype());
    }
    largest = std::max<uint64_t>(largest, recipe.frame_bytes());
    recipes += recipe.memory_bytes();
    table.AddRow({compiled.bucket, binding, absl::StrCat(recipe.launches.size()),
                  Bytes(recipe.frame_bytes()), Bytes(recipe.memory_bytes()), ""});
  }
  const uint64_t weights = model.parameter_bytes();
  return absl::StrCat(
      "memory: a replay's inputs, outputs and arena; a recipe's own\n", table.Text(),
      apart == 0
          ? ""
          : absl::StrCat("left out: ", apart, " combinations of sizes that the model refuses\n"),
      "\nweights ", Bytes(weights), " as stored, ", Bytes(prepared),
      " prepared for kernels, once a version\n", "at most ",
      Bytes(weights + prepared + recipes + streams * largest), " with ", streams,
      streams == 1 ? " stream" : " streams", " and every recipe above in memory\n");
}

std::string CutsText(const Model& model) {
  if (model.tail() == nullptr) return "";
  std::string text =
      "cut where data decides shapes; the kernels and memory below are for the part before the "
      "cut\n";
  for (const Cut& cut : model.tail()->cuts()) {
    absl::StrAppend(&text, "  ", cut.op, " '", cut.node, "': ", cut.why, "\n");
  }
  return absl::StrCat(text, "\n");
}

}  // namespace

absl::StatusOr<std::string> CheckReport(const Engine& engine, const Model& model, int streams,
                                        int64_t stated_context) {
  const absl::StatusOr<PagedForm> form = PagesOf(model, stated_context);
  const std::string pages = PagingText(model, form);
  // How requests of tensors share a replay is of little weight where the server makes the tokens.
  const bool makes_tokens = form.ok();
  std::string text = absl::StrCat(
      pages, makes_tokens ? "" : PackingText(model), CutsText(model), SignatureText(model), "\n",
      makes_tokens ? "requests of tensors, which bring keys and values themselves:\n" : "",
      makes_tokens ? PackingText(model) : "", AxesText(model), "\n", KeyText(model));
  if (model.has_shape_inputs()) {
    absl::StrAppend(&text,
                    "an input decides shapes: kernels and memory follow its value, which "
                    "only a request has\nweights ",
                    Bytes(model.parameter_bytes()), " as stored\n");
    return text;
  }
  const std::vector<CheckedRecipe> all = CompileBuckets(engine, model);
  const CheckedRecipe* shown = ShownOf(model, all);
  // Sizes that go together are not always those that are tried: a request has them.
  if (shown == nullptr && absl::IsInvalidArgument(all.front().refused)) {
    absl::StrAppend(&text, "none of the sizes that were tried go together (",
                    std::string(all.front().refused.message()),
                    "): kernels and memory are for a request\nweights ",
                    Bytes(model.parameter_bytes()), " as stored\n");
    return text;
  }
  if (shown == nullptr) return all.front().refused;
  absl::StrAppend(&text, KernelsText(model, *shown), "\n", LeftOutText(model),
                  MemoryText(model, all, streams));
  return text;
}

}  // namespace reprise::cli

#include "tools/diff_side.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/hide_bytes.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/store.h"
#include "runtime/recipe/stored_recipe.h"
#include "server/hub/model_file.h"
#include "tools/files/file_bytes.h"

namespace reprise::cli {
namespace {

absl::StatusOr<Graph> ParseNamed(absl::string_view text, const std::string& name) {
  absl::StatusOr<Graph> graph = Parse(text);
  if (graph.ok()) return graph;
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' holds no graph: ", std::string(graph.status().message())));
}

// Returns the first graph of a text, without lines that begin with //.
absl::StatusOr<DiffSide> ReadTextSide(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMostFileBytes));
  std::string graph;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "//")) continue;
    absl::StrAppend(&graph, line, "\n");
    if (line == "}") break;
  }
  DiffSide side = {.what = absl::StrCat("graph ", path)};
  // `dump --graph` leaves the bytes of constants out: they are no difference then.
  ASSIGN_OR_RETURN(side.graph, ParseNamed(ZeroHiddenBytes(graph), path));
  return side;
}

absl::StatusOr<DiffSide> ReadModel(const std::string& path) {
  DiffSide side = {.what = absl::StrCat("model ", path)};
  ASSIGN_OR_RETURN(ImportedModel model, ImportOnnxFile(path));
  side.graph = std::move(model.graph);
  ASSIGN_OR_RETURN(const ExaminedModel file, ExamineOnnxFile(path));
  for (const auto& [domain, version] : file.versions) {
    side.facts.emplace_back(domain.empty() ? "opset" : absl::StrCat("opset of ", domain),
                            absl::StrCat(version));
  }
  side.facts.emplace_back("producer", model.producer);
  return side;
}

void AddKernels(const Graph& graph, const std::vector<std::string>& kernels, DiffSide& side) {
  size_t position = 0;
  for (const NodeId id : graph.NodeIds()) {
    if (position >= kernels.size()) return;
    const std::string& kernel = kernels[position++];
    if (!kernel.empty()) side.kernels.emplace_back(NodeLabel(graph.node(id)), kernel);
  }
}

absl::StatusOr<DiffSide> SideOfRecord(absl::string_view bytes, const std::string& name) {
  ASSIGN_OR_RETURN(const Record record, DecodeRecord(bytes));
  if (record.kind != RecordKind::kRecipe) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is a ", RecordKindName(record.kind), " record, not a recipe"));
  }
  ASSIGN_OR_RETURN(const DetachedRecipe recipe, DetachRecipe(record.payload));
  DiffSide side = {
      .what = absl::StrCat("recipe ", recipe.key.hex(), " of ", recipe.model, ", ", recipe.bucket),
      .facts = {{"binding", recipe.binding},
                {"packing", recipe.key.packing},
                {"precision", recipe.key.precision},
                {"device", recipe.key.device}}};
  ASSIGN_OR_RETURN(const Graph specialized, ParseNamed(recipe.plan.graph, name));
  AddKernels(specialized, recipe.plan.kernels, side);
  if (recipe.plan.symbolic.empty()) {
    side.graph = specialized;
  } else {
    ASSIGN_OR_RETURN(side.graph, ParseNamed(recipe.plan.symbolic, name));
  }
  return side;
}

// Returns a recipe of a bundle: FILE#KEY.
absl::StatusOr<DiffSide> ReadBundle(const std::string& path, const std::string& key) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostFileBytes));
  ASSIGN_OR_RETURN(const std::vector<BundledRecord> records, DecodeBundle(bytes));
  std::vector<std::string> keys;
  for (const BundledRecord& record : records) {
    const std::optional<RecordName> name = RecordName::Parse(record.file);
    if (name->kind != RecordKind::kRecipe) continue;
    keys.push_back(HexKey(name->key));
    if (keys.back() == key) return SideOfRecord(record.bytes, absl::StrCat(path, "#", key));
  }
  return absl::NotFoundError(absl::StrCat("bundle '", path, "' has no recipe ", key, ", only ",
                                          absl::StrJoin(keys, ", ")));
}

absl::StatusOr<DiffSide> ReadStored(const std::string& folder, const std::string& key) {
  ASSIGN_OR_RETURN(const auto store, RecipeStore::Open({.folder = folder, .read_only = true}));
  for (const RecipeStore::Entry& entry : store->List()) {
    if (!entry.name.has_value() || entry.name->kind != RecordKind::kRecipe) continue;
    if (HexKey(entry.name->key) != key) continue;
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadWholeFile(absl::StrCat(folder, "/", entry.file), kMostFileBytes));
    return SideOfRecord(bytes, entry.file);
  }
  return absl::NotFoundError(absl::StrCat("the store '", folder, "' has no recipe ", key));
}

absl::StatusOr<DiffSide> ReadServed(const std::string& key, const ServerFlags& server) {
  ASSIGN_OR_RETURN(const auto client, server.Connect());
  ASSIGN_OR_RETURN(const v1::DumpRecipeResponse dump,
                   client->DumpRecipe(key, {.graphs = true, .constants = true}));
  DiffSide side = {
      .what = absl::StrCat("recipe ", dump.info().key(), " of ", dump.info().model(), " version ",
                           dump.info().version(), ", ", dump.info().bucket()),
      .facts = {{"binding", dump.info().binding()},
                {"packing", dump.recipe().key().packing()},
                {"precision", dump.recipe().key().precision()},
                {"device", dump.recipe().key().device()}}};
  ASSIGN_OR_RETURN(side.graph, ParseNamed(dump.symbolic_graph(), key));
  for (const auto& launch : dump.recipe().launches()) {
    side.kernels.emplace_back(launch.node(), launch.kernel());
  }
  return side;
}

bool IsKey(const std::string& name) {
  return name.size() == 16 && absl::c_all_of(name, absl::ascii_isxdigit);
}

}  // namespace

absl::StatusOr<DiffSide> ReadDiffSide(const std::string& name, const std::string& store,
                                      const ServerFlags& server) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits('#', 1));
  if (!parts.second.empty() && std::filesystem::exists(parts.first)) {
    return ReadBundle(parts.first, absl::AsciiStrToLower(parts.second));
  }
  if (IsKey(name) && !std::filesystem::exists(name)) {
    const std::string key = absl::AsciiStrToLower(name);
    return store.empty() ? ReadServed(key, server) : ReadStored(store, key);
  }
  if (!std::filesystem::exists(name)) {
    return absl::NotFoundError(absl::StrCat(
        "'", name, "' is neither a file nor a key of a recipe, which has 16 hexadecimal digits"));
  }
  if (IsModelName(name)) return ReadModel(name);
  if (absl::EndsWith(name, ".rps")) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(name, kMostFileBytes));
    return SideOfRecord(bytes, name);
  }
  return ReadTextSide(name);
}

}  // namespace reprise::cli

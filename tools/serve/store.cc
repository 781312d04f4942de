// reprise store: the folder of --recipe-cache, without a server.

#include "runtime/recipe/store.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/hide_bytes.h"
#include "runtime/graph/text.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/stored_recipe.h"
#include "server/fetch/store_key.h"
#include "tools/files/file_bytes.h"
#include "tools/serve/commands.h"
#include "tools/serve/store_merge.h"

namespace reprise::cli {
namespace {

// No file that is read here is larger.

struct StoreFlags {
  std::string folder;
  std::string bundle;
  std::string key;
  std::vector<std::string> folders;  // that are merged
  std::string store_key;             // file of the key of all records; empty: none
  int64_t max_mb = -1;
  bool constants = false;
  bool json = false;
};

absl::StatusOr<std::unique_ptr<RecipeStore>> OpenStore(const StoreFlags& flags,
                                                       const std::string& folder, bool read_only) {
  ASSIGN_OR_RETURN(RecordMac mac, ReadStoreKey(flags.store_key));
  if (read_only && !std::filesystem::is_directory(folder)) {
    return absl::NotFoundError(absl::StrCat("'", folder, "' is not a folder"));
  }
  return RecipeStore::Open(
      {.folder = folder,
       .max_bytes = kMostFileBytes,
       .read_only = read_only,
       .mac = std::move(mac),
       .log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
}

// A file of the folder, and its header or its fault.
struct Inspected {
  RecipeStore::Entry entry;
  std::string bytes;
  absl::StatusOr<RecordFacts> facts;
};

// Returns the entries of the recipe `key` alone where it is not empty.
std::vector<Inspected> Inspect(const RecipeStore& store, const std::string& key = "") {
  std::vector<Inspected> files;
  for (RecipeStore::Entry& entry : store.List()) {
    if (!key.empty() && (!entry.name.has_value() || HexKey(entry.name->key) != key)) continue;
    Inspected file = {.entry = entry, .facts = absl::DataLossError("its name is not a record's")};
    auto bytes = ReadWholeFile(absl::StrCat(store.folder(), "/", entry.file), kMostFileBytes);
    if (!bytes.ok()) {
      file.facts = bytes.status();
    } else {
      file.bytes = *std::move(bytes);
      if (entry.name.has_value()) file.facts = FactsOf(file.bytes, *entry.name);
      const absl::Status authentic = store.ReadEntry(entry).status();
      if (file.facts.ok() && !authentic.ok()) file.facts = authentic;
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::string AgeOf(int64_t unix_s) {
  const int64_t seconds = std::max<int64_t>(0, time(nullptr) - unix_s);
  if (seconds < 120) return absl::StrCat(seconds, " s");
  if (seconds < 7200) return absl::StrCat(seconds / 60, " min");
  return seconds < 172800 ? absl::StrCat(seconds / 3600, " h")
                          : absl::StrCat(seconds / 86400, " days");
}

// Returns the first part of a device's long fingerprint, which names the CPU.
std::string DeviceName(const std::string& device) {
  return device.empty() ? "any" : Shorten(device, 40);
}

// Returns how long it takes to make a record again. Facts learnt of traffic and of kernels cannot
// be made again: their records stand above all others, and have no time.
std::optional<double> RebuildMs(const RecordFacts& facts) {
  if (facts.kind != RecordKind::kRecipe && facts.kind != RecordKind::kModel) return std::nullopt;
  return static_cast<double>(facts.rebuild_ns) * 1e-6;
}

using OrderedJson = nlohmann::ordered_json;

// Returns a file as JSON: its name and size, and its header or its fault.
OrderedJson FileJson(const Inspected& file, const std::map<uint64_t, uint64_t>& uses) {
  OrderedJson json = {{"file", file.entry.file},
                      {"bytes", file.entry.bytes},
                      {"modified_unix_s", file.entry.modified_unix_s}};
  if (!file.facts.ok()) {
    json["damaged"] = std::string(file.facts.status().message());
    return json;
  }
  const RecordFacts& facts = *file.facts;
  json["kind"] = std::string(RecordKindName(facts.kind));
  json["key"] = HexKey(file.entry.name->key);
  json["model"] = facts.model;
  json["version"] = facts.version;
  json["bucket"] = facts.bucket;
  json["device"] = facts.device;
  json["compiler"] = facts.compiler;
  json["created_unix_s"] = facts.created_unix_s;
  if (const auto ms = RebuildMs(facts)) json["rebuild_ms"] = *ms;
  const auto use = uses.find(file.entry.name->key);
  if (use != uses.end()) json["uses"] = use->second;
  return json;
}

absl::Status List(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/true));
  const std::map<uint64_t, uint64_t> uses = store->Uses();
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"kind"},
               {"model"},
               {"bucket"},
               {"key"},
               {"size", kRight},
               {"rebuild ms", kRight},
               {"uses", kRight},
               {"age", kRight},
               {"device"}});
  int64_t bytes = 0, files = 0;
  OrderedJson list = OrderedJson::array();
  for (const Inspected& file : Inspect(*store)) {
    if (flags.json) list.push_back(FileJson(file, uses));
    ++files;
    bytes += file.entry.bytes;
    const std::string size = Bytes(file.entry.bytes);
    if (!file.facts.ok()) {
      table.AddRow({"damaged", "-", "-", Shorten(file.entry.file, 16), size, "-", "-",
                    AgeOf(file.entry.modified_unix_s), "-"});
      continue;
    }
    const RecordFacts& facts = *file.facts;
    const auto use = uses.find(file.entry.name->key);
    table.AddRow({std::string(RecordKindName(facts.kind)), facts.model,
                  facts.bucket.empty() ? "-" : facts.bucket, HexKey(file.entry.name->key), size,
                  RebuildMs(facts).has_value() ? Fixed(*RebuildMs(facts), 1) : "-",
                  use == uses.end() ? "-" : Count(use->second), AgeOf(facts.created_unix_s),
                  DeviceName(facts.device)});
  }
  if (flags.json) {
    return PrintJson({{"files", list}});
  }
  if (!table.empty()) std::printf("%s\n", table.Text().c_str());
  std::printf("%s files, %s\n", Count(files).c_str(), Bytes(bytes).c_str());
  return absl::OkStatus();
}

absl::Status Verify(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/true));
  int64_t good = 0, bad = 0;
  OrderedJson list = OrderedJson::array();
  for (const Inspected& file : Inspect(*store)) {
    ++(file.facts.ok() ? good : bad);
    if (flags.json) list.push_back(FileJson(file, {}));
    if (file.facts.ok() || flags.json) continue;
    std::printf("%s: %s\n", file.entry.file.c_str(),
                std::string(file.facts.status().message()).c_str());
  }
  if (flags.json) {
    RETURN_IF_ERROR(PrintJson({{"intact", good}, {"damaged", bad}, {"files", list}}));
  } else {
    std::printf("%s files are intact, %s are not\n", Count(good).c_str(), Count(bad).c_str());
  }
  if (bad == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      bad,
      " files cannot be used; a server leaves them alone, `reprise store prune` removes them"));
}

// Returns the records of the recipe `key`: one for each compiler and each model that had it stored.
absl::StatusOr<std::vector<Inspected>> RecipesOfKey(const RecipeStore& store,
                                                    const std::string& key) {
  std::vector<Inspected> found = Inspect(store, key);
  if (!found.empty()) return found;
  return absl::NotFoundError(absl::StrCat("no record of '", store.folder(), "' has the key ", key));
}

void PrintGraphText(const std::string& text, bool constants) {
  std::printf("%s", constants ? text.c_str() : HideBytes(text).c_str());
}

absl::Status ShowRecipe(const Inspected& file, bool constants) {
  RETURN_IF_ERROR(file.facts.status());
  if (file.facts->kind != RecordKind::kRecipe) {
    std::printf("%s of model %s: it has no graph\n", file.entry.file.c_str(),
                file.facts->model.c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Record record, DecodeRecord(file.bytes));
  ASSIGN_OR_RETURN(const DetachedRecipe recipe, DetachRecipe(record.payload));
  Table head({{"what"}, {"value"}});
  head.AddRow({"recipe", recipe.key.hex()});
  head.AddRow({"file", file.entry.file});
  head.AddRow({"model", absl::StrCat(recipe.model, " version ", recipe.version)});
  head.AddRow({"bucket", absl::StrCat(recipe.bucket, " (", recipe.binding, ")")});
  head.AddRow({"packing", recipe.key.packing});
  head.AddRow({"precision", recipe.key.precision});
  head.AddRow({"device", recipe.key.device});
  head.AddRow({"compiler", file.facts->compiler});
  std::printf("%s\n", head.Text().c_str());
  if (!recipe.plan.symbolic.empty()) {
    std::printf("// the graph before it got its sizes\n");
    PrintGraphText(recipe.plan.symbolic, constants);
  }
  std::printf("// the graph after the passes, that kernels were chosen for\n");
  PrintGraphText(recipe.plan.graph, constants);
  ASSIGN_OR_RETURN(const Graph graph, Parse(recipe.plan.graph));
  Table kernels({{"kernel"}, {"node"}});
  size_t position = 0;
  for (const NodeId id : graph.NodeIds()) {
    if (position >= recipe.plan.kernels.size()) break;
    const std::string& kernel = recipe.plan.kernels[position++];
    kernels.AddRow({kernel.empty() ? "(a view)" : kernel, NodeLabel(graph.node(id))});
  }
  std::printf("\n%s", kernels.Text().c_str());
  return absl::OkStatus();
}

absl::Status Show(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/true));
  ASSIGN_OR_RETURN(const std::vector<Inspected> files, RecipesOfKey(*store, flags.key));
  OrderedJson list = OrderedJson::array();
  for (const Inspected& file : files) {
    if (flags.json) {
      OrderedJson json = FileJson(file, store->Uses());
      if (file.facts.ok() && file.facts->kind == RecordKind::kRecipe) {
        ASSIGN_OR_RETURN(const Record record, DecodeRecord(file.bytes));
        ASSIGN_OR_RETURN(const DetachedRecipe recipe, DetachRecipe(record.payload));
        json["binding"] = recipe.binding;
        json["symbolic_graph"] = recipe.plan.symbolic;
        json["graph"] = recipe.plan.graph;
        json["kernels"] = recipe.plan.kernels;
      }
      list.push_back(std::move(json));
      continue;
    }
    RETURN_IF_ERROR(ShowRecipe(file, flags.constants));
  }
  return flags.json ? PrintJson({{"files", list}}) : absl::OkStatus();
}

absl::Status PruneKey(const RecipeStore& store, const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<Inspected> files, RecipesOfKey(store, flags.key));
  int64_t bytes = 0;
  for (const Inspected& file : files) {
    std::error_code error;
    std::filesystem::remove(absl::StrCat(store.folder(), "/", file.entry.file), error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("'", file.entry.file, "' cannot be removed: ", error.message()));
    }
    bytes += file.entry.bytes;
  }
  if (flags.json) return PrintJson({{"removed_files", files.size()}, {"removed_bytes", bytes}});
  std::printf("removed %s files, %s\n", Count(files.size()).c_str(), Bytes(bytes).c_str());
  return absl::OkStatus();
}

absl::Status Prune(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/false));
  if (!flags.key.empty()) return PruneKey(*store, flags);
  const int64_t limit = flags.max_mb < 0 ? kMostFileBytes : flags.max_mb << 20;
  ASSIGN_OR_RETURN(const RecipeStore::Pruned pruned, store->Prune(limit, /*damaged_too=*/true));
  const RecipeStore::Stats stats = store->GetStats();
  if (flags.json) {
    return PrintJson({{"removed_files", pruned.files},
                      {"removed_bytes", pruned.bytes},
                      {"files", stats.entries},
                      {"bytes", stats.bytes}});
  }
  std::printf("removed %s files, %s; %s files, %s are left\n", Count(pruned.files).c_str(),
              Bytes(pruned.bytes).c_str(), Count(stats.entries).c_str(),
              Bytes(stats.bytes).c_str());
  return absl::OkStatus();
}

absl::Status Export(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/true));
  std::vector<BundledRecord> records;
  int64_t damaged = 0;
  for (Inspected& file : Inspect(*store)) {
    if (file.facts.ok()) {
      records.push_back({file.entry.file, std::move(file.bytes)});
    } else {
      ++damaged;
    }
  }
  const std::filesystem::path path = std::filesystem::absolute(flags.bundle);
  const std::string bundle = EncodeBundle(records);
  RETURN_IF_ERROR(
      WriteFileAtomically(path.parent_path().string(), path.filename().string(), bundle));
  if (flags.json) {
    return PrintJson({{"bundle", flags.bundle},
                      {"records", records.size()},
                      {"bytes", bundle.size()},
                      {"damaged", damaged}});
  }
  std::printf("%s records, %s, in %s", Count(records.size()).c_str(), Bytes(bundle.size()).c_str(),
              flags.bundle.c_str());
  if (damaged > 0) std::printf("; %s damaged files are left out", Count(damaged).c_str());
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Import(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(flags.bundle, kMostFileBytes));
  const auto records = DecodeBundle(bytes);
  if (!records.ok()) {
    return absl::DataLossError(absl::StrCat(
        "'", flags.bundle, "' is not an intact bundle: ", std::string(records.status().message())));
  }
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags, flags.folder, /*read_only=*/false));
  // As a server has it whose flags say nothing of the device.
  const std::string device = CpuDevice({.max_isa = kEveryIsa}).fingerprint();
  int64_t usable = 0;
  std::map<std::string, int64_t> refused;  // counts, keyed by reason
  for (const BundledRecord& record : *records) {
    const auto facts = FactsOf(record.bytes, *RecordName::Parse(record.file));
    const absl::Status status = facts.ok() ? UsableOn(*facts, device) : facts.status();
    if (!status.ok()) {
      ++refused[std::string(status.message())];
      // A whole record may be of use to another server on the folder.
      if (!facts.ok()) continue;
    } else {
      ++usable;
    }
    RETURN_IF_ERROR(WriteFileAtomically(flags.folder, record.file, record.bytes));
  }
  if (flags.json) {
    return PrintJson({{"usable", usable}, {"records", records->size()}, {"refused", refused}});
  }
  std::printf("%s of %s records can be used on this machine\n", Count(usable).c_str(),
              Count(records->size()).c_str());
  for (const auto& [reason, count] : refused) {
    std::printf("%s cannot: %s\n", Count(count).c_str(), reason.c_str());
  }
  return absl::OkStatus();
}

absl::Status Merge(const StoreFlags& flags) {
  std::vector<std::unique_ptr<RecipeStore>> stores;
  for (const std::string& folder : flags.folders) {
    ASSIGN_OR_RETURN(stores.emplace_back(), OpenStore(flags, folder, /*read_only=*/true));
  }
  ASSIGN_OR_RETURN(const auto out, OpenStore(flags, flags.folder, /*read_only=*/false));
  ASSIGN_OR_RETURN(const MergedStores merged, MergeStores(stores, *out));
  if (flags.json) {
    return PrintJson({{"folder", flags.folder},
                      {"records", merged.records},
                      {"pooled", merged.pooled},
                      {"damaged", merged.left_out}});
  }
  std::printf("%s records in %s; %s hold what several servers have learnt of a model\n",
              Count(merged.records).c_str(), flags.folder.c_str(), Count(merged.pooled).c_str());
  if (merged.left_out > 0) {
    std::printf("%s damaged files are left out\n", Count(merged.left_out).c_str());
  }
  return absl::OkStatus();
}

using Command = absl::Status (*)(const StoreFlags&);

CLI::App* AddOne(CLI::App& store, const std::string& name, const std::string& what,
                 const std::shared_ptr<StoreFlags>& flags, Command run, Action& action) {
  CLI::App* command = store.add_subcommand(name, what);
  AddJson(*command, flags->json);
  command->callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return command;
}

void AddFolder(CLI::App& command, StoreFlags& flags) {
  AddOption(command, "folder", flags.folder, "DIR", "The folder of --recipe-cache")->required();
}

// Keys are written in lower case, and taken in any.
CLI::Option& AddKey(CLI::Option& option) {
  option.transform([](std::string text) { return absl::AsciiStrToLower(text); });
  return *option.type_name("KEY")->check([](const std::string& text) -> std::string {
    const bool is_key = text.size() == 16 && absl::c_all_of(text, absl::ascii_isxdigit);
    return is_key ? "" : absl::StrCat("'", text, "' is not a key of 16 hexadecimal digits");
  });
}

void AddStoreKey(CLI::App& command, StoreFlags& flags) {
  AddOption(command, "--store-key", flags.store_key, "FILE", "As the flag of reprised")
      ->check(CLI::ExistingFile);
}

void AddBundle(CLI::App& command, StoreFlags& flags) {
  AddOption(command, "bundle", flags.bundle, "FILE", "The bundle")->required();
}

}  // namespace

void AddStore(CLI::App& app, Action& action) {
  auto flags = std::make_shared<StoreFlags>();
  CLI::App* store = app.add_subcommand("store",
                                       "Inspect and maintain a recipe store, without a "
                                       "server");
  store->require_subcommand(1);
  CLI::App* list = AddOne(*store, "list", "Its records", flags, List, action);
  AddFolder(*list, *flags);
  AddStoreKey(*list, *flags);
  CLI::App* show =
      AddOne(*store, "show", "One recipe: its sizes, graphs and kernels", flags, Show, action);
  AddFolder(*show, *flags);
  AddKey(*show->add_option("key", flags->key, "Its key, as list and the server call it"))
      .required();
  show->add_flag("--constants", flags->constants, "Print the bytes of all constants too");
  CLI::App* verify =
      AddOne(*store, "verify", "Reads every file; exit 1 if one is damaged", flags, Verify, action);
  AddFolder(*verify, *flags);
  AddStoreKey(*verify, *flags);
  CLI::App* prune =
      AddOne(*store, "prune", "Removes damaged files, and the records of the least value", flags,
             Prune, action);
  AddFolder(*prune, *flags);
  AddStoreKey(*prune, *flags);
  CLI::Option* max_mb = AddOption(*prune, "--max-mb", flags->max_mb, "MB",
                                  "Remove files until the folder takes at most "
                                  "this much")
                            ->check(CLI::NonNegativeNumber);
  AddKey(*prune->add_option("--key", flags->key, "Remove this recipe alone")).excludes(max_mb);
  CLI::App* exported =
      AddOne(*store, "export", "Writes its intact records to one file", flags, Export, action);
  AddFolder(*exported, *flags);
  AddStoreKey(*exported, *flags);
  AddBundle(*exported, *flags);
  CLI::App* imported = AddOne(*store, "import",
                              "Adds the records of a bundle, and says which of "
                              "them this machine can use",
                              flags, Import, action);
  AddBundle(*imported, *flags);
  AddFolder(*imported, *flags);
  CLI::App* merged =
      AddOne(*store, "merge", "Joins the folders of several servers, with what each has learnt",
             flags, Merge, action);
  AddOption(*merged, "folders", flags->folders, "DIR", "The folders of --recipe-cache")->required();
  AddOption(*merged, "--out", flags->folder, "DIR", "Folder to write, or to add to")->required();
  AddStoreKey(*merged, *flags);
}

}  // namespace reprise::cli

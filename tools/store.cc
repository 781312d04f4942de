// reprise store: the folder of --recipe-cache, without a server.

#include "runtime/recipe/store.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/recipe/record_facts.h"
#include "tools/command.h"

namespace reprise::cli {
namespace {

// No file that is read here is larger.
constexpr int64_t kMostBytes = int64_t{1} << 31;

struct StoreFlags {
  std::string folder;
  std::string bundle;
  int64_t max_mb = -1;
};

absl::StatusOr<std::unique_ptr<RecipeStore>> OpenStore(const std::string& folder, bool read_only) {
  if (read_only && !std::filesystem::is_directory(folder)) {
    return absl::NotFoundError(absl::StrCat("'", folder, "' is no folder"));
  }
  return RecipeStore::Open(
      {.folder = folder,
       .max_bytes = kMostBytes,
       .read_only = read_only,
       .log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
}

// A file of the folder, and what it says of itself or what is wrong with it.
struct Inspected {
  RecipeStore::Entry entry;
  std::string bytes;
  absl::StatusOr<RecordFacts> facts;
};

std::vector<Inspected> Inspect(const RecipeStore& store) {
  std::vector<Inspected> files;
  for (RecipeStore::Entry& entry : store.List()) {
    Inspected file = {.entry = entry, .facts = absl::DataLossError("its name is no record's")};
    auto bytes = ReadWholeFile(absl::StrCat(store.folder(), "/", entry.file), kMostBytes);
    if (!bytes.ok()) {
      file.facts = bytes.status();
    } else {
      file.bytes = *std::move(bytes);
      if (entry.name.has_value()) file.facts = FactsOf(file.bytes, *entry.name);
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

// A device's fingerprint is long; its first part names the CPU.
std::string DeviceName(const std::string& device) {
  return device.empty() ? "any" : Shorten(device, 40);
}

absl::Status List(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags.folder, /*read_only=*/true));
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
  for (const Inspected& file : Inspect(*store)) {
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
                  Fixed(static_cast<double>(facts.rebuild_ns) * 1e-6, 1),
                  use == uses.end() ? "-" : Count(use->second), AgeOf(facts.created_unix_s),
                  DeviceName(facts.device)});
  }
  if (!table.empty()) std::printf("%s\n", table.Text().c_str());
  std::printf("%s files, %s\n", Count(files).c_str(), Bytes(bytes).c_str());
  return absl::OkStatus();
}

absl::Status Verify(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags.folder, /*read_only=*/true));
  int64_t good = 0, bad = 0;
  for (const Inspected& file : Inspect(*store)) {
    ++(file.facts.ok() ? good : bad);
    if (file.facts.ok()) continue;
    std::printf("%s: %s\n", file.entry.file.c_str(),
                std::string(file.facts.status().message()).c_str());
  }
  std::printf("%s files are intact, %s are not\n", Count(good).c_str(), Count(bad).c_str());
  if (bad == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      bad,
      " files cannot be used; a server leaves them alone, `reprise store prune` removes them"));
}

absl::Status Prune(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags.folder, /*read_only=*/false));
  const int64_t limit = flags.max_mb < 0 ? kMostBytes : flags.max_mb << 20;
  ASSIGN_OR_RETURN(const RecipeStore::Pruned pruned, store->Prune(limit, /*damaged_too=*/true));
  const RecipeStore::Stats stats = store->GetStats();
  std::printf("removed %s files, %s; %s files, %s are left\n", Count(pruned.files).c_str(),
              Bytes(pruned.bytes).c_str(), Count(stats.entries).c_str(),
              Bytes(stats.bytes).c_str());
  return absl::OkStatus();
}

absl::Status Export(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags.folder, /*read_only=*/true));
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
  std::printf("%s records, %s, in %s", Count(records.size()).c_str(), Bytes(bundle.size()).c_str(),
              flags.bundle.c_str());
  if (damaged > 0) std::printf("; %s damaged files are left out", Count(damaged).c_str());
  std::printf("\n");
  return absl::OkStatus();
}

absl::Status Import(const StoreFlags& flags) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(flags.bundle, kMostBytes));
  const auto records = DecodeBundle(bytes);
  if (!records.ok()) {
    return absl::DataLossError(absl::StrCat(
        "'", flags.bundle, "' is no intact bundle: ", std::string(records.status().message())));
  }
  ASSIGN_OR_RETURN(const auto store, OpenStore(flags.folder, /*read_only=*/false));
  // As a server has it whose flags say nothing of the device.
  const std::string device = CpuDevice({.max_isa = kHighestIsa}).fingerprint();
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
  std::printf("%s of %s records can be used on this machine\n", Count(usable).c_str(),
              Count(records->size()).c_str());
  for (const auto& [reason, count] : refused) {
    std::printf("%s cannot: %s\n", Count(count).c_str(), reason.c_str());
  }
  return absl::OkStatus();
}

using Command = absl::Status (*)(const StoreFlags&);

CLI::App* AddOne(CLI::App& store, const std::string& name, const std::string& what,
                 const std::shared_ptr<StoreFlags>& flags, Command run, Action& action) {
  CLI::App* command = store.add_subcommand(name, what);
  command->callback([flags, run, &action] { action = [flags, run] { return run(*flags); }; });
  return command;
}

void AddFolder(CLI::App& command, StoreFlags& flags) {
  command.add_option("folder", flags.folder, "The folder of --recipe-cache")
      ->type_name("DIR")
      ->required();
}

void AddBundle(CLI::App& command, StoreFlags& flags) {
  command.add_option("bundle", flags.bundle, "The bundle")->type_name("FILE")->required();
}

}  // namespace

void AddStore(CLI::App& app, Action& action) {
  auto flags = std::make_shared<StoreFlags>();
  CLI::App* store = app.add_subcommand("store", "Look after a recipe store, without a server");
  store->require_subcommand(1);
  AddFolder(*AddOne(*store, "list", "Its records", flags, List, action), *flags);
  AddFolder(*AddOne(*store, "verify", "Reads every file; exit 1 if one is damaged", flags, Verify,
                    action),
            *flags);
  CLI::App* prune = AddOne(*store, "prune", "Removes damaged files, and those of the least value",
                           flags, Prune, action);
  AddFolder(*prune, *flags);
  prune->add_option("--max-mb", flags->max_mb, "Until the folder takes at most as much")
      ->check(CLI::NonNegativeNumber)
      ->type_name("MB");
  CLI::App* exported =
      AddOne(*store, "export", "Writes its intact records to one file", flags, Export, action);
  AddFolder(*exported, *flags);
  AddBundle(*exported, *flags);
  CLI::App* imported = AddOne(*store, "import",
                              "Adds the records of a bundle, and says which of "
                              "them this machine can use",
                              flags, Import, action);
  AddBundle(*imported, *flags);
  AddFolder(*imported, *flags);
}

}  // namespace reprise::cli

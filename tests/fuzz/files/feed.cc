#include "tests/fuzz/files/feed.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/load/stored_model.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/engine/traffic/model_usage.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/gguf/gguf_model.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/record_file.h"
#include "runtime/recipe/record_name.h"
#include "runtime/recipe/stored_recipe.h"
#include "tests/fuzz/files/seeds.h"
#include "tests/testing/temp_folder.h"

namespace reprise::fuzz {
namespace {

// An engine, and a folder for the files that it loads.
class Loader {
 public:
  Loader() : engine_({.device = &device_, .clock = &clock_, .cores = &cores_}, observer_) {
    std::string made = (std::filesystem::temp_directory_path() / "reprise_fuzz_XXXXXX").string();
    REPRISE_CHECK(mkdtemp(made.data()) != nullptr);
    folder_ = made;
  }
  ~Loader() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  bool Load(absl::string_view bytes) {
    const std::string path = absl::StrCat(folder_, "/model.onnx");
    std::ofstream(path, std::ios::binary) << bytes;
    return engine_
        .Load({.id = {"model", ++loads_},
               .path = path,
               .capture = CapturePolicy::kInline,
               .tune = TuneMode::kOff})
        .ok();
  }

 private:
  SteadyClock clock_;
  HelperPool cores_{1};
  CpuDevice device_;
  SilentObserver observer_;
  Engine engine_;
  std::string folder_;
  int64_t loads_ = 0;
};

// Findings that are taken are written, and read again, as themselves.
bool FeedFindings(absl::string_view bytes, const StoredRecipeOfATest& recipe) {
  const StoredModelKey key = recipe.model_key();
  const auto decode = [&](absl::string_view from) {
    return DecodeFindings(from, key, {"batch", "sequence"}, {"x", "mask"}, 1);
  };
  const auto findings = decode(bytes);
  if (!findings.ok()) return false;
  const std::string written = EncodeFindings(key, recipe.id(), *findings, 1);
  const auto again = decode(written);
  REPRISE_CHECK(again.ok());
  REPRISE_CHECK(again->outputs.size() == findings->outputs.size());
  for (const OutputShape& shape : again->outputs) {
    for (const AffineDim& dim : shape.dims) dim.At({7, int64_t{1} << 40});
  }
  return true;
}

bool FeedUsage(absl::string_view bytes, const StoredRecipeOfATest& recipe) {
  const GraphFingerprint& graph = recipe.key().graph;
  const std::string device = recipe.device().fingerprint();
  const auto usage = DecodeUsage(bytes, graph, device);
  if (!usage.ok()) return false;
  constexpr int64_t kNow = 1'800'000'000;
  const std::string written = AddUsage(bytes, recipe.id(), graph, device, *usage, kNow);
  REPRISE_CHECK(DecodeUsage(written, graph, device).ok());
  return true;
}

}  // namespace

bool FeedOnnx(absl::string_view bytes) {
  const auto model = ImportOnnxBytes(bytes);
  if (!model.ok()) return false;
  const std::string text = Print(model->graph);
  const auto again = Parse(text);
  REPRISE_CHECK(again.ok());
  REPRISE_CHECK(Print(*again) == text);
  return true;
}

bool FeedGguf(absl::string_view bytes) {
  constexpr char kName[] = "model.gguf";
  if (!GgufAsOnnx(kName, CopyBytes(bytes)).ok()) return false;
  // Its tensors are read where they lie, in a file.
  static const auto* const folder = new TempFolder;
  return ImportOnnxFile(folder->Write(kName, bytes)).ok();
}

bool FeedLoad(absl::string_view bytes) {
  static auto* const loader = new Loader;
  return loader->Load(bytes);
}

bool FeedGraphText(absl::string_view bytes) {
  const auto graph = Parse(bytes);
  if (!graph.ok()) return false;
  const std::string text = Print(*graph);
  const auto again = Parse(text);
  REPRISE_CHECK(again.ok());
  REPRISE_CHECK(Print(*again) == text);
  // As graphs are compared and stored: without the names, and with the types of all parts.
  REPRISE_CHECK(!Print(*graph, {.names = false, .part_types = true}).empty());
  return true;
}

bool FeedRecord(absl::string_view bytes) {
  static auto* const recipe = new StoredRecipeOfATest;
  // As they are: a checksum seldom fits by itself, and the bytes around it are read before.
  bool taken = DecodeRecord(bytes).ok();
  if (const auto name = RecordName::Parse(bytes)) {
    taken = true;
    REPRISE_CHECK(name->file() == bytes);
  }
  for (const RecordKind kind : {RecordKind::kRecipe, RecordKind::kModel, RecordKind::kUsage,
                                RecordKind::kBundle, RecordKind::kChoices}) {
    const std::string file = EncodeRecord({.kind = kind, .payload = std::string(bytes)});
    const auto record = DecodeRecord(file);
    REPRISE_CHECK(record.ok() && record->payload == bytes);
    RecordName name = recipe->name();
    name.kind = kind;
    if (const auto facts = FactsOf(file, name); facts.ok()) {
      taken = true;
      UsableOn(*facts, recipe->device().fingerprint()).IgnoreError();
    }
    taken = DecodeBundle(file).ok() || taken;
  }
  // Neither another byte nor another kind is taken, whatever the checksum says.
  std::string damaged = EncodeRecord({.payload = std::string(bytes)});
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  REPRISE_CHECK(!DecodeRecord(damaged).ok());
  constexpr auto kNoKind = static_cast<RecordKind>(99);
  REPRISE_CHECK(!DecodeRecord(EncodeRecord({.kind = kNoKind, .payload = damaged})).ok());
  taken = FeedFindings(bytes, *recipe) || FeedUsage(bytes, *recipe) || taken;
  taken = DecodeChoices(bytes, recipe->device().fingerprint()).ok() || taken;
  const auto detached = DetachRecipe(bytes);
  if (!detached.ok()) return taken;
  const auto plan = DecodeRecipe(bytes, recipe->key());
  if (!plan.ok()) return true;
  const auto bound = Rebind(*plan, recipe->graph(), recipe->key(), recipe->options());
  if (bound.ok()) REPRISE_CHECK(!(*bound)->Dump().empty());
  return true;
}

}  // namespace reprise::fuzz

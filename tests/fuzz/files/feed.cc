#include "tests/fuzz/files/feed.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/onnx/importer.h"
#include "runtime/recipe/compiler.h"
#include "runtime/recipe/kernel_choices.h"
#include "runtime/recipe/record_facts.h"
#include "runtime/recipe/record_file.h"
#include "runtime/recipe/stored_recipe.h"
#include "tests/fuzz/files/seeds.h"

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
  return true;
}

bool FeedRecord(absl::string_view bytes) {
  static auto* const recipe = new StoredRecipeOfATest;
  bool taken = false;
  for (const RecordKind kind : {RecordKind::kRecipe, RecordKind::kModel, RecordKind::kUsage,
                                RecordKind::kBundle, RecordKind::kChoices}) {
    const std::string file = EncodeRecord({.kind = kind, .payload = std::string(bytes)});
    const auto record = DecodeRecord(file);
    REPRISE_CHECK(record.ok() && record->payload == bytes);
    taken = FactsOf(file, recipe->name()).ok() || taken;
    taken = DecodeBundle(file).ok() || taken;
  }
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

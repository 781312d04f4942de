#include "tools/profile.h"

#include <cstdio>
#include <memory>

#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/machine_peak.h"
#include "runtime/engine/profile.h"
#include "runtime/json/json_writer.h"
#include "tools/command.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {

namespace {

std::string JsonOf(const ProfileOptions& options, const RequestSizes& target,
                   const RecipeProfile& profile, const Roofline& roofline) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("model", options.path);
    json.Object("sizes", [&] {
      for (const auto& [axis, size] : target.sizes) json.Member(axis, size);
    });
    json.Member("packed", target.packed);
    json.Member("cpu", CpuModelName());
    json.Member("isa", IsaName(UsableIsa(options.max_isa)));
    json.Object("roofline", [&] {
      json.Member("gflops", roofline.gflops);
      json.Member("gexps", roofline.gexps);
      json.Member("gerfs", roofline.gerfs);
      json.Member("weight_gbytes", roofline.weight_gbytes);
      json.Member("other_gbytes", roofline.other_gbytes);
    });
    WriteProfile(profile, roofline, json);
  });
  return json.Take();
}

}  // namespace

absl::Status RunProfile(const ProfileOptions& options) {
  LocalEngine local(options.max_isa, /*threads=*/1, options.metrics_file);
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.LoadToStudy(options.path, options.precision));
  ASSIGN_OR_RETURN(const RequestSizes target, SizesOf(*model, options.bucket));
  ASSIGN_OR_RETURN(const MadeUpRequest made, MakeUpRequest(*model, target.sizes, options.max_id));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &local.cores}));
  ASSIGN_OR_RETURN(
      const RecipeProfile profile,
      local.engine.Profile(*model, made.request, *stream, options.repeats, target.packed));
  const Isa isa = UsableIsa(options.max_isa);
  const RecipeBytes bytes = BytesOf(*profile.recipe);
  const Roofline roofline = cpu::MeasureRoofline(isa, static_cast<size_t>(bytes.weights),
                                                 static_cast<size_t>(bytes.others));
  if (!options.metrics_file.empty()) RETURN_IF_ERROR(local.engine.WriteMetrics());
  if (options.json) {
    std::printf("%s", JsonOf(options, target, profile, roofline).c_str());
    return absl::OkStatus();
  }
  std::printf("%s at %s%s, one thread of %s (%s)\n", options.path.c_str(),
              absl::StrJoin(target.sizes, ", ", absl::PairFormatter(" ")).c_str(),
              target.packed ? ", packed" : "", CpuModelName().c_str(),
              std::string(IsaName(isa)).c_str());
  std::printf(
      "measured: %.0f GF/s; %.2f G exp/s, %.2f G erf/s; reads %.0f GB/s of %.1f MB of weights, "
      "%.0f GB/s of %.1f MB of activations\n\n",
      roofline.gflops, roofline.gexps, roofline.gerfs, roofline.weight_gbytes, bytes.weights / 1e6,
      roofline.other_gbytes, bytes.others / 1e6);
  std::printf("%s", ProfileTable(profile, roofline).c_str());
  return absl::OkStatus();
}

ProfileAction AddProfile(CLI::App& bench, CLI::Option* profile) {
  struct Flags {
    std::string bucket;
    std::string max_isa = std::string(IsaName(kEveryIsa));
    std::string precision = std::string(PrecisionName(Precision::kExact));
  };
  const auto flags = std::make_shared<Flags>();
  AddOption(bench, "--bucket", flags->bucket, "BUCKET",
            "Bucket (b1_s128) or sizes (batch=1,sequence=100) to profile")
      ->needs(profile);
  AddMaxIsa(bench, flags->max_isa, "Highest instruction set to profile with, as for reprised")
      ->needs(profile);
  AddPrecision(bench, flags->precision,
               "Precision to profile with, as `reprise.precision` of config.pbtxt")
      ->needs(profile);
  return [flags](const ProfileRequest& request) {
    return RunProfile({.path = request.path,
                       .bucket = flags->bucket,
                       .max_isa = *ParseIsa(flags->max_isa),
                       .precision = *ParsePrecision(flags->precision),
                       .max_id = request.max_id,
                       .json = request.json,
                       .metrics_file = request.metrics_file});
  };
}

}  // namespace reprise::cli

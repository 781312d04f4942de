#include "tools/profile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/random_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/machine_peak.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/silent_observer.h"
#include "runtime/graph/dim_expression.h"
#include "tools/command.h"

namespace reprise::cli {
namespace {

// The protocol's name of a dtype, as the made-up inputs know them.
std::string DatatypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "BOOL";
    case DType::kInt8:
      return "INT8";
    case DType::kUInt8:
      return "UINT8";
    case DType::kInt16:
      return "INT16";
    case DType::kUInt16:
      return "UINT16";
    case DType::kInt32:
      return "INT32";
    case DType::kUInt32:
      return "UINT32";
    case DType::kInt64:
      return "INT64";
    case DType::kUInt64:
      return "UINT64";
    case DType::kFloat32:
      return "FP32";
    case DType::kFloat64:
      return "FP64";
    default:
      return std::string(DTypeName(dtype));
  }
}

// Inputs of the model at `sizes`, with made-up values; those that may be left out are.
absl::StatusOr<std::vector<OwnedTensor>> InputsAt(const Model& model, const AxisSizes& sizes,
                                                  int64_t max_id) {
  std::map<std::string, int64_t> by_symbol;
  for (const ModelAxis& axis : model.axes()) by_symbol[axis.symbol] = sizes.at(axis.label);
  inference::ModelMetadataResponse metadata;
  metadata.set_name(model.id().name);
  for (const ModelIo& input : model.inputs()) {
    if (input.optional) continue;
    auto& tensor = *metadata.add_inputs();
    tensor.set_name(input.name);
    tensor.set_datatype(DatatypeOf(input.dtype));
    for (const Dim& dim : input.dims) {
      ASSIGN_OR_RETURN(const int64_t size, DimSize(dim, by_symbol));
      tensor.add_shape(size);
    }
  }
  std::mt19937_64 random(1);
  return RandomInputs(metadata, {.max_id = max_id}, random);
}

Request RequestOf(const Model& model, const std::vector<OwnedTensor>& tensors) {
  Request request;
  size_t next = 0;
  for (const ModelIo& input : model.inputs()) {
    InputTensor& tensor = request.inputs.emplace_back();
    if (input.optional) continue;
    const OwnedTensor& owned = tensors[next++];
    tensor.shape.assign(owned.shape.begin(), owned.shape.end());
    tensor.data = owned.bytes.data();
  }
  return request;
}

// Rows as long as may be that fill a packed replay of `tokens`.
AxisSizes Filling(const Model& model, int64_t tokens) {
  const int64_t length = std::min(tokens, model.packing()->longest());
  AxisSizes sizes;
  for (const ModelAxis& axis : model.axes()) {
    sizes[axis.label] = axis.is_batch ? tokens / length : length;
  }
  return sizes;
}

}  // namespace

absl::StatusOr<ProfileSizes> SizesOf(const Model& model, const std::string& text) {
  std::vector<std::string> axes;
  for (const ModelAxis& axis : model.axes()) axes.push_back(absl::StrCat(axis.label, "=SIZE"));
  if (axes.empty()) return ProfileSizes();
  // Axes without a certificate are in no bucket.
  const auto names_all = [&](const AxisSizes& sizes) {
    return sizes.size() == axes.size() &&
           std::all_of(model.axes().begin(), model.axes().end(),
                       [&](const ModelAxis& axis) { return sizes.contains(axis.label); });
  };
  if (model.packing() != nullptr) {
    if (const auto bucket = model.FindBucket(text)) {
      return ProfileSizes{.sizes = Filling(model, bucket->at(kTokensAxis)), .packed = true};
    }
  }
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  AxisSizes sizes;
  if (text.empty()) {
    for (const AxisBuckets& axis : policy->axes) sizes[axis.axis] = axis.sizes.front();
  } else if (const auto bucket = policy->FindBucket(text)) {
    sizes = *bucket;
  }
  if (names_all(sizes)) return ProfileSizes{.sizes = sizes};
  sizes.clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t size = 0;
    if (absl::SimpleAtoi(pair.second, &size) && size > 0) sizes[pair.first] = size;
  }
  if (names_all(sizes)) return ProfileSizes{.sizes = sizes};
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is neither a bucket of the model (",
                                                 absl::StrJoin(model.BucketLabels(), ", "),
                                                 ") nor ", absl::StrJoin(axes, ",")));
}

absl::Status RunProfile(const ProfileOptions& options) {
  SteadyClock clock;
  CpuDevice device(options.max_isa);
  CorePool cores(1);
  SilentObserver observer;
  Engine engine({.device = &device, .clock = &clock, .cores = &cores}, observer);
  // Which buckets there are hangs on the certificates; nothing is answered, so half a proof will
  // do.
  ASSIGN_OR_RETURN(
      const std::shared_ptr<Model> model,
      engine.Load({.id = {.name = std::filesystem::path(options.path).filename().string()},
                   .path = options.path,
                   .packing = PackingMode::kAuto,
                   .precision = options.precision,
                   .confirm_padding_later = true}));
  ASSIGN_OR_RETURN(const ProfileSizes target, SizesOf(*model, options.bucket));
  ASSIGN_OR_RETURN(const std::vector<OwnedTensor> inputs,
                   InputsAt(*model, target.sizes, options.max_id));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &cores}));
  const Request request = RequestOf(*model, inputs);
  ASSIGN_OR_RETURN(const RecipeProfile profile,
                   target.packed ? engine.ProfilePacked(*model, request, *stream, options.repeats)
                                 : engine.Profile(*model, request, *stream, options.repeats));
  const Isa isa = UsableIsa(options.max_isa);
  const RecipeBytes bytes = BytesOf(*profile.recipe);
  const Roofline roofline = cpu::MeasureRoofline(isa, static_cast<size_t>(bytes.weights),
                                                 static_cast<size_t>(bytes.others));
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
    std::string max_isa = std::string(IsaName(kHighestIsa));
    std::string precision = std::string(PrecisionName(Precision::kExact));
  };
  const auto flags = std::make_shared<Flags>();
  bench
      .add_option("--bucket", flags->bucket,
                  "What to profile: a bucket (b1_s128), or sizes (batch=1,sequence=100)")
      ->needs(profile)
      ->type_name("BUCKET");
  AddMaxIsa(bench, flags->max_isa, "Highest instruction set to profile with, as for reprised")
      ->needs(profile);
  AddPrecision(bench, flags->precision,
               "Precision to profile with, as `reprise.precision` of config.pbtxt")
      ->needs(profile);
  return [flags](const std::string& path, int64_t max_id) {
    return RunProfile({.path = path,
                       .bucket = flags->bucket,
                       .max_isa = *ParseIsa(flags->max_isa),
                       .precision = *ParsePrecision(flags->precision),
                       .max_id = max_id});
  };
}

}  // namespace reprise::cli

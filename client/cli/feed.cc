// reprise feed: images of a folder or a list through a server's model, in batches of one size.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <future>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/npy_writer.h"
#include "client/cli/table.h"
#include "client/images/batch_stream.h"
#include "client/images/default_boxes.h"
#include "client/loader.h"
#include "command_line/progress.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using client::InferResult;
using images::ChannelOrder;
using images::ImageBatch;
using images::ImageLoader;
using images::LastBatch;

// How the classifiers of most hubs were evaluated.
constexpr char kTransforms[] =
    "Resize(256), CenterCrop(224), ToTensor, "
    "Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])";

struct FeedFlags {
  ServerFlags server;
  std::string model, version, input;
  std::string path, annotations;
  std::string transforms = kTransforms;
  std::string transforms_file;
  images::LoaderOptions loader;
  int64_t epochs = 1;
  int64_t concurrency = 2;
  int64_t top = 1;
  std::string save;
  bool pads = false;  // a last batch that is not full is sent with rows of zeros
  bool load_only = false;
  bool stream = false;        // batches go to stdout as bytes
  bool orders = false;        // the order of each epoch comes from stdin
  std::string replica;        // "0/4"
  std::string default_boxes;  // that objects are matched with
  bool quiet = false;
  bool json = false;
};

absl::StatusOr<images::ImageSet> ReadImages(const FeedFlags& flags) {
  if (flags.annotations.empty()) return images::ReadImageSet(flags.path);
  return images::ReadCoco(flags.annotations, flags.path);
}

// Returns the input of the model that takes images.
absl::StatusOr<inference::ModelMetadataResponse::TensorMetadata> ImageInput(
    const inference::ModelMetadataResponse& model, const std::string& name) {
  for (const auto& input : model.inputs()) {
    if (name.empty() ? model.inputs_size() == 1 && input.shape_size() == 4 : input.name() == name) {
      return input;
    }
  }
  std::vector<std::string> have;
  for (const auto& input : model.inputs()) {
    have.push_back(absl::StrCat(input.name(), " ", input.datatype(), " [",
                                absl::StrJoin(input.shape(), ", "), "]"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model ", model.name(), " has no ",
                   name.empty() ? "single input of rank 4" : absl::StrCat("input ", name),
                   "; it has ", absl::StrJoin(have, ", "), " (--input names one)"));
}

// Returns where the model takes the channels.
ChannelOrder OrderOf(const inference::ModelMetadataResponse::TensorMetadata& input) {
  if (input.shape_size() != 4) return ChannelOrder::kAuto;
  if (input.shape(1) == 3) return ChannelOrder::kFirst;
  return input.shape(3) == 3 ? ChannelOrder::kLast : ChannelOrder::kAuto;
}

absl::Status CheckInput(const inference::ModelMetadataResponse::TensorMetadata& input,
                        const ImageLoader& loader) {
  const char* const datatype = loader.is_float() ? "FP32" : "UINT8";
  const std::vector<int64_t> shape = loader.shape();
  bool fits = input.datatype() == datatype && input.shape_size() == static_cast<int>(shape.size());
  for (int i = 0; fits && i < input.shape_size(); ++i) {
    fits = input.shape(i) < 0 || input.shape(i) == shape[static_cast<size_t>(i)];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the transforms make ", datatype, " [", absl::StrJoin(shape, ", "), "], input ", input.name(),
      " takes ", input.datatype(), " [", absl::StrJoin(input.shape(), ", "), "]"));
}

// A batch that is sent and not answered yet.
struct Sent {
  std::shared_ptr<const ImageBatch> batch;
  int64_t rows = 0;  // that were sent, padding included
  std::future<absl::StatusOr<InferResult>> answer;
};

// Counts over all answers.
struct Tally {
  int64_t images = 0, labelled = 0, right = 0, padded = 0;
};

// Positions of the largest of `scores`, the largest first.
std::vector<int64_t> Largest(absl::Span<const float> scores, int64_t count) {
  std::vector<int64_t> places(scores.size());
  std::iota(places.begin(), places.end(), int64_t{0});
  count = std::min<int64_t>(count, static_cast<int64_t>(places.size()));
  std::partial_sort(places.begin(), places.begin() + count, places.end(),
                    [&](int64_t a, int64_t b) {
                      return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
                    });
  places.resize(static_cast<size_t>(count));
  return places;
}

// Returns a line about an image: its path, and the classes with the largest scores. `scores`: of
// each class; empty where the output has none.
std::string ImageLine(const images::ImageEntry& entry, absl::Span<const float> scores,
                      absl::Span<const int64_t> largest, const client::OutputTensor& output) {
  std::string line = entry.path;
  for (const int64_t place : largest) {
    absl::StrAppend(&line, "\t", place, " ", Fixed(scores[static_cast<size_t>(place)], 4));
  }
  if (largest.empty()) {
    absl::StrAppend(&line, "\t", std::string(output.name), " ", output.datatype, " ",
                    client::ShapeText(output.shape));
  }
  return line;
}

// Returns the same as JSON.
nlohmann::ordered_json ImageJson(const images::ImageEntry& entry, absl::Span<const float> scores,
                                 absl::Span<const int64_t> largest,
                                 const client::OutputTensor& output) {
  nlohmann::ordered_json json = {{"image", entry.path}};
  if (entry.label.has_value()) json["label"] = *entry.label;
  for (const int64_t place : largest) {
    json["classes"].push_back({{"class", place}, {"score", scores[static_cast<size_t>(place)]}});
  }
  if (largest.empty()) {
    json["output"] = {
        {"name", output.name}, {"datatype", output.datatype}, {"shape", output.shape}};
  }
  return json;
}

// Prints a line for each image, and counts it. The first output has scores where it is
// [batch, classes].
absl::Status Tell(const FeedFlags& flags, const ImageBatch& batch, int64_t rows,
                  const InferResult& result, Tally& tally) {
  tally.images += batch.rows();
  tally.padded += rows - batch.rows();
  if (result.outputs().empty()) return absl::InternalError("the answer has no output");
  const client::OutputTensor& output = result.outputs()[0];
  const auto scores = output.As<float>();
  const bool has_scores =
      scores.ok() && output.shape.size() == 2 && output.shape[0] == rows && output.shape[1] > 0;
  for (size_t row = 0; row < batch.samples.size(); ++row) {
    const images::ImageEntry& entry = *batch.samples[row].entry;
    absl::Span<const float> own;
    std::vector<int64_t> largest;
    if (has_scores) {
      const auto classes = static_cast<size_t>(output.shape[1]);
      own = scores->subspan(row * classes, classes);
      largest = Largest(own, flags.top);
    }
    if (has_scores && entry.label.has_value()) {
      ++tally.labelled;
      tally.right += largest[0] == *entry.label ? 1 : 0;
    }
    if (flags.quiet) continue;
    if (flags.json) {
      RETURN_IF_ERROR(PrintJsonLine(ImageJson(entry, own, largest, output)));
    } else {
      std::printf("%s\n", ImageLine(entry, own, largest, output).c_str());
    }
  }
  return absl::OkStatus();
}

// `input`: with the number of rows that it takes, or -1 where that is any.
Sent Send(client::Client& client, const FeedFlags& flags,
          const inference::ModelMetadataResponse::TensorMetadata& input,
          std::shared_ptr<const ImageBatch> batch) {
  client::InferRequest request = {.model = flags.model, .version = flags.version};
  const bool fixed = input.shape_size() > 0 && input.shape(0) > 0;
  const int64_t rows = flags.pads || fixed ? batch->shape[0] : batch->rows();
  const size_t row_bytes = batch->data.size() / static_cast<size_t>(batch->shape[0]);
  std::vector<int64_t> shape = batch->shape;
  shape[0] = rows;
  request.inputs.push_back(
      {.name = input.name(),
       .datatype = batch->is_float ? "FP32" : "UINT8",
       .shape = std::move(shape),
       .data = absl::MakeConstSpan(batch->data).subspan(0, row_bytes * static_cast<size_t>(rows))});
  auto promise = std::make_shared<std::promise<absl::StatusOr<InferResult>>>();
  Sent sent = {.batch = std::move(batch), .rows = rows, .answer = promise->get_future()};
  client.InferAsync(request, [promise](absl::StatusOr<InferResult> result) {
    promise->set_value(std::move(result));
  });
  return sent;
}

// Returns the file of --save; null where there is none.
std::unique_ptr<NpyWriter> OpenFile(const FeedFlags& flags, const ImageLoader& loader) {
  if (flags.save.empty()) return nullptr;
  const std::vector<int64_t> shape = loader.shape();
  return std::make_unique<NpyWriter>(flags.save, loader.is_float() ? "<f4" : "|u1",
                                     std::vector<int64_t>(shape.begin() + 1, shape.end()));
}

// Takes every batch of all epochs through `take(batch)`, and `finish` at the end.
template <typename Take>
absl::Status ForEachBatch(const FeedFlags& flags, ImageLoader& loader, const Take& take) {
  command_line::Progress progress("images");
  const auto all =
      static_cast<double>(loader.set().images.size()) * static_cast<double>(flags.epochs);
  const std::unique_ptr<NpyWriter> file = OpenFile(flags, loader);
  int64_t seen = 0;
  for (int64_t epoch = 0; epoch < flags.epochs;) {
    ASSIGN_OR_RETURN(std::shared_ptr<const ImageBatch> batch, loader.Next());
    if (batch == nullptr) {
      ++epoch;
      continue;
    }
    seen += batch->rows();
    if (file != nullptr) {
      const size_t element = batch->data.size() / static_cast<size_t>(batch->shape[0]);
      file->Add(absl::MakeConstSpan(batch->data).subspan(0, element * batch->samples.size()),
                batch->rows());
    }
    RETURN_IF_ERROR(take(std::move(batch)));
    progress.Show(static_cast<double>(seen) / all, absl::StrCat(seen, " images"));
  }
  return file == nullptr ? absl::OkStatus() : file->Finish();
}

absl::Status Summarise(const FeedFlags& flags, const ImageLoader& loader, const Tally& tally,
                       double seconds) {
  std::fflush(stdout);
  for (const std::string& line : loader.skipped()) std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::string& line : loader.plain_causes()) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  if (flags.json) {
    return PrintJsonLine({{"images", tally.images},
                          {"seconds", seconds},
                          {"images_per_second", static_cast<double>(tally.images) / seconds},
                          {"padded_rows", tally.padded},
                          {"labelled", tally.labelled},
                          {"right", tally.right},
                          {"skipped", loader.skipped().size()}});
  }
  std::string text =
      absl::StrCat(tally.images, " images in ", Seconds(seconds), ", ",
                   Fixed(static_cast<double>(tally.images) / seconds, 1), " images/s");
  if (tally.padded > 0) absl::StrAppend(&text, ", ", tally.padded, " rows of padding");
  if (tally.labelled > 0) {
    absl::StrAppend(&text, ", ",
                    Percent(static_cast<double>(tally.right), static_cast<double>(tally.labelled)),
                    " of the classes as they are labelled");
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  return absl::OkStatus();
}

absl::Status Feed(const FeedFlags& flags, client::Client& client,
                  const inference::ModelMetadataResponse::TensorMetadata& input,
                  ImageLoader& loader, Tally& tally) {
  std::deque<Sent> sent;
  const auto finish_one = [&]() -> absl::Status {
    const absl::StatusOr<InferResult> result = sent.front().answer.get();
    if (!result.ok()) return result.status();
    RETURN_IF_ERROR(Tell(flags, *sent.front().batch, sent.front().rows, *result, tally));
    sent.pop_front();
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      ForEachBatch(flags, loader, [&](std::shared_ptr<const ImageBatch> batch) -> absl::Status {
        sent.push_back(Send(client, flags, input, std::move(batch)));
        while (std::ssize(sent) >= flags.concurrency) RETURN_IF_ERROR(finish_one());
        return absl::OkStatus();
      }));
  while (!sent.empty()) RETURN_IF_ERROR(finish_one());
  return absl::OkStatus();
}

// Writes all batches to stdout.
absl::Status WriteBatches(const FeedFlags& flags, ImageLoader& loader) {
  std::optional<images::DefaultBoxes> boxes;
  if (!flags.default_boxes.empty()) {
    ASSIGN_OR_RETURN(boxes, images::DefaultBoxes::Named(flags.default_boxes));
  }
  images::BatchStream stream(loader.set(), stdout, boxes.has_value() ? &*boxes : nullptr);
  RETURN_IF_ERROR(stream.Begin());
  for (int64_t epoch = 1; flags.orders || epoch <= flags.epochs; ++epoch) {
    while (true) {
      ASSIGN_OR_RETURN(const std::shared_ptr<const ImageBatch> batch, loader.Next());
      if (batch == nullptr) break;
      RETURN_IF_ERROR(stream.Write(*batch));
    }
    if (flags.orders && std::feof(stdin) != 0) break;
    RETURN_IF_ERROR(stream.EndEpoch(epoch));
  }
  for (const std::string& line : loader.skipped()) std::fprintf(stderr, "%s\n", line.c_str());
  return absl::OkStatus();
}

// "2/8": the third of eight.
absl::Status ReadReplica(const std::string& text, images::LoaderOptions& options) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  if (absl::SimpleAtoi(parts.first, &options.replica) &&
      absl::SimpleAtoi(parts.second, &options.replicas)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--replica ", text, ": must be its number, from 0 on, and of how many: 0/4"));
}

absl::Status RunFeed(const FeedFlags& flags) {
  images::LoaderOptions options = flags.loader;
  if (!flags.replica.empty()) RETURN_IF_ERROR(ReadReplica(flags.replica, options));
  if (flags.orders) options.sampler = images::OrdersFrom(stdin);
  options.transforms = flags.transforms;
  if (!flags.transforms_file.empty()) {
    std::ifstream file(flags.transforms_file);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", flags.transforms_file));
    options.transforms.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSIGN_OR_RETURN(images::ImageSet set, ReadImages(flags));
  std::unique_ptr<client::Client> client;
  inference::ModelMetadataResponse::TensorMetadata input;
  if (!flags.load_only) {
    ASSIGN_OR_RETURN(client, flags.server.Connect());
    ASSIGN_OR_RETURN(const auto metadata, client->ModelMetadata(flags.model, flags.version));
    ASSIGN_OR_RETURN(input, ImageInput(metadata, flags.input));
    options.order = OrderOf(input);
  }
  ASSIGN_OR_RETURN(auto loader, ImageLoader::Open(std::move(set), std::move(options)));
  if (flags.stream) return WriteBatches(flags, *loader);
  if (client != nullptr) RETURN_IF_ERROR(CheckInput(input, *loader));
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  if (client == nullptr) {
    RETURN_IF_ERROR(ForEachBatch(flags, *loader, [&](const auto& batch) {
      tally.images += batch->rows();
      return absl::OkStatus();
    }));
  } else {
    RETURN_IF_ERROR(Feed(flags, *client, input, *loader, tally));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return Summarise(flags, *loader, tally, took.count());
}

void AddLoaderFlags(CLI::App& command, FeedFlags& flags) {
  AddOption(command, "--annotations", flags.annotations, "FILE",
            "COCO's annotations of the images");
  CLI::Option* const text =
      AddOption(command, "--transforms", flags.transforms, "LIST",
                "Transforms of each image: Resize, CenterCrop, RandomResizedCrop, "
                "RandomHorizontalFlip, ColorJitter, RandomIoUCrop, Letterbox, ToTensor, "
                "Normalize")
          ->capture_default_str();
  AddOption(command, "--transforms-file", flags.transforms_file, "FILE", "A file with that list")
      ->excludes(text);
  command.add_option("--batch", flags.loader.batch, "Images of a batch")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command
      .add_option_function<std::string>(
          "--last",
          [&flags](const std::string& how) {
            flags.loader.last = how == "drop" ? LastBatch::kDrop : LastBatch::kPad;
            flags.pads = how == "pad";
          },
          "Treatment of a last batch that is not full: send it as it is, pad it with zeros, or "
          "drop it")
      ->default_str("send")
      ->check(CLI::IsMember({"send", "pad", "drop"}));
  command.add_flag("--skip-damaged", flags.loader.skip_damaged,
                   "Leave out images that cannot be decoded, and count them, instead of ending");
  AddOption(command, "--replica", flags.replica, "NUMBER/COUNT",
            "The part of every epoch that this loader has, and of how many parts");
  command.add_flag("--drop-uneven", flags.loader.drop_uneven,
                   "Images that do not divide by --replica's count are in no part, not in two");
  command.add_flag("--shuffle", flags.loader.shuffle, "Shuffle the images in each epoch");
  command.add_option("--seed", flags.loader.seed, "Seed of the order and of random transforms")
      ->capture_default_str();
  command.add_option("--threads", flags.loader.threads, "Threads that decode; 0: one for each CPU")
      ->capture_default_str()
      ->check(CLI::Range(0, 256));
  command.add_option("--epochs", flags.epochs, "Number of epochs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

}  // namespace

void AddFeed(CLI::App& app, Action& action) {
  auto flags = std::make_shared<FeedFlags>();
  CLI::App* command =
      app.add_subcommand("feed", "Send images of a folder or a list to a model, in batches");
  flags->server.Add(*command);
  AddOption(*command, "model", flags->model, "MODEL", "Name of the model")->required();
  AddOption(*command, "images", flags->path, "DIR|LIST",
            "Folder of images, folder with one folder for each class, or file that lists "
            "images")
      ->required();
  AddLoaderFlags(*command, *flags);
  command->add_option("--version", flags->version, "Version; the newest if not given");
  AddOption(*command, "--input", flags->input, "NAME", "The input that takes images");
  command->add_option("--concurrency", flags->concurrency, "Batches in flight at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{256}));
  command->add_option("--top", flags->top, "Classes to print for each image")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddOption(*command, "--save", flags->save, "FILE",
            "File .npy to write the transformed images to");
  CLI::Option* const load_only = command->add_flag("--load-only", flags->load_only,
                                                   "Measure how fast images are loaded, without "
                                                   "a server");
  CLI::Option* const stream =
      command
          ->add_flag("--stream", flags->stream,
                     "Write the batches to stdout, as lines of JSON and bytes, for a program")
          ->needs(load_only);
  command
      ->add_flag("--orders", flags->orders,
                 "The images of each epoch are a line of their numbers on stdin, to its end")
      ->needs(stream);
  AddOption(*command, "--default-boxes", flags->default_boxes, "NAME",
            "Match objects with the default boxes of a detector: ssd300")
      ->needs(stream);
  command->add_flag("--quiet", flags->quiet, "No line for each image");
  AddJson(*command, flags->json)->excludes(stream);
  command->callback([flags, &action] { action = [flags] { return RunFeed(*flags); }; });
}

}  // namespace reprise::cli

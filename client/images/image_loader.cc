#include "client/images/image_loader.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/images/pipeline.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"

namespace reprise::images {
namespace {

constexpr size_t kMostCauses = 16;
constexpr int kMostThreads = 256;
constexpr std::streamoff kMostFileBytes = std::streamoff{1} << 30;
constexpr int64_t kMostBatchBytes = int64_t{4} << 30;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return absl::NotFoundError("it cannot be opened");
  const std::streamoff size = stream.tellg();
  if (size < 0 || size > kMostFileBytes) {  // the largest size in the folder
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", size, " bytes, the limit is ", kMostFileBytes));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  stream.seekg(0);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream) return absl::InvalidArgumentError("it cannot be read to its end");
  return bytes;
}

// Threads take images one after another and write each into its batch. A batch is handed over when
// all of its images are there; no more are begun than `batches_ahead` and the one that is waited
// for.
class ThreadedLoader final : public ImageLoader {
 public:
  ThreadedLoader(ImageSet set, LoaderOptions options, Pipeline pipeline)
      : set_(std::move(set)), options_(std::move(options)), pipeline_(std::move(pipeline)) {
    MutexLock lock(mutex_);
    begins_ = options_.sampler != nullptr;
    if (!begins_) BeginEpochLocked();
  }

  ~ThreadedLoader() override {
    {
      MutexLock lock(mutex_);
      stops_ = true;
    }
    work_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status StartThreads() {
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        return absl::ResourceExhaustedError(absl::StrCat("no thread can be made: ", error.what()));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const ImageBatch>> Next() override {
    std::shared_ptr<const ImageBatch> batch;
    MutexLock lock(mutex_);
    if (std::exchange(begins_, false)) {
      BeginEpochLocked();
      work_.NotifyAll();
    }
    do {
      while (failed_.ok() && !under_way_.empty() && under_way_.front()->left > 0) {
        done_.Wait(mutex_);
      }
      if (!failed_.ok()) return failed_;
      if (under_way_.empty()) {  // all batches of the epoch were handed over
        if (rows_of_epoch_ == 0 && !skipped_.empty()) {
          failed_ = absl::InvalidArgumentError(
              absl::StrCat("no image can be used; the first fault is ", skipped_.front()));
          return failed_;
        }
        // A sampler may not know the next order yet.
        begins_ = options_.sampler != nullptr;
        if (!begins_) BeginEpochLocked();
        work_.NotifyAll();
        return std::shared_ptr<const ImageBatch>();
      }
      LeaveOutLocked(*under_way_.front());
      CountLocked(*under_way_.front());
      batch = std::move(under_way_.front()->batch);
      under_way_.pop_front();
      FillLocked();
      work_.NotifyAll();
    } while (batch->samples.empty());  // none of its images could be used
    return batch;
  }

  std::vector<int64_t> shape() const override {
    const TensorWriter& writer = pipeline_.writer();
    if (writer.channels_first()) {
      return {options_.batch, kChannels, writer.height(), writer.width()};
    }
    return {options_.batch, writer.height(), writer.width(), kChannels};
  }
  bool is_float() const override { return pipeline_.writer().is_float(); }
  const ImageSet& set() const override { return set_; }

  std::vector<std::string> skipped() const override {
    MutexLock lock(mutex_);
    if (num_skipped_ == 0) return {};
    std::vector<std::string> lines = {absl::StrCat(
        num_skipped_, " of ", handed_over_ + num_skipped_, " images were skipped, being damaged")};
    lines.insert(lines.end(), skipped_.begin(), skipped_.end());
    return lines;
  }

  std::vector<std::string> plain_causes() const override {
    MutexLock lock(mutex_);
    std::vector<std::string> lines;
    for (const auto& [cause, count] : causes_) {
      lines.push_back(
          absl::StrCat(count, " of ", handed_over_, " images took the plain path: ", cause));
    }
    return lines;
  }

 private:
  // A batch that threads fill.
  struct UnderWay {
    std::shared_ptr<ImageBatch> batch;
    size_t first = 0;                       // position in the epoch of its first image
    size_t next = 0;                        // rows that were begun
    size_t left = 0;                        // rows that are not done
    std::vector<std::string> causes;        // why rows of it took the plain path
    std::map<size_t, std::string> damaged;  // faults of rows that are skipped
  };

  void BeginEpochLocked() REQUIRES(mutex_) {
    ++epoch_;
    begun_ = 0;
    rows_of_epoch_ = 0;
    OrderLocked();
    FillLocked();
  }

  // Sets the images of the epoch, in their order.
  void OrderLocked() REQUIRES(mutex_) {
    order_.resize(set_.images.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    if (options_.sampler != nullptr) {
      order_.clear();
      for (const int64_t image : options_.sampler(epoch_)) {
        if (image < 0 || image >= static_cast<int64_t>(set_.images.size())) {
          failed_ = absl::InvalidArgumentError(absl::StrCat("the sampler names image ", image,
                                                            ", the set has ", set_.images.size()));
          return order_.clear();
        }
        order_.push_back(static_cast<size_t>(image));
      }
    } else if (options_.shuffle) {
      // All replicas draw the same order.
      RandomStream random(options_.seed, epoch_, ~uint64_t{0});
      for (size_t i = order_.size() - 1; i > 0; --i) {
        std::swap(order_[i],
                  order_[static_cast<size_t>(random.Below(static_cast<int64_t>(i) + 1))]);
      }
    }
    if (options_.replicas > 1) KeepOwnPart(order_);
  }

  void KeepOwnPart(std::vector<size_t>& order) const {
    const auto replicas = static_cast<size_t>(options_.replicas);
    const size_t each = (order.size() + (options_.drop_uneven ? 0 : replicas - 1)) / replicas;
    std::vector<size_t> own;
    for (size_t i = 0; i < each; ++i) {
      own.push_back(order[(i * replicas + static_cast<size_t>(options_.replica)) % order.size()]);
    }
    order = std::move(own);
  }

  // Begins batches as far ahead as there may be.
  void FillLocked() REQUIRES(mutex_) {
    const auto batch = static_cast<size_t>(options_.batch);
    while (under_way_.size() <= static_cast<size_t>(options_.batches_ahead)) {
      const size_t rows = std::min(batch, order_.size() - begun_);
      if (rows == 0 || (rows < batch && options_.last == LastBatch::kDrop)) return;
      auto made = std::make_shared<UnderWay>();
      made->first = std::exchange(begun_, begun_ + rows);
      made->left = rows;
      made->batch = std::make_shared<ImageBatch>();
      made->batch->shape = shape();
      made->batch->is_float = is_float();
      made->batch->data.resize(batch * pipeline_.writer().bytes());
      made->batch->samples.resize(rows);
      under_way_.push_back(std::move(made));
    }
  }

  // Returns the first batch with a row that is not begun; null where there is none.
  std::shared_ptr<UnderWay> FreeLocked() REQUIRES(mutex_) {
    for (const auto& one : under_way_) {
      if (one->next < one->batch->samples.size()) return one;
    }
    return nullptr;
  }

  void Work() {
    while (true) {
      std::shared_ptr<UnderWay> under_way;
      std::shared_ptr<ImageBatch> batch;
      size_t row = 0, image = 0;
      uint64_t epoch = 0;
      {
        MutexLock lock(mutex_);
        while (!stops_ && failed_.ok() && (under_way = FreeLocked()) == nullptr) {
          work_.Wait(mutex_);
        }
        if (stops_ || !failed_.ok()) return;
        row = under_way->next++;
        image = order_[under_way->first + row];
        epoch = epoch_;
        batch = under_way->batch;
      }
      absl::StatusOr<std::string> made = Make(image, epoch, row, *batch);
      MutexLock lock(mutex_);
      Note(std::move(made), row, *under_way);
      if (--under_way->left == 0 || !failed_.ok()) done_.NotifyAll();
    }
  }

  void Note(absl::StatusOr<std::string> made, size_t row, UnderWay& under_way) REQUIRES(mutex_) {
    if (!made.ok() && options_.skip_damaged && !absl::IsResourceExhausted(made.status())) {
      under_way.damaged[row] = std::string(made.status().message());
    } else if (!made.ok()) {
      if (failed_.ok()) failed_ = made.status();
      work_.NotifyAll();
    } else if (!made->empty()) {
      under_way.causes.push_back(*std::move(made));
    }
  }

  // Takes the rows of damaged images out of a batch; rows of zeros follow the others.
  void LeaveOutLocked(UnderWay& done) REQUIRES(mutex_) {
    if (done.damaged.empty()) return;
    ImageBatch& batch = *done.batch;
    const size_t bytes = pipeline_.writer().bytes();
    size_t kept = 0;
    for (size_t row = 0; row < batch.samples.size(); ++row) {
      if (done.damaged.contains(row)) continue;
      if (kept != row) {
        batch.samples[kept] = std::move(batch.samples[row]);
        std::memcpy(batch.data.data() + kept * bytes, batch.data.data() + row * bytes, bytes);
      }
      ++kept;
    }
    std::fill(batch.data.begin() + static_cast<std::ptrdiff_t>(kept * bytes), batch.data.end(),
              std::byte{0});
    batch.samples.resize(kept);
    for (auto& [row, fault] : done.damaged) {
      ++num_skipped_;
      if (skipped_.size() < kMostCauses) skipped_.push_back(std::move(fault));
    }
  }

  // Counts a batch that is handed over: images that are made ahead do not count yet.
  void CountLocked(const UnderWay& done) REQUIRES(mutex_) {
    handed_over_ += static_cast<int64_t>(done.batch->samples.size());
    rows_of_epoch_ += static_cast<int64_t>(done.batch->samples.size());
    for (const std::string& cause : done.causes) {
      if (causes_.size() < kMostCauses || causes_.contains(cause)) ++causes_[cause];
    }
  }

  // Writes the image into its row; why it took the plain path.
  absl::StatusOr<std::string> Make(size_t image, uint64_t epoch, size_t row,
                                   ImageBatch& batch) const {
    const ImageEntry& entry = set_.images[image];
    ImageSample& sample = batch.samples[row];
    sample = {.entry = &entry, .boxes = entry.boxes};
    const auto make = [&]() -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const std::string bytes, ReadFile(entry.path));
      ASSIGN_OR_RETURN(Decoded decoded, DecodeImage(bytes, {.max_pixels = options_.max_pixels}));
      RandomStream random(options_.seed, epoch, image);
      return pipeline_.Apply(std::move(decoded), random, sample.boxes,
                             batch.data.data() + row * pipeline_.writer().bytes());
    };
    absl::StatusOr<std::string> made;
    try {
      made = make();
    } catch (const std::bad_alloc&) {
      made = absl::ResourceExhaustedError("there is no memory for it");
    }
    if (made.ok()) return made;
    return absl::Status(made.status().code(),
                        absl::StrCat(entry.path, ": ", made.status().message()));
  }

  // Constant after construction.
  const ImageSet set_;
  const LoaderOptions options_;
  const Pipeline pipeline_;
  std::vector<std::thread> threads_;
  // Guarded.
  mutable Mutex mutex_;
  CondVar work_, done_;
  std::vector<size_t> order_ GUARDED_BY(mutex_);  // the epoch's, as positions in the set
  uint64_t epoch_ GUARDED_BY(mutex_) = 0;
  size_t begun_ GUARDED_BY(mutex_) = 0;  // images of the epoch whose batch was begun
  std::deque<std::shared_ptr<UnderWay>> under_way_ GUARDED_BY(mutex_);
  absl::Status failed_ GUARDED_BY(mutex_);
  bool stops_ GUARDED_BY(mutex_) = false;
  bool begins_ GUARDED_BY(mutex_) = false;      // the next call of Next begins an epoch
  int64_t handed_over_ GUARDED_BY(mutex_) = 0;  // images
  int64_t rows_of_epoch_ GUARDED_BY(mutex_) = 0;
  int64_t num_skipped_ GUARDED_BY(mutex_) = 0;
  std::vector<std::string> skipped_ GUARDED_BY(mutex_);  // faults of the first
  std::map<std::string, int64_t> causes_ GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<ImageLoader>> ImageLoader::Open(ImageSet set,
                                                               LoaderOptions options) {
  if (set.images.empty()) return absl::InvalidArgumentError("there is no image");
  if (options.batch < 1 || options.batches_ahead < 0 || options.batches_ahead > 1024 ||
      options.threads < 0 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch is ", options.batch, ", batches_ahead ", options.batches_ahead,
                     ", threads ", options.threads, " (at most ", kMostThreads, ")"));
  }
  if (options.replicas < 1 || options.replica < 0 || options.replica >= options.replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("replica ", options.replica, " of ", options.replicas, ": they count from 0"));
  }
  if (options.threads == 0) options.threads = std::min(AvailableCpus(), kMostThreads);
  ASSIGN_OR_RETURN(TransformList transforms, TransformList::Parse(options.transforms));
  ASSIGN_OR_RETURN(Pipeline pipeline, Pipeline::Make(std::move(transforms), options.order));
  const auto bytes = static_cast<int64_t>(pipeline.writer().bytes());
  if (options.batch > kMostBatchBytes / bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a batch of ", options.batch, " images of ",
                                                   bytes, " bytes each is larger than ",
                                                   kMostBatchBytes, " bytes"));
  }
  auto loader =
      std::make_unique<ThreadedLoader>(std::move(set), std::move(options), std::move(pipeline));
  RETURN_IF_ERROR(loader->StartThreads());
  return std::unique_ptr<ImageLoader>(std::move(loader));
}

}  // namespace reprise::images

#include "runtime/ops/quantize_microsoft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/matmul.h"

namespace reprise::ops {
namespace {

constexpr uint32_t kFloat = TypeBit(DType::kFloat32);

// One a column.
absl::Status CheckColumns(const InferContext& context, size_t input, int64_t columns) {
  if (!context.has_input(input)) return absl::OkStatus();
  const int64_t count = NumElements(context.shape(input));
  if (count == columns) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " has ", count, " elements for ", columns, " columns"));
}

// The layout of MatMulNBits' weights: row n of B holds the blocks of column n of the product.
struct BitLayout {
  int64_t k, n, bits, block, blocks, bytes_per_block, zero_bytes_per_row;
};

absl::StatusOr<BitLayout> BitLayoutOf(const Node& node) {
  BitLayout l;
  l.k = node.attributes.Int("K", 0);
  l.n = node.attributes.Int("N", 0);
  l.bits = node.attributes.Int("bits", 4);
  l.block = node.attributes.Int("block_size", 0);
  constexpr int64_t kLimit = 1 << 20;  // Products of three sizes do not overflow.
  if (l.k <= 0 || l.n <= 0 || l.block <= 0 || l.k > kLimit || l.n > kLimit || l.block > kLimit) {
    return absl::InvalidArgumentError("attributes 'K', 'N' and 'block_size' are out of range");
  }
  if (l.bits != 4 && l.bits != 8) {
    return absl::UnimplementedError(absl::StrCat(l.bits, " bits are not supported"));
  }
  l.blocks = (l.k + l.block - 1) / l.block;
  l.bytes_per_block = (l.block * l.bits + 7) / 8;
  l.zero_bytes_per_row = (l.blocks * l.bits + 7) / 8;
  return l;
}

// Value number `i` of packed `bits`-wide values, low bits first.
int Unpack(const uint8_t* bytes, int64_t i, int64_t bits) {
  return bits == 8 ? bytes[i] : (bytes[i / 2] >> (i % 2 * 4)) & 15;
}

}  // namespace

// A, B, scales, zero_points?, g_idx?, bias?
absl::Status MatMulNBitsRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kFloat));
  RETURN_IF_ERROR(CheckType(context, 1, TypeBit(DType::kUInt8)));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  ASSIGN_OR_RETURN(const BitLayout l, BitLayoutOf(context.node()));
  if (context.has_input(4)) return absl::UnimplementedError("input 4 (g_idx) is not supported");
  if (NumElements(context.shape(1)) != l.n * l.blocks * l.bytes_per_block ||
      NumElements(context.shape(2)) != l.n * l.blocks) {
    return absl::InvalidArgumentError("weights or scales do not match K, N and block_size");
  }
  if (context.has_input(3)) {
    RETURN_IF_ERROR(CheckType(context, 3, kFloat | TypeBit(DType::kUInt8)));
    const int64_t expected =
        l.n * (context.dtype(3) == DType::kUInt8 ? l.zero_bytes_per_row : l.blocks);
    if (NumElements(context.shape(3)) != expected) {
      return absl::InvalidArgumentError(absl::StrCat("expected ", expected, " zero points"));
    }
  }
  if (context.has_input(5)) RETURN_IF_ERROR(CheckType(context, 5, kFloat));
  RETURN_IF_ERROR(CheckColumns(context, 5, l.n));
  ASSIGN_OR_RETURN(Shape shape, MatMulShape(context.shape(0), {l.k, l.n}));
  context.SetOutput(0, DType::kFloat32, std::move(shape));
  return absl::OkStatus();
}

absl::Status MatMulNBitsKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const BitLayout l, BitLayoutOf(context.node));
  const uint8_t* packed = context.inputs[1].as<uint8_t>();
  const float* scales = context.inputs[2].as<float>();
  std::vector<float> b(l.k * l.n);
  for (int64_t n = 0; n < l.n; ++n) {
    for (int64_t block = 0; block < l.blocks; ++block) {
      float zero = static_cast<float>(1 << (l.bits - 1));
      if (HasInput(context, 3) && context.inputs[3].dtype == DType::kUInt8) {
        const uint8_t* row = context.inputs[3].as<uint8_t>() + n * l.zero_bytes_per_row;
        zero = static_cast<float>(Unpack(row, block, l.bits));
      } else if (HasInput(context, 3)) {
        zero = context.inputs[3].as<float>()[n * l.blocks + block];
      }
      const uint8_t* bytes = packed + (n * l.blocks + block) * l.bytes_per_block;
      const int64_t end = std::min(l.block, l.k - block * l.block);
      for (int64_t i = 0; i < end; ++i) {
        b[(block * l.block + i) * l.n + n] =
            (static_cast<float>(Unpack(bytes, i, l.bits)) - zero) * scales[n * l.blocks + block];
      }
    }
  }
  float* y = context.outputs[0].as<float>();
  const int64_t count = context.outputs[0].num_elements();
  MultiplyF32(context.inputs[0].as<float>(), b.data(), y, count / l.n, l.k, l.n);
  if (HasInput(context, 5)) {
    for (int64_t i = 0; i < count; ++i) y[i] += context.inputs[5].as<float>()[i % l.n];
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops

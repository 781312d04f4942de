// GgufBuilder: the bytes of a GGUF file, right or wrong, piece by piece.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reprise {

class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t more_tensors = 0, more_members = 0;  // that the header claims

  template <typename T>
  GgufBuilder& Member(const std::string& key, uint32_t type, T value) {
    Text(members_, key);
    Put(members_, type);
    Put(members_, value);
    ++member_count_;
    return *this;
  }
  GgufBuilder& U32(const std::string& key, uint32_t value) { return Member(key, 4, value); }
  GgufBuilder& F32(const std::string& key, float value) { return Member(key, 6, value); }
  GgufBuilder& Text(const std::string& key, const std::string& value) {
    Text(members_, key);
    Put(members_, uint32_t{8});
    Text(members_, value);
    ++member_count_;
    return *this;
  }
  GgufBuilder& Texts(const std::string& key, const std::vector<std::string>& values) {
    Text(members_, key);
    Put(members_, uint32_t{9});
    Put(members_, uint32_t{8});
    Put(members_, static_cast<uint64_t>(values.size()));
    for (const std::string& value : values) Text(members_, value);
    ++member_count_;
    return *this;
  }
  // Any bytes in the place of a member.
  GgufBuilder& Raw(const std::string& bytes) {
    members_ += bytes;
    ++member_count_;
    return *this;
  }

  // `dims`: the innermost first, as in the file. The data is `bytes`.
  GgufBuilder& Tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                      const std::string& bytes) {
    return TensorAt(name, dims, type, Append(bytes));
  }
  GgufBuilder& TensorAt(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                        uint64_t offset) {
    Text(tensors_, name);
    Put(tensors_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) Put(tensors_, dim);
    Put(tensors_, type);
    Put(tensors_, offset);
    ++tensor_count_;
    return *this;
  }
  GgufBuilder& Floats(const std::string& name, const std::vector<uint64_t>& dims,
                      const std::vector<float>& values) {
    return Tensor(name, dims, 0,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  }

  std::string Bytes() const {
    std::string bytes = "GGUF";
    Put(bytes, version);
    Put(bytes, tensor_count_ + more_tensors);
    Put(bytes, member_count_ + more_members);
    bytes += members_ + tensors_;
    bytes.resize((bytes.size() + 31) / 32 * 32);
    return bytes + data_;
  }

  template <typename T>
  static void Put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static void Text(std::string& to, const std::string& text) {
    Put(to, static_cast<uint64_t>(text.size()));
    to += text;
  }

 private:
  uint64_t Append(const std::string& bytes) {
    data_.resize((data_.size() + 31) / 32 * 32);
    const uint64_t at = data_.size();
    data_ += bytes;
    return at;
  }

  uint64_t tensor_count_ = 0, member_count_ = 0;
  std::string members_, tensors_, data_;
};

// Returns a decoder of one layer: 2 heads of 4, 3 tokens.
inline GgufBuilder TinyLlama(const std::string& architecture = "llama") {
  GgufBuilder b;
  const std::string at = architecture + ".";
  b.Text("general.architecture", architecture);
  b.U32(at + "block_count", 1).U32(at + "embedding_length", 8).U32(at + "context_length", 16);
  b.U32(at + "attention.head_count", 2).U32(at + "attention.head_count_kv", 1);
  b.U32(at + "feed_forward_length", 12);
  b.F32(at + "attention.layer_norm_rms_epsilon", 1e-5f);
  const auto add = [&](const char* name, const std::vector<uint64_t>& dims) {
    uint64_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    std::vector<float> values(count);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.01f * static_cast<float>(i % 17) - 0.05f;
    b.Floats(name, dims, values);
  };
  add("token_embd.weight", {8, 3});
  add("blk.0.attn_norm.weight", {8});
  add("blk.0.attn_q.weight", {8, 8});
  add("blk.0.attn_k.weight", {8, 4});
  add("blk.0.attn_v.weight", {8, 4});
  add("blk.0.attn_output.weight", {8, 8});
  add("blk.0.ffn_norm.weight", {8});
  add("blk.0.ffn_gate.weight", {8, 12});
  add("blk.0.ffn_up.weight", {8, 12});
  add("blk.0.ffn_down.weight", {12, 8});
  add("output_norm.weight", {8});
  return b;
}

}  // namespace reprise

"""Small configurations of the families of decoders that the installed transformers has."""

import transformers


def cfg(name, **options):
    config = getattr(transformers, name, None)
    return None if config is None else config(**options)


COMMON = dict(vocab_size=97, bos_token_id=0, eos_token_id=1, pad_token_id=0)
L = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, **COMMON)


def all_configs():
    d = {}
    d["llama"] = cfg("LlamaConfig", num_key_value_heads=2, **L)
    d["smollm"] = cfg("LlamaConfig", num_key_value_heads=2, tie_word_embeddings=True, **L)
    d["mistral"] = cfg("MistralConfig", num_key_value_heads=2, sliding_window=24, **L)
    d["qwen2"] = cfg("Qwen2Config", num_key_value_heads=2, **L)
    d["qwen3"] = cfg("Qwen3Config", num_key_value_heads=2, head_dim=16, **L)
    d["gemma"] = cfg("GemmaConfig", num_key_value_heads=1, head_dim=16, **L)
    d["gemma2"] = cfg("Gemma2Config", num_key_value_heads=2, head_dim=16, sliding_window=24, query_pre_attn_scalar=16, **L)
    d["gemma3"] = cfg("Gemma3TextConfig", num_key_value_heads=2, head_dim=16, sliding_window=24, query_pre_attn_scalar=16, layer_types=["sliding_attention", "full_attention"], **L)
    d["phi"] = cfg("PhiConfig", **L)
    d["phi3"] = cfg("Phi3Config", num_key_value_heads=2, sliding_window=None, **L)
    d["granite"] = cfg("GraniteConfig", num_key_value_heads=2, embedding_multiplier=2.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.2, **L)
    d["gpt2"] = cfg("GPT2Config", n_embd=64, n_layer=2, n_head=4, n_positions=128, **COMMON)
    d["gpt_neo"] = cfg("GPTNeoConfig", hidden_size=64, num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=4, window_size=24, max_position_embeddings=128, **COMMON)
    d["gpt_neox"] = cfg("GPTNeoXConfig", rotary_pct=0.5, **L)
    d["gptj"] = cfg("GPTJConfig", n_embd=64, n_layer=2, n_head=4, n_positions=128, rotary_dim=8, **COMMON)
    d["codegen"] = cfg("CodeGenConfig", n_embd=64, n_layer=2, n_head=4, n_positions=128, rotary_dim=8, **COMMON)
    d["bloom"] = cfg("BloomConfig", hidden_size=64, n_layer=2, n_head=4, **COMMON)
    d["mpt"] = cfg("MptConfig", d_model=64, n_heads=4, n_layers=2, expansion_ratio=2, max_seq_len=128, vocab_size=97)
    d["falcon"] = cfg("FalconConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4, multi_query=True, max_position_embeddings=128, **COMMON)
    d["falcon_new"] = cfg("FalconConfig", hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, max_position_embeddings=128, **COMMON)
    d["opt"] = cfg("OPTConfig", hidden_size=64, ffn_dim=96, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=64, **COMMON)
    d["bigcode"] = cfg("GPTBigCodeConfig", n_embd=64, n_layer=2, n_head=4, n_positions=128, multi_query=True, **COMMON)
    d["persimmon"] = cfg("PersimmonConfig", **L)
    d["xglm"] = cfg("XGLMConfig", d_model=64, ffn_dim=96, num_layers=2, attention_heads=4, max_position_embeddings=128, **COMMON)
    d["stablelm"] = cfg("StableLmConfig", num_key_value_heads=2, **L)
    d["olmo"] = cfg("OlmoConfig", num_key_value_heads=2, **L)
    d["smollm3"] = cfg("SmolLM3Config", num_key_value_heads=2, **L)
    return {k: v for k, v in d.items() if v is not None}
